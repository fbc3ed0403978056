"""A response taken apart as it arrives: however it is framed, wherever the packets were cut, whatever comes."""

import asyncio
import socket
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from gateway.upstreams.http1_connection import Connection, Origin, Response

HEAD = b"HTTP/1.1 200 Fine\r\nContent-Type: text/event-stream\r\n"
FRAMED = {
    "length": HEAD + b"Content-Length: 10\r\n\r\n0123456789",
    "chunks": HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n6;x=y\r\n456789\r\n0\r\nT: r\r\n\r\n",
    "interim": b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" + HEAD + b"Content-Length: 10\r\n\r\n0123456789",
    "hang-up": HEAD + b"\r\n0123456789",
}


class Wire(asyncio.Transport):
    """What a connection writes to, and can be told to stop reading from."""

    def __init__(self) -> None:
        super().__init__()
        self.written = asyncio.Event()
        self.is_cut = False
        self.is_paused = False

    def write(self, data: Any) -> None:
        assert data
        self.written.set()

    def abort(self) -> None:
        self.is_cut = True

    def is_closing(self) -> bool:
        return self.is_cut

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


class Shelf:
    """Who keeps connections."""

    def __init__(self) -> None:
        self.kept = 0
        self.lost = 0
        self.lingering = 0

    def linger(self, _: Connection) -> None:
        self.lingering += 1

    def keep(self, _: Connection, __: Origin) -> None:
        self.kept += 1

    def lose(self, _: Connection, __: Origin) -> None:
        self.lost += 1


class Talk:
    """One connection, a request sent, and the server's side of it in the test's hand."""

    def __init__(self) -> None:
        self.wire, self.shelf = Wire(), Shelf()
        self._socket = socket.socket()
        self.connection = Connection(self.shelf, ("http", "h"), self._socket)
        self.connection.connection_made(self.wire)

    async def hear(self, parts: Sequence[bytes], *, ends: bool = False) -> Response:
        """The response, when all of this has arrived."""
        asked = asyncio.ensure_future(self.connection.exchange(b"GET", URL("http://h/")))
        await self.wire.written.wait()
        for part in parts:
            if not self.wire.is_cut:
                self.connection.data_received(part)
        if ends:
            self.connection.connection_lost(None)
        try:
            async with asyncio.timeout(5):
                return await asked
        finally:
            self._socket.close()


def _cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    marks = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(marks)]


@pytest.mark.parametrize("framing", FRAMED)
@given(places=st.lists(st.integers(0, 200), max_size=12))
def test_packets_may_be_cut_anywhere(framing: str, places: list[int]) -> None:
    """Ours: TCP knows no messages."""

    async def play() -> None:
        talk = Talk()
        parts = _cut(FRAMED[framing], places)
        response = await talk.hear(parts, ends=framing == "hang-up")
        assert (response.status, response.reason) == (200, "Fine")
        assert response.headers["content-type"] == "text/event-stream"
        assert "t" not in response.headers
        assert await response.read(100) == b"0123456789"
        assert response.is_read
        assert (talk.shelf.kept, talk.wire.is_cut) == (int(framing != "hang-up"), False)

    asyncio.run(play())


@given(data=st.binary(max_size=400))
def test_whatever_a_server_sends_there_is_an_end(data: bytes) -> None:
    """Ours: nonsense becomes a fault that has a name, never anything else."""

    async def play() -> None:
        talk = Talk()
        try:
            response = await talk.hear([b"HTTP/1.1 2", data], ends=True)
            await response.read(1000)
        except aiohttp.ClientError:
            return
        assert response.status >= 200

    asyncio.run(play())


@pytest.mark.parametrize("framing", ["length", "chunks"])
async def test_a_response_that_breaks_off_says_so_after_what_had_come(framing: str) -> None:
    """Ours: half an answer is none."""
    response = await Talk().hear([FRAMED[framing].partition(b"456789")[0]], ends=True)
    assert await response.readany() == b"0123"
    assert not response.is_read
    with pytest.raises(aiohttp.ClientPayloadError):
        await response.readany()


async def test_a_server_that_hangs_up_before_the_head_did_not_answer() -> None:
    """Ours: whether it ran the request is not known."""
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await Talk().hear([b"HTTP/1.1 200 OK\r\nX: "], ends=True)


@pytest.mark.parametrize(
    "start",
    [
        b"HTTP/1.1 200 OK\r\nX: ",
        b"HTTP/1.1 200 ",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nT: ",
    ],
    ids=["header", "status", "extension", "trailer"],
)
async def test_what_never_ends_is_cut_off(start: bytes) -> None:
    """Ours: an upstream cannot fill our memory with what is no answer."""
    talk = Talk()

    async def hear() -> None:
        response = await talk.hear([start, *[b"a" * 8192] * 20])
        await response.read(1_000_000)

    with pytest.raises(aiohttp.ClientPayloadError):
        await hear()
    assert talk.wire.is_cut


async def test_a_server_is_not_listened_to_while_nobody_reads() -> None:
    """Ours: back-pressure instead of memory; and what is read makes room."""
    talk = Talk()
    response = await talk.hear([HEAD + b"Content-Length: 1000000\r\n\r\n", b"x" * 300_000])
    assert talk.wire.is_paused
    assert len(await response.readany()) == 300_000
    assert not talk.wire.is_paused


async def test_a_kept_connection_is_listened_to() -> None:
    """Ours: a large answer that came at once does not leave the next one unheard."""
    talk = Talk()
    response = await talk.hear([HEAD + b"Content-Length: 300000\r\n\r\n" + b"x" * 300_000])
    assert len(await response.read(400_000)) == 300_000
    assert (talk.wire.is_paused, talk.shelf.kept) == (False, 1)


async def test_switching_protocols_is_no_answer() -> None:
    """Ours: nobody asked for it."""
    talk = Talk()
    with pytest.raises(aiohttp.ClientError):
        await talk.hear(
            [b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nhello"], ends=True
        )


async def test_an_answer_heard_may_end_for_nobody_and_the_connection_is_kept() -> None:
    """Ours: the caller does not wait for the end of the stream, nor pays for a new connection next time."""
    talk = Talk()
    response = await talk.hear([HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"])
    response.let_end()
    response.release()
    assert (talk.shelf.lingering, talk.shelf.kept, talk.wire.is_cut) == (1, 0, False)
    talk.connection.data_received(b"1\r\nx\r\n0\r\n\r\n")
    assert (talk.shelf.kept, talk.wire.is_cut) == (1, False)
