"""A bare legacy client for trying out the fixture servers: raw HTTP, no SDK, nothing of the gateway."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable
from itertools import count
from typing import Any, Self

import aiohttp

Json = dict[str, Any]
Answer = Callable[[str, Json], Json]  # (method, params) -> result, or {"error": {...}}

CAPABILITIES: Json = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}


def accept_all(method: str, params: Json) -> Json:
    """Answer every ask with something that fits."""
    match method:
        case "elicitation/create" if params.get("mode") == "url":
            return {"action": "accept"}
        case "elicitation/create":
            wanted = params["requestedSchema"]["properties"]
            return {
                "action": "accept",
                "content": {name: _fitting(name, kind) for name, kind in wanted.items()},
            }
        case "sampling/createMessage":
            content = {"type": "text", "text": "Paris"}
            return {"role": "assistant", "content": content, "model": "m", "stopReason": "endTurn"}
        case "roots/list":
            return {"roots": [{"uri": "file:///one"}, {"uri": "file:///two"}]}
        case "ping":
            return {}
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}


def _fitting(name: str, schema: Json) -> Any:
    if "enum" in schema:
        return schema["enum"][2]
    return {"string": name.title(), "integer": 42, "number": 4301, "boolean": True}[schema["type"]]


class LegacyClient:
    """One initialized session, its GET stream open; asks of either stream are answered by `answer`."""

    def __init__(self, url: str, answer: Answer = accept_all, authorization: str | None = None) -> None:
        self.url = url
        self.answer = answer
        self.asked: list[tuple[str, str]] = []  # (stream, method)
        self.notified: list[tuple[str, Json]] = []
        self.server: Json = {}
        self._headers = {"Accept": "application/json, text/event-stream"}
        if authorization is not None:
            self._headers["Authorization"] = authorization
        self._ids = count(1)
        self._noticed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20))
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": CAPABILITIES,
            "clientInfo": {"name": "t", "version": "1"},
        }
        message, headers = await self._ask_server("initialize", hello)
        self.server = message["result"]
        self._headers["MCP-Protocol-Version"] = self.server["protocolVersion"]
        if "mcp-session-id" in headers:
            self._headers["Mcp-Session-Id"] = headers["mcp-session-id"]
        await self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self._stream = await self._http.get(
            self.url, headers={**self._headers, "Accept": "text/event-stream"}
        )
        self._start(self._listen(self._stream))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._stream.close()
        await self._http.close()

    async def request(self, method: str, params: Json | None = None) -> Json:
        """Send a request; its `result`, or `{"error": ...}`."""
        message, _ = await self._ask_server(method, params or {})
        result: Json = message["result"] if "result" in message else {"error": message["error"]}
        return result

    async def tool(self, name: str, arguments: Json | None = None, token: str | None = None) -> Json:
        """Call a tool."""
        meta = {} if token is None else {"_meta": {"progressToken": token}}
        return await self.request("tools/call", {"name": name, "arguments": arguments or {}, **meta})

    async def text(self, name: str, arguments: Json | None = None) -> str:
        """Call a tool that must succeed; the text of its result."""
        result = await self.tool(name, arguments)
        assert "content" in result, result
        assert not result.get("isError"), result
        return str(result["content"][0]["text"])

    async def notices(self, number: int) -> list[tuple[str, Json]]:
        """Wait for so many notifications: those of the GET stream may come after the call's result."""
        async with asyncio.timeout(5):
            while len(self.notified) < number:
                self._noticed.clear()
                await self._noticed.wait()
        return self.notified

    async def _ask_server(self, method: str, params: Json) -> tuple[Json, Json]:
        number = next(self._ids)
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        async with self._http.post(self.url, json=body, headers=self._headers) as response:
            headers = {name.lower(): value for name, value in response.headers.items()}
            if response.content_type == "application/json":
                return await response.json(), headers
            assert response.content_type == "text/event-stream", await response.text()
            async for message in _events(response):
                if message.get("id") == number and "method" not in message:
                    return message, headers
                self._receive("POST", message)
        raise AssertionError(f"the stream of {method} ended without a result")

    async def _listen(self, response: aiohttp.ClientResponse) -> None:
        async with contextlib.aclosing(_events(response)) as events:
            async for message in events:
                self._receive("GET", message)

    def _receive(self, stream: str, message: Json) -> None:
        if "id" not in message:
            self.notified.append((stream, message))
            self._noticed.set()
            return
        self.asked.append((stream, message["method"]))
        outcome = self.answer(message["method"], message.get("params", {}))
        reply = outcome if "error" in outcome else {"result": outcome}
        self._start(self._post({"jsonrpc": "2.0", "id": message["id"], **reply}))

    async def _post(self, body: Json) -> None:
        async with self._http.post(self.url, json=body, headers=self._headers) as response:
            assert response.status == 202, await response.text()

    def _start(self, work: Any) -> None:
        self._tasks.add(asyncio.get_running_loop().create_task(work))


async def _events(response: aiohttp.ClientResponse) -> AsyncGenerator[Json, None]:
    buffer = b""
    async for chunk in response.content.iter_any():
        *blocks, buffer = (buffer + chunk).replace(b"\r\n", b"\n").split(b"\n\n")
        for block in blocks:
            data = b"".join(line[5:] for line in block.split(b"\n") if line.startswith(b"data:"))
            if data.strip():
                yield json.loads(data)
