"""Malformed HTTP requests by grammar: real requests of modern and legacy clients, spoilt in one place or many."""

import copy
import random
from collections.abc import Callable
from typing import Any, Final

from tests.fuzz.mutation import Text, dump, odd, spoil_bytes, spoil_json

VERSION: Final = "2026-07-28"
_META: Final = "io.modelcontextprotocol/"
_LINE: Final = dict[str, str]
_ODD_VALUES: Final = (
    *(
        "",
        " ",
        "\x00",
        "\t",
        "a\rb",
        "a\nb",
        "a\r\n b",
        "\xff\xfe",
        "x" * 9000,
        "=?base64?!!?=",
        "=?base64?ZWNobw==?=",
    ),
    *(
        "null",
        "-1",
        "1e9",
        "99999999999999999999",
        "0x10",
        "+5",
        "5, 5",
        "5;q=1",
        "*/*;q=0",
        ",",
        ";",
        "identity",
    ),
    *("gzip", "chunked", "chunked, chunked", "gzip, chunked", "xchunked", "127.0.0.1", "evil.example", "[::"),
    *("http://evil.example", "null", "close", "upgrade", "100-continue", "../../etc/passwd", "🙂"),
)
_ODD_NAMES: Final = (
    *("Content-Length", "Transfer-Encoding", "Content-Encoding", "Content-Type", "Host", "Origin", "Accept"),
    *("Authorization", "Mcp-Method", "Mcp-Name", "MCP-Protocol-Version", "Mcp-Session-Id", "Last-Event-ID"),
    *(
        "Expect",
        "Connection",
        "Upgrade",
        "Mcp-Param-X",
        "X Y",
        "",
        " Host",
        "Host ",
        "é",
        "X\x00",
        "Cookie",
        "TE",
    ),
)
_PATHS: Final = (
    *("//mcp", "/mcp/", "/./mcp", "/x/../mcp", "/%6dcp", "/mcp%2f", "/mcp%00", "/mcp?", "/mcp?a=b", "/mcp#x"),
    *("http://127.0.0.1/mcp", "http://evil.example/mcp", "*", "/", "", "mcp", "/mcp?" + "x" * 9000, "/\xff"),
    *("/mcp?hf=", "/mcp?hf=AAAA&sessionId=1", "/mcp;x", "\\mcp", "/mcp /mcp"),
)
_VERBS: Final = ("GET", "DELETE", "PUT", "OPTIONS", "HEAD", "TRACE", "CONNECT", "BREW", "post", "P\x00ST", "")
_PROTOCOLS: Final = (
    "HTTP/1.0",
    "HTTP/0.9",
    "HTTP/2.0",
    "HTTP/9.9",
    "http/1.1",
    "HTTP/1.1 x",
    "",
    "HTTP/01.1",
)
_CHUNKS: Final = (
    *(
        b"zz\r\n{}\r\n0\r\n\r\n",
        b"2\r\n{}}\r\n0\r\n\r\n",
        b"-1\r\n\r\n",
        b"ffffffffffffffffff\r\n{}\r\n0\r\n\r\n",
    ),
    *(b"2;x=\x00\r\n{}\r\n0\r\n\r\n", b"2\n{}\n0\n\n", b"2\r\n{}\r\n0\r\nX: y\r\n\r\n", b"0\r\n\r\n"),
    *(
        b"0x2\r\n{}\r\n0\r\n\r\n",
        b" 2 \r\n{}\r\n0\r\n\r\n",
        b"2\r\n{}0\r\n\r\n",
        b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
    ),
)


def modern(method: str = "tools/call", **params: Any) -> tuple[dict[str, str], Any]:
    """Headers and body of a good request."""
    meta = {
        f"{_META}protocolVersion": VERSION,
        f"{_META}clientCapabilities": {"elicitation": {"form": {}, "url": {}}, "roots": {}},
        f"{_META}clientInfo": {"name": "fuzz", "version": "1"},
    }
    headers = {
        "Host": "127.0.0.1",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": method,
    }
    if "name" in params:
        headers["Mcp-Name"] = str(params["name"])
    return headers, {"jsonrpc": "2.0", "id": 7, "method": method, "params": {**params, "_meta": meta}}


def legacy(method: str = "initialize", **params: Any) -> tuple[dict[str, str], Any]:
    """The same of a legacy client."""
    headers = {
        "Host": "127.0.0.1",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    if method != "initialize":
        headers |= {"MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": "nobody"}
    return headers, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


_SEEDS: Final[tuple[Callable[[], tuple[dict[str, str], Any]], ...]] = (
    lambda: modern("tools/call", name="echo", arguments={"text": "hi"}),
    lambda: modern(
        "tools/call",
        name="echo",
        arguments={},
        requestState="AAAA" * 40,
        inputResponses={"a": {"action": "accept"}},
    ),
    lambda: modern(
        "tools/call", name="echo", arguments={}, inputResponses={"a": {"action": "accept", "content": {}}}
    ),
    lambda: modern("tools/list"),
    lambda: modern("tools/list", cursor="x"),
    lambda: modern("server/discover"),
    lambda: modern("prompts/get", name="p", arguments={"a": "b"}),
    lambda: modern(
        "completion/complete", ref={"type": "ref/prompt", "name": "p"}, argument={"name": "a", "value": ""}
    ),
    lambda: legacy("tools/call", name="echo", arguments={}),
    lambda: legacy(
        "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "l", "version": "1"}
    ),
    lambda: legacy("notifications/cancelled", requestId=1),
)


def written(
    lines: list[tuple[str, str]],
    body: bytes,
    *,
    verb: str = "POST",
    path: str = "/mcp",
    protocol: str = "HTTP/1.1",
) -> bytes:
    """The bytes of a request, whatever its parts are."""
    head = f"{verb} {path} {protocol}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines)
    return head.encode("utf-8", "surrogateescape") + b"\r\n" + body


def good_call() -> bytes:
    """A request that must be served."""
    headers, body = modern("tools/call", name="echo", arguments={})
    data = dump(body).encode()
    return written([*headers.items(), ("Content-Length", str(len(data)))], data)


def malformed(rng: random.Random) -> tuple[str, bytes]:
    """One more request, and in which way it is spoilt. Now and then the way does no harm: then it is served."""
    headers, body = copy.deepcopy(rng.choice(_SEEDS)())
    name, way = rng.choice(_WAYS)
    return name, way(headers, body, rng)


def _whole(headers: dict[str, str], data: bytes, **parts: str) -> bytes:
    return written([*headers.items(), ("Content-Length", str(len(data)))], data, **parts)


def _bad_json(headers: dict[str, str], body: Any, rng: random.Random) -> bytes:
    return _whole(headers, dump(spoil_json(body, rng, rng.randrange(1, 4))).encode("utf-8", "surrogatepass"))


def _bad_body_bytes(headers: dict[str, str], body: Any, rng: random.Random) -> bytes:
    return _whole(headers, spoil_bytes(dump(body).encode(), rng, rng.randrange(1, 4)))


def _bad_request_bytes(headers: dict[str, str], body: Any, rng: random.Random) -> bytes:
    return spoil_bytes(_whole(headers, dump(body).encode()), rng, rng.randrange(1, 5))


def _bad_value(headers: dict[str, str], body: Any, rng: random.Random) -> bytes:
    headers[rng.choice(list(headers))] = rng.choice(_ODD_VALUES)
    return _whole(headers, dump(body).encode())


def _bad_line(headers: dict[str, str], body: Any, rng: random.Random) -> bytes:
    data = dump(body).encode()
    lines = [*headers.items(), ("Content-Length", str(len(data)))]
    for _ in range(rng.randrange(1, 3)):
        lines.insert(rng.randrange(len(lines) + 1), (rng.choice(_ODD_NAMES), rng.choice(_ODD_VALUES)))
    return written(lines, data)


def _double_line(headers: dict[str, str], body: Any, rng: random.Random) -> bytes:
    data = dump(body).encode()
    lines = [*headers.items(), ("Content-Length", str(len(data)))]
    name, value = rng.choice(lines)
    lines.append((name.swapcase(), rng.choice((value, rng.choice(_ODD_VALUES)))))
    rng.shuffle(lines)
    return written(lines, data)


def _missing_line(headers: dict[str, str], body: Any, rng: random.Random) -> bytes:
    data = dump(body).encode()
    lines = [*headers.items(), ("Content-Length", str(len(data)))]
    del lines[rng.randrange(len(lines))]
    return written(lines, data)


def _bad_first_line(headers: dict[str, str], body: Any, rng: random.Random) -> bytes:
    data = dump(body).encode()
    part = rng.choice(("verb", "path", "protocol"))
    odd = {"verb": _VERBS, "path": _PATHS, "protocol": _PROTOCOLS}[part]
    return _whole(headers, data, **{part: rng.choice(odd)})


def _bad_length(headers: dict[str, str], body: Any, rng: random.Random) -> bytes:
    data = dump(body).encode()
    length = rng.choice(
        (len(data) - 1, len(data) + 1, 0, -1, 2**63, "1 1", "0x20", "+3", f"{len(data)}, {len(data)}")
    )
    return written([*headers.items(), ("Content-Length", str(length))], data)


def _bad_chunks(headers: dict[str, str], body: Any, rng: random.Random) -> bytes:
    lines = [
        *headers.items(),
        ("Transfer-Encoding", rng.choice(("chunked", "chunked", "Chunked ", "gzip, chunked"))),
    ]
    if rng.random() < 0.2:
        lines.append(("Content-Length", "2"))
    return written(lines, rng.choice(_CHUNKS))


def _smuggled(headers: dict[str, str], body: Any, rng: random.Random) -> bytes:
    """Two requests where a careless reader sees one, or three."""
    data = dump(body).encode()
    second = _bad_json(headers, copy.deepcopy(body), rng)
    first = [*headers.items(), ("Content-Length", str(len(data) + rng.choice((0, 0, 5, len(second)))))]
    return written(first, data) + second


def _too_much(headers: dict[str, str], body: Any, rng: random.Random) -> bytes:
    match rng.randrange(5):
        case 0:
            headers[rng.choice(list(headers))] = "x" * rng.choice((32_768, 32_769, 40_000))
            return _whole(headers, dump(body).encode())
        case 1:
            lines = [(f"X-{number}", "y") for number in range(rng.choice((100, 127, 128, 500)))]
            return written([*headers.items(), *lines, ("Content-Length", "2")], b"{}")
        case 2:
            body["params"]["arguments"] = {"x": "x" * 70_000}
            return _whole(headers, dump(body).encode())
        case 3:
            body["params"]["inputResponses"] = {f"k{n}": {} for n in range(3000)}
            return _whole(headers, dump(body).encode())
        case _:
            body["params"]["requestState"] = "A" * 60_000
            return _whole(headers, dump(body).encode())


def _odd_id(headers: dict[str, str], body: Any, rng: random.Random) -> bytes:
    body[rng.choice(("id", "id", "jsonrpc", "method", "params"))] = odd(rng)
    return _whole(headers, dump(body).encode("utf-8", "surrogatepass"))


def _doubled_member(headers: dict[str, str], body: Any, rng: random.Random) -> bytes:
    text = dump(body)
    return _whole(
        headers, (text[:-1] + f',"method":"tools/list","id":{dump(odd(rng))}}}').encode("utf-8", "replace")
    )


def _batch(headers: dict[str, str], body: Any, rng: random.Random) -> bytes:
    return _whole(headers, dump([body, *([Text("{}")] * rng.randrange(3))]).encode())


_WAYS: Final[tuple[tuple[str, Callable[[dict[str, str], Any, random.Random], bytes]], ...]] = (
    ("JSON values", _bad_json),
    ("JSON values", _bad_json),
    ("bytes of the body", _bad_body_bytes),
    ("bytes anywhere", _bad_request_bytes),
    ("bytes anywhere", _bad_request_bytes),
    ("header values", _bad_value),
    ("header lines", _bad_line),
    ("doubled lines", _double_line),
    ("missing lines", _missing_line),
    ("first line", _bad_first_line),
    ("Content-Length", _bad_length),
    ("chunks", _bad_chunks),
    ("two in one", _smuggled),
    ("too much", _too_much),
    ("envelope", _odd_id),
    ("doubled members", _doubled_member),
    ("batches", _batch),
)
