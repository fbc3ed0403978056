"""What every way over HTTP to a legacy server has in common: the client, redirects, faults in our own words."""

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

import aiohttp
from aiohttp import hdrs
from yarl import URL

from gateway.errors import GatewayError, UpstreamLost, UpstreamSpokeNonsense, UpstreamUnreachable

IDLE_CONNECTION_SECONDS: Final = 4.0
"""Servers close idle connections after five; one that is closed while we send costs a call."""
_MOST_REDIRECTS: Final = 3
_SAME_METHOD: Final = frozenset({307, 308})
_SAME_METHOD_IF_GET: Final = frozenset({301, 302, 303})


def new_client(*, connect_timeout: float, version: str) -> aiohttp.ClientSession:
    """The HTTP client of one upstream. To be made while the event loop runs."""
    return aiohttp.ClientSession(
        # Held streams occupy connections for minutes. Our own limits decide how many, not the library's.
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_CONNECTION_SECONDS),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_timeout),
        cookie_jar=aiohttp.DummyCookieJar(),  # one caller's cookies are nobody else's
        headers={"User-Agent": f"holdfast/{version}"},
    )


@asynccontextmanager
async def requested(
    http: aiohttp.ClientSession,
    method: str,
    url: URL,
    *,
    headers: Mapping[str, str],
    body: bytes | None = None,
) -> AsyncIterator[aiohttp.ClientResponse]:
    """A response. Redirects are followed within the origin only: credentials go nowhere else."""
    for _ in range(_MOST_REDIRECTS + 1):
        async with http.request(method, url, data=body, headers=headers, allow_redirects=False) as response:
            place = _moved_to(method, response)
            if place is None:
                yield response
                return
            if not is_same_origin(place, url):
                raise UpstreamSpokeNonsense("redirected to another origin")
            url = place
    raise UpstreamSpokeNonsense("redirected too often")


def is_same_origin(one: URL, other: URL) -> bool:
    """Same scheme, host and port. A URL with a user name in it is nobody's."""
    return one.absolute and one.user is None and one.password is None and one.origin() == other.origin()


def acknowledge(response: aiohttp.ClientResponse) -> None:
    """Tell the server now that its bytes have arrived, so that it sends on.

    Python servers leave Nagle's algorithm on: they hold the next packet back until
    ours is acknowledged, and the kernel takes 40 ms over that unless told to hurry.
    """
    if response.content.is_eof():
        return  # it has sent everything
    connection = response.connection
    if connection is None or connection.transport is None or not hasattr(socket, "TCP_QUICKACK"):
        return
    sock = connection.transport.get_extra_info("socket")
    if sock is not None:
        with suppress(OSError):  # broken meanwhile, which the reader will find out
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def translated(error: Exception) -> GatewayError:
    """Whose fault, and could the request have run? Only a failed connect is certain that it did not."""
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return UpstreamUnreachable(type(error).__name__)
    return UpstreamLost(type(error).__name__)


def _moved_to(method: str, response: aiohttp.ClientResponse) -> URL | None:
    location = response.headers.get(hdrs.LOCATION)
    is_redirect = response.status in _SAME_METHOD or (
        method == hdrs.METH_GET and response.status in _SAME_METHOD_IF_GET
    )
    if not is_redirect or location is None:
        return None
    try:
        return response.url.join(URL(location))
    except ValueError:
        raise UpstreamSpokeNonsense("redirected to something that is no URL") from None
