"""What all HTTP transports to a legacy server share: the client, redirects, faults as errors of ours."""

import ssl
from collections.abc import Mapping, MutableMapping
from types import TracebackType
from typing import Final

import aiohttp
from aiohttp import hdrs
from yarl import URL

from gateway.errors import GatewayError, Overloaded, UpstreamLost, UpstreamSpokeNonsense, UpstreamUnreachable
from gateway.upstreams import cookies
from gateway.upstreams.http1 import ConnectFailed, Http1, NothingLeft
from gateway.upstreams.http1_connection import Response
from gateway.wire import headers as names

_LONGEST_CHALLENGE: Final = 4096
"""Characters. Clients read no response that has a header of more than 8 KiB, so it would hide the 401 itself."""
_NO_TLS: Final = "wrong version number"
"""What OpenSSL makes of an answer that is not TLS at all."""
_UNVOUCHED: Final = frozenset({18, 19, 20, 21})
"""OpenSSL's numbers for certificates of an authority that is not known here."""
IDLE_CONNECTION_SECONDS: Final = 4.0
"""Servers close idle connections after five; one that is closed while we send costs a call."""
_MOST_REDIRECTS: Final = 3
_NOTHING: Final[Mapping[str, str]] = {}
_SAME_METHOD: Final = frozenset({307, 308})
_SAME_METHOD_IF_GET: Final = frozenset({301, 302, 303})
FAULTS: Final = (aiohttp.ClientError, TimeoutError)
"""What the client raises when a request or its response comes to nothing."""


def new_client(*, connect_timeout: float, version: str, tls: ssl.SSLContext | None = None) -> Http1:
    """The HTTP client of one upstream. To be made while the event loop runs."""
    own: dict[str, str] = {hdrs.USER_AGENT: f"holdfast/{version}", hdrs.ACCEPT_ENCODING: "identity"}
    return Http1(connect_timeout=connect_timeout, idle_seconds=IDLE_CONNECTION_SECONDS, headers=own, tls=tls)


class requested:  # noqa: N801 - used as what it stands for, a verb
    """A response, within `async with`. Redirects are followed within the origin only: credentials go nowhere else.

    A class, and not a generator with a decorator: it lives as long as a held call
    does, and runs with every call.
    """

    __slots__ = ("_body", "_headers", "_http", "_kept", "_method", "_response", "_url")
    _translates = False

    def __init__(
        self,
        http: Http1,
        method: str,
        url: URL,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        kept: MutableMapping[str, str] | None = None,
    ) -> None:
        """`kept` are the headers of later requests of the same session, to which cookies are added."""
        self._http = http
        self._kept = kept
        self._method = method
        self._url = url
        self._headers = headers
        self._body = body
        self._response: Response | None = None

    async def __aenter__(self) -> Response:
        method, url = self._method, self._url
        try:
            for _ in range(_MOST_REDIRECTS + 1):
                self._response = response = await self._http.request(
                    method, url, headers=self._headers, body=self._body
                )
                if self._kept is not None and hdrs.SET_COOKIE in response.headers:
                    cookies.keep(response.headers.getall(hdrs.SET_COOKIE), self._kept)
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
        if self._response is not None:
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


def kind_of(response: Response) -> str:
    """The media type of its body; one that is compressed, which nobody asked for, is of a type that nobody reads."""
    kind = names.media_type(response.headers.get(hdrs.CONTENT_TYPE))
    coding = response.headers.get(hdrs.CONTENT_ENCODING)
    if coding is None or coding.lower() in ("", "identity"):
        return kind
    return f"{kind} compressed by {coding[:32]!r}"


def challenge_of(response: Response) -> str | None:
    """The server's `WWW-Authenticate`, if it is fit to be a header of ours."""
    challenge = response.headers.get(hdrs.WWW_AUTHENTICATE, "")
    is_fit = 0 < len(challenge) <= _LONGEST_CHALLENGE and names.is_field_value(challenge)
    return challenge if is_fit else None


def translated(error: Exception) -> GatewayError:
    """Whose fault, and could the request have run? Only a failed connect is certain that it did not."""
    trouble = _tls_trouble(error)
    if trouble is not None:
        return UpstreamUnreachable(f"TLS: {trouble}")
    if isinstance(error, NothingLeft):
        return Overloaded(f"no connection to the upstream can be opened: {error}")
    if isinstance(error, ConnectFailed):
        return UpstreamUnreachable(str(error))
    return UpstreamLost(str(error) or type(error).__name__)


def _tls_trouble(error: Exception) -> str | None:
    """What went wrong with the handshake, for the log. None: something else did.

    Under TLS 1.3 a server refuses our certificate only after the handshake, as
    an alert in place of the response: it has not read the request either.
    """
    cause = error.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        way_out = (
            "; tls.ca_file or SSL_CERT_FILE names its authority" if cause.verify_code in _UNVOUCHED else ""
        )
        return f"the server's certificate was refused: {cause.verify_message}{way_out}"
    if not isinstance(cause, ssl.SSLError):
        return None
    reason = (cause.reason or "no handshake").replace("_", " ").lower()
    if "alert" in reason:
        return f"the server refused ours: {reason}"
    if not isinstance(error, ConnectFailed):
        return None
    return f"{reason}: probably the server speaks http, not https" if reason == _NO_TLS else reason


def _moved_to(method: str, response: Response) -> URL | None:
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
