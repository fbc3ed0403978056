"""Blocks of content: each is made readable, or shown as the text that it is."""

from typing import Any

import pytest

from gateway.eras.blocks import items, readable
from gateway.wire.jsonrpc import Raw, decode, encode

TEXT = {"type": "text", "text": "x"}


def seen(written: Any) -> Any:
    return decode(encode(readable(Raw(encode(written)))))


@pytest.mark.parametrize(
    "block",
    [
        TEXT,
        {"type": "resource_link", "uri": "a:b", "name": "n"},
        {"type": "resource", "resource": {"uri": "a:b", "blob": "eA=="}},
    ],
)
def test_a_block_that_clients_know_stays_the_bytes_that_it_was(block: Any) -> None:
    raw = Raw(encode(block))

    assert readable(raw) is raw


def test_a_block_is_mended_rather_than_given_up() -> None:
    assert seen({**TEXT, "annotations": None, "_meta": 7}) == TEXT


@pytest.mark.parametrize(
    "odd",
    [{"type": "video"}, {"type": "text"}, {"type": "resource", "resource": {"uri": "a:b"}}, 5, None, [1], {}],
)
def test_a_block_that_no_client_knows_is_shown_as_text(odd: Any) -> None:
    assert seen(odd) == {"type": "text", "text": encode(odd).decode()}


def test_a_bare_text_is_shown_as_that_text() -> None:
    assert seen("plain") == {"type": "text", "text": "plain"}


@pytest.mark.parametrize(("written", "found"), [([1, 2], [1, 2]), (None, []), ({"a": 1}, [{"a": 1}])])
def test_a_list_may_be_null_or_its_only_entry(written: Any, found: Any) -> None:
    assert [decode(item) for item in items(Raw(encode(written)))] == found
