"""Legacy clients over Streamable HTTP on a channel of another kind."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.errors import Overloaded, UpstreamLost, UpstreamTimedOut
from gateway.relay.legacy_sessions import LegacySessions
from gateway.relay.passage import Knock, Passage
from tests.support.channels import FakeChannel, Json, silent
from tests.support.waiting import until

HELLO: Json = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}


class Bridge:
    """Sessions over channels that the test speaks for."""

    def __init__(self, **options: Any) -> None:
        self.channels: list[FakeChannel] = []
        self.on: dict[str, Any] = {}
        self.sessions = LegacySessions(
            self._connect,
            **{
                "most": 4,
                "idle": 60.0,
                "patience": 5.0,
                "new_id": lambda: f"s-{len(self.channels)}",
                **options,
            },
        )

    async def _connect(self, _: str | None) -> FakeChannel:
        self.channels.append(FakeChannel())
        self.channels[-1].on |= self.on
        return self.channels[-1]

    async def post(self, body: Any, session: str | None = "s-1", authorization: str | None = None) -> Passage:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.sessions.serve(Knock("POST", "/mcp", "", (), raw, session, authorization))

    async def visit(self, verb: str, session: str | None = "s-1") -> Passage:
        return await self.sessions.serve(Knock(verb, "/mcp", "", (), b"", session))


@pytest.fixture
async def bridge() -> AsyncIterator[Bridge]:
    made = Bridge()
    made.sessions.start()
    try:
        yield made
    finally:
        await made.sessions.close()


async def body_of(passage: Passage) -> bytes:
    async with asyncio.timeout(5):
        return b"".join([chunk async for chunk in passage.chunks])


def call(number: Any, token: Any = None) -> Json:
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": meta}


async def test_a_handshake_opens_a_session_and_says_its_name(bridge: Bridge) -> None:
    opened = await bridge.post(HELLO, None)

    assert dict(opened.headers)["Mcp-Session-Id"] == "s-1"
    assert json.loads(await body_of(opened))["id"] == 0
    assert bridge.channels[0].version == "2025-11-25"


async def test_what_a_server_says_before_its_introduction_waits() -> None:
    bridge = Bridge()

    async def chatty(_: Json, channel: FakeChannel) -> Json:
        await until(lambda: _listening(channel))
        channel.say(_notice("notifications/message"), standing=True)
        return {"protocolVersion": "2025-06-18"}

    bridge.on["initialize"] = chatty
    try:
        opened = await bridge.post(HELLO, None)
        standing = await bridge.visit("GET")
    finally:
        await bridge.sessions.close()

    assert json.loads(await body_of(opened))["id"] == 0
    assert b"notifications/message" in await body_of(standing)


async def test_a_server_that_does_not_introduce_itself_is_given_up() -> None:
    bridge = Bridge(patience=0.01)
    bridge.on["initialize"] = silent
    try:
        with pytest.raises(UpstreamTimedOut):
            await bridge.post(HELLO, None)
        await until(lambda: _closed(bridge.channels[0]))
    finally:
        await bridge.sessions.close()


async def test_ids_go_through_untouched_and_two_requests_of_one_id_do_not_mix(bridge: Bridge) -> None:
    await bridge.post(HELLO, None)
    channel = bridge.channels[0]
    channel.on["tools/call"] = silent
    waiting = asyncio.get_running_loop().create_task(bridge.post(call("0")))
    await until(lambda: _sent(channel, "tools/call"))

    again = await bridge.post(call("0"))
    other = await bridge.post({"jsonrpc": "2.0", "id": 0, "method": "ping"})

    assert again.status == 400
    assert json.loads(await body_of(other))["id"] == 0
    assert channel.sent[1]["id"] == "0"
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_what_the_server_says_goes_with_the_request_it_belongs_to(bridge: Bridge) -> None:
    """Progress by its token, questions with the newest request, changes and all else on the GET stream."""
    await bridge.post(HELLO, None)
    channel = bridge.channels[0]
    done = asyncio.Event()

    async def wait(_: Json, __: FakeChannel) -> Json:
        await done.wait()
        return {}

    channel.on["tools/call"] = wait
    tasks = [asyncio.get_running_loop().create_task(bridge.post(call(n, f"t-{n}"))) for n in (1, 2)]
    await until(lambda: _sent(channel, "tools/call", 2))
    standing = await bridge.visit("GET")
    channel.say(_notice("notifications/progress", progressToken="t-1"), standing=True)
    channel.say({"jsonrpc": "2.0", "id": 0, "method": "roots/list"}, standing=True)
    channel.say(_notice("notifications/tools/list_changed"), standing=True)
    first, second = await asyncio.gather(*tasks)
    done.set()
    heard = [await body_of(first), await body_of(second)]
    channel.say(_notice("notifications/message"), standing=True)
    await bridge.visit("DELETE")
    rest = await body_of(standing)

    assert b"progressToken" in heard[0]
    assert b"roots/list" not in heard[0]
    assert b"roots/list" in heard[1]
    assert b"list_changed" in rest
    assert b"notifications/message" in rest


async def test_what_nobody_can_hear_yet_waits_for_the_get_stream(bridge: Bridge) -> None:
    await bridge.post(HELLO, None)
    await until(lambda: _listening(bridge.channels[0]))
    bridge.channels[0].say({"jsonrpc": "2.0", "id": 0, "method": "roots/list"}, standing=True)

    standing = await bridge.visit("GET")
    busy = await bridge.visit("GET")
    await bridge.visit("DELETE")

    assert busy.status == 409
    assert b"roots/list" in await body_of(standing)


async def test_answers_and_notifications_are_sent_on_as_they_are(bridge: Bridge) -> None:
    await bridge.post(HELLO, None)

    taken = [
        await bridge.post({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        await bridge.post({"jsonrpc": "2.0", "id": 0, "result": {"roots": []}}),
    ]

    assert [passage.status for passage in taken] == [202, 202]
    assert [message.get("method", "answer") for message in bridge.channels[0].sent[1:]] == [
        "notifications/initialized",
        "answer",
    ]


@pytest.mark.parametrize(
    ("body", "session", "authorization", "status"),
    [
        (call(1), None, None, 400),
        (call(1), "s-9", None, 404),
        (call(1), "s-1", "Bearer other", 404),
        (b"{", "s-1", None, 400),
        ([call(1)], "s-1", None, 400),
        ({"jsonrpc": "2.0", "id": None, "method": "x"}, "s-1", None, 400),
    ],
)
async def test_what_is_not_of_a_session_is_refused(
    bridge: Bridge, body: Any, session: str | None, authorization: str | None, status: int
) -> None:
    await bridge.post(HELLO, None)

    assert (await bridge.post(body, session, authorization)).status == status


async def test_a_session_whose_server_is_gone_is_unknown_and_its_call_fails(bridge: Bridge) -> None:
    await bridge.post(HELLO, None)
    channel = bridge.channels[0]

    async def lost(_: Json, __: FakeChannel) -> None:
        raise UpstreamLost("gone")

    channel.on["tools/call"] = lost
    failed = await bridge.post(call(1))
    channel.ending = UpstreamLost("gone")
    channel.end.set()
    await until(lambda: _closed(channel))

    assert json.loads(await body_of(failed))["error"]["code"] == -32603
    assert (await bridge.post(call(2))).status == 404


async def test_there_are_no_more_sessions_than_there_may_be() -> None:
    bridge = Bridge(most=1)
    try:
        await bridge.post(HELLO, None)
        with pytest.raises(Overloaded):
            await bridge.post(HELLO, None)
    finally:
        await bridge.sessions.close()
    assert bridge.channels[0].is_closed


async def test_a_session_that_nobody_uses_is_closed_and_one_that_is_listened_on_is_not() -> None:
    bridge = Bridge(idle=0.05)
    bridge.sessions.start()
    try:
        await bridge.post(HELLO, None)
        await bridge.post(HELLO, None)
        standing = await bridge.visit("GET", "s-2")
        await until(lambda: _closed(bridge.channels[0]))
        kept = not bridge.channels[1].is_closed
        assert standing.left is not None
        standing.left()
        await until(lambda: _closed(bridge.channels[1]))
    finally:
        await bridge.sessions.close()
    assert kept


def _notice(method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params}


async def _sent(channel: FakeChannel, method: str, number: int = 1) -> bool:
    return len([message for message in channel.sent if message.get("method") == method]) >= number


async def _closed(channel: FakeChannel) -> bool:
    return channel.is_closed


async def _listening(channel: FakeChannel) -> bool:
    return channel._standing is not None
