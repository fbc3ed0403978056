"""What all HTTP channels share: redirects stay within the origin, faults have our names."""

import ssl
from unittest.mock import Mock

import aiohttp
import pytest
from multidict import CIMultiDict
from yarl import URL

from gateway.errors import UpstreamLost, UpstreamSpokeNonsense, UpstreamUnreachable
from gateway.upstreams.http1 import ConnectFailed, Http1
from gateway.upstreams.http_client import challenge_of, is_same_origin, new_client, requested, translated
from tests.support.scripted import Scripted, Turn


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("http://h/other?x#y", True),
        ("http://h:80/", True),
        ("http://H/", True),
        ("https://h/", False),
        ("http://h:81/", False),
        ("http://h.example/", False),
        ("http://u@h/", False),
        ("http://u:p@h/", False),
        ("/relative", False),
    ],
)
def test_an_origin_is_scheme_host_and_port(other: str, same: bool) -> None:  # noqa: FBT001
    assert is_same_origin(URL(other), URL("http://h/mcp")) is same


async def test_redirects_are_followed_with_method_and_body(server: Scripted, http: Http1) -> None:
    """LEGACY-WIRE 5: Python servers answer 307 for a slash too many or too few."""

    async def moved(turn: Turn) -> None:
        if turn.path == "/mcp/":
            await turn.reply(200, turn.body)
        else:
            await turn.reply(307, "", {"Location": "/mcp/"})

    server.on["answer"] = moved
    async with requested(http, "POST", URL(server.url), headers={"A": "b"}, body=b'{"x":1}') as response:
        assert await response.read(100) == b'{"x":1}'
    assert [(turn.verb, turn.path, turn.headers["a"]) for turn in server.turns] == [
        ("POST", "/mcp", "b"),
        ("POST", "/mcp/", "b"),
    ]


@pytest.mark.parametrize(
    "place", ["http://localhost:1/", "https://127.0.0.1/", "//example.invalid/", "http://["]
)
async def test_redirects_elsewhere_are_refused(server: Scripted, http: Http1, place: str) -> None:
    async def moved(turn: Turn) -> None:
        await turn.reply(307, "", {"Location": place})

    server.on["answer"] = moved
    with pytest.raises(UpstreamSpokeNonsense):
        async with requested(http, "POST", URL(server.url), headers={}, body=b"{}"):
            pass
    assert len(server.turns) == 1


async def test_a_circle_is_left(server: Scripted, http: Http1) -> None:
    async def circle(turn: Turn) -> None:
        await turn.reply(308, "", {"Location": "/mcp"})

    server.on["answer"] = circle
    with pytest.raises(UpstreamSpokeNonsense, match="too often"):
        async with requested(http, "POST", URL(server.url), headers={}, body=b"{}"):
            pass
    assert len(server.turns) < 10


async def test_a_post_that_would_become_a_get_is_not_followed(server: Scripted, http: Http1) -> None:
    async def moved(turn: Turn) -> None:
        await turn.reply(302, "", {"Location": "/mcp/"})

    server.on["answer"] = moved
    async with requested(http, "POST", URL(server.url), headers={}, body=b"{}") as response:
        assert response.status == 302


async def test_only_a_failed_connect_proves_that_nothing_was_sent(server: Scripted, http: Http1) -> None:
    await server.stop()
    with pytest.raises(aiohttp.ClientError) as refused:
        async with requested(http, "GET", URL(server.url), headers={}):
            pass
    assert isinstance(translated(refused.value), UpstreamUnreachable)
    assert isinstance(translated(aiohttp.ServerDisconnectedError()), UpstreamLost)
    assert isinstance(translated(TimeoutError()), UpstreamLost)


async def test_one_caller_s_cookies_are_nobody_else_s(server: Scripted) -> None:
    async def bake(turn: Turn) -> None:
        await turn.reply(200, "", {"Set-Cookie": "a=b"})

    server.on["answer"] = bake
    client = new_client(connect_timeout=1, version="9")
    try:
        for _ in range(2):
            async with requested(client, "POST", URL(server.url), headers={}, body=b"{}"):
                pass
    finally:
        await client.close()
    assert not any("cookie" in turn.headers for turn in server.turns)
    assert server.turns[0].headers["user-agent"] == "holdfast/9"


def _ssl_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}]")
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        (
            _ssl_error("TLSV13_ALERT_CERTIFICATE_REQUIRED"),
            "tlsv13 alert certificate required",
        ),
        (_ssl_error("TLSV1_ALERT_UNKNOWN_CA"), "tlsv1 alert unknown ca"),
    ],
)
def test_a_server_that_refuses_our_certificate_is_told_of(cause: ssl.SSLError, told: str) -> None:
    """Ours: under TLS 1.3 the alert comes in place of the response; the request was not read."""
    error = aiohttp.ClientOSError(1, "read failed")
    error.__cause__ = cause
    found = translated(error)
    assert isinstance(found, UpstreamUnreachable)
    assert str(found) == f"TLS: the server refused ours: {told}"


def test_a_server_without_tls_is_told_in_words_that_lead_to_the_url() -> None:
    """Ours: `https` in place of `http` was told as a "wrong version number"."""
    error = ConnectFailed("no connection")
    error.__cause__ = _ssl_error("WRONG_VERSION_NUMBER")
    assert str(translated(error)) == "TLS: wrong version number: probably the server speaks http, not https"


def test_a_connection_that_merely_breaks_may_have_run_the_call() -> None:
    """Ours: only an alert is certain."""
    error = aiohttp.ClientOSError(104, "reset")
    error.__cause__ = _ssl_error("APPLICATION_DATA_AFTER_CLOSE_NOTIFY")
    assert isinstance(translated(error), UpstreamLost)


@pytest.mark.parametrize(
    "challenge",
    ["", "a\r\nX: y", "a\rb", "a\nb", "a\x00", "a\x1b", "a\x7f", "a\udcff", "a" * 4097],
    ids=lambda challenge: repr(challenge[:8]),
)
def test_a_challenge_that_is_unfit_to_be_a_header_is_none(challenge: str) -> None:
    """Ours: whatever the parser may let through one day."""
    response = Mock(headers=CIMultiDict({"WWW-Authenticate": challenge}))
    assert challenge_of(response) is None


def test_a_challenge_that_is_fit_is_told() -> None:
    """Issue: a 401 with its `WWW-Authenticate`."""
    assert challenge_of(Mock(headers=CIMultiDict({"WWW-Authenticate": "Bearer"}))) == "Bearer"
    assert challenge_of(Mock(headers=CIMultiDict())) is None
