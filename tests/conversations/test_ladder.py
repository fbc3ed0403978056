"""A gateway is killed while it holds a call; another one, with the same sealing key, is given the retry.

Real legacy servers, real processes, `kill -9`: nothing is told to anybody. What comes back is found by what the
ticket knows, and nothing runs twice unless policy said that it may.
"""

import asyncio
import contextlib
import secrets
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.peers import start_legacy
from tests.support.redis import RedisServer
from tests.support.scripted import Scripted, Turn, ask, text_result
from tests.support.seen import happened, unique
from tests.support.serving import Serving, serving
from tests.support.waiting import until
from tests.support.wire import Wire, accept

FIXTURES = ["py-1.12", "py-1.30", "ts-1.32"]


class Pair:
    """Two gateways before one server; only one of them lives at a time."""

    def __init__(self, folder: Path, upstream: dict[str, Any], **settings: Any) -> None:
        self._folder = folder
        self._upstream = upstream
        self._settings = settings
        self._sealing = {"keys": [secrets.token_urlsafe(32)]}

    @contextlib.asynccontextmanager
    async def alive(self, name: str) -> AsyncIterator[Serving]:
        folder = self._folder / name
        folder.mkdir()
        async with serving(folder, self._upstream, sealing=self._sealing, **self._settings) as gateway:
            yield gateway


async def _kill(gateway: Serving) -> None:
    gateway.tell(signal.SIGKILL)
    await gateway.ended()


async def _until_logged(gateway: Serving, words: str) -> None:
    async def look() -> bool:
        return words in gateway.said()

    await until(look)


@pytest.mark.parametrize("kind", FIXTURES)
async def test_a_call_on_a_server_with_a_memory_is_reattached_and_runs_once(
    kind: str, tmp_path: Path
) -> None:
    """Ours (rung 3): POST the answer into the old session, read its stream on. Nothing runs twice."""
    async with start_legacy(kind, event_store=True) as legacy:
        pair = Pair(tmp_path, {"url": legacy.url, "replay": "never"})
        async with pair.alive("first") as first, Wire(first.url) as client:
            asked = await client.tool("side_effect_then_ask", {"id": "one"})
            assert asked.result["resultType"] == "input_required"
            await _kill(first)
        async with pair.alive("second") as second, Wire(second.url) as client:
            done = await client.retry(asked, {"name": accept(name="Ann")})
            assert done.text == "Hello Ann, effect 1"
            again = await client.retry(asked, {"name": accept(name="Ann")})
            assert again.text == "Hello Ann, effect 1"  # a client that lost the answer gets the same one
            await _until_logged(second, '"rung":"reattached"')


async def test_a_call_on_a_server_whose_store_tells_all_that_it_has_is_reattached(tmp_path: Path) -> None:
    """Issue 5: server-everything 2026.8.31 tells the events of all streams again, priming ones as `{}`."""
    async with start_legacy("everything-2026.8.31") as legacy:
        forms: dict[str, Any] = {"elicitation": {"form": {}}}
        pair = Pair(tmp_path, {"url": legacy.url, "replay": "never"})
        async with pair.alive("first") as first, Wire(first.url, capabilities=forms) as client:
            asked = await client.tool("trigger-elicitation-request", {})
            await _kill(first)
        async with pair.alive("second") as second, Wire(second.url, capabilities=forms) as client:
            done = await client.retry(asked, {"elicitation-1": accept(name="Ann")})
            assert "Name: Ann" in str(done.result["content"])
            await _until_logged(second, '"rung":"reattached"')


async def test_a_call_on_a_server_that_only_numbers_its_events_is_run_again(tmp_path: Path) -> None:
    """Java's SDK keeps none of them: the answer was delivered there, and its result never came."""

    async def ping(turn: Turn) -> None:
        await turn.stream()
        await turn.event(turn.answer({}), id=turn.session)
        await turn.finish()

    async def asking(turn: Turn) -> None:
        await turn.stream()
        number = f"{turn.session}-{turn.server.number('ask')}"
        await turn.event(ask(number), id=f"stream_{number}")
        if await turn.answered(number) is not None:
            await turn.event(turn.answer(text_result("Hello Ann")), id=turn.session)
            await turn.finish()

    async with Scripted(on={"ping": ping, "tools/call": asking}) as legacy:
        pair = Pair(tmp_path, {"url": legacy.url, "replay": "always"})
        async with pair.alive("first") as first, Wire(first.url) as client:
            asked = await client.tool("echo")
            await _kill(first)
        async with pair.alive("second") as second, Wire(second.url) as client:
            assert (await client.retry(asked, {"name": accept(name="Ann")})).text == "Hello Ann"
            await _until_logged(second, '"rung":"replayed"')
        assert not [turn for turn in legacy.seen("GET") if "last-event-id" in turn.headers]
        assert len(legacy.seen("answer")) == 1, "in the call that is heard"


async def test_a_second_question_after_the_reattachment_is_asked_as_usual(tmp_path: Path) -> None:
    """Ours (rung 3): the exchange goes on, round after round, in the new process."""
    async with start_legacy("py-1.30", event_store=True) as legacy:
        pair = Pair(tmp_path, {"url": legacy.url})
        async with pair.alive("first") as first, Wire(first.url) as client:
            asked = await client.tool("ask_two_serial")
            [key] = asked.result["inputRequests"]
            await _kill(first)
        async with pair.alive("second") as second, Wire(second.url) as client:
            more = await client.retry(
                asked, {key: accept(**_filled(asked.result["inputRequests"][key], "Ann"))}
            )
            assert more.result["resultType"] == "input_required"
            [other] = more.result["inputRequests"]
            form = _filled(more.result["inputRequests"][other], "Lee")
            done = await client.retry(more, {other: accept(**form)})
            assert done.text == "Ann Lee"


async def test_a_lost_call_is_run_again_where_policy_allows_it(tmp_path: Path) -> None:
    """Ours (rung 4): the answer that was given reaches the new run; the user is not asked again."""
    async with start_legacy("py-1.30") as legacy:
        policy = {"replay_tools": {"side_effect_then_ask": "always"}}
        pair = Pair(tmp_path, {"url": legacy.url, **policy})
        async with pair.alive("first") as first, Wire(first.url) as client:
            asked = await client.tool("side_effect_then_ask", {"id": "two"})
            await _kill(first)
        async with pair.alive("second") as second, Wire(second.url) as client:
            done = await client.retry(asked, {"name": accept(name="Ann")})
            assert done.text == "Hello Ann, effect 2"  # it says so itself: this was the second run
            await _until_logged(second, '"rung":"replayed"')


async def test_a_prompt_may_always_be_rendered_again(tmp_path: Path) -> None:
    """Ours (rung 4): prompts and resources have no side effects to repeat, so `idempotent` covers them."""
    async with start_legacy("ts-1.32") as legacy:
        pair = Pair(tmp_path, {"url": legacy.url})
        async with pair.alive("first") as first, Wire(first.url) as client:
            asked = await client.request("prompts/get", {"name": "ask_prompt", "arguments": {}})
            [key] = asked.result["inputRequests"]
            await _kill(first)
        async with pair.alive("second") as second, Wire(second.url) as client:
            form = _filled(asked.result["inputRequests"][key], "Ann")
            done = await client.retry(asked, {key: accept(**form)})
            assert done.result["messages"]


async def test_a_lost_call_that_may_not_run_again_is_refused_precisely(tmp_path: Path) -> None:
    """Ours (rung 5): never a silent re-run; the client learns what happened and that it may start again."""
    async with start_legacy("py-1.30") as legacy:
        pair = Pair(tmp_path, {"url": legacy.url})
        async with pair.alive("first") as first, Wire(first.url) as client:
            asked = await client.tool("side_effect_then_ask", {"id": "three"})
            await _kill(first)
        async with pair.alive("second") as second, Wire(second.url) as client:
            refused = await client.retry(asked, {"name": accept(name="Ann")})
            assert refused.error["code"] == -31001
            told = {
                name: refused.error["data"][name]
                for name in ("reason", "sideEffectsPossible", "canStartAgain")
            }
            assert told == {"reason": "hold_lost", "sideEffectsPossible": True, "canStartAgain": True}
            await _until_logged(second, '"rung":"refused"')


async def test_a_server_that_dies_while_held_is_called_again_where_policy_allows_it(tmp_path: Path) -> None:
    """Ours (rung 4, in one process): the server was restarted while the human was thinking."""
    async with contextlib.AsyncExitStack() as stack:
        legacy = await stack.enter_async_context(start_legacy("py-1.30"))
        pair = Pair(tmp_path, {"url": legacy.url, "replay": "always"})
        gateway = await stack.enter_async_context(pair.alive("only"))
        client = await stack.enter_async_context(Wire(gateway.url))
        asked = await client.tool("ask_name")
        legacy.kill()
        await stack.enter_async_context(start_legacy("py-1.30", port=legacy.port))
        done = await client.retry(asked, {"name": accept(name="Ann")})
        assert done.text == "Hello Ann"


def _filled(request: dict[str, Any], text: str) -> dict[str, str]:
    return dict.fromkeys(request["params"]["requestedSchema"]["properties"], text)


# --- two replicas on one Redis ---------------------------------------------------------------------


async def test_a_retry_that_reaches_another_replica_is_carried_to_the_one_with_the_call(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    """Ours (rung 2): any load balancer will do; the call runs once, its progress reaches the client."""
    async with start_legacy("py-1.30") as legacy:
        pair = Pair(
            tmp_path, {"url": legacy.url, "replay": "never"}, store=redis_server.url.get_secret_value()
        )
        async with (
            pair.alive("first") as first,
            pair.alive("second") as second,
            contextlib.AsyncExitStack() as stack,
        ):
            here = await stack.enter_async_context(Wire(first.url))
            there = await stack.enter_async_context(Wire(second.url))
            asked = await here.tool("ask_two_serial")
            [key] = asked.asked
            more = await there.retry(asked, {key: accept(**_filled(asked.asked[key], "Ann"))})
            [other] = more.asked
            done = await here.retry(more, {other: accept(**_filled(more.asked[other], "Lee"))})
            assert done.text == "Ann Lee"
            await _until_logged(second, '"rung":"routed"')
            spent = await there.retry(asked, {key: accept(**_filled(asked.asked[key], "Eve"))})
            assert spent.error["data"]["reason"] == "invalid_request_state"  # single use, across replicas


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_another_replica_takes_over_from_one_that_is_dead_or_frozen(
    redis_server: RedisServer, tmp_path: Path, number: signal.Signals
) -> None:
    """Ours (rungs 2 to 3): found by its silent heart; the answer is delivered once, whoever wakes up later."""
    async with start_legacy("ts-1.32", event_store=True) as legacy:
        pair = Pair(
            tmp_path, {"url": legacy.url, "replay": "never"}, store=redis_server.url.get_secret_value()
        )
        async with (
            pair.alive("first") as first,
            pair.alive("second") as second,
            contextlib.AsyncExitStack() as stack,
        ):
            here = await stack.enter_async_context(Wire(first.url))
            there = await stack.enter_async_context(Wire(second.url))
            asked = await here.tool("side_effect_then_ask", {"id": f"over-{number}"})
            first.tell(number)
            done = await there.retry(asked, {"name": accept(name="Ann")})
            assert done.text == "Hello Ann, effect 1"
            await _until_logged(second, '"rung":"reattached"')
            if number is signal.SIGSTOP:
                first.tell(signal.SIGCONT)
                again = await here.retry(asked, {"name": accept(name="Ann")})
                assert "result" not in again.message or again.text == "Hello Ann, effect 1"
        answers = [entry for entry in (await legacy.observed())["http"] if "'Ann'" in str(entry.get("body"))]
        assert len(answers) == 1, answers


async def test_answers_that_a_second_replica_delivered_before_it_died_are_not_delivered_by_a_third(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    """Ours (rung 3, twice): it is written down first, so the next one only waits for what comes of them."""
    async with start_legacy("py-1.30", event_store=True) as legacy:
        pair = Pair(
            tmp_path, {"url": legacy.url, "replay": "never"}, store=redis_server.url.get_secret_value()
        )
        async with contextlib.AsyncExitStack() as stack:
            first, second, third = [
                await stack.enter_async_context(pair.alive(name)) for name in ("first", "second", "third")
            ]
            wires = [await stack.enter_async_context(Wire(gateway.url)) for gateway in (first, second, third)]
            tag = unique("thrice")
            asked = await wires[0].tool("ask_then_progress", {"steps": 0, "seconds": 6, "tag": tag})
            await _kill(first)
            broken = asyncio.ensure_future(wires[1].retry(asked, {"name": accept(name="Ann")}))
            await happened(legacy, f"slow:started:{tag}")
            await _kill(second)
            with pytest.raises(aiohttp.ClientError):
                await broken
            done = await wires[2].retry(asked, {"name": accept(name="Ann")})
            assert "result" in done.message, done.message
        answers = [entry for entry in (await legacy.observed())["http"] if "'Ann'" in str(entry.get("body"))]
        assert len(answers) == 1, answers
