"""HTTP/1.1 towards the servers: connections, and which of them takes the next request. Knows no MCP.

It follows no redirect, keeps no cookie, inflates nothing and sends nothing twice. The library's own client does
more than a call needs: a request here is one write, and a connection that waits weighs next to nothing.
"""

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final, TypeAlias

import aiohappyeyeballs
import aiohttp
from yarl import URL

from gateway.upstreams.http1_connection import Connection, Origin, Response

_ATTEMPT_SECONDS: Final = 0.25
"""After which the next address of a name is tried, beside the first (RFC 8305)."""

_LINGER_SECONDS: Final = 0.05
"""How long the end of an answer that has been heard may take; a new connection costs less than to wait longer."""

_ALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""After so many quiet seconds ask whether the server is still there, so often, so many times. While a person thinks
nothing is said for minutes: routers in between forget such a connection, and nobody would learn of a machine that is
gone. The system's own patience is two hours."""
_OUR_OWN: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL})
"""What a connection fails of that is no fault of the server's: descriptors, memory, ports of ours."""


_Places: TypeAlias = list[Any]
"""Where a name leads, as `getaddrinfo` has it."""


class ConnectFailed(aiohttp.ClientConnectionError):
    """There was no connection, so nothing was sent."""


class NothingLeft(ConnectFailed):
    """Because this process, or this machine, has no room for one more."""


class Http1:
    """Requests to few origins, mostly one, until `close`. How many at once is for others to bound."""

    def __init__(
        self,
        *,
        connect_timeout: float,
        idle_seconds: float,
        headers: Mapping[str, str],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._connect_timeout = connect_timeout
        self._idle_seconds = idle_seconds
        self._standing = _lines(headers)
        self._tls = tls
        self._idle: dict[Origin, list[Connection]] = {}
        self._open: set[Connection] = set()
        self._all_gone = asyncio.Event()
        self._all_gone.set()
        self._reaper: asyncio.TimerHandle | None = None
        self._lookups: dict[tuple[str, int], asyncio.Task[_Places]] = {}
        self._lingering: dict[Connection, float] = {}
        """Those whose answer has been heard, but has not ended yet; and until when it may."""
        self._sweeper: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def request(
        self, method: str, url: URL, *, headers: Mapping[str, str], body: bytes | None = None
    ) -> Response:
        """Send it, and return when the head of the response is there.

        Raises:
            ConnectFailed: nothing was sent.
            aiohttp.ClientError: it may have been.
        """
        request = _encoded(f"{_target(method, url)}{self._standing}{_lines(headers)}", body)
        connection = self._take_idle((url.scheme, url.raw_authority))
        if connection is None:
            connection = await self._connect(url)
        return await connection.exchange(request, url)

    async def close(self) -> None:
        """Hang up on everyone."""
        self._is_closed = True
        for timer in (self._reaper, self._sweeper):
            if timer is not None:
                timer.cancel()
        lookups = list(self._lookups.values())
        for lookup in lookups:
            lookup.cancel()
        for connection in list(self._open):
            connection.cut()
        await self._all_gone.wait()
        await asyncio.gather(*lookups, return_exceptions=True)

    # --- connections -------------------------------------------------------------------

    def _take_idle(self, origin: Origin) -> Connection | None:
        stack = self._idle.get(origin)
        if not stack:
            return None
        oldest = asyncio.get_running_loop().time() - self._idle_seconds
        while stack:
            connection = stack.pop()
            if connection.idle_since > oldest and connection.is_usable:
                return connection
            connection.cut()  # the server may be about to
        return None

    async def _connect(self, url: URL) -> Connection:
        self._check_open()
        loop = asyncio.get_running_loop()
        is_secure = url.scheme == "https"
        if is_secure and self._tls is None:
            self._tls = ssl.create_default_context()
        opened: socket.socket | None = None
        try:
            async with asyncio.timeout(self._connect_timeout):
                places = await self._places(url.host or "", url.port or 0)
                opened = await aiohappyeyeballs.start_connection(
                    places, happy_eyeballs_delay=_ATTEMPT_SECONDS, loop=loop
                )
                _stay_known(opened)
                connection = Connection(self, (url.scheme, url.raw_authority), opened)
                await loop.create_connection(
                    lambda: connection,
                    sock=opened,
                    ssl=self._tls if is_secure else None,
                    server_hostname=url.host if is_secure else None,
                )
        except BaseException as error:
            if opened is not None:
                opened.close()
            if isinstance(error, OSError | UnicodeError):  # time-outs and failures of TLS are OSErrors too
                raise _failed(error) from error
            raise
        self._open.add(connection)
        self._all_gone.clear()
        try:
            self._check_open()  # still
        except ConnectFailed:
            connection.cut()
            raise
        return connection

    async def _places(self, host: str, port: int) -> _Places:
        """Look a name up, once for all who want it now.

        A resolver that hangs keeps a thread for as long as the system tries, whoever has given up since. There are
        few, for all servers together: one whose name cannot be found must not take them all.
        """
        known = _place_of_number(host, port)
        if known is not None:
            return known
        lookup = self._lookups.get((host, port))
        if lookup is None:
            loop = asyncio.get_running_loop()
            looking = loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            lookup = self._lookups[host, port] = asyncio.ensure_future(looking)
            lookup.add_done_callback(lambda done: self._looked_up((host, port), done))
        try:
            return await asyncio.shield(lookup)
        except asyncio.CancelledError:
            if lookup.cancelled():
                raise ConnectFailed("closed") from None
            raise

    def _looked_up(self, name: tuple[str, int], lookup: "asyncio.Task[_Places]") -> None:
        del self._lookups[name]
        if not lookup.cancelled():
            lookup.exception()  # whoever waited for it knows; maybe nobody did

    def _check_open(self) -> None:
        if self._is_closed:
            raise ConnectFailed("closed")

    # --- from a connection ---------------------------------------------------------------

    def keep(self, connection: Connection, origin: Origin) -> None:
        """It has had its answer and can take the next request."""
        if self._is_closed:
            connection.cut()
            return
        self._lingering.pop(connection, None)
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.setdefault(origin, []).append(connection)
        if self._reaper is None:
            self._reaper = loop.call_later(self._idle_seconds, self._reap)

    def linger(self, connection: Connection) -> None:
        """Nobody reads the end of its answer: for a moment it may still come."""
        loop = asyncio.get_running_loop()
        self._lingering[connection] = loop.time() + _LINGER_SECONDS
        if self._sweeper is None:
            self._sweeper = loop.call_later(_LINGER_SECONDS, self._sweep)

    def lose(self, connection: Connection, origin: Origin) -> None:
        """It is gone."""
        self._open.discard(connection)
        self._lingering.pop(connection, None)
        if not self._open:
            self._all_gone.set()
        stack = self._idle.get(origin)
        if stack and connection in stack:
            stack.remove(connection)

    def _sweep(self) -> None:
        self._sweeper = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection, until in list(self._lingering.items()):
            if until > now:  # and so for all that came after it
                self._sweeper = loop.call_at(until, self._sweep)
                return
            del self._lingering[connection]
            connection.cut()

    def _reap(self) -> None:
        self._reaper = None
        loop = asyncio.get_running_loop()
        oldest = loop.time() - self._idle_seconds
        for origin, stack in list(self._idle.items()):
            for connection in stack:
                if connection.idle_since <= oldest:
                    connection.cut()
            fresh = [connection for connection in stack if connection.idle_since > oldest]
            if fresh:
                self._idle[origin] = fresh
            else:
                del self._idle[origin]
        if self._idle:
            self._reaper = loop.call_later(self._idle_seconds, self._reap)


def _failed(error: OSError | UnicodeError) -> ConnectFailed:
    is_ours = isinstance(error, OSError) and error.errno in _OUR_OWN
    return (NothingLeft if is_ours else ConnectFailed)(_in_words(error))


def _place_of_number(host: str, port: int) -> _Places | None:
    """An address needs no looking up; None: it is a name."""
    try:
        version = ip_address(host).version
    except ValueError:
        return None
    if "%" in host:  # of one interface, which the system knows by its number
        return None
    family, place = (socket.AF_INET, (host, port)) if version == 4 else (socket.AF_INET6, (host, port, 0, 0))
    return [(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", place)]


def _stay_known(opened: socket.socket) -> None:
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _ALIVE.items():
        if hasattr(socket, name):  # or the system's own patience has to do
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


@lru_cache(maxsize=64)  # an upstream has one address, mostly
def _target(method: str, url: URL) -> str:
    return f"{method} {url.raw_path_qs} HTTP/1.1\r\nHost: {url.host_port_subcomponent}\r\n"


def _lines(headers: Mapping[str, str]) -> str:
    lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
    text = "".join(lines)
    if text.count("\n") != len(lines) or text.count("\r") != len(lines) or "\0" in text:
        raise ConnectFailed("a line break in a header")
    return text


def _encoded(head: str, body: bytes | None) -> bytes:
    if body is None:
        return f"{head}\r\n".encode("utf-8", "surrogateescape")
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode("utf-8", "surrogateescape") + body


def _in_words(error: OSError | UnicodeError) -> str:
    """Without the address, which some have in their own words."""
    match error:
        case socket.gaierror() if error.strerror:
            return error.strerror
        case TimeoutError(errno=None):
            return "No connection in time"
        case OSError(errno=int(number)):
            return os.strerror(number)
        case _:
            return type(error).__name__
