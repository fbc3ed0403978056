"""Clients of HTTP+SSE on a channel of another kind: one stream, one address, and the end of both."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.errors import Overloaded, UpstreamLost, UpstreamUnreachable
from gateway.relay.passage import Knock, Passage
from gateway.relay.sse_visits import Visits
from tests.support.channels import FakeChannel, Json, silent
from tests.support.waiting import until

HELLO: Json = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}
READY: Json = {"jsonrpc": "2.0", "method": "notifications/initialized"}
ADDRESS = "visit.v-1"


class Host:
    """Visits over channels that the test speaks for."""

    def __init__(self, **options: Any) -> None:
        self.channels: list[FakeChannel] = []
        self.on: dict[str, Any] = {}
        self.shown: list[str | None] = []
        """With which credential a channel was opened."""
        self.refusal: Exception | None = None
        self.visits = Visits(self._connect, **{"most": 2, "patience": 5.0, "new_id": self._next, **options})
        self._number = 0

    def _next(self) -> str:
        self._number += 1
        return f"v-{self._number}"

    async def _connect(self, authorization: str | None) -> FakeChannel:
        if self.refusal is not None:
            raise self.refusal
        self.shown.append(authorization)
        self.channels.append(FakeChannel())
        self.channels[-1].on |= self.on
        return self.channels[-1]

    async def is_reached(self) -> bool:
        """Was a channel opened?"""
        return bool(self.channels)

    def begin(self, authorization: str | None = None) -> "Reader":
        knock = Knock("GET", "/mcp", "", (), b"", None, authorization)
        return Reader(self.visits.begin(knock, lambda visit: f"/mcp?holdfast={visit}"))

    async def post(
        self, body: Any, address: str = ADDRESS, authorization: str | None = None, verb: str = "POST"
    ) -> int:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = await self.visits.post(Knock(verb, "/mcp", "", (), raw, None, authorization), address)
        return answer.status


class Reader:
    """A client's end of the stream."""

    def __init__(self, passage: Passage) -> None:
        assert passage.left is not None
        self.leave = passage.left
        self._chunks = passage.chunks

    async def next(self) -> bytes:
        async with asyncio.timeout(5):
            return await anext(self._chunks)

    async def message(self) -> Json:
        data = (await self.next()).partition(b"data: ")[2]
        message: Json = json.loads(data)
        return message

    async def rest(self) -> list[bytes]:
        async with asyncio.timeout(5):
            return [chunk async for chunk in self._chunks]


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    made = Host()
    try:
        yield made
    finally:
        await made.visits.close()


def call(number: Any) -> Json:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {}}


async def introduced(host: Host) -> Reader:
    reader = host.begin()
    assert await reader.next() == f"event: endpoint\ndata: /mcp?holdfast={ADDRESS}\n\n".encode()
    assert await host.post(HELLO) == 202
    assert (await reader.message())["id"] == 0
    assert await host.post(READY) == 202
    return reader


async def test_the_first_event_says_where_to_speak_and_answers_come_on_the_stream(host: Host) -> None:
    """2024-11-05: `endpoint` first, 202 to every message, everything else as `message` events."""
    reader = await introduced(host)
    assert await host.post(call("a")) == 202

    assert (await reader.message())["id"] == "a"
    assert [message["method"] for message in host.channels[0].sent] == [
        "initialize",
        "notifications/initialized",
        "tools/call",
    ]
    assert host.channels[0].version == "2025-11-25"


async def test_a_stream_alone_costs_the_server_nothing(host: Host) -> None:
    """Ours: whoever only opens a stream starts no process and no session."""
    reader = host.begin()
    await reader.next()
    assert host.channels == []


async def test_what_the_server_says_of_its_own_accord_comes_too(host: Host) -> None:
    """2024-11-05: the one stream carries questions; their answers are posted like all else."""
    reader = await introduced(host)
    question = {"jsonrpc": "2.0", "id": 7, "method": "roots/list"}
    host.channels[0].say(question, standing=True)

    assert await reader.message() == question
    answer = {"jsonrpc": "2.0", "id": 7, "result": {"roots": []}}
    assert await host.post(answer) == 202
    assert host.channels[0].sent[-1] == answer


async def test_the_address_is_of_use_to_its_own_client_only(host: Host) -> None:
    """Ours: another credential, a made-up name, or a visit that has ended: 404, as servers of this era say it."""
    reader = host.begin("Bearer a")
    await reader.next()

    assert await host.post(HELLO, authorization="Bearer b") == 404
    assert await host.post(HELLO, "visit.v-2", "Bearer a") == 404
    assert await host.post(HELLO, ADDRESS, "Bearer a", verb="GET") == 405
    assert await host.post(HELLO, ADDRESS, "Bearer a") == 202
    reader.leave()
    assert await host.post(READY, ADDRESS, "Bearer a") == 404


async def test_a_refreshed_credential_keeps_the_visit_and_is_shown_to_the_server(host: Host) -> None:
    """Ours: whose a visit is follows from who is calling, where that is known, and not from the token of the hour."""
    knock = Knock("GET", "/mcp", "", (), b"", None, "Bearer a", owner="ann")
    Reader(host.visits.begin(knock, lambda visit: f"/mcp?holdfast={visit}"))
    hello = json.dumps(HELLO).encode()
    refreshed = Knock("POST", "/mcp", "", (), hello, None, "Bearer b", owner="ann")
    another = Knock("POST", "/mcp", "", (), hello, None, "Bearer a", owner="bob")

    assert (await host.visits.post(another, ADDRESS)).status == 404
    assert (await host.visits.post(refreshed, ADDRESS)).status == 202
    await until(host.is_reached)
    assert host.shown == ["Bearer b"]


@pytest.mark.parametrize("body", [b"{", b"[]", b"[1]", b'{"jsonrpc":"2.0"}'])
async def test_nonsense_is_refused_and_costs_nothing(host: Host, body: bytes) -> None:
    """Ours: no channel is opened for it."""
    host.begin()
    assert await host.post(body) == 400
    assert host.channels == []


async def test_two_requests_of_one_id_do_not_mix(host: Host) -> None:
    """LEGACY-WIRE 2: the later one would take the first one's answer."""
    host.on["tools/call"] = silent
    await introduced(host)
    assert [await host.post(call(1)), await host.post(call(1)), await host.post(call("1"))] == [202, 400, 202]


async def test_a_client_that_leaves_ends_the_session(host: Host) -> None:
    """2024-11-05: the session is the stream."""
    host.on["tools/call"] = silent
    reader = await introduced(host)
    await host.post(call(1))
    reader.leave()

    async def is_closed() -> bool:
        return host.channels[0].is_closed

    await until(is_closed)


async def test_a_server_that_is_gone_ends_the_stream(host: Host) -> None:
    """2024-11-05: a client knows by it that its session is gone."""
    reader = await introduced(host)
    host.channels[0].ending = UpstreamLost("it ended")
    host.channels[0].end.set()
    assert await reader.rest() == []


async def test_a_server_that_cannot_be_reached_is_told_as_the_answer(host: Host) -> None:
    """Ours: the POST was taken, so the stream must say what became of it."""
    host.refusal = UpstreamUnreachable("no such command")
    reader = host.begin()
    await reader.next()
    assert await host.post(HELLO) == 202
    assert (await reader.message())["error"]["code"] == -32603


async def test_a_server_that_does_not_introduce_itself_is_given_up() -> None:
    """Ours: bounded by `call_timeout`."""
    host = Host(patience=0.01)
    host.on["initialize"] = silent
    try:
        reader = host.begin()
        await reader.next()
        assert await host.post(HELLO) == 202
        assert (await reader.message())["error"]["code"] == -32603
    finally:
        await host.visits.close()


async def test_a_client_that_reads_nothing_is_not_remembered_without_end(host: Host) -> None:
    """Ours: an answer left out would be waited for in vain, so the whole visit ends."""
    reader = await introduced(host)
    notice = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}
    for _ in range(2000):
        host.channels[0].say(notice, standing=True)
    assert len(await reader.rest()) < 2000


async def test_there_are_only_so_many(host: Host) -> None:
    """Ours: as many as `sessions.max`."""
    one, _ = host.begin(), host.begin()
    with pytest.raises(Overloaded):
        host.begin()
    one.leave()
    host.begin()


async def test_a_gateway_that_stops_lets_what_is_under_way_end(host: Host) -> None:
    """Ours: an idle visit ends at once, a busy one with its answer; nobody new is let in."""
    goes_on = asyncio.Event()

    async def slow(_: Json, __: FakeChannel) -> Json:
        await goes_on.wait()
        return {"content": []}

    host.on["tools/call"] = slow
    busy = await introduced(host)
    idle = host.begin()
    await idle.next()
    await host.post(call(1))
    host.visits.end_idle()

    assert await idle.rest() == []
    with pytest.raises(Overloaded):
        host.begin()
    goes_on.set()
    (last,) = await busy.rest()
    assert json.loads(last.partition(b"data: ")[2])["id"] == 1
