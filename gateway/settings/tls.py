"""TLS settings of either side, as types. Opens no file: that is for `certificates` and for the check."""

from pathlib import Path

from gateway.settings.fields import Section


class UpstreamTls(Section):
    """TLS to an `https` upstream. Its certificate is always verified; no setting turns that off."""

    ca_file: Path | None = None
    """The authority that signed the server's certificate, in PEM, instead of the system's authorities; relative to the
    configuration file."""
    cert_file: Path | None = None
    """The certificate that the gateway presents to the server (mTLS), in PEM, followed by its chain."""
    key_file: Path | None = None
    """Its private key, not encrypted. Default: it is in `cert_file`."""

    @property
    def is_set(self) -> bool:
        """Is any of it set?"""
        return any((self.ca_file, self.cert_file, self.key_file))


class ListenTls(Section):
    """TLS for clients. Default: none, which is right on loopback or behind a TLS proxy."""

    cert_file: Path | None = None
    """The certificate, in PEM, followed by its chain; relative to the configuration file. Read again on SIGHUP."""
    key_file: Path | None = None
    """Its private key, not encrypted. Default: it is in `cert_file`."""

    @property
    def is_on(self) -> bool:
        """Does the listener speak TLS?"""
        return self.cert_file is not None
