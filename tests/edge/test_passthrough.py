"""What goes on to the upstream of a client's request, and how a response that never came is told."""

import contextlib
from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer, make_mocked_request

from gateway.edge.passthrough import knock_of, refusal, write_passage
from gateway.errors import (
    GatewayError,
    Overloaded,
    UpstreamLost,
    UpstreamTimedOut,
    UpstreamUnauthorized,
    UpstreamUnreachable,
)
from gateway.relay.passage import HeaderLines, Passage


def test_what_concerns_only_the_connection_stays_here() -> None:
    request = make_mocked_request(
        "POST",
        "/mcp?a=%20b",
        headers={
            "Host": "gateway.example",
            "Origin": "https://gateway.example",
            "Connection": "keep-alive, X-Hop",
            "X-Hop": "1",
            "TE": "trailers",
            "Content-Length": "2",
            "Authorization": "Bearer t",
            "Mcp-Session-Id": "s",
            "MCP-Protocol-Version": "2025-11-25",
            "Accept-Encoding": "gzip",
        },
    )

    knock = knock_of(request, b"{}")

    assert dict(knock.headers) == {
        "Authorization": "Bearer t",
        "Mcp-Session-Id": "s",
        "MCP-Protocol-Version": "2025-11-25",
        "Accept-Encoding": "gzip",
        "X-Forwarded-Proto": "http",
        "X-Forwarded-Host": "gateway.example",
    }
    assert (knock.verb, knock.path, knock.query, knock.body) == ("POST", "/mcp", "a=%20b", b"{}")
    assert (knock.session_id, knock.authorization, knock.shows_version) == ("s", "Bearer t", True)
    assert "Bearer" not in repr(knock)


def test_whoever_stands_before_us_is_believed_about_the_client() -> None:
    headers = {
        "Host": "inner",
        "X-Forwarded-For": "10.0.0.1",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Host": "outer",
    }

    told = dict(knock_of(make_mocked_request("GET", "/mcp", headers=headers), b"").headers)

    assert told == {"X-Forwarded-For": "10.0.0.1", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "outer"}


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UpstreamUnreachable(), 502),
        (UpstreamLost(), 502),
        (UpstreamTimedOut(), 504),
        (Overloaded(), 503),
        (UpstreamUnauthorized(401, "Bearer"), 401),
        (GatewayError(), 500),
    ],
)
def test_that_there_is_no_response_is_told_by_the_status(error: GatewayError, status: int) -> None:
    assert refusal(error, 0).status == status


@pytest.mark.parametrize(
    "headers",
    [(), [("Content-Type", "text/x-own")], [("Content-Length", "3")]],
    ids=["chunks", "typed", "counted"],
)
async def test_a_body_has_the_type_that_the_upstream_gave_it_or_none(headers: HeaderLines) -> None:
    """Issue 3, byte-exact: servers leave the type out of 202 and of refusals; a made-up one came in its place."""

    async def chunks() -> AsyncIterator[bytes]:
        yield b"no."

    @contextlib.asynccontextmanager
    async def passing() -> AsyncIterator[Passage]:
        yield Passage(400, headers, chunks())

    async def handle(request: web.Request) -> web.StreamResponse:
        return await write_passage(request, passing())

    app = web.Application()
    app.router.add_get("/", handle)
    async with TestServer(app) as server, ClientSession() as http, http.get(server.make_url("/")) as answer:
        assert await answer.read() == b"no."
        assert answer.headers.get("Content-Type") == dict(headers).get("Content-Type")
