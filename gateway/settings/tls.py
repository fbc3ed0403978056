"""Certificates of either side, as types. Opens no file; that is for whoever uses them, and for the check."""

from pathlib import Path

from gateway.settings.fields import Section


class UpstreamTls(Section):
    """TLS towards an `https` upstream. Its certificate is always verified: there is no setting against it."""

    ca_file: Path | None = None
    """Who vouches for the server, in PEM, instead of the system's authorities; relative to the configuration file."""
    cert_file: Path | None = None
    """The certificate that we show to the server (mTLS), in PEM, with the chain behind it."""
    key_file: Path | None = None
    """Its key, not encrypted; default: in `cert_file`."""

    @property
    def is_set(self) -> bool:
        """Is anything said about it?"""
        return any((self.ca_file, self.cert_file, self.key_file))


class ListenTls(Section):
    """TLS for clients. Default: none, which is for loopback, or behind something that ends TLS."""

    cert_file: Path | None = None
    """The certificate, in PEM, with the chain behind it; relative to the configuration file. Read again on SIGHUP."""
    key_file: Path | None = None
    """Its key, not encrypted; default: in `cert_file`."""

    @property
    def is_on(self) -> bool:
        """Is the listener to speak TLS?"""
        return self.cert_file is not None
