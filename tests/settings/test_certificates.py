"""Certificates from files: what cannot be used is named by its setting, and verification is never off."""

import asyncio
import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from gateway.settings.certificates import CertificateUnusable, client_context, renew, server_context, trusting
from gateway.settings.tls import ListenTls, UpstreamTls
from tests.support.certificates import Authority


def test_servers_are_always_verified(tmp_path: Path) -> None:
    """Issue: verification cannot be silently off."""
    authority = Authority(tmp_path)
    pair = authority.client()
    for tls in (
        UpstreamTls(),
        UpstreamTls(ca_file=authority.file, cert_file=pair.cert, key_file=pair.key),
    ):
        context = client_context(tls)
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.check_hostname
        assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_a_configured_authority_takes_the_place_of_the_system_s(tmp_path: Path) -> None:
    """Ours: `ca_file` is who vouches, not one more."""
    context = client_context(UpstreamTls(ca_file=Authority(tmp_path).file))
    assert len(context.get_ca_certs()) == 1


@pytest.mark.parametrize(
    ("content", "why"),
    [(None, "cannot be read: No such file"), (b"", "PEM"), (b"hunter2", "PEM")],
)
def test_a_file_that_cannot_be_used_is_named_by_its_setting(
    tmp_path: Path, content: bytes | None, why: str
) -> None:
    """Ours: and nothing of it is shown."""
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CertificateUnusable, match=f"ca_file .*{why}"):
        client_context(UpstreamTls(ca_file=file))
    with pytest.raises(CertificateUnusable, match=f"cert_file .*{why}") as refusal:
        server_context(ListenTls(cert_file=file))
    assert "hunter2" not in str(refusal.value)


def test_a_key_of_another_certificate_is_refused(tmp_path: Path) -> None:
    """Ours: found at the start, not at the first handshake."""
    authority = Authority(tmp_path)
    one, other = authority.host(name="one"), authority.host(name="other")
    with pytest.raises(CertificateUnusable, match="key_file does not fit"):
        server_context(ListenTls(cert_file=one.cert, key_file=other.key))


def test_an_encrypted_key_is_refused_and_asks_nobody(tmp_path: Path) -> None:
    """Ours: OpenSSL would ask on the terminal, and wait."""
    pair = Authority(tmp_path).host()
    key = serialization.load_pem_private_key(pair.key.read_bytes(), None)
    locked = serialization.BestAvailableEncryption(b"secret")
    form = serialization.PrivateFormat.PKCS8
    pair.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, locked))
    with pytest.raises(CertificateUnusable, match="key_file has an encrypted key"):
        server_context(ListenTls(cert_file=pair.cert, key_file=pair.key))


def test_a_listener_s_files_are_read_again(tmp_path: Path) -> None:
    """Ours: certificates are short-lived; a broken one leaves the old one in place."""
    pair = Authority(tmp_path).host()
    tls = ListenTls(cert_file=pair.cert, key_file=pair.key)
    context = server_context(tls)
    renew(context, tls)
    pair.cert.write_bytes(b"nonsense")
    with pytest.raises(CertificateUnusable):
        renew(context, tls)


@pytest.mark.parametrize("spoilt", ["cert", "key", "other cert", "other key"])
async def test_files_that_do_not_go_together_leave_the_listener_as_it_was(
    tmp_path: Path, spoilt: str
) -> None:
    """Ours: a signal that comes between the writing of two files must not end all handshakes."""
    authority = Authority(tmp_path)
    pair, other = authority.host(), authority.host(name="other")
    tls = ListenTls(cert_file=pair.cert, key_file=pair.key)
    context = server_context(tls)
    whose = other if spoilt.startswith("other") else None
    for file, foreign in ((pair.cert, other.cert), (pair.key, other.key)):
        if spoilt.endswith(file.suffix.removeprefix(".").replace("crt", "cert")):
            file.write_bytes(foreign.read_bytes() if whose else b"nonsense")
    with pytest.raises(CertificateUnusable):
        renew(context, tls)
    async with asyncio.timeout(5):
        assert await _shown(context, trusting(authority.file)) == "host"


async def _shown(listener: ssl.SSLContext, client: ssl.SSLContext) -> str:
    """The name in the certificate that a client is shown."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=listener)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), ssl=client)
        subject = dict(pair for (pair,) in writer.get_extra_info("peercert")["subject"])
        await reader.read()
        writer.close()
    return str(subject["commonName"])
