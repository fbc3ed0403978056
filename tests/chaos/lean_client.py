"""A modern client, written from the wire: one connection per request, and the patience of a good client.

On a broken connection it sends the same request again, if there is a ticket in it or the tool may be run twice.
It never starts an exchange anew by itself: what is refused, is refused.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.chaos.records import Attempt, Ending, Json, Task, Told

MODERN: Final = "2026-07-28"
MOST_ATTEMPTS: Final = 60
ROUND_SECONDS: Final = 90.0
_PAUSES: Final = (0.1, 0.2, 0.5, 1.0)
_META: Final = "io.modelcontextprotocol/"
_MOST_ROUNDS: Final = 10


class Broken(Exception):
    """The connection ended before the answer did."""


class Shed(Exception):
    """503: nothing was done, come again."""


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: dict[str, str]
    body: bytes


class LeanClient:
    """One user's client. `now` is the clock that all who write something down share."""

    def __init__(self, port: int, now: Callable[[], float]) -> None:
        self._port = port
        self._now = now

    async def carry_out(self, told: Told) -> None:
        """The whole exchange; what happens is noted in `told`."""
        task = told.task
        params: Json = {"name": task.tool, "arguments": task.arguments}
        more: Json = {}
        for round_ in range(_MOST_ROUNDS):
            message = await self._round(told, round_, params, more)
            if message is None:
                return
            if "error" in message:
                told.ending, told.error = Ending.REFUSED, message["error"]
                return
            result = message["result"]
            if result["resultType"] == "complete":
                told.ending, told.text = Ending.COMPLETE, result["content"][0]["text"]
                return
            told.tickets.append(result["requestState"])
            more = {"requestState": result["requestState"]}
            asked = result.get("inputRequests", {})
            if asked:
                await asyncio.sleep(task.thinking[round_])
                more["inputResponses"] = {key: self._answer(told, ask) for key, ask in asked.items()}
        told.ending = Ending.GAVE_UP

    def _answer(self, told: Told, ask: Json) -> Json:
        return {"action": "accept", "content": {"answer": answer_to(told, ask["params"]["message"])}}

    async def _round(self, told: Told, round_: int, params: Json, more: Json) -> Json | None:
        """The last word of a round, however often it has to be asked for. None: `told` says why not."""
        task = told.task
        for number in range(MOST_ATTEMPTS):
            attempt = Attempt(self._now(), round_)
            told.attempts.append(attempt)
            try:
                async with asyncio.timeout(ROUND_SECONDS):
                    message = await self._send(task, attempt, params, more)
            except TimeoutError:
                attempt.outcome, attempt.ended = "hung", self._now()
                told.ending = Ending.HUNG
                return None
            except Shed:
                attempt.outcome = "shed"
            except (Broken, OSError) as problem:
                attempt.outcome = f"broken: {problem}"
                if not more and not task.is_repeatable:
                    attempt.ended = self._now()
                    told.ending = Ending.CUT
                    return None
            else:
                attempt.outcome = "answered"
                return message
            finally:
                attempt.ended = self._now()
            await asyncio.sleep(_PAUSES[min(number, len(_PAUSES) - 1)])
        told.ending = Ending.GAVE_UP
        return None

    async def _send(self, task: Task, attempt: Attempt, params: Json, more: Json) -> Json:
        number = f"{task.name}{len(more)}"
        meta = {
            f"{_META}protocolVersion": MODERN,
            f"{_META}clientInfo": {"name": "lean", "version": "1"},
            f"{_META}clientCapabilities": {"elicitation": {"form": {}}},
        }
        body = json.dumps(
            {
                "jsonrpc": "2.0",
                "id": number,
                "method": "tools/call",
                "params": {**params, **more, "_meta": meta},
            }
        ).encode()
        head = (
            f"POST /{task.upstream}/mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {MODERN}\r\n"
            f"Mcp-Method: tools/call\r\nMcp-Name: {task.tool}\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n"
        ).encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            attempt.port = writer.get_extra_info("sockname")[1]
            writer.write(head + body)
            await writer.drain()
            response = read_response(await reader.read(-1))
        finally:
            writer.close()
        if response.status == 503:
            raise Shed
        message = _last_message(response)
        if message.get("id") != number:
            raise AssertionError(f"the answer to another request: {message}")
        return message


def answer_to(told: Told, message: str) -> str:
    """The user's answer; a question of another exchange has none."""
    name, _, number = message.partition(" question ")
    if name != told.task.name:
        raise AssertionError(f"{told.task.name} was asked what {name} is to be asked")
    told.asked.append(int(number))
    return told.task.answers[int(number) - 1]


def read_response(data: bytes) -> Response:
    """One whole HTTP/1.1 response, as it was until the connection closed.

    Raises:
        Broken: it is not whole.
    """
    head, found, rest = data.partition(b"\r\n\r\n")
    if not found:
        raise Broken(f"after {len(data)} bytes of the head")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = _unchunked(rest)
    else:
        body = rest
        if len(body) < int(headers.get("content-length", "0")):
            raise Broken("in the body")
    return Response(int(first.split()[1]), headers, body)


def _unchunked(data: bytes) -> bytes:
    parts: list[bytes] = []
    while True:
        size, found, rest = data.partition(b"\r\n")
        length = int(size, 16) if found else -1
        if length < 0 or len(rest) < length + 2:
            raise Broken("in a chunk")
        if length == 0:
            return b"".join(parts)
        parts.append(rest[:length])
        data = rest[length + 2 :]


def _last_message(response: Response) -> Json:
    """The JSON-RPC response in it."""
    text = response.body
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        events = [line[6:] for line in text.splitlines() if line.startswith(b"data: ")]
        if not events:
            raise Broken("a stream without a last word")
        text = events[-1]
    try:
        message: Json = json.loads(text)
    except ValueError:
        raise Broken(f"HTTP {response.status} with no JSON") from None
    if "method" in message:
        raise Broken("a stream without a last word")
    return message
