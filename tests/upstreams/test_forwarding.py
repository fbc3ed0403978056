"""Requests handed on as they came."""

from collections.abc import AsyncIterator

import pytest
from yarl import URL

from gateway.errors import UpstreamSpokeNonsense, UpstreamUnreachable
from gateway.upstreams.forwarding import Forwarder, chunks_of, lines_of
from tests.support.scripted import Scripted, Turn


@pytest.fixture
async def server() -> AsyncIterator[Scripted]:
    async with Scripted(sessions=False) as scripted:
        yield scripted


@pytest.fixture
async def forwarder(server: Scripted) -> AsyncIterator[Forwarder]:
    made = Forwarder(server.url, connect_timeout=1)
    await made.start()
    yield made
    await made.close()


async def test_nothing_is_added_to_the_request_and_nothing_inflated_in_the_response(
    server: Scripted, forwarder: Forwarder
) -> None:
    squeezed = b"\x1f\x8b not really gzip"

    async def answers(turn: Turn) -> None:
        await turn.reply(200, squeezed, {"Content-Encoding": "gzip", "Set-Cookie": "a=1"})

    server.on["answer"] = answers
    async with forwarder.sent("POST", [("X-One", "1"), ("X-One", "2")], b"{}", query="q=%20") as response:
        received = b"".join([chunk async for chunk in chunks_of(response)])
        lines = dict(lines_of(response))

    assert received == squeezed
    assert lines["Content-Encoding"] == "gzip"
    assert server.turns[0].path == "/mcp?q=%20"
    assert server.turns[0].headers.keys() == {"host", "x-one", "content-length"}
    async with forwarder.sent("POST", [], b"{}"):
        pass
    assert "cookie" not in server.turns[1].headers


async def test_another_place_of_the_origin(server: Scripted, forwarder: Forwarder) -> None:
    async with forwarder.sent("POST", [], b"{}", place="/messages/?session_id=a%2Fb"):
        pass

    assert server.turns[0].path == "/messages/?session_id=a%2Fb"


@pytest.mark.parametrize(
    ("reference", "place"),
    [
        ("/messages/?session_id=1", "/messages/?session_id=1"),
        ("messages?x=1", "/a/messages?x=1"),
        ("http://h:81/other", "/other"),
        ("?x=1", "/a/sse?x=1"),
    ],
)
def test_references_are_resolved_within_the_origin(reference: str, place: str) -> None:
    forwarder = Forwarder("http://h:81/a/sse", connect_timeout=1)

    assert forwarder.place_of(reference, URL("http://h:81/a/sse")) == place


@pytest.mark.parametrize(
    "reference", ["http://evil/x", "//evil/x", "http://h:82/x", "https://h:81/x", "http://h:x"]
)
def test_a_reference_that_leaves_the_origin_is_nonsense(reference: str) -> None:
    forwarder = Forwarder("http://h:81/a/sse", connect_timeout=1)

    with pytest.raises(UpstreamSpokeNonsense):
        forwarder.place_of(reference, URL("http://h:81/a/sse"))


async def test_a_server_that_is_not_there_is_unreachable() -> None:
    forwarder = Forwarder("http://127.0.0.1:9/mcp", connect_timeout=1)
    await forwarder.start()
    try:
        with pytest.raises(UpstreamUnreachable):
            async with forwarder.sent("GET", [], b""):
                pass
    finally:
        await forwarder.close()
