"""Whatever a client sends, right or wrong, is never answered with a 5xx: that would be our fault, and it is not."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.gateways import Gateways, Served
from tests.support.scripted import Scripted, asking
from tests.support.wire import Wire

Json = dict[str, Any]

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT = "io.modelcontextprotocol/clientInfo"
LEVEL = "io.modelcontextprotocol/logLevel"
META: Json = {VERSION: "2026-07-28", CAPABILITIES: {"elicitation": {}}}
HEADERS = {
    "Host": "127.0.0.1",
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
    "Mcp-Name": "echo",
}
DEEP = 100_000
IN_PARAMS = ("arguments", "inputResponses", "requestState", "_meta", "name")


@pytest.fixture
async def served(gateway: Gateways) -> AsyncIterator[Served]:
    async with Scripted() as server:
        server.on["prompts/get"] = asking
        yield await gateway(
            server.url,
            auth={"mode": "passthrough"},
            sessions={"warm": 0},
            settings={"limits": {"body": "64KiB"}},
        )


def deep(open_: str = "[", close: str = "]", levels: int = DEEP) -> str:
    return open_ * levels + close * levels


def body(params: str | Json, method: str = "tools/call", id_: str = "7") -> bytes:
    text = params if isinstance(params, str) else json.dumps(params)
    return f'{{"jsonrpc":"2.0","id":{id_},"method":"{method}","params":{text}}}'.encode()


def call(**members: Any) -> Json:
    return {"name": "echo", "arguments": {}, "_meta": META, **members}


def spliced(name: str, text: str) -> str:
    """A call's parameters with this JSON text under `name`."""
    return json.dumps(call(**{name: "@@"})).replace('"@@"', text)


def in_meta(name: str, text: str) -> str:
    return json.dumps(call(_meta={**META, name: "@@"})).replace('"@@"', text)


async def post(served: Served, data: bytes, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    lines = {**HEADERS, "Content-Length": str(len(data)), **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return await raw(served, f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode("latin-1") + data)


async def raw(served: Served, data: bytes) -> tuple[int, bytes]:
    """Send bytes; the status and body of what came back, 0 if the connection was just closed."""
    host, port = served.url.removeprefix("http://").removesuffix("/mcp").split(":")
    async with asyncio.timeout(5):
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(data)
            if writer.can_write_eof():
                await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            content = await reader.readexactly(int(length[0].split(b":")[1])) if length else b""
        except (asyncio.IncompleteReadError, ConnectionError):
            return 0, b""
        finally:
            writer.close()
    return int(head.split(b" ")[1]), content


BODIES: dict[str, bytes] = {
    "nothing": b"",
    "white space": b" \r\n\t ",
    "text": b"hello",
    "a byte": b"\x00",
    "not utf-8": b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
    "half a message": b'{"jsonrpc":"2.0","id":1',
    "a batch": b"[" + body(call()) + b"]",
    "an empty batch": b"[]",
    "null": b"null",
    "a number": b"1e400",
    "a string": b'"tools/call"',
    "a deep array": deep().encode(),
    "a deep object": deep('{"a":', "}", 5000).encode() + b"1",
    "a result": b'{"jsonrpc":"2.0","id":1,"result":{}}',
    "an error": b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}',
    "no version": b'{"id":1,"method":"tools/call","params":{}}',
    "an old version": b'{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{}}',
    "no method": b'{"jsonrpc":"2.0","id":1}',
    "a numeric method": b'{"jsonrpc":"2.0","id":1,"method":7}',
    "a null id": body(call(), id_="null"),
    "a fractional id": body(call(), id_="1.5"),
    "a true id": body(call(), id_="true"),
    "an object id": body(call(), id_="{}"),
    "a huge id": body(call(), id_="9" * 5000),
    "params a list": body("[]"),
    "params a number": body("7"),
    "params null": body("null"),
    "no params": b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}',
    "no meta": body({"name": "echo"}),
    "meta a list": body(call(_meta=[])),
    "meta deep": body(spliced("_meta", deep())),
    "meta deep object": body(spliced("_meta", deep('{"a":', "}", 900) + "")),
    "version a number": body(call(_meta={**META, VERSION: 7})),
    "capabilities a list": body(call(_meta={**META, CAPABILITIES: []})),
    "capabilities deep": body(in_meta(CAPABILITIES, '{"x":' + deep(levels=900) + "}")),
    "capabilities of nonsense": body(call(_meta={**META, CAPABILITIES: {"elicitation": 7, "roots": [None]}})),
    "client info a string": body(call(_meta={**META, CLIENT: "me"})),
    "client info deep": body(in_meta(CLIENT, '{"x":' + deep(levels=900) + "}")),
    "client info half a character": body(in_meta(CLIENT, r'{"name":"\ud83d","version":"1"}')),
    "log level unknown": body(call(_meta={**META, LEVEL: "loud"})),
    "log level a list": body(call(_meta={**META, LEVEL: []})),
    "progress token an object": body(call(_meta={**META, "progressToken": {}})),
    "no name": body({"arguments": {}, "_meta": META}),
    "name a number": body(call(name=7)),
    "name deep": body(spliced("name", deep(levels=900))),
    "name half a character": body(spliced("name", r'"\ud83d"')),
    "another name": body(call(name="other")),
    "state a number": body(call(requestState=7)),
    "state null": body(call(requestState=None)),
    "state empty": body(call(requestState="")),
    "state deep": body(spliced("requestState", deep(levels=900))),
    "state too deep": body(spliced("requestState", deep())),
    "state garbage": body(call(requestState="AAAA" * 1000)),
    "state not ascii": body(call(requestState="…\u2028\x00")),
    "state half a character": body(spliced("requestState", r'"\ud83d"')),
    "answers a list": body(call(inputResponses=[])),
    "answers null": body(call(inputResponses=None)),
    "answers of nonsense": body(call(inputResponses={"a": 7})),
    "answers deep": body(spliced("inputResponses", '{"a":{"b":' + deep(levels=900) + "}}")),
    "answers with garbage state": body(call(inputResponses={"a": {}}, requestState="x")),
    "too large": body(call(arguments={"x": "x" * 70_000})),
}

MAY_SUCCEED = {
    "capabilities of nonsense",
    "client info half a character",
    "answers deep",
    "answers null",
    "state null",
    "a huge id",
}
"""Odd, but not wrong; or wrong only in what nobody reads."""


@pytest.mark.parametrize("name", BODIES)
async def test_a_bad_body_is_the_clients_fault(served: Served, name: str) -> None:
    status, content = await post(served, BODIES[name])
    assert status == 200 if name in MAY_SUCCEED and status == 200 else 400 <= status < 500, (status, content)
    assert json.loads(content)["jsonrpc"] == "2.0"


@pytest.mark.parametrize("member", [*IN_PARAMS, CAPABILITIES, CLIENT, LEVEL, "progressToken"])
async def test_no_depth_of_nesting_is_our_fault(served: Served, member: str) -> None:
    """Near the decoder's own limit what could be skipped cannot always be taken apart."""
    for levels in (100, 300, 450, 700, *range(900, 960), 1100, 2000):
        nested = '{"a":' * levels + "1" + "}" * levels
        params = spliced(member, nested) if member in IN_PARAMS else in_meta(member, nested)
        status, content = await post(served, body(params))
        assert status < 500, (levels, status, content)
        assert json.loads(content)["jsonrpc"] == "2.0"


LINES: dict[str, dict[str, str]] = {
    "no such media type": {"Content-Type": "text/plain"},
    "an odd media type": {"Content-Type": "application/json; charset=\xff"},
    "a compressed body": {"Content-Encoding": "gzip"},
    "no accept": {"Accept": ""},
    "an odd accept": {"Accept": ";;;,,=\xff"},
    "an odd version": {"MCP-Protocol-Version": "\xff\xfe"},
    "an odd method": {"Mcp-Method": "\xff"},
    "an odd name": {"Mcp-Name": "\xff"},
    "an undecodable name": {"Mcp-Name": "=?base64?!!!?="},
    "a foreign origin": {"Origin": "http://evil.example"},
    "an odd origin": {"Origin": "http://[::1"},
    "a foreign host": {"Host": "evil.example"},
    "an odd host": {"Host": "[::"},
    "an odd credential": {"Authorization": "Bearer \xff\xfe"},
    "an endless credential": {"Authorization": "Bearer " + "x" * 7000},
    "a param header": {"Mcp-Param-X": "\xff"},
    "a session": {"Mcp-Session-Id": "\xff"},
    "an expectation": {"Expect": "200-maybe"},
}


@pytest.mark.parametrize("name", LINES)
async def test_a_bad_header_is_the_clients_fault(served: Served, name: str) -> None:
    status, content = await post(served, body(call()), LINES[name])
    assert status < 500, (status, content)


RAW: dict[str, bytes] = {
    "no http": b"hello\r\n\r\n",
    "a tls hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "no such version": b"POST /mcp HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n",
    "a negative length": b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
    "two lengths": b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "length and chunks": b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a broken chunk": b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
    "a broken chunk end": b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n",
    "an endless header": b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
    "an endless line": b"POST /" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "no host": b"POST /mcp HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
    "an odd path": b"POST /%ff%00/../mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n",
    "another host's path": b"POST http://evil.example/mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n",
    "a tunnel": b"CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "an upgrade": b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
    "a get": b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n",
    "a delete": b"DELETE /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nMcp-Session-Id: x\r\n\r\n",
    "an options": b"OPTIONS /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\n\r\n",
    "a method of its own": b"BREW /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "no such path": b"POST /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("name", RAW)
async def test_bad_http_is_the_clients_fault(served: Served, name: str) -> None:
    status, content = await raw(served, RAW[name])
    assert status < 500, (status, content)
    async with Wire(served.url) as client:
        assert (await client.tool("echo")).text == "done", "and the next request is served"


async def test_a_body_that_never_comes_holds_up_nobody_else(served: Served) -> None:
    host, port = served.url.removeprefix("http://").removesuffix("/mcp").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n{")
    await writer.drain()
    async with Wire(served.url) as client:
        assert (await client.tool("echo")).text == "done"
    writer.close()


@pytest.mark.parametrize(
    "answer", [7, {}, {"action": "maybe"}, {"action": "accept", "content": 7}, {"action": []}]
)
async def test_a_bad_answer_is_the_clients_fault_and_leaves_the_hold_as_it_was(
    served: Served, answer: Any
) -> None:
    async with Wire(served.url) as client:
        asked = await client.request("prompts/get", {"name": "p"})
        refused = await client.retry(asked, {"name": answer})
        assert (refused.status, refused.error["code"]) == (400, -32602)
        again = await client.retry(asked, {"name": {"action": "decline"}})
        assert again.status == 200
