"""The modern Python client, with every exchange of it recorded beneath and judged in the end."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import (
    CallToolResult,
    CreateMessageResult,
    ElicitResult,
    ListRootsResult,
    LoggingMessageNotificationParams,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel

from tests.support.person import Person
from tests.support.verdicts import Json, checked_change, checked_message, checked_notification, events_of


@dataclass(slots=True)
class Round:
    """One HTTP exchange of the client."""

    sent: Json
    status: int
    is_stream: bool
    received: bytearray = field(default_factory=bytearray)

    @property
    def method(self) -> str:
        return str(self.sent["method"])

    @property
    def messages(self) -> list[Json]:
        """Notifications, then the last word."""
        return events_of(bytes(self.received)) if self.is_stream else [json.loads(self.received)]

    @property
    def result_type(self) -> str | None:
        kind = self.messages[-1].get("result", {}).get("resultType")
        return None if kind is None else str(kind)


class _Tee(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, sink: bytearray) -> None:
        self._inner = inner
        self._sink = sink

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._sink += chunk
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Recording(httpx2.AsyncHTTPTransport):
    def __init__(self, rounds: list[Round]) -> None:
        super().__init__(verify=False, trust_env=False)
        self._rounds = rounds

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        sent = await request.aread()
        response = await super().handle_async_request(request)
        if response.is_redirect:
            return response
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        entry = Round(json.loads(sent), response.status_code, is_stream)
        self._rounds.append(entry)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Tee(response.stream, entry.received)
        return response


class PythonClient:
    """`mcp.Client` on a URL, with a person behind it. Capabilities are what it has callbacks for.

    In `legacy` mode nothing is recorded: what its rounds are, and what is valid in them, is another revision's.
    """

    def __init__(
        self,
        url: str,
        *,
        mode: str = "auto",
        person: Person | None = None,
        without: frozenset[str] = frozenset(),
        log_level: Any = None,
        authorization: str | None = None,
    ) -> None:
        self.person = person or Person()
        self.rounds: list[Round] = []
        self.logs: list[LoggingMessageNotificationParams] = []
        self.progress: list[tuple[float, float | None]] = []
        headers = {} if authorization is None else {"Authorization": authorization}
        transport = (
            httpx2.AsyncHTTPTransport(trust_env=False) if mode == "legacy" else _Recording(self.rounds)
        )
        self._http = httpx2.AsyncClient(transport=transport, headers=headers, timeout=20)
        self._stack = AsyncExitStack()
        self._client = Client(
            streamable_http_client(url, http_client=self._http),
            mode=mode,
            log_level=log_level,
            logging_callback=self._logged,
            elicitation_callback=None if "elicitation" in without else self._elicited,
            sampling_callback=None if "sampling" in without else self._sampled,
            list_roots_callback=None if "roots" in without else self._listed,
        )

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._http)
        self.client = await self._stack.enter_async_context(self._client)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)
        if kind is None:
            self._judge()

    async def carry_out(self, method: str, params: Json) -> str:
        """Call, get or read, over as many rounds as it takes; the text in the end."""
        match method:
            case "tools/call":
                result = await self.tool(params["name"], params["arguments"])
                assert not result.is_error, result
                return text_of(result)
            case "prompts/get":
                prompt = await self.client.get_prompt(params["name"], params.get("arguments"))
                content = prompt.messages[0].content
                assert isinstance(content, TextContent)
                return content.text
            case _:
                read = await self.client.read_resource(params["uri"])
                assert isinstance(read.contents[0], TextResourceContents)
                return read.contents[0].text

    async def tool(self, name: str, arguments: Json | None = None) -> CallToolResult:
        """Call a tool; progress is noted."""
        return await self.client.call_tool(name, arguments or {}, progress_callback=self._progressed)

    def results(self, method: str) -> list[str | None]:
        """The kinds of result that requests of this method got, in order."""
        return [entry.result_type for entry in self.rounds if entry.method == method]

    async def _elicited(self, context: Any, params: Any) -> ElicitResult:
        return ElicitResult.model_validate(self.person.answer("elicitation/create", _plain(params)))

    async def _sampled(self, context: Any, params: Any) -> CreateMessageResult:
        return CreateMessageResult.model_validate(
            self.person.answer("sampling/createMessage", _plain(params))
        )

    async def _listed(self, context: Any) -> ListRootsResult:
        return ListRootsResult.model_validate(self.person.answer("roots/list", {}))

    async def _logged(self, params: LoggingMessageNotificationParams) -> None:
        self.logs.append(params)

    async def _progressed(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append((progress, total))

    def _judge(self) -> None:
        for entry in self.rounds:
            if entry.method == "subscriptions/listen":
                _judge_stream(entry)
                continue
            *told, last = entry.messages
            assert last["id"] == entry.sent["id"]
            checked_message(entry.method, last)
            token = entry.sent["params"]["_meta"].get("progressToken")
            for message in told:
                checked_notification(message)
                assert message["params"].get("progressToken", token) == token, "another round's token"


def _judge_stream(entry: Round) -> None:
    """A stream ends with the response, or when the client has heard enough."""
    subscription = entry.sent["id"]
    for number, message in enumerate(entry.messages):
        if "method" in message:
            checked_change(message, subscription)
            assert message["method"].endswith("acknowledged") == (number == 0)
        else:
            assert message["id"] == subscription
            assert number == len(entry.messages) - 1
            checked_message(entry.method, message)


def text_of(result: CallToolResult) -> str:
    """The text of a tool's result."""
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


def _plain(model: BaseModel) -> Json:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)
