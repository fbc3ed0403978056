"""What goes on to the upstream of a client's request, and how a response that never came is told."""

import pytest
from aiohttp.test_utils import make_mocked_request

from gateway.edge.passthrough import knock_of, refusal
from gateway.errors import (
    GatewayError,
    Overloaded,
    UpstreamLost,
    UpstreamTimedOut,
    UpstreamUnauthorized,
    UpstreamUnreachable,
)


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
