"""A modern client made of bare HTTP: sends exactly what a test says, and has every answer judged."""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Self

import aiohttp

from tests.support.verdicts import MODERN, Json, checked_message, checked_notification, events_of

ALL: Json = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_META = "io.modelcontextprotocol/"


@dataclass(frozen=True, slots=True)
class Answer:
    """One round as the client saw it."""

    method: str
    params: Json
    """Of the request, without `_meta` and without answers."""
    status: int
    headers: Mapping[str, str]
    body: bytes
    message: Json
    notifications: list[Json] = field(default_factory=list)

    @property
    def result(self) -> Json:
        assert "result" in self.message, self.message
        found: Json = self.message["result"]
        return found

    @property
    def error(self) -> Json:
        assert "error" in self.message, self.message
        found: Json = self.message["error"]
        return found

    @property
    def told(self) -> Json:
        """The data of an error of Holdfast's own, but for the id that every one of them has."""
        data = dict(self.error["data"])
        assert re.fullmatch("[0-9a-f]{16}", data.pop("errorId")), self.error
        return data

    @property
    def asked(self) -> dict[str, Json]:
        """The questions of a round that ended in some."""
        assert self.result["resultType"] == "input_required", self.result
        found: dict[str, Json] = self.result["inputRequests"]
        return found

    @property
    def state(self) -> str:
        return str(self.result["requestState"])

    @property
    def text(self) -> str:
        """The text of a finished call, prompt or read."""
        result = self.result
        assert result["resultType"] == "complete", result
        match self.method:
            case "prompts/get":
                return str(result["messages"][0]["content"]["text"])
            case "resources/read":
                return str(result["contents"][0]["text"])
            case _:
                return str(result["content"][0]["text"])

    @property
    def is_json(self) -> bool:
        return self.headers["Content-Type"].startswith("application/json")


class Wire:
    """One client. Its requests share nothing but the connection pool."""

    def __init__(
        self,
        url: str,
        *,
        capabilities: Json | None = None,
        authorization: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.url = url
        self.capabilities = ALL if capabilities is None else capabilities
        self.authorization = authorization
        self._own_headers = headers or {}
        self._ids = count(1)
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=45),  # two hundred at once, on two busy cores
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    async def tool(self, name: str, arguments: Json | None = None, **options: Any) -> Answer:
        """Call a tool, first round; options as for `request`."""
        params = {"name": name, "arguments": {} if arguments is None else arguments}
        return await self.request("tools/call", params, **options)

    async def retry(self, asked: Answer, answers: Any = None, **options: Any) -> Answer:
        """The next round of what ended in questions: the same request, the ticket, these answers."""
        more: Json = {"requestState": options.pop("state", None) or asked.state}
        if answers is not None:
            more["inputResponses"] = answers
        return await self.request(
            asked.method, {**asked.params, **options.pop("changes", {})}, more, **options
        )

    async def request(
        self,
        method: str,
        params: Json | None = None,
        more: Json | None = None,
        *,
        capabilities: Json | None = None,
        token: str | int | None = None,
        level: str | None = None,
        opened: asyncio.Event | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request and read its answer to the end. `more` are members for this round only.

        `headers` go beside those that every request needs.
        `opened` is set when the response begins: under a short keep-alive that is when the round runs.
        """
        params, number = params or {}, next(self._ids)
        meta = {
            f"{_META}protocolVersion": MODERN,
            f"{_META}clientInfo": {"name": "wire", "version": "1"},
            f"{_META}clientCapabilities": self.capabilities if capabilities is None else capabilities,
            **({} if token is None else {"progressToken": token}),
            **({} if level is None else {f"{_META}logLevel": level}),
        }
        body = {
            "jsonrpc": "2.0",
            "id": number,
            "method": method,
            "params": {**params, **(more or {}), "_meta": meta},
        }
        async with self._http.post(
            self.url, data=json.dumps(body), headers={**self._headers(method, params), **(headers or {})}
        ) as response:
            if opened is not None:
                opened.set()
            raw = await response.read()
        return _answer(method, params, number, response, raw)

    def _headers(self, method: str, params: Json) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": method,
        }
        if method in NAMED_BY:
            headers["Mcp-Name"] = params[NAMED_BY[method]]
        if self.authorization is not None:
            headers["Authorization"] = self.authorization
        return {**headers, **self._own_headers}


def _answer(method: str, params: Json, number: int, response: aiohttp.ClientResponse, raw: bytes) -> Answer:
    if response.content_type == "text/event-stream":
        *notifications, message = events_of(raw)
        assert response.status == 200
    else:
        assert response.content_type == "application/json", (response.status, raw)
        notifications, message = [], json.loads(raw)
    assert "Mcp-Session-Id" not in response.headers
    assert message["id"] == number
    checked_message(method, message)
    for notification in notifications:
        checked_notification(notification)
    return Answer(method, params, response.status, response.headers, raw, message, notifications)


def accept(**content: Any) -> Json:
    """The user's yes."""
    return {"action": "accept", "content": content}


def sampled(text: str) -> Json:
    """What the client's model said."""
    return {"role": "assistant", "content": {"type": "text", "text": text}, "model": "test-model"}


async def abandoned(task: "asyncio.Task[Answer]") -> None:
    """Close the connection of a request that is under way."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
