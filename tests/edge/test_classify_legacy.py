"""Which requests are a legacy client's, and which only a confused modern one's. The rules are ours."""

from typing import Any

import pytest

from gateway.edge.classify import Legacy
from tests.support.posted import CLIENT_INFO, GONE, refused, request, send


def initialize(**params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": params}


BARE = {"MCP-Protocol-Version": GONE, "Mcp-Method": GONE}


@pytest.mark.parametrize(
    ("body", "headers", "requested"),
    [
        pytest.param(initialize(protocolVersion="2025-11-25"), BARE, "2025-11-25", id="initialize"),
        pytest.param(initialize(protocolVersion="2099-01-01"), BARE, "2099-01-01", id="of any version"),
        pytest.param(initialize(), BARE, "2025-03-26", id="of no version"),
        pytest.param(
            {"jsonrpc": "2.0", "id": 7, "method": "tools/list"},
            BARE | {"MCP-Protocol-Version": "2025-06-18"},
            "2025-06-18",
            id="a legacy version header",
        ),
        pytest.param(
            request(meta={"progressToken": 1}),
            BARE | {"MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": "s"},
            "2025-11-25",
            id="legacy _meta",
        ),
        pytest.param(
            request(meta=GONE), BARE | {"Mcp-Session-Id": "s"}, "2025-03-26", id="a session and no version"
        ),
        pytest.param(
            initialize(protocolVersion="2025-06-18"),
            BARE | {"Accept": "application/json"},
            "2025-06-18",
            id="whatever it accepts",
        ),
        pytest.param(
            initialize(protocolVersion="2025-11-25"),
            {"MCP-Protocol-Version": "2025-11-25"},
            "2025-11-25",
            id="initialize, legacy header, Mcp-Method",
        ),
        pytest.param(
            initialize(protocolVersion="2025-11-25"),
            {"MCP-Protocol-Version": GONE},
            "2025-11-25",
            id="initialize, Mcp-Method",
        ),
        pytest.param(
            request(meta=GONE),
            {"MCP-Protocol-Version": "2025-11-25"},
            "2025-11-25",
            id="a legacy version header, Mcp-Method",
        ),
    ],
)
def test_a_legacy_client_is_known_by_its_ways(body: Any, headers: dict[str, Any], requested: str) -> None:
    verdict = send(body, headers)

    assert verdict == Legacy(7, body["method"], requested)
    error = refused(verdict.refusal(), 400, -32022)
    assert error.data == {"supported": ["2026-07-28"], "requested": requested}


@pytest.mark.parametrize(
    ("body", "headers", "code"),
    [
        pytest.param(initialize(protocolVersion="2025-11-25"), {}, -32602, id="initialize, modern headers"),
        pytest.param(request("initialize"), BARE, -32020, id="initialize, modern _meta"),
        pytest.param(
            request(), {"MCP-Protocol-Version": "2025-11-25"}, -32020, id="legacy header, modern _meta"
        ),
        pytest.param(
            request(meta={CLIENT_INFO: {}}), BARE | {"Mcp-Session-Id": "s"}, -32602, id="half of modern _meta"
        ),
        pytest.param(request(meta=GONE), BARE, -32602, id="nothing of either era"),
    ],
)
def test_a_client_that_shows_anything_modern_is_held_to_it(
    body: Any, headers: dict[str, Any], code: int
) -> None:
    refused(send(body, headers), 400, code)


def test_a_legacy_and_a_modern_version_line_together_are_no_legacy_client() -> None:
    headers = BARE | {"MCP-Protocol-Version": "2025-11-25"}

    refused(send(request(meta=GONE), headers, ("MCP-Protocol-Version", "2026-07-28")), 400, -32020)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (initialize(protocolVersion="2025-11-25"), {"Mcp-Method": "initialize"}),
        (request(meta=GONE), {"MCP-Protocol-Version": "2025-11-25", "Mcp-Method": "tools/list"}),
    ],
    ids=["handshake", "later"],
)
def test_a_method_header_alone_does_not_make_a_client_modern(body: Any, headers: dict[str, str]) -> None:
    """The handshake of npm `mcp-remote` 0.15.1 has it."""
    verdict = send(body, BARE | headers)

    assert isinstance(verdict, Legacy)
    assert verdict.requested == "2025-11-25"
