"""HTTP requests handed on to an upstream as they came, the response as it comes. Knows no MCP, no session, no era.

Nothing is added to a request that its sender did not write, nothing is inflated
or re-encoded on the way back: the two ends talk as if nobody stood between.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final, TypeAlias

import aiohttp
from aiohttp import hdrs
from multidict import CIMultiDict
from yarl import URL

from gateway.errors import UpstreamSpokeNonsense
from gateway.upstreams.http_client import IDLE_CONNECTION_SECONDS, acknowledge, is_same_origin, sent
from gateway.wire.headers import is_field_value

HeaderLines: TypeAlias = Sequence[tuple[str, str]]
"""Names and values in order; a name may come more than once."""

_ADDED_BY_THE_CLIENT: Final = (hdrs.USER_AGENT, hdrs.ACCEPT, hdrs.ACCEPT_ENCODING, hdrs.CONTENT_TYPE)


class Forwarder:
    """Sends foreign requests to one upstream, from `start` to `close`."""

    def __init__(self, url: str, *, connect_timeout: float) -> None:
        self._url = URL(url)
        self._connect_timeout = connect_timeout
        self._http: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Get ready; the upstream need not be there yet."""
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_CONNECTION_SECONDS),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_timeout),
            cookie_jar=aiohttp.DummyCookieJar(),  # one client's cookies are nobody else's
            auto_decompress=False,
            skip_auto_headers=_ADDED_BY_THE_CLIENT,
        )

    async def close(self) -> None:
        """Let go of connections."""
        if self._http is not None:
            await self._http.close()

    def sent(
        self, verb: str, headers: HeaderLines, body: bytes, *, query: str = "", place: str | None = None
    ) -> sent:
        """The response to a request at the upstream's URL, or at another place of its origin.

        Args:
            verb: The HTTP method.
            headers: Those of the sender that are not between neighbours only.
            body: As it came.
            query: What the sender put behind the question mark.
            place: Path and query of another endpoint.
        """
        if self._http is None:
            raise AssertionError("not started")
        return sent(
            self._http, verb, self._address(query, place), headers=CIMultiDict(headers), body=body or None
        )

    def place_of(self, reference: str, base: URL) -> str:
        """Path and query of what an upstream's answer refers to.

        Raises:
            UpstreamSpokeNonsense: it is no URL, or leaves the origin.
        """
        try:
            found = base.join(URL(reference))
        except ValueError:
            raise UpstreamSpokeNonsense("the endpoint event has no URL") from None
        if not is_same_origin(found, self._url):
            raise UpstreamSpokeNonsense("the endpoint event names another origin")
        return found.raw_path_qs

    def _address(self, query: str, place: str | None) -> URL:
        if place is not None:
            return URL(f"{self._url.origin()}{place}", encoded=True)
        if not query:
            return self._url
        return URL(f"{self._url}{'&' if self._url.raw_query_string else '?'}{query}", encoded=True)


async def chunks_of(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The body as it arrives."""
    acknowledge(response)
    async for chunk in response.content.iter_any():
        acknowledge(response)
        yield chunk


def lines_of(response: aiohttp.ClientResponse) -> Iterable[tuple[str, str]]:
    """The response's headers, without those that cannot be written again."""
    return [(name, value) for name, value in response.headers.items() if is_field_value(value)]
