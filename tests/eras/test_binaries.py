"""Base64: what servers write for it is made what strict clients read, and nothing is made up."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.eras.binaries import as_base64
from gateway.wire.jsonrpc import Raw, encode

BYTES = b"\xfb\xef\xbe picture \xff"
PLAIN = base64.b64encode(BYTES).decode()


def mended(written: object) -> str | None:
    return as_base64(Raw(encode(written)))


@pytest.mark.parametrize(
    "written",
    [
        PLAIN,
        base64.urlsafe_b64encode(BYTES).decode(),
        PLAIN.rstrip("="),
        f"{PLAIN[:4]}\r\n{PLAIN[4:8]}\n {PLAIN[8:]}\n",
        f"data:image/png;base64,{PLAIN}",
        f"DATA:image/svg+xml;charset=utf-8;BASE64,{PLAIN}",
        f" data:;base64,{PLAIN}",
    ],
)
def test_base64_of_any_kind_is_written_as_clients_read_it(written: str) -> None:
    """Ours: as MIME encoders, encoders for URLs and browsers write it."""
    assert mended(written) == PLAIN


@pytest.mark.parametrize(
    "written",
    [
        "!!",
        "A",
        "aGk=aGk",
        "aG=k",
        "data:text/plain,hi",
        "data:image/png;base64,!!",
        "https://example.com/a.png",
        "\u00e9\u00e9\u00e9\u00e9",
        None,
        5,
        ["aGk="],
    ],
)
def test_what_is_no_base64_is_none(written: object) -> None:
    assert mended(written) is None


@given(st.binary(max_size=64))
def test_no_byte_is_lost(content: bytes) -> None:
    for encoder in (base64.b64encode, base64.urlsafe_b64encode, base64.encodebytes):
        written = mended(encoder(content).decode())

        assert written is not None
        assert base64.b64decode(written, validate=True) == content


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
def test_whatever_it_becomes_strict_decoders_read_it(text: str) -> None:
    written = mended(text)

    if written is not None:
        content = base64.b64decode(written, validate=True)
        assert len(content) == len(written) // 4 * 3 - written.count("=")
