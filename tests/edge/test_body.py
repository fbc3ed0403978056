"""A body that is too large, too slow or broken is refused in time, and its connection does not stay."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web

from gateway.edge.body import read_body
from gateway.edge.front import Front
from gateway.edge.reply import json_response
from gateway.errors import ClientFault
from gateway.relay.listener import Reply
from gateway.settings.model import Limits
from tests.support.waiting import until

HEAD = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
SECONDS = 0.1
LIMIT = 64

Talk = Callable[[bytes], Awaitable[tuple[int, bytes, bool]]]


async def answer(request: web.BaseRequest) -> web.StreamResponse:
    try:
        return web.Response(body=await read_body(request, SECONDS))
    except ClientFault as error:
        return json_response(Reply.of(error), None)


@pytest.fixture
async def front() -> Front:
    return Front({"/mcp": answer}, Limits(body=LIMIT))


@pytest.fixture
async def address(front: Front, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[str, int]]:
    monkeypatch.setattr("gateway.edge.front._LINGER_SECONDS", SECONDS)
    runner = front.runner()
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield runner.addresses[0][:2]
    await runner.cleanup()


@pytest.fixture
def talk(address: tuple[str, int]) -> Talk:
    """Send bytes; the status, the body, and whether the connection was closed after it."""

    async def send(data: bytes) -> tuple[int, bytes, bool]:
        async with asyncio.timeout(5):
            reader, writer = await asyncio.open_connection(*address)
            try:
                writer.write(data)
                head = await reader.readuntil(b"\r\n\r\n")
                lines = head.lower().split(b"\r\n")
                (length,) = [
                    int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")
                ]
                body = await reader.readexactly(length)
                closes = b"connection: close" in lines
                if closes:
                    assert await reader.read() == b"", "said to close, and does"
            finally:
                writer.close()
            return int(head.split(b" ")[1]), body, closes

    return send


@pytest.mark.parametrize(
    "data",
    [
        HEAD + b"Content-Length: 2\r\n\r\n{}",
        CHUNKED + b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
    ],
    ids=["whole", "in chunks"],
)
async def test_a_body_in_time_is_read_and_the_connection_stays(talk: Talk, data: bytes) -> None:
    assert await talk(data) == (200, b"{}", False)


@pytest.mark.parametrize(
    "data",
    [
        HEAD + b"Content-Length: 99\r\n\r\n",
        HEAD + b"Content-Length: 20\r\n\r\n{",
        CHUNKED,
        CHUNKED + b"5\r\n{",
        CHUNKED + b"1\r\n{\r\n",
    ],
    ids=["nothing", "a part", "no chunk", "part of a chunk", "no last chunk"],
)
async def test_a_body_that_does_not_come_is_408_and_the_connection_is_closed(talk: Talk, data: bytes) -> None:
    status, body, closes = await talk(data)
    assert (status, closes) == (408, True)
    message = json.loads(body)
    assert (message["id"], message["error"]["code"]) == (None, -32600)
    assert "in time" in message["error"]["message"]


@pytest.mark.parametrize("is_late", [False, True], ids=["with the headers", "after them"])
@pytest.mark.parametrize(
    "chunks", [b"zz\r\nhello\r\n0\r\n\r\n", b"2\r\nhello\r\n0\r\n\r\n", b"-1\r\n\r\n"], ids=str
)
async def test_a_broken_chunk_is_refused_and_does_not_keep_the_connection(
    front: Front, address: tuple[str, int], chunks: bytes, *, is_late: bool
) -> None:
    """Who waits for the body is not told by aiohttp that the chunk is none; the time limit is what helps."""

    async def is_waited_for() -> bool:
        return front.in_progress == 1

    async with asyncio.timeout(5):
        reader, writer = await asyncio.open_connection(*address)
        try:
            writer.write(CHUNKED)
            if is_late:
                await until(is_waited_for)
            writer.write(chunks)
            said = await reader.read()
        finally:
            writer.close()
    assert int(said.split(b" ")[1]) in {400, 408}


async def test_a_body_over_the_limit_is_413(talk: Talk) -> None:
    status, body, _ = await talk(HEAD + b"Content-Length: 65\r\n\r\n" + b"x" * 65)
    assert (status, json.loads(body)["error"]["code"]) == (413, -32600)


async def test_a_client_that_asks_before_it_sends_its_body_is_told_to_go_on(address: tuple[str, int]) -> None:
    """RFC 9110, 10.1.1: it may wait for that word as long as it likes."""
    async with asyncio.timeout(5):
        reader, writer = await asyncio.open_connection(*address)
        try:
            writer.write(HEAD + b"Expect: 100-Continue\r\nContent-Length: 2\r\n\r\n")
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            writer.write(b"{}")
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 ")
            assert await reader.readexactly(2) == b"{}"
        finally:
            writer.close()


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (HEAD + b"Expect: 100-continue\r\nContent-Length: 65\r\n\r\n", 413),
        (HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}", 200),
        (HEAD + b"Expect: a miracle\r\nContent-Length: 2\r\n\r\n{}", 200),
        (HEAD.replace(b"1.1", b"1.0") + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}", 200),
    ],
    ids=["too large in any case", "it is there already", "something else", "HTTP/1.0 has no such word"],
)
async def test_who_needs_no_word_to_go_on_gets_none(talk: Talk, data: bytes, status: int) -> None:
    """RFC 9110, 10.1.1: a final status says the same, and says it before the body is sent in vain."""
    assert (await talk(data))[0] == status
