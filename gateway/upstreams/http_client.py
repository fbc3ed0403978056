"""What every way over HTTP to a legacy server has in common: the client, redirects, faults in our own words."""

import socket
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Final

import aiohttp
from aiohttp import hdrs
from yarl import URL

from gateway.errors import GatewayError, UpstreamLost, UpstreamSpokeNonsense, UpstreamUnreachable
from gateway.wire.headers import is_field_value

IDLE_CONNECTION_SECONDS: Final = 4.0
"""Servers close idle connections after five; one that is closed while we send costs a call."""
_MOST_REDIRECTS: Final = 3
_NOTHING: Final[Mapping[str, str]] = {}
_SAME_METHOD: Final = frozenset({307, 308})
_SAME_METHOD_IF_GET: Final = frozenset({301, 302, 303})
FAULTS: Final = (aiohttp.ClientError, TimeoutError)
"""What the client raises when a request or its response comes to nothing."""


def new_client(*, connect_timeout: float, version: str) -> aiohttp.ClientSession:
    """The HTTP client of one upstream. To be made while the event loop runs."""
    return aiohttp.ClientSession(
        # Held streams occupy connections for minutes. Our own limits decide how many, not the library's.
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_CONNECTION_SECONDS),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_timeout),
        cookie_jar=aiohttp.DummyCookieJar(),  # one caller's cookies are nobody else's
        headers={"User-Agent": f"holdfast/{version}"},
    )


class requested:  # noqa: N801 - used as what it stands for, a verb
    """A response, within `async with`. Redirects are followed within the origin only: credentials go nowhere else.

    A class, and not a generator with a decorator: it lives as long as a held call
    does, and runs with every call.
    """

    __slots__ = ("_body", "_headers", "_http", "_method", "_response", "_url")
    _translates = False

    def __init__(
        self,
        http: aiohttp.ClientSession,
        method: str,
        url: URL,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
    ) -> None:
        self._http = http
        self._method = method
        self._url = url
        self._headers = headers
        self._body = body
        self._response: aiohttp.ClientResponse | None = None

    async def __aenter__(self) -> aiohttp.ClientResponse:
        method, url = self._method, self._url
        try:
            for _ in range(_MOST_REDIRECTS + 1):
                self._response = response = await self._http.request(
                    method, url, data=self._body, headers=self._headers, allow_redirects=False
                )
                place = _moved_to(method, response) if 300 <= response.status < 400 else None
                if place is None:
                    self._body, self._headers = None, _NOTHING  # sent, and may be large
                    return response
                response.release()
                if not is_same_origin(place, url):
                    raise UpstreamSpokeNonsense("redirected to another origin")
                url = place
            raise UpstreamSpokeNonsense("redirected too often")
        except BaseException as error:
            if self._response is not None:
                self._response.release()
            if self._translates and isinstance(error, FAULTS):
                raise translated(error) from error
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._response is not None and not self._response.closed:
            self._response.release()
        if self._translates and isinstance(error, FAULTS):
            raise translated(error) from error


class sent(requested):  # noqa: N801
    """The same; all that the HTTP client raises becomes ours."""

    __slots__ = ()
    _translates = True


def is_same_origin(one: URL, other: URL) -> bool:
    """Same scheme, host and port. A URL with a user name in it is nobody's."""
    if not one.absolute or one.user is not None or one.password is not None:
        return False
    return (one.scheme, one.host, one.port) == (other.scheme, other.host, other.port)


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


def challenge_of(response: aiohttp.ClientResponse) -> str | None:
    """The server's `WWW-Authenticate`, if it is fit to be a header of ours."""
    challenge = response.headers.get(hdrs.WWW_AUTHENTICATE)
    return challenge if challenge is not None and is_field_value(challenge) else None


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
