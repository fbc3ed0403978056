"""Requests as a client would post them, right or wrong in one place, held against the ladder of the edge."""

import json
from typing import Any

from multidict import CIMultiDict, CIMultiDictProxy

from gateway.edge.classify import Refusal, Verdict, classify
from gateway.errors import GatewayError

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
META = {VERSION: "2026-07-28", CAPABILITIES: {}}
SERVED = frozenset({"server/discover", "tools/list", "tools/call", "prompts/get", "resources/read"})

GONE = object()


def changed(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in (base | changes).items() if value is not GONE}


def send(body: Any, headers: dict[str, Any] | None = None, *extra: tuple[str, str]) -> Verdict:
    """Classify a body under the headers of a correct `tools/list`, changed as told."""
    base = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/list",
    }
    lines = CIMultiDict(changed(base, headers or {}))
    for name, value in extra:
        lines.add(name, value)
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return classify(CIMultiDictProxy(lines), raw, served_methods=SERVED)


def request(method: str = "tools/list", meta: Any = META, **params: Any) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": 7,
        "method": method,
        "params": changed({"_meta": meta}, params),
    }


def call(name: Any = "echo", header: Any = "echo", method: str = "tools/call", key: str = "name") -> Verdict:
    return send(request(method, **{key: name}), {"Mcp-Method": method, "Mcp-Name": header})


def refused(verdict: Verdict, status: int, code: int, id_: int | str | None = 7) -> GatewayError:
    assert isinstance(verdict, Refusal), verdict
    assert (verdict.error.http_status, verdict.error.rpc_code, verdict.id) == (status, code, id_)
    return verdict.error
