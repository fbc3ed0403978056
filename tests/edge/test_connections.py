"""Connections are bounded, idle ones make room, and whoever speaks no HTTP is told so in few and fixed words."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from gateway.edge.front import Front
from gateway.settings.model import Limits
from gateway.telemetry.names import DoorRefusal

GOOD = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
MOST = 3
_DROP_SECONDS = 0.02
_MOST_DROPS = 100
"""Fewer than the headers that a request may have, and ten times the idle time."""
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def answer(_: web.BaseRequest) -> web.StreamResponse:
    return web.Response(text="ok")


@pytest.fixture
def turned() -> Counter[DoorRefusal]:
    return Counter()


@pytest.fixture
async def address(turned: Counter[DoorRefusal]) -> AsyncIterator[tuple[str, int]]:
    def count(why: DoorRefusal) -> None:
        turned[why] += 1

    async with listening(Front({"/mcp": answer}, Limits(connections=MOST), count)) as place:
        yield place


@contextlib.asynccontextmanager
async def listening(front: Front) -> AsyncIterator[tuple[str, int]]:
    runner = front.runner()
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield runner.addresses[0][:2]
    await runner.cleanup()


async def said(streams: Streams, data: bytes) -> bytes:
    """What is answered, headers and all, until the connection ends or the body is there."""
    reader, writer = streams
    writer.write(data)
    async with asyncio.timeout(5):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return head + await reader.readexactly(length)


@contextlib.asynccontextmanager
async def connected(address: tuple[str, int], number: int) -> AsyncIterator[list[Streams]]:
    streams = [await asyncio.open_connection(*address) for _ in range(number)]
    try:
        yield streams
    finally:
        for _, writer in streams:
            writer.close()


async def test_bad_http_gets_fixed_words_and_tells_no_version(
    address: tuple[str, int], turned: Counter[DoorRefusal]
) -> None:
    """Ours: aiohttp would repeat what was sent and name itself, its version and Python's."""
    async with connected(address, 1) as (streams,):
        answer_ = await said(streams, b"GET /secret\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    head, _, body = answer_.partition(b"\r\n\r\n")
    assert b" 400 Bad Request" in head
    assert b"Server: holdfast\r\n" in head + b"\r\n"
    assert json.loads(body)["error"] == {"code": -32600, "message": "The request is not valid HTTP"}
    assert b"secret" not in answer_
    assert b"aiohttp" not in answer_
    assert turned == {DoorRefusal.BAD_HTTP: 1}


@pytest.mark.parametrize("size", [9_000, 30_000])
async def test_a_large_token_gets_in(address: tuple[str, int], size: int) -> None:
    """Ours: tokens with many groups are larger than 8 KiB, and the servers of the SDKs take them."""
    large = GOOD.replace(b"\r\n\r\n", b"\r\nAuthorization: Bearer " + b"a" * size + b"\r\n\r\n")
    async with connected(address, 1) as (streams,):
        assert b" 200 OK" in await said(streams, large)


async def test_a_header_that_is_too_large_is_called_that(
    address: tuple[str, int], turned: Counter[DoorRefusal]
) -> None:
    """RFC 6585, 5: it is HTTP, and the caller can mend it if told what is wrong with it."""
    large = GOOD.replace(b"\r\n\r\n", b"\r\nX-Large: " + b"a" * 33_000 + b"\r\n\r\n")
    async with connected(address, 1) as (streams,):
        head, _, body = (await said(streams, large)).partition(b"\r\n\r\n")
    assert b" 431 Request Header Fields Too Large" in head
    assert json.loads(body)["error"] == {
        "code": -32600,
        "message": "The request line or a header is too long",
    }
    assert turned == {DoorRefusal.BAD_HTTP: 1}


async def test_no_answer_tells_which_software_gave_it(
    address: tuple[str, int], turned: Counter[DoorRefusal]
) -> None:
    """Ours: a version is an invitation."""
    async with connected(address, 2) as (one, other):
        good = await said(one, GOOD)
        lost = await said(other, GOOD.replace(b"/mcp", b"/x"))
    assert b"Server: holdfast" in good
    assert b"Server: holdfast" in lost
    assert turned == {DoorRefusal.NO_SUCH_PATH: 1}


async def test_at_the_limit_those_who_never_asked_make_room(
    address: tuple[str, int], turned: Counter[DoorRefusal]
) -> None:
    """Ours: slow loris. Connections that only wait cannot keep others out."""
    async with connected(address, MOST) as waiting:
        assert b"200 OK" in await said(waiting[0], GOOD)
        async with connected(address, 1) as (newcomer,):
            assert b"200 OK" in await said(newcomer, GOOD)
        assert await asyncio.wait_for(waiting[1][0].read(), 5) == b"", "the oldest that never sent a request"
        assert b"200 OK" in await said(waiting[0], GOOD)
    assert turned == {DoorRefusal.CONNECTIONS: 1}


async def test_headers_in_drops_are_not_waited_for_longer_than_idleness() -> None:
    """Ours: each byte in time does not make a request in time."""
    async with listening(Front({"/mcp": answer}, Limits(idle=0.2))) as place:
        reader, writer = await asyncio.open_connection(*place)
        writer.write(b"POST /mcp HTTP/1.1\r\n")
        try:
            # A header line as often as nobody hangs up on it: each wait for the end of the connection is a drop.
            for _ in range(_MOST_DROPS):
                writer.write(b"X: y\r\n")
                with contextlib.suppress(TimeoutError):
                    assert await asyncio.wait_for(reader.read(), _DROP_SECONDS) == b""
                    break
            else:
                pytest.fail("it still listens")
        finally:
            writer.close()


async def test_a_stream_for_a_client_of_http_1_0_ends_with_its_connection() -> None:
    """RFC 1945, 7.2.2: it knows no chunks, so without that it waits for more, keep-alive or not."""

    async def stream(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"all")
        await response.write_eof()
        return response

    asked = b"GET /mcp HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n"
    async with (
        listening(Front({"/mcp": stream}, Limits())) as place,
        connected(place, 1) as ((reader, writer),),
    ):
        writer.write(asked)
        async with asyncio.timeout(5):
            answered = await reader.read()
    assert answered.endswith(b"\r\n\r\nall")
