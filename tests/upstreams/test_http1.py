"""The connections to servers: which is used again, which is not, and what is said about one that cannot be had."""

import asyncio
import errno
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Self

import aiohttp
import pytest
from multidict import CIMultiDict
from yarl import URL

from gateway.errors import Overloaded
from gateway.upstreams.http1 import ConnectFailed, Http1, NothingLeft
from gateway.upstreams.http_client import translated
from tests.support.waiting import stop_accepting, turns, until

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
Play = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class RawServer:
    """Speaks HTTP as it is told to, byte by byte."""

    def __init__(self, play: Play, host: str = "127.0.0.1") -> None:
        self._play = play
        self._host = host
        self._port = 0
        self._server: asyncio.Server | None = None
        self.accepted = 0
        self.open = 0
        self.heads: list[bytes] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, self._host, 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        await stop_accepting(self._server)
        await self.deserted()

    @property
    def url(self) -> URL:
        return URL.build(scheme="http", host=self._host, port=self._port, path="/mcp", query_string="x=1")

    async def deserted(self) -> None:
        """Return when nobody is connected any more."""

        async def look() -> bool:
            return self.open == 0

        await until(look)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self.open += 1
        try:
            while True:
                self.heads.append(await reader.readuntil(b"\r\n\r\n"))
                await self._play(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            self.open -= 1


async def _agree(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(OK)


@pytest.fixture
async def client() -> AsyncIterator[Http1]:
    http = Http1(connect_timeout=2, idle_seconds=5, headers={"User-Agent": "u"})
    yield http
    await http.close()


async def test_a_request_is_what_it_was_asked_to_be(client: Http1) -> None:
    """Ours: nothing is added that nobody asked for."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readexactly(4) == b"body"
        writer.write(OK)

    async with RawServer(play) as server:
        port = server.url.port
        own = CIMultiDict([("A", "1"), ("A", "2"), ("Ä-utf8", "ü")])
        response = await client.request("POST", server.url, headers=own, body=b"body")
        assert (response.status, response.reason, await response.read(10)) == (200, "OK", b"hi")
        await client.close()
    expected = (
        f"POST /mcp?x=1 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUser-Agent: u\r\nA: 1\r\nA: 2\r\n"
        "Ä-utf8: ü\r\nContent-Length: 4\r\n\r\n"
    )
    assert server.heads == [expected.encode()]


@pytest.mark.parametrize("value", ["a\r\nB: c", "a\nB: c", "a\rb", "a\0b"])
async def test_a_header_with_a_line_break_goes_nowhere(client: Http1, value: str) -> None:
    """Ours: what one peer said never becomes a header line for the other."""
    async with RawServer(_agree) as server:
        with pytest.raises(ConnectFailed):
            await client.request("GET", server.url, headers={"A": value})
        assert server.accepted == 0


async def test_a_connection_is_used_again_when_it_is_free(client: Http1) -> None:
    """Ours: a call costs no handshake of TCP."""
    async with RawServer(_agree) as server:
        for _ in range(3):
            response = await client.request("GET", server.url, headers={})
            assert await response.read(10) == b"hi"
        one, other = await asyncio.gather(*(client.request("GET", server.url, headers={}) for _ in range(2)))
        assert (await one.read(9), await other.read(9)) == (b"hi", b"hi")
        assert server.accepted == 2
        await client.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        OK + b"HTTP/1.1 200 OK\r\n",  # and half an answer that nobody asked for
        OK + OK,
    ],
)
async def test_a_connection_that_may_not_or_should_not_be_used_again_is_closed(
    client: Http1, answer: bytes
) -> None:
    """Ours: the answer to one request is never taken for that to another."""

    async def play(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)

    async with RawServer(play) as server:
        for _ in range(2):
            response = await client.request("GET", server.url, headers={})
            assert await response.read(10) == b"hi"
        assert server.accepted == 2


async def test_a_server_that_speaks_unasked_is_not_asked_on_that_connection(client: Http1) -> None:
    """Ours: as above, when the surplus comes later."""
    more = asyncio.Event()

    async def play(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        await more.wait()
        writer.write(OK)

    async with RawServer(play) as server:
        await (await client.request("GET", server.url, headers={})).read(10)
        more.set()
        await server.deserted()
        await (await client.request("GET", server.url, headers={})).read(10)
        assert server.accepted == 2
        await client.close()


async def test_a_connection_idle_for_long_is_closed() -> None:
    """Ours: servers hang up on idle connections, and a call must not be sent into that."""
    client = Http1(connect_timeout=2, idle_seconds=0.05, headers={})
    async with RawServer(_agree) as server:
        await (await client.request("GET", server.url, headers={})).read(10)
        await server.deserted()
    await client.close()


async def test_a_connection_that_was_idle_too_long_is_not_used_though_nobody_has_closed_it_yet(
    client: Http1,
) -> None:
    """Ours: they are looked through from time to time; a call that comes before that must not be the one to lose."""
    async with RawServer(_agree) as server:
        await (await client.request("GET", server.url, headers={})).read(10)
        ((connection,),) = client._idle.values()
        connection.idle_since -= client._idle_seconds
        await (await client.request("GET", server.url, headers={})).read(10)

        assert not connection.is_usable
        ((other,),) = client._idle.values()
        assert other is not connection
        await client.close()


async def test_a_response_let_go_before_its_end_takes_its_connection_along(client: Http1) -> None:
    """Ours: the rest of one answer is not the start of the next."""

    async def play(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK[:-1])

    async with RawServer(play) as server:
        response = await client.request("GET", server.url, headers={})
        assert await response.readany() == b"h"
        response.release()
        await server.deserted()


async def test_giving_up_while_the_server_thinks_hangs_up(client: Http1) -> None:
    """Ours: nobody waits, so nobody listens."""

    async def play(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read(1)  # until the client has gone
        raise ConnectionResetError

    async with RawServer(play) as server:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.request("GET", server.url, headers={})


async def test_nobody_there_is_told_apart_from_anything_else(client: Http1) -> None:
    """Ours: only this proves that nothing was sent."""
    async with RawServer(_agree) as server:
        url = server.url
    for gone in (url, URL("http://nowhere.invalid/"), url.with_scheme("https")):
        with pytest.raises(ConnectFailed):
            await client.request("GET", gone, headers={})


async def test_a_server_without_tls_is_no_https_server(client: Http1) -> None:
    """Ours: a failed handshake is a failed connect, and leaves no connection open."""

    async def play(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        raise ConnectionResetError

    async with RawServer(play) as server:
        with pytest.raises(ConnectFailed):
            await client.request("GET", server.url.with_scheme("https"), headers={})


async def test_a_resolver_that_hangs_is_asked_once_however_many_want_to_know(
    client: Http1, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: each question keeps a thread, and there are few for all servers together."""
    asked: list[str] = []
    found = asyncio.Event()

    async def hang(host: str, *_: Any, **__: Any) -> Any:
        asked.append(host)
        await found.wait()
        raise socket.gaierror(socket.EAI_AGAIN, "try again")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", hang)

    async def knock(seconds: float) -> str:
        with pytest.raises((ConnectFailed, TimeoutError)) as failed:
            async with asyncio.timeout(seconds):
                await client.request("GET", URL("http://crm.invalid/"), headers={})
        return type(failed.value).__name__

    assert set(await asyncio.gather(*(knock(0.05) for _ in range(20)))) == {"TimeoutError"}
    patient = asyncio.ensure_future(knock(5))
    async with RawServer(_agree) as server:
        await (await client.request("GET", server.url, headers={})).read(10)
        assert asked == ["crm.invalid"], "an address is not looked up at all"
        found.set()
        assert await patient == "ConnectFailed"
        found.clear()
        impatient = asyncio.ensure_future(knock(5))
        await turns()
        await client.close()
        assert await impatient == "ConnectFailed"
    assert asked == ["crm.invalid", "crm.invalid"]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_an_address_of_either_kind_is_gone_to_as_it_is(client: Http1, host: str) -> None:
    async with RawServer(_agree, host) as server:
        response = await client.request("GET", server.url, headers={})
        assert await response.read(10) == b"hi"
        await client.close()
    assert f"Host: {server.url.host_port_subcomponent}".encode() in server.heads[0]


async def test_a_connection_on_which_nobody_speaks_is_known_to_be_alive(
    client: Http1, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: while a person thinks nothing is said; routers forget such a connection, and machines go for good."""
    opened: list[socket.socket] = []
    loop = asyncio.get_running_loop()
    connect = loop.create_connection

    async def noting(*arguments: Any, sock: socket.socket, **options: Any) -> Any:
        opened.append(sock)
        return await connect(*arguments, sock=sock, **options)

    monkeypatch.setattr(loop, "create_connection", noting)
    async with RawServer(_agree) as server:
        await (await client.request("GET", server.url, headers={})).read(10)
        assert opened[0].getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        patience = [
            opened[0].getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        ]
        await client.close()
    assert patience[0] + patience[1] * patience[2] <= 60, "seconds until a machine that is gone is missed"


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL])
async def test_what_we_have_no_room_for_is_no_fault_of_the_server(
    client: Http1, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Ours: "cannot be reached" would have operators look at the wrong machine."""

    async def start(*_: Any, **__: Any) -> socket.socket:
        raise OSError(number, "none left")

    monkeypatch.setattr("aiohappyeyeballs.start_connection", start)
    with pytest.raises(NothingLeft, match=os.strerror(number)) as failed:
        await client.request("GET", URL("http://127.0.0.1:1/"), headers={})
    told = translated(failed.value)
    assert (type(told), told.http_status) == (Overloaded, 503)


async def test_after_the_end_there_is_no_connection_to_be_had(client: Http1) -> None:
    """Ours: a closed client stays closed."""
    async with RawServer(_agree) as server:
        await client.close()
        with pytest.raises(aiohttp.ClientError):
            await client.request("GET", server.url, headers={})


async def test_an_answer_that_never_ends_costs_its_connection(client: Http1) -> None:
    """LEGACY-WIRE: servers with an event store keep the stream open after the result."""

    async def play(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK[:-1])

    async with RawServer(play) as server:
        for _ in range(2):
            response = await client.request("GET", server.url, headers={})
            assert await response.readany() == b"h"
            response.let_end()
        await server.deserted()
        assert server.accepted == 2


async def test_a_connection_that_opens_too_late_is_closed_at_once(
    client: Http1, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: nothing outlives the client, not even what it had begun."""
    loop = asyncio.get_running_loop()
    connect = loop.create_connection

    async def slowly(*arguments: Any, **options: Any) -> Any:
        await client.close()
        return await connect(*arguments, **options)

    monkeypatch.setattr(loop, "create_connection", slowly)
    async with RawServer(_agree) as server:
        with pytest.raises(ConnectFailed):
            await client.request("GET", server.url, headers={})
        await server.deserted()
