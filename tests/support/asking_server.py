"""A legacy server without a wire: its tool asks, then says what it was told. It keeps every answer that it got."""

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Callable
from contextvars import Context
from itertools import count
from typing import Any

from gateway.errors import UpstreamLost
from gateway.upstreams.pool import Caller
from gateway.upstreams.session import Session
from gateway.upstreams.transport import Deliver, SessionGone
from gateway.wire.jsonrpc import Id, decode, parse
from tests.support.channels import HELLO

Json = dict[str, Any]

_WAY_SECONDS = 0.01
"""How long the gateway waits to hear that something was taken."""
_FORM = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}


class Run:
    """One run of the tool: asks `questions` times, working for a while after each answer."""

    def __init__(self, server: "AskingServer", session_id: str, call: Json) -> None:
        arguments = call["params"]["arguments"]
        self.number = next(server.numbers)
        self.session_id = session_id
        self.request_id: Id = call["id"]
        self.tag: str = arguments["tag"]
        self.events: list[bytes] = []
        self.is_over = False
        self._questions: int = arguments["questions"]
        self._work: float = arguments["work"]
        self._server = server
        self._answers: list[Any] = []
        self._asked: str | None = None
        self._readers: list[asyncio.Future[None]] = []
        self._later(0.0)

    def take(self, ask_id: str, value: Any) -> None:
        """The answer to what it asked; to anything else it does not listen."""
        if ask_id == self._asked and not self.is_over:
            self._asked = None
            self._answers.append(value)
            self._later(self._work)

    def end(self) -> None:
        """Nobody wants it any more."""
        self.is_over = True
        self._wake()

    async def more(self) -> None:
        """Until it has said more, or is over."""
        self._readers.append(reader := asyncio.get_running_loop().create_future())
        await reader

    def _later(self, seconds: float) -> None:
        # In a context of its own: the server goes on when the gateway that called it does not.
        asyncio.get_running_loop().call_later(seconds, self._go_on, context=Context())

    def _go_on(self) -> None:
        if self.is_over:
            return
        asked = len(self._answers)
        if asked < self._questions:
            self._asked = f"ask-{next(self._server.numbers)}"
            self._server.asks[self._asked] = self
            params = {"message": f"{self.tag}/{asked}", "requestedSchema": _FORM}
            self._say({"id": self._asked, "method": "elicitation/create", "params": params})
        else:
            text = json.dumps({"tag": self.tag, "answers": self._answers})
            self._say({"id": self.request_id, "result": {"content": [{"type": "text", "text": text}]}})

    def _say(self, message: Json) -> None:
        self.events.append(json.dumps({"jsonrpc": "2.0", **message}).encode())
        self._wake()

    def _wake(self) -> None:
        readers, self._readers = self._readers, []
        for reader in readers:
            if not reader.done():
                reader.set_result(None)


class AskingServer:
    """What it was asked to do, and what it was told."""

    def __init__(self, *, remembers: bool) -> None:
        self.remembers = remembers
        self.numbers = count(1)
        self.sessions: set[str] = set()
        self.runs: list[Run] = []
        self.asks: dict[str, Run] = {}
        self.told: defaultdict[str, list[Any]] = defaultdict(list)
        """All that came in answer to each ask."""

    def runs_of(self) -> Counter[str]:
        """How often it ran for each caller's tag."""
        return Counter(run.tag for run in self.runs)

    def channel(self) -> "InProcess":
        """A way to it."""
        return InProcessWithMemory(self) if self.remembers else InProcess(self)

    def tell(self, session_id: str, message: Json) -> None:
        """An answer, or a notification."""
        if message.get("method") == "notifications/cancelled":
            for run in self.runs:
                if run.request_id == message["params"]["requestId"]:
                    run.end()
        elif "method" not in message:
            run = self.asks[message["id"]]
            assert run.session_id == session_id, "answered in another session"
            value = message.get("result", {}).get("content", {}).get("value")
            self.told[message["id"]].append(value)
            run.take(message["id"], value)

    def end(self, session_id: str) -> None:
        """A session is over, and what runs in it."""
        self.sessions.discard(session_id)
        for run in self.runs:
            if run.session_id == session_id:
                run.end()


class InProcess:
    """A channel to it whose streams nobody can read on."""

    has_one_stream = False

    def __init__(self, server: AskingServer) -> None:
        self.session_id: str | None = None
        self.last_event_id: str | None = None
        self._server = server

    def speak(self, version: str) -> None:
        pass

    def authorize(self, authorization: str) -> None:
        pass

    async def request(self, request_id: Id, body: bytes, deliver: Deliver) -> None:
        message: Json = decode(body)
        if message["method"] == "initialize":
            self.session_id = f"session-{next(self._server.numbers)}"
            self._server.sessions.add(self.session_id)
        session_id = self._known()
        if message["method"] == "tools/call":
            self._server.runs.append(run := Run(self._server, session_id, message))
            await self._read(run, 0, deliver)
            return
        await asyncio.sleep(_WAY_SECONDS)
        result = HELLO if message["method"] == "initialize" else {}
        deliver(parse(json.dumps({"jsonrpc": "2.0", "id": request_id, "result": result}).encode()))

    async def send(self, body: bytes) -> None:
        self._server.tell(self._known(), decode(body))
        await asyncio.sleep(_WAY_SECONDS)

    async def listen(self, deliver: Deliver, opened: Callable[[], None]) -> None:
        opened()
        await asyncio.get_running_loop().create_future()

    async def close(self) -> None:
        if self.session_id is not None:
            self._server.end(self.session_id)

    def adopt(self, session_id: str, version: str) -> None:
        self.session_id = session_id

    def _known(self) -> str:
        if self.session_id is None or self.session_id not in self._server.sessions:
            raise SessionGone("no such session")
        return self.session_id

    async def _read(self, run: Run, position: int, deliver: Deliver) -> None:
        while True:
            for event in run.events[position:]:
                position += 1
                if self._server.remembers:
                    self.last_event_id = f"{run.number}:{position}"
                if deliver(parse(event)):
                    return
            if run.is_over:
                raise UpstreamLost("the call was ended")
            if position == len(run.events):
                await run.more()


class InProcessWithMemory(InProcess):
    """One whose server remembers what it sent."""

    may_remember = True

    async def resume(self, last_event_id: str, deliver: Deliver) -> None:
        self._known()
        self.last_event_id = last_event_id
        number, _, position = last_event_id.partition(":")
        run = next(run for run in self._server.runs if run.number == int(number))
        await self._read(run, int(position), deliver)


class InProcessDialer:
    """Dials it, in place of the one that dials over a network."""

    def __init__(self, server: AskingServer) -> None:
        self._server = server

    async def dial(self, caller: Caller, greet: Callable[[Any], Any]) -> Session:
        session: Session = await greet(self._server.channel())
        return session

    async def redial(self, caller: Caller, session_id: str, version: str) -> InProcess:
        channel = self._server.channel()
        channel.adopt(session_id, version)
        return channel

    async def close(self) -> None:
        pass
