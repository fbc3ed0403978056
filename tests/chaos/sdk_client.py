"""The modern client of the Python SDK, as published, with a transport that tries again as the lean one does."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult, TextContent

from tests.chaos.lean_client import MOST_ATTEMPTS, ROUND_SECONDS, answer_to
from tests.chaos.records import Attempt, Ending, Told

_PAUSES = (0.1, 0.2, 0.5, 1.0)


class SdkClient:
    """A client for each exchange, as a short-lived agent has."""

    def __init__(self, port: int, now: Callable[[], float]) -> None:
        self._port = port
        self._now = now

    async def carry_out(self, told: Told) -> None:
        """The whole exchange; what happens is noted in `told`."""
        task = told.task
        transport = _Persistent(told, self._now)

        async def elicited(context: Any, params: Any) -> ElicitResult:
            await asyncio.sleep(task.thinking[len(told.asked) % len(task.thinking)])
            return ElicitResult(action="accept", content={"answer": answer_to(told, params.message)})

        url = f"http://127.0.0.1:{self._port}/{task.upstream}/mcp"
        try:
            async with (
                asyncio.timeout(4 * ROUND_SECONDS),
                httpx2.AsyncClient(transport=transport, timeout=ROUND_SECONDS) as http,
                Client(
                    streamable_http_client(url, http_client=http),
                    mode="2026-07-28",
                    elicitation_callback=elicited,
                ) as client,
            ):
                result = await client.call_tool(task.tool, task.arguments)
        except* MCPError as errors:
            error = _first(errors)
            assert isinstance(error, MCPError)
            if transport.ending is None:
                told.ending = Ending.REFUSED
                told.error = error.error.model_dump(mode="json", exclude_none=True)
        except* TimeoutError:
            told.ending = Ending.HUNG
        except* httpx2.TransportError:
            assert transport.ending is not None  # it is the transport's own, which knows what it means
        else:
            assert isinstance(result.content[0], TextContent)
            told.ending, told.text = Ending.COMPLETE, result.content[0].text
        if transport.ending is not None:
            told.ending = transport.ending


def _first(errors: BaseExceptionGroup[Any]) -> BaseException:
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class _Persistent(httpx2.AsyncHTTPTransport):
    """Sends a request again when its connection broke, if it has a ticket or does no harm."""

    def __init__(self, told: Told, now: Callable[[], float]) -> None:
        super().__init__(verify=False, trust_env=False, limits=httpx2.Limits(max_keepalive_connections=0))
        self._told = told
        self._now = now
        self.ending: Ending | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        sent = json.loads(request.content)
        is_call = sent["method"] == "tools/call"
        has_ticket = "requestState" in sent.get("params", {})
        round_ = len(self._told.tickets)
        for number in range(MOST_ATTEMPTS):
            attempt = Attempt(self._now(), round_)
            if is_call:
                self._told.attempts.append(attempt)
            request.extensions = {**request.extensions, "trace": _noting_port(attempt)}
            try:
                response = await super().handle_async_request(request)
                body = await response.aread()
            except (httpx2.TransportError, OSError) as problem:
                attempt.outcome = f"broken: {problem!r}"
                if is_call and not has_ticket and not self._told.task.is_repeatable:
                    self.ending = Ending.CUT
                    raise
            else:
                if response.status_code != 503:
                    attempt.outcome = "answered"
                    self._note(body, is_call=is_call)
                    return httpx2.Response(
                        response.status_code, headers=_whole(response.headers), content=body, request=request
                    )
                attempt.outcome = "shed"
            finally:
                attempt.ended = self._now()
            await asyncio.sleep(_PAUSES[min(number, len(_PAUSES) - 1)])
        self.ending = Ending.GAVE_UP
        raise httpx2.ConnectError("tried often enough")

    def _note(self, body: bytes, *, is_call: bool) -> None:
        events = [line[6:] for line in body.splitlines() if line.startswith(b"data: ")]
        message = json.loads(events[-1] if events else body)
        state = message.get("result", {}).get("requestState")
        if is_call and state is not None:
            self._told.tickets.append(state)


def _noting_port(attempt: Attempt) -> Callable[[str, dict[str, Any]], Awaitable[None]]:
    """Notes it as soon as there is a connection: if that breaks, it must be known whose it was."""

    async def note(event: str, info: dict[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            attempt.port = info["return_value"].get_extra_info("client_addr")[1]

    return note


def _whole(headers: httpx2.Headers) -> list[tuple[str, str]]:
    """Without those that speak of how it came."""
    ours = {"transfer-encoding", "content-length", "content-encoding"}
    return [(name, value) for name, value in headers.multi_items() if name.lower() not in ours]
