"""Which posts and visits are handed on, where legacy clients are. The rules are ours."""

import json
from typing import Any

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from gateway.edge.classify import Accepted, Legacy, Modern, Refusal, Verdict, classify, is_legacy_visit
from tests.support.posted import META, SERVED, request

LEGACY = {"MCP-Protocol-Version": "2025-06-18"}
SESSION = {"Mcp-Session-Id": "s"}
MODERN = {"MCP-Protocol-Version": "2026-07-28"}


def post(body: Any, headers: dict[str, str]) -> Verdict:
    whole = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json", **headers}
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return classify(CIMultiDictProxy(CIMultiDict(whole)), raw, served_methods=SERVED, passes_legacy=True)


NOTICE = {"jsonrpc": "2.0", "method": "notifications/initialized"}
ANSWER = {"jsonrpc": "2.0", "id": 3, "result": {}}


@pytest.mark.parametrize(
    "body", [NOTICE, ANSWER, [NOTICE, ANSWER], b"{", b"", {"jsonrpc": "1.0"}], ids=lambda body: str(body)[:30]
)
@pytest.mark.parametrize(
    "headers",
    [LEGACY, SESSION, LEGACY | SESSION, LEGACY | {"Mcp-Method": "x"}],
    ids=["version", "session", "both", "method"],
)
def test_whatever_a_legacy_client_posts_is_not_ours_to_judge(body: Any, headers: dict[str, str]) -> None:
    verdict = post(body, headers)

    assert isinstance(verdict, Legacy)
    assert (verdict.id, verdict.method) == (None, None)


def test_its_requests_are_known_by_id_and_method() -> None:
    assert post(request(meta={"progressToken": 1}), SESSION) == Legacy(7, "tools/list", "2025-03-26")
    assert post(request(meta={}), LEGACY) == Legacy(7, "tools/list", "2025-06-18")


def test_a_request_of_neither_era_is_one_of_2025_03_26() -> None:
    """2025-06-18, "Protocol Version Header": without it the server should assume 2025-03-26."""
    body = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}

    assert post(body, {}) == Legacy(7, "tools/list", "2025-03-26")


def test_an_unknown_version_in_a_session_is_for_the_server_to_refuse() -> None:
    assert isinstance(post(NOTICE, SESSION | {"MCP-Protocol-Version": "1999-01-01"}), Legacy)
    assert isinstance(post(request(), {"MCP-Protocol-Version": "2099-01-01"}), Refusal)


@pytest.mark.parametrize(
    "headers", [MODERN, MODERN | SESSION, {"Mcp-Method": "x"}], ids=["modern", "session", "method"]
)
def test_a_notification_with_anything_modern_is_accepted_as_ever(headers: dict[str, str]) -> None:
    assert post(NOTICE, headers) == Accepted("notifications/initialized")


@pytest.mark.parametrize("headers", [LEGACY, LEGACY | SESSION], ids=["version", "session"])
@pytest.mark.parametrize("body", [NOTICE, ANSWER, {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}])
def test_a_legacy_client_may_send_the_method_header_with_everything(
    body: dict[str, Any], headers: dict[str, str]
) -> None:
    """As the official suite does at 2025-11-25; its handshake came to nothing."""
    assert isinstance(post(body, {"Mcp-Method": "x"} | headers), Legacy)


@pytest.mark.requirement("R55")
def test_who_opens_with_initialize_is_a_legacy_client_whatever_headers_it_sends() -> None:
    """Spec, basic/versioning: an `initialize` request selects legacy semantics, modern `_meta` modern ones."""
    opening = {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}

    assert post(opening, {"Mcp-Method": "initialize"}) == Legacy(7, "initialize", "2025-11-25")
    assert isinstance(post(request("initialize", meta=META), {"Mcp-Method": "initialize"}), Refusal)


def test_a_notification_of_neither_era_is_accepted() -> None:
    assert post(NOTICE, {}) == Accepted("notifications/initialized")


def test_a_modern_request_is_modern_here_too() -> None:
    assert isinstance(post(request(), MODERN | {"Mcp-Method": "tools/list"}), Modern)
    assert isinstance(post(request(meta=META), LEGACY), Refusal), "it contradicts itself"


@pytest.mark.parametrize(
    ("verb", "headers", "is_legacy"),
    [
        ("GET", {"Accept": "text/event-stream"}, True),
        ("GET", {"Accept": "application/json, text/event-stream;q=0.9"}, True),
        ("GET", SESSION, True),
        ("GET", {"Accept": "text/html"}, False),
        ("GET", {}, False),
        ("GET", MODERN | {"Accept": "text/event-stream"}, False),
        ("GET", {"Mcp-Method": "x", "Accept": "text/event-stream"}, False),
        ("DELETE", SESSION, True),
        ("DELETE", LEGACY, True),
        ("DELETE", {"Accept": "text/event-stream"}, False),
        ("DELETE", MODERN | SESSION, False),
        ("PUT", SESSION, False),
        ("OPTIONS", {"Accept": "text/event-stream"}, False),
    ],
)
def test_a_visit_is_known_by_its_headers(verb: str, headers: dict[str, str], is_legacy: bool) -> None:  # noqa: FBT001
    assert is_legacy_visit(CIMultiDictProxy(CIMultiDict(headers)), verb) is is_legacy
