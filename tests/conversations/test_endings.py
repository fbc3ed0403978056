"""How exchanges end when they do not end well: nobody comes back, nobody listens, nobody answers in time."""

import asyncio

import pytest

from tests.support.gateways import Gateways
from tests.support.peers import FIXTURE_KINDS, LegacyServers, Running
from tests.support.scripted import Scripted, Turn
from tests.support.seen import happened, seen_by, sent_on, session_of, unique
from tests.support.waiting import until
from tests.support.wire import Wire, abandoned, accept, sampled


@pytest.fixture(params=FIXTURE_KINDS)
def server(request: pytest.FixtureRequest, legacy_servers: LegacyServers) -> Running:
    return legacy_servers.get(request.param)


async def order_of(server: Running, session: str) -> list[str]:
    """What the session was told after the call."""
    methods = (await seen_by(server)).methods(session)
    return [method for method in methods[methods.index("tools/call") + 1 :] if method != "GET"]


# --- nobody comes back -----------------------------------------------------------------------


async def test_a_question_nobody_answers_is_cancelled_upstream_then_the_call(
    server: Running, gateway: Gateways
) -> None:
    """Issue: expiry; the upstream gets `cancel`, then `notifications/cancelled`; a later retry is told."""
    served = await gateway(server.url, holds={"ttl": "150ms"})
    tag = unique("expiry")

    async with Wire(served.url) as wire:
        asked = await wire.tool("ask_name", {"tag": tag})
        session = await session_of(server, tag=tag)
        (cancelled,) = await sent_on(server, session, "notifications/cancelled")
        late = await wire.retry(asked, {"name": accept(name="Ann")})

    (answer,) = (await seen_by(server)).sent(session, "answer")
    assert answer["result"] == {"action": "cancel"}
    (call,) = (await seen_by(server)).calls(tag=tag)
    assert cancelled["params"]["requestId"] == call["body"]["id"]
    assert (await order_of(server, session))[:2] == ["answer", "notifications/cancelled"]
    assert late.error["code"] == -31001
    assert late.error["data"]["reason"] == "hold_expired"
    assert late.error["data"]["canStartAgain"] is True


@pytest.mark.parametrize(("tool", "key"), [("sample", "prompt"), ("roots", "tag")])
async def test_a_model_nobody_asks_and_roots_nobody_names_are_refused_upstream(
    newest: Running, gateway: Gateways, tool: str, key: str
) -> None:
    """Issue: expiry; an error for the kinds that know no `cancel`."""
    served = await gateway(newest.url, holds={"ttl": "150ms"})
    mark = unique(tool)

    async with Wire(served.url) as wire:
        await wire.tool(tool, {key: mark})
        session = await session_of(newest, **{key: mark})
        await sent_on(newest, session, "notifications/cancelled")

    (answer,) = (await seen_by(newest)).sent(session, "answer")
    assert answer["error"]["code"] == -1


async def test_what_is_asked_last_decides_when_a_hold_expires(newest: Running, gateway: Gateways) -> None:
    """Design: each round has its own time; what was answered before does not count."""
    served = await gateway(newest.url, holds={"ttl": "1s"})
    tag = unique("rounds")

    async with Wire(served.url) as wire:
        asked = await wire.tool("ask_two_serial", {"tag": tag})
        asked = await wire.retry(asked, {"first": accept(first="Ada")})
        session = await session_of(newest, tag=tag)
        await sent_on(newest, session, "notifications/cancelled")
        answers = (await seen_by(newest)).sent(session, "answer")
        late = await wire.retry(asked, {"last": accept(last="Lovelace")})

    assert [answer["result"]["action"] for answer in answers] == ["accept", "cancel"]
    assert late.error["data"]["reason"] == "hold_expired"


async def test_after_the_grace_time_not_even_the_reason_is_known(newest: Running, gateway: Gateways) -> None:
    """Design: outcomes are kept for `grace`; then the call is merely gone, and its ticket starts nothing."""
    served = await gateway(newest.url, holds={"ttl": "100ms", "grace": 0})
    tag = unique("grace")

    async with Wire(served.url) as wire:
        asked = await wire.tool("ask_name", {"tag": tag})
        await sent_on(newest, await session_of(newest, tag=tag), "notifications/cancelled")
        late = await wire.retry(asked, {"name": accept(name="Ann")})

    assert (late.error["code"], late.error["data"]["reason"]) == (-31001, "hold_lost")


async def test_a_gateway_that_stops_lets_go_of_what_it_holds(newest: Running, gateway: Gateways) -> None:
    """Issue: clean end; the server is told, question by question, and every session is ended."""
    served = await gateway(newest.url)
    tag = unique("stop")

    async with Wire(served.url) as wire:
        await wire.tool("ask_name", {"tag": tag})
        session = await session_of(newest, tag=tag)
        await served.gateway.stop()

    assert await order_of(newest, session) == ["answer", "notifications/cancelled", "DELETE"]


# --- nobody listens --------------------------------------------------------------------------


@pytest.mark.requirement("R33")
async def test_a_client_that_leaves_cancels_the_running_call(server: Running, gateway: Gateways) -> None:
    """Spec: cancellation; legacy servers hear of it as `notifications/cancelled`."""
    served = await gateway(server.url)
    tag = unique("leave")

    async with Wire(served.url) as wire:
        running = asyncio.ensure_future(wire.tool("slow", {"seconds": 30, "tag": tag}))
        session = await session_of(server, tag=tag)
        await abandoned(running)
        (cancelled,) = await sent_on(server, session, "notifications/cancelled")
        await happened(server, f"slow:cancelled:{tag}")

        async def session_ended() -> bool:
            return "DELETE" in await order_of(server, session)

        await until(session_ended)

    (call,) = (await seen_by(server)).calls(tag=tag)
    assert cancelled["params"]["requestId"] == call["body"]["id"]


@pytest.mark.requirement("R33")
async def test_a_client_that_leaves_while_questions_settle_cancels_them_too(
    newest: Running, gateway: Gateways
) -> None:
    """Spec: cancellation; the question was never put, nobody will answer it."""
    served = await gateway(newest.url, settle="30s")
    tag = unique("settle")

    async with Wire(served.url) as wire:
        waiting = asyncio.ensure_future(wire.tool("ask_name", {"tag": tag}))
        session = await session_of(newest, tag=tag)
        await abandoned(waiting)
        await sent_on(newest, session, "notifications/cancelled")

    answers = (await seen_by(newest)).sent(session, "answer")
    # A question that was still on its way when the client left is not heard any more.
    assert [answer["result"] for answer in answers] in ([], [{"action": "cancel"}])


@pytest.mark.requirement("R33")
async def test_a_client_that_leaves_in_a_later_round_cancels_the_whole_call(
    newest: Running, gateway: Gateways
) -> None:
    """Spec: cancellation; and the same retry again is told what became of the call."""
    served = await gateway(newest.url, settle="2s", settings={"limits": {"keepalive": "20ms"}})
    tag = unique("later")
    answers = {"first": accept(first="Ada")}
    opened = asyncio.Event()

    async with Wire(served.url) as wire:
        call = {"name": "ask_two_serial", "arguments": {"tag": tag}}
        asked = await wire.request("tools/call", call)
        leaving = asyncio.ensure_future(wire.retry(asked, answers, opened=opened))
        await asyncio.wait_for(opened.wait(), 5)
        session = await session_of(newest, tag=tag)
        await sent_on(newest, session, "answer")
        await abandoned(leaving)
        await sent_on(newest, session, "notifications/cancelled")
        again = await wire.retry(asked, answers)

    assert again.error["code"] == -31001
    assert again.error["data"]["reason"] == "cancelled"
    assert len((await seen_by(newest)).calls(tag=tag)) == 1


@pytest.mark.requirement("R33")
async def test_a_server_that_never_ends_a_cancelled_call_is_listened_to_no_longer(gateway: Gateways) -> None:
    """Design: the stream is closed by us; some servers never answer what was cancelled."""

    async def goes_on(turn: Turn) -> None:
        await turn.stream()
        await turn.until_left()

    async with Scripted() as server:
        server.on["tools/call"] = goes_on
        served = await gateway(server.url)
        async with Wire(served.url) as wire:
            leaving = asyncio.ensure_future(wire.tool("echo"))
            call = await server.wait("tools/call")
            await abandoned(leaving)
            await server.wait("notifications/cancelled")
            await server.wait_until(lambda: call.has_left)


@pytest.mark.requirement("R33")
@pytest.mark.parametrize("method", ["tools/list", "completion/complete"])
async def test_a_client_that_leaves_a_request_of_one_answer_cancels_it_and_ends_its_session(
    gateway: Gateways, method: str
) -> None:
    """Ours: what was cancelled may still be answered, and an answer must not meet the next call."""

    async def first_one_goes_on(turn: Turn) -> None:
        if len(turn.server.seen(method)) > 1:
            await turn.result({"tools": []} if method == "tools/list" else {"completion": {"values": []}})
        else:
            await turn.stream()
            await turn.until_left()

    params = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "v"}}
    async with Scripted() as server:
        server.on[method] = first_one_goes_on
        served = await gateway(server.url, sessions={"mode": "pooled"})
        async with Wire(served.url) as wire:
            asked = None if method == "tools/list" else params
            leaving = asyncio.ensure_future(wire.request(method, asked))
            left = await server.wait(method)
            await abandoned(leaving)
            cancelled = await server.wait("notifications/cancelled")
            assert (cancelled.session, cancelled.message["params"]["requestId"]) == (left.session, left.id)
            await server.wait_until(lambda: left.has_left and left.session not in server.known)
            assert (await wire.request(method, asked)).result["resultType"] == "complete"


async def test_the_gateway_forgets_a_client_that_left(newest: Running, gateway: Gateways) -> None:
    """Design: lease released; a crowd that leaves does not use up the sessions."""
    served = await gateway(newest.url, sessions={"mode": "pooled", "max": 2, "wait": "5s"})

    async with Wire(served.url) as wire:
        for _ in range(3):
            tags = [unique("gone") for _ in range(2)]
            running = [asyncio.ensure_future(wire.tool("slow", {"seconds": 30, "tag": tag})) for tag in tags]
            for tag in tags:
                await session_of(newest, tag=tag)
            for task in running:
                await abandoned(task)
        plain = await wire.tool("echo", {"text": "still here"})

    assert plain.text == "still here"


# --- nobody answers in time --------------------------------------------------------------------


async def test_a_call_that_takes_too_long_is_cancelled_and_said_so(
    newest: Running, gateway: Gateways
) -> None:
    """Issue: `call_timeout`."""
    served = await gateway(newest.url, call_timeout="1s")
    tag = unique("timeout")

    async with Wire(served.url) as wire:
        late = await wire.tool("slow", {"seconds": 30, "tag": tag})
        await happened(newest, f"slow:cancelled:{tag}")

    assert (late.status, late.error["code"]) == (200, -32603)
    assert "in time" in late.error["message"]


async def test_the_work_clock_stands_still_while_a_human_thinks(newest: Running, gateway: Gateways) -> None:
    """Design: a human thinking is not a slow upstream."""
    served = await gateway(newest.url, call_timeout="1s")
    patient = await gateway(newest.url)

    async with Wire(served.url) as wire, Wire(patient.url) as clock:
        asked = await wire.tool("ask_name")
        await clock.tool("slow", {"seconds": 1.2})  # time passes
        done = await wire.retry(asked, {"name": accept(name="Ann")})

    assert done.text == "Hello Ann"


@pytest.mark.requirement("R29", "R30")
async def test_a_long_silence_is_kept_alive_and_ends_with_the_result(
    newest: Running, gateway: Gateways
) -> None:
    """MODERN-WIRE 1.7, 1.8: comments keep connections up; a JSON-RPC message comes last; no event ids."""
    served = await gateway(newest.url, settings={"limits": {"keepalive": "50ms"}})

    async with Wire(served.url) as wire:
        done = await wire.tool("slow", {"seconds": 0.3})

    assert not done.is_json
    assert done.headers["X-Accel-Buffering"] == "no"
    assert done.body.count(b": keep-alive\n") >= 2
    assert b"\nid:" not in done.body
    assert done.text == "slept"


async def test_a_round_that_streamed_may_still_end_in_questions(newest: Running, gateway: Gateways) -> None:
    """Spec: input_required may be the last message of a stream."""
    served = await gateway(newest.url, settle="300ms", settings={"limits": {"keepalive": "50ms"}})

    async with Wire(served.url) as wire:
        asked = await wire.tool("sample")
        done = await wire.retry(asked, {"sampling-1": sampled("Rome")})

    assert not asked.is_json
    assert done.text == "Rome"


@pytest.mark.requirement("R29")
async def test_a_large_result_comes_whole(newest: Running, gateway: Gateways) -> None:
    """MODERN-WIRE 1.9: Python caps one SSE event at 1 MiB, JSON bodies are not capped."""
    served = await gateway(newest.url)

    async with Wire(served.url) as wire:
        done = await wire.tool("big", {"characters": 3_000_000})

    assert done.is_json
    assert len(done.text) == 3_000_000
