"""A hostile server behind a live gateway: malformed messages, streams and HTTP; well-behaved calls in between."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import aiohttp

from tests.fuzz.http_requests import modern
from tests.fuzz.live import Findings, Target, parts_of, target
from tests.fuzz.mutation import dump, spoil_bytes
from tests.fuzz.patient_upstream import PatientUpstream
from tests.fuzz.upstream_messages import event, message
from tests.support.scripted import Turn, text_result

_SECONDS: Final = 20.0
_LANES: Final = 24
_GOOD_EVERY: Final = 25
_LOST: Final = (b"closed the connection before it answered", b"went away while a session was being opened")
_EVENTS: Final = 24
"""Malformed events before the answer, where the way is a stream. Most calls end with one of the first."""
_ODD_HEADERS: Final = (
    *(
        "Mcp-Session-Id: \xff\xfe",
        "Mcp-Session-Id: a b",
        "Mcp-Session-Id: " + "x" * 7000,
        "Mcp-Session-Id: a\x01b",
    ),
    *("Content-Type: text/html", "Content-Type: application/json; charset=\xff", "Content-Encoding: gzip"),
    *(
        "Content-Encoding: br",
        "Transfer-Encoding: gzip",
        "Location: http://evil.example/",
        "X: " + "y" * 9000,
    ),
    *(
        "WWW-Authenticate: \xff\xfe",
        "Set-Cookie: a=b",
        "Connection: close",
        "Content-Length: 5",
        ": x",
        "X\x00: y",
    ),
)
_STATUSES: Final = (
    100,
    101,
    102,
    199,
    200,
    202,
    204,
    206,
    301,
    302,
    307,
    400,
    401,
    403,
    404,
    409,
    418,
    429,
    500,
    503,
    999,
)


class Hostile:
    """Answers each call in a way of its own, chosen by the seed."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self.said = 0
        """Malformed messages and heads that were sent."""

    async def __call__(self, turn: Turn) -> None:
        arguments = turn.message.get("params", {}).get("arguments", {})
        if arguments.get("good"):
            await turn.result(text_result("done"))
            return
        await self._rng.choice(_WAYS)(self, turn)

    def _message(self, turn: Turn) -> bytes:
        self.said += 1
        return message(self._rng).replace(b'"call"', json.dumps(turn.id).encode())

    async def stream(self, turn: Turn) -> None:
        """Spoilt events, and in the end the answer."""
        await turn.stream()
        for _ in range(self._rng.randrange(1, _EVENTS)):
            if turn.writer.is_closing():
                return
            self.said += 1
            await turn.chunk(event(self._rng).replace(b'"call"', json.dumps(turn.id).encode()))
        await turn.event(turn.answer(text_result("late")))
        await turn.finish()

    async def body(self, turn: Turn) -> None:
        """A spoilt JSON body."""
        await turn.reply(200, self._message(turn), {"Content-Type": "application/json"})

    async def head(self, turn: Turn) -> None:
        """An odd status, odd headers, perhaps a good body."""
        self.said += 1
        data = (
            json.dumps(turn.answer(text_result("x"))).encode()
            if self._rng.random() < 0.5
            else self._message(turn)
        )
        lines = ["Content-Type: application/json", f"Content-Length: {len(data)}"]
        lines += self._rng.sample(_ODD_HEADERS, self._rng.randrange(1, 4))
        self._rng.shuffle(lines)
        first = f"HTTP/1.1 {self._rng.choice(_STATUSES)} {self._rng.choice(('OK', '', chr(255), 'x' * 300))}"
        await turn.write("\r\n".join([first, *lines, "", ""]).encode("latin-1") + data)
        turn.hang_up()

    async def bytes(self, turn: Turn) -> None:
        """A good response, spoilt anywhere."""
        self.said += 1
        data = json.dumps(turn.answer(text_result("x"))).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode()
        await turn.write(spoil_bytes(head + data, self._rng, self._rng.randrange(1, 5)))
        turn.hang_up()

    async def broken_stream(self, turn: Turn) -> None:
        """Chunks that are none, in mid-stream."""
        await turn.stream()
        self.said += 1
        await turn.chunk(event(self._rng))
        await turn.write(self._rng.choice((b"zz\r\n", b"5\r\nab", b"-1\r\n\r\n", b"0\r\n\r\nmore", b"\x00")))
        turn.hang_up()


_WAYS: Final[tuple[Callable[[Hostile, Turn], Awaitable[None]], ...]] = (
    *(Hostile.stream, Hostile.stream, Hostile.stream, Hostile.stream, Hostile.body, Hostile.body),
    *(Hostile.head, Hostile.bytes, Hostile.broken_stream),
)


async def fuzz(seed: int, calls: int, folder: Path) -> Findings:
    """Make so many calls; `sent` counts what the server said in answer."""
    findings = Findings()
    async with PatientUpstream() as upstream:
        hostile = upstream.on["tools/call"] = Hostile(seed)
        options = {"url": upstream.url, "era": "legacy", "settle": "1ms", "holds": {"ttl": "1s", "max": 1000}}
        async with target(folder, options) as gateway:
            for part, size in enumerate(parts_of(calls)):
                await _volley(gateway, upstream, findings, seed + part, size)
                findings.memory.append(gateway.rss())
            findings.sent["messages of the server"] = hostile.said
            await gateway.at_rest(findings)
    return findings


async def _volley(
    gateway: Target, upstream: PatientUpstream, findings: Findings, seed: int, number: int
) -> None:
    share = -(-number // _LANES)
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_SECONDS)) as http,
        asyncio.TaskGroup() as group,
    ):
        for lane in range(_LANES):
            size = max(0, min(share, number - lane * share))
            rng = random.Random(seed * 1000 + lane)
            group.create_task(_lane(gateway, upstream, http, findings, rng, size))


async def _lane(
    gateway: Target,
    upstream: PatientUpstream,
    http: aiohttp.ClientSession,
    findings: Findings,
    rng: random.Random,
    number: int,
) -> None:
    for count in range(number):
        is_good = count % _GOOD_EVERY == 0
        if is_good:
            upstream.turns.clear()
        status, said = await _call(gateway, http, {"good": is_good})
        if is_good and any(lost in said for lost in _LOST):
            # The server hung up on the connection of the call before just as this one, or its handshake, went out
            # on it: told as what it is, and never sent again by the gateway. A client may.
            status, said = await _call(gateway, http, {"good": is_good})
        findings.answers[str(status)] += 1
        if status >= 500 or status <= 0:
            findings.faults.append(f"{status}: {said[:300]!r}")
        findings.good_calls += is_good
        # A question that an earlier call has left behind on the session may come first.
        if is_good and not (b"done" in said or b"input_required" in said):
            findings.faults.append(f"a good call: {status} {said[:300]!r}")
        if b"requestState" in said and rng.random() < 0.3:
            status, said = await _answer(gateway, http, said)
            findings.answers[str(status)] += 1
            if status >= 500 or status <= 0:
                findings.faults.append(f"a retry: {status} {said[:300]!r}")


async def _call(
    gateway: Target, http: aiohttp.ClientSession, arguments: Any, **more: Any
) -> tuple[int, bytes]:
    headers, body = modern("tools/call", name="echo", arguments=arguments, **more)
    del headers["Host"]
    try:
        async with http.post(gateway.process.url, data=dump(body).encode(), headers=headers) as response:
            return response.status, await response.read()
    except (aiohttp.ClientError, TimeoutError) as error:
        return 0, repr(error).encode()


async def _answer(gateway: Target, http: aiohttp.ClientSession, said: bytes) -> tuple[int, bytes]:
    data = said.strip().rpartition(b"data: ")[2]
    try:
        result = json.loads(data)["result"]
    except (ValueError, KeyError, RecursionError):
        return 200, b""  # questions that Python's own decoder cannot read
    answers = {key: {"action": "decline"} for key in result.get("inputRequests", {})}
    return await _call(
        gateway, http, {"good": False}, requestState=result["requestState"], inputResponses=answers
    )
