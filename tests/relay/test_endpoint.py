"""The one thing that is changed in a legacy stream: the address in its `endpoint` event."""

import itertools
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.relay.endpoint import address_in, with_own_endpoint


async def cut(data: bytes, places: list[int]) -> AsyncIterator[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    for start, end in itertools.pairwise(edges):
        yield data[start:end]


async def rewritten(data: bytes, places: list[int]) -> bytes:
    return b"".join([chunk async for chunk in with_own_endpoint(cut(data, places), lambda _: "/mcp?own")])


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
@given(places=st.lists(st.integers(0, 400), max_size=12))
async def test_only_the_address_is_changed_however_the_stream_is_cut(
    newline: bytes, places: list[int]
) -> None:
    rest = b": ping" + newline * 2 + b"event: message" + newline + b"data: {}" + newline * 2
    start = b": hello" + newline * 2 + b"event: endpoint" + newline
    data = start + b"data: /messages/?session_id=ab" + newline * 2 + rest

    assert await rewritten(data, places) == start + b"data: /mcp?own" + newline * 2 + rest


async def test_a_stream_without_an_endpoint_goes_through_as_it_is() -> None:
    for data in (b"event: message\ndata: {}\n\n", b"not events at all", b"", b"data: " + b"x" * 70_000):
        assert await rewritten(data, [3]) == data


@pytest.mark.parametrize(
    ("query", "address"),
    [
        ("", None),
        ("a=1", None),
        ("holdfast=abc", "abc"),
        ("a=1&holdfast=abc&b", "abc"),
        ("xholdfast=1", None),
    ],
)
def test_an_address_is_found_in_a_query(query: str, address: str | None) -> None:
    assert address_in(query) == address
