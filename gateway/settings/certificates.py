"""Makes TLS contexts of certificate and key files. Opens no connection; a refusal says which file is at fault.

Both sides speak TLS 1.2 or later, and a peer's certificate is always verified:
nothing here, and no setting, turns that off.
"""

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

from gateway.settings.tls import ListenTls, UpstreamTls


class CertificateUnusable(ValueError):
    """A file cannot be read, or holds something else; `key` is the setting that names it."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(f"{key} {message}")
        self.key = key
        self.message = message


def client_context(tls: UpstreamTls) -> ssl.SSLContext:
    """How an upstream is met.

    Raises:
        CertificateUnusable: a file cannot be used.
    """
    context = trusting(tls.ca_file)
    if tls.cert_file is not None:
        _show(context, tls.cert_file, tls.key_file)
    return context


def trusting(ca_file: Path | None) -> ssl.SSLContext:
    """Verifies servers by these authorities, or by the system's. The errors are those of `client_context`."""
    try:
        context = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    except OSError as error:
        raise CertificateUnusable("ca_file", _reason(error, "certificates")) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def server_context(tls: ListenTls) -> ssl.SSLContext:
    """How clients are met. The errors are those of `client_context`."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    renew(context, tls)
    return context


def renew(context: ssl.SSLContext, tls: ListenTls) -> None:
    """Read the listener's files again: handshakes from now on show what is in them. The unusable changes nothing."""
    if tls.cert_file is None:
        raise AssertionError("no certificate is configured")
    # OpenSSL takes the certificate before it looks at the key: a pair that does not fit would leave us with neither.
    _show(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), tls.cert_file, tls.key_file)
    _show(context, tls.cert_file, tls.key_file)


def faults(tls: UpstreamTls | ListenTls) -> Iterator[CertificateUnusable]:
    """Everything that is wrong with the files, not only the first of it."""
    if isinstance(tls, UpstreamTls):
        yield from _fault_of(lambda: trusting(tls.ca_file))
    certificate, key = tls.cert_file, tls.key_file
    if certificate is None:
        return
    missing = list(unreadable("cert_file", certificate))
    if key is not None:
        missing += unreadable("key_file", key)
    yield from missing or _fault_of(lambda: _show(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), certificate, key))


def unreadable(key: str, path: Path) -> Iterator[CertificateUnusable]:
    """Why the file that this setting names cannot be read; nothing if it can."""
    yield from _fault_of(lambda: _check_readable(key, path))


def _fault_of(attempt: Callable[[], object]) -> Iterator[CertificateUnusable]:
    try:
        attempt()
    except CertificateUnusable as error:
        yield error


def _show(context: ssl.SSLContext, cert_file: Path, key_file: Path | None) -> None:
    for key, path in (("cert_file", cert_file), ("key_file", key_file)):
        if path is not None:
            _check_readable(key, path)
    try:
        # Without a password of its own OpenSSL would ask for one on the terminal, and wait.
        context.load_cert_chain(cert_file, key_file, password=_no_password)
    except _Encrypted:
        raise CertificateUnusable("key_file" if key_file else "cert_file", "has an encrypted key") from None
    except OSError as error:
        key = (
            "key_file" if key_file is not None and "KEY" in str(getattr(error, "reason", "")) else "cert_file"
        )
        raise CertificateUnusable(key, _reason(error, "a certificate and its key")) from None


class _Encrypted(Exception):
    """The key wants a password."""


def _no_password() -> str:
    raise _Encrypted


def _check_readable(key: str, path: Path) -> None:
    try:
        with path.open("rb"):
            return
    except (OSError, ValueError) as error:
        raise CertificateUnusable(key, _reason(error, "a file")) from None


def _reason(error: Exception, wanted: str) -> str:
    if isinstance(error, ssl.SSLError):
        if error.reason == "KEY_VALUES_MISMATCH":
            return "does not fit the certificate"
        return f"is not {wanted} in PEM"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror}"
    return f"cannot be read: {type(error).__name__}"
