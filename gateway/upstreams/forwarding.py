"""HTTP requests handed on to an upstream as they came, the response as it comes. Knows no MCP, no session, no era.

Nothing is added to a request that its sender did not write, nothing is inflated
or re-encoded on the way back: the two ends talk as if nobody stood between.
"""

import ssl
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from multidict import CIMultiDict
from yarl import URL

from gateway.errors import UpstreamSpokeNonsense
from gateway.upstreams.http1 import Http1
from gateway.upstreams.http1_connection import Response
from gateway.upstreams.http_client import IDLE_CONNECTION_SECONDS, is_same_origin, sent
from gateway.wire.headers import is_field_value

HeaderLines: TypeAlias = Sequence[tuple[str, str]]
"""Names and values in order; a name may come more than once."""

_NONE: Final[Mapping[str, str]] = {}


class Forwarder:
    """Sends foreign requests to one upstream, from `start` to `close`."""

    def __init__(
        self,
        url: str,
        *,
        connect_timeout: float,
        tls: ssl.SSLContext | None = None,
        own_headers: Mapping[str, str] = _NONE,
    ) -> None:
        self._url = URL(url)
        self._connect_timeout = connect_timeout
        self._tls = tls
        self._own_headers = own_headers
        """What the upstream is shown for everybody, instead of what the sender may have under these names."""
        self._http: Http1 | None = None

    async def start(self) -> None:
        """Get ready; the upstream need not be there yet."""
        self._http = Http1(
            connect_timeout=self._connect_timeout,
            idle_seconds=IDLE_CONNECTION_SECONDS,
            headers={},  # none of our own: nothing is said that the sender did not say
            tls=self._tls,
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
        lines = CIMultiDict(headers)
        for name, value in self._own_headers.items():
            lines[name] = value
        return sent(self._http, verb, self._address(query, place), headers=lines, body=body or None)

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

    def is_own(self, url: str) -> bool:
        """Is it an address of the upstream itself?"""
        try:
            return is_same_origin(URL(url), self._url)
        except ValueError:
            return False

    @property
    def path(self) -> str:
        """Where on its origin the upstream is."""
        return self._url.raw_path

    def _address(self, query: str, place: str | None) -> URL:
        if place is not None:
            return URL(f"{self._url.origin()}{place}", encoded=True)
        if not query:
            return self._url
        return URL(f"{self._url}{'&' if self._url.raw_query_string else '?'}{query}", encoded=True)


async def chunks_of(response: Response) -> AsyncIterator[bytes]:
    """The body as it arrives."""
    response.acknowledge()
    async for chunk in response.iter_any():
        response.acknowledge()
        yield chunk


def lines_of(response: Response) -> Iterable[tuple[str, str]]:
    """The response's headers, without those that cannot be written again."""
    return [(name, value) for name, value in response.headers.items() if is_field_value(value)]
