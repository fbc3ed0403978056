"""Mending: only what is wrong goes."""

from typing import Any

import pytest

from gateway.eras.shapes import (
    Icon,
    Implementation,
    InputSchema,
    Resource,
    TextBlock,
    Tool,
    mend,
    mend_members,
)
from gateway.wire.jsonrpc import Raw, decode, encode


def test_what_fits_is_the_very_same() -> None:
    raw = Raw(b'{"src":"a","unknown":null}')

    assert mend(Icon, raw) is raw


def test_what_the_shape_does_not_name_is_kept_as_it_is() -> None:
    mended = mend(Icon, Raw(b'{"src":"a","theme":null,"unknown":null,"n":1e999}'))

    assert encode(mended) == b'{"src":"a","unknown":null,"n":1e999}'


@pytest.mark.parametrize("raw", [b"null", b"[]", b"{}", b'{"src":null}', b'{"src":5,"theme":"dark"}', b'"a"'])
def test_what_lacks_the_indispensable_cannot_be_saved(raw: bytes) -> None:
    assert mend(Icon, Raw(raw)) is None


def test_mending_goes_as_deep_as_the_shape() -> None:
    info = {"name": "n", "version": "1", "title": 5, "icons": [{"src": "a", "sizes": None}, {}, None]}

    assert decode(encode(mend(Implementation, Raw(encode(info))))) == {
        "name": "n",
        "version": "1",
        "icons": [{"src": "a"}],
    }


def test_a_tag_is_no_member_to_mend() -> None:
    mended = mend(TextBlock, Raw(b'{"type":"text","text":"x","annotations":3}'))

    assert encode(mended) == b'{"type":"text","text":"x"}'


def test_values_of_our_own_are_taken_as_right() -> None:
    ours: dict[str, Any] = {"type": Raw(b'"object"'), "required": ["a"]}

    assert mend_members(InputSchema, ours) == ours


@pytest.mark.parametrize("shape", [Tool, Resource])
def test_wire_names_are_the_protocols(shape: type[Tool | Resource]) -> None:
    raw = Raw(
        b'{"name":"a","uri":"a://b","inputSchema":{"type":"object"},"mimeType":5,"outputSchema":5,"_meta":5}'
    )

    mended = mend(shape, raw)

    assert isinstance(mended, dict)
    assert "_meta" not in mended
    assert ("outputSchema" if shape is Tool else "mimeType") not in mended
