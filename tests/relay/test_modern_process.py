"""One process and many clients: who hears what, and what each id becomes on the way."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.errors import HeaderMismatch, UpstreamFault, UpstreamLost
from gateway.relay.modern_process import ModernProcess
from gateway.relay.passage import Knock, Passage
from gateway.relay.request import ClientRequest, Principal
from gateway.upstreams.transport import SessionGone
from gateway.wire.jsonrpc import Raw
from tests.support.channels import FakeChannel, Json, silent
from tests.support.waiting import until

LEVEL = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
INFO = {"name": "holdfast", "version": "1"}


class Host:
    """A process that the test speaks for."""

    def __init__(self) -> None:
        self.channels: list[FakeChannel] = []
        self.on: dict[str, Any] = {}
        self.ends = 0
        self.process = ModernProcess(self._start, self._ended, INFO, list_seconds=5.0)

    async def _start(self) -> FakeChannel:
        self.channels.append(FakeChannel())
        self.channels[-1].on |= self.on
        return self.channels[-1]

    def _ended(self) -> None:
        self.ends += 1

    async def ask(self, request_id: Any, method: str = "tools/call", **params: Any) -> Passage:
        body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        return await self.process.serve(Knock("POST", "/mcp", "", (), json.dumps(body).encode()))


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    made = Host()
    try:
        yield made
    finally:
        await made.process.close()


async def messages(passage: Passage) -> list[Json]:
    async with asyncio.timeout(5):
        text = b"".join([chunk async for chunk in passage.chunks])
    if dict(passage.headers)["Content-Type"] == "application/json":
        return [json.loads(text)]
    return [json.loads(block.partition(b"data: ")[2]) for block in text.split(b"\n\n") if b"data: " in block]


def says(*said: Json, result: Any = None) -> Any:
    """Say this in mid-call, then answer."""

    async def answering(message: Json, channel: FakeChannel) -> Any:
        for notice in said:
            channel.say({"jsonrpc": "2.0", **_with_number(notice, message["id"])})
        return result if result is not None else {"resultType": "complete"}

    return answering


def _with_number(notice: Json, number: int) -> Json:
    changed: Json = json.loads(json.dumps(notice).replace('"$number"', str(number)))
    return changed


async def test_ids_and_tokens_are_ours_below_and_the_client_s_above(host: Host) -> None:
    """MODERN-WIRE 1.11: 0, 1 and "1" come from every client."""
    notice = {"method": "notifications/progress", "params": {"progressToken": "$number", "progress": 1}}
    host.on["tools/call"] = says(notice)

    heard = [
        await messages(await host.ask(request_id, _meta={"progressToken": "mine", "x": 1}))
        for request_id in (0, "0", 1)
    ]

    sent = [message for message in host.channels[0].sent if "id" in message]
    assert len({message["id"] for message in sent}) == 3
    assert [message["params"]["_meta"] for message in sent] == [
        {"progressToken": message["id"], "x": 1} for message in sent
    ]
    assert [answer["id"] for _, answer in heard] == [0, "0", 1]
    assert {told["params"]["progressToken"] for told, _ in heard} == {"mine"}


async def test_what_the_process_asks_is_answered_here(host: Host) -> None:
    """Servers of the Go SDK ping modern clients as well, and end without a pong; nothing else may be asked."""
    ping, question = {"id": "p", "method": "ping"}, {"id": 0, "method": "elicitation/create", "params": {}}
    host.on["tools/call"] = says(ping, question)

    assert [message["id"] for message in await messages(await host.ask(1))] == [1]

    def answers() -> list[Json]:
        return [message for message in host.channels[0].sent if "method" not in message]

    async def are_given() -> bool:
        return len(answers()) == 2

    await until(are_given)
    assert answers() == [
        {"jsonrpc": "2.0", "id": "p", "result": {}},
        {"jsonrpc": "2.0", "id": 0, "error": {"code": -32601, "message": "Method not found"}},
    ]


@pytest.mark.parametrize(
    ("code", "status"), [(-32602, 400), (-32021, 400), (-32601, 404), (-32603, 200), (7, 200)]
)
async def test_an_error_has_the_status_that_clients_can_read(host: Host, code: int, status: int) -> None:
    """MODERN-WIRE 3: the reference server's table."""

    async def fails(message: Json, channel: FakeChannel) -> None:
        error = {"code": code, "message": "no", "data": {"a": 1}}
        channel.say({"jsonrpc": "2.0", "id": message["id"], "error": error})

    host.on["tools/call"] = fails
    passage = await host.ask("x")
    (message,) = await messages(passage)
    assert (passage.status, message["id"], message["error"]["code"]) == (status, "x", code)
    assert message["error"]["data"] == {"a": 1}


async def test_a_log_line_that_may_be_another_s_goes_to_nobody(host: Host) -> None:
    """Ours: on a line a log message names no request."""
    log = {"method": "notifications/message", "params": {"level": "info", "data": "secret"}}
    host.on["tools/call"] = silent
    host.on["prompts/get"] = says(log)
    other = asyncio.get_running_loop().create_task(host.ask(1, _meta={LEVEL: "debug"}))
    await asyncio.sleep(0)
    both = await messages(await host.ask(2, "prompts/get", _meta={LEVEL: "debug"}))
    other.cancel()
    await asyncio.gather(other, return_exceptions=True)
    alone = await messages(await host.ask(3, "prompts/get", _meta={LEVEL: "debug"}))
    deaf = await messages(await host.ask(4, "prompts/get", _meta={LEVEL: "error"}))

    assert [len(heard) for heard in (both, alone, deaf)] == [1, 2, 1]


@pytest.mark.parametrize("how", ["result", "cancelled"])
async def test_a_subscription_that_the_server_ends_ends_with_a_result(host: Host, how: str) -> None:
    """MODERN-WIRE 41: on stdio a server may end it with a notification, which HTTP clients take for a loss."""
    tagged = {"_meta": {SUBSCRIPTION: "$number"}}
    changed = {"method": "notifications/tools/list_changed", "params": tagged}
    if how == "result":
        host.on["subscriptions/listen"] = says(
            changed, result={"resultType": "complete", "_meta": {SUBSCRIPTION: 1}}
        )
    else:
        cancelled = {"method": "notifications/cancelled", "params": {"requestId": "$number"}}
        host.on["subscriptions/listen"] = says(changed, cancelled)

    told, last = await messages(await host.ask("listen-1", "subscriptions/listen"))

    assert told["params"]["_meta"][SUBSCRIPTION] == "listen-1"
    assert (last["id"], last["result"]["_meta"][SUBSCRIPTION]) == ("listen-1", "listen-1")


async def test_a_request_that_was_not_taken_goes_to_a_new_process(host: Host) -> None:
    """Ours: it cannot have run."""

    async def gone(_: Json, __: FakeChannel) -> None:
        raise SessionGone("takes nothing any more")

    host.on["tools/call"] = gone
    await host.ask(0, "prompts/list")
    host.on = {}
    (answer,) = await messages(await host.ask(1))
    assert "result" in answer
    assert (len(host.channels), host.ends) == (2, 1)
    assert host.channels[0].is_closed


async def test_a_request_that_may_have_run_is_not_sent_again(host: Host) -> None:
    """Ours: a process that ended in mid-call is told as an error."""

    async def lost(_: Json, __: FakeChannel) -> None:
        raise UpstreamLost("it ended")

    host.on["tools/call"] = lost
    (answer,) = await messages(await host.ask(1))
    assert answer["error"]["code"] == -32603
    assert len(host.channels) == 1


async def test_a_client_that_leaves_is_told_downward(host: Host) -> None:
    """Spec: on stdio a cancellation has to be said."""
    host.on["tools/call"] = silent
    leaving = asyncio.get_running_loop().create_task(host.ask(5))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)

    async def is_told() -> bool:
        return "notifications/cancelled" in host.channels[0].methods()

    await until(is_told)
    (call, told) = host.channels[0].sent
    assert told["params"]["requestId"] == call["id"]


# --- headers of calls ----------------------------------------------------------------------------------


REGION: Json = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
CALLER = Principal("ann", b"ann", is_authenticated=True)


def deploying(to: str, **headers: list[str]) -> ClientRequest:
    arguments = Raw(json.dumps({"region": to}).encode())
    return ClientRequest(
        id=1,
        method="tools/call",
        params={"arguments": arguments},
        target="deploy",
        principal=CALLER,
        capabilities={},
        param_headers=headers,
    )


def listing(*tools: Json) -> Any:
    async def answering(_: Json, __: FakeChannel) -> Any:
        return {"tools": list(tools), "resultType": "complete"}

    return answering


async def test_headers_are_held_against_the_list_of_the_process(host: Host) -> None:
    host.on["tools/list"] = listing({"name": "deploy", "inputSchema": REGION})

    await host.process.check(deploying("eu", region=["eu"]))
    for wrong in ({}, {"region": ["us"]}, {"region": ["eu", "eu"]}):
        with pytest.raises(HeaderMismatch):
            await host.process.check(deploying("eu", **wrong))

    (asked,) = host.channels[0].sent
    assert asked["params"]["_meta"].keys() == {
        f"io.modelcontextprotocol/{member}"
        for member in ("protocolVersion", "clientInfo", "clientCapabilities")
    }


async def test_a_process_without_annotations_is_asked_once(host: Host) -> None:
    host.on["tools/list"] = listing({"name": "deploy", "inputSchema": {"type": "object"}})

    for _ in range(3):
        await host.process.check(deploying("eu"))

    assert host.channels[0].methods() == ["tools/list"]


async def test_a_change_of_its_tools_is_heard(host: Host) -> None:
    host.on["tools/list"] = listing({"name": "deploy", "inputSchema": {"type": "object"}})
    await host.process.check(deploying("eu"))
    host.channels[0].on["tools/list"] = listing({"name": "deploy", "inputSchema": REGION})

    host.channels[0].say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}, standing=True)

    with pytest.raises(HeaderMismatch):
        await host.process.check(deploying("eu"))


async def test_a_process_that_cannot_list_its_tools_still_runs_them(host: Host) -> None:
    """Ours: who claims nothing is not refused for it; who does is told why nobody can say."""

    async def refusing(message: Json, channel: FakeChannel) -> None:
        error = {"code": -32603, "message": "no list today"}
        channel.say({"jsonrpc": "2.0", "id": message["id"], "error": error})

    host.on["tools/list"] = refusing

    await host.process.check(deploying("eu"))
    with pytest.raises(UpstreamFault):
        await host.process.check(deploying("eu", region=["eu"]))
