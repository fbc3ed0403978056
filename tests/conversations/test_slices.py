"""Long calls over short connections: rounds that end for their length, with both modern clients on real servers."""

import asyncio
import signal
from pathlib import Path

import pytest

from tests.support.gateways import Gateways
from tests.support.peers import Running, start_legacy, ts_client
from tests.support.person import plan_answers
from tests.support.python_client import PythonClient, text_of
from tests.support.redis import RedisServer
from tests.support.replicas import Fleet, until_said
from tests.support.scripted import Scripted, Turn, asking, text_result
from tests.support.seen import unique
from tests.support.waiting import until
from tests.support.wire import Wire, accept


@pytest.mark.requirement("R34")
async def test_the_python_client_waits_for_a_slow_tool_in_slices(newest: Running, gateway: Gateways) -> None:
    """Ours: the tool runs once; each round but the last has a `requestState` and no question."""
    served = await gateway(newest.url, slice="300ms")
    tag = unique("slice")
    async with PythonClient(served.url) as client:
        result = await client.tool("slow", {"seconds": 1.5, "tag": tag})
    assert text_of(result) == "slept"
    kinds = client.results("tools/call")
    assert kinds[-1] == "complete"
    assert set(kinds[:-1]) == {"input_required"}
    assert 2 <= len(kinds) <= 9
    events = (await newest.observed())["events"]
    assert events.count(f"slow:started:{tag}") == 1


@pytest.mark.parametrize("kind", ["py-1.30", "ts-1.32"])
async def test_the_typescript_client_does_too(kind: str, gateway: Gateways) -> None:
    """Ours: on both kinds of servers, with and without a memory of their streams it is the same call."""
    async with start_legacy(kind) as legacy:
        served = await gateway(legacy.url, slice="300ms")
        call = {"method": "tools/call", "params": {"name": "slow", "arguments": {"seconds": 1.5}}}
        report = await ts_client(
            {"url": served.url, "mode": "pin", "answers": plan_answers(), "calls": [call]}
        )
    assert report["results"][0]["result"]["content"][0]["text"] == "slept"
    assert report["rounds"][0] > 1


async def test_a_call_for_which_no_hold_is_free_goes_on_in_its_round(
    newest: Running, gateway: Gateways
) -> None:
    """Ours: it was cancelled, though nobody had asked for the round to end but us."""
    served = await gateway(newest.url, slice="100ms", holds={"max": 1})
    async with Wire(served.url) as wire:
        assert (await wire.tool("ask_name")).asked
        assert (await wire.tool("slow", {"seconds": 0.5})).text == "slept"


async def test_a_call_longer_than_all_rounds_of_a_client_still_ends(
    newest: Running, gateway: Gateways
) -> None:
    """Ours: clients give up after ten rounds, so the slices stop before that."""
    served = await gateway(newest.url, slice="100ms")
    async with PythonClient(served.url) as client:
        result = await client.tool("slow", {"seconds": 4})
    assert text_of(result) == "slept"
    assert len(client.results("tools/call")) == 9


class Slow(Scripted):
    """A call that waits for the test, then asks."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.release = asyncio.Event()
        self.asked = asyncio.Event()
        self.on["tools/call"] = self._call

    async def _call(self, turn: Turn) -> None:
        await self.release.wait()
        if turn.message["params"]["name"] == "ask":
            await asking(turn)
        else:
            await turn.result(text_result("finished"))


async def test_a_question_asked_between_two_rounds_waits_for_the_next(gateway: Gateways) -> None:
    """Ours: nobody was there when it was asked."""
    async with Slow() as server:
        served = await gateway(server.url, slice="150ms", sessions={"warm": 0})
        async with Wire(served.url) as client:
            paused = await client.tool("ask")
            assert "inputRequests" not in paused.result
            server.release.set()
            asked = await client.retry(paused)
            while "inputRequests" not in asked.result:
                asked = await client.retry(asked)
            [key] = asked.asked
            filled = dict.fromkeys(asked.asked[key]["params"]["requestedSchema"]["properties"], "Ann")
            done = await client.retry(asked, {key: accept(**filled)})
            assert done.result["resultType"] == "complete"


async def test_a_result_reached_between_two_rounds_is_kept(gateway: Gateways) -> None:
    """Ours: it is there, at once, when the client is back; and again, should it lose the answer."""
    async with Slow() as server:
        served = await gateway(server.url, slice="150ms", sessions={"warm": 0})
        async with Wire(served.url) as client:
            paused = await client.tool("wait")
            server.release.set()

            async def look() -> bool:
                return not served.gateway._relays["legacy"]._place.ledger.everyone()[0].is_at_work

            await until(look)
            first = await client.retry(paused)
            while first.result["resultType"] != "complete":
                first = await client.retry(first)
            assert first.text == "finished"
    assert len(server.seen("tools/call")) == 1


async def test_slices_are_found_again_through_any_replica(redis_server: RedisServer, tmp_path: Path) -> None:
    """Ours: rungs 1 and 2; after the death of the one with the call, rung 3."""
    async with start_legacy("py-1.30", event_store=True) as legacy:
        fleet = Fleet(
            tmp_path,
            {"url": legacy.url, "replay": "never", "slice": "1s"},
            store=redis_server.url.get_secret_value(),
        )
        async with (
            fleet.alive("first") as first,
            fleet.alive("second") as second,
            Wire(first.url) as here,
            Wire(second.url) as there,
        ):
            paused = await here.tool("slow", {"seconds": 8, "tag": "fleet"})
            routed = await there.retry(paused)
            assert "inputRequests" not in routed.result
            await until_said(second, '"rung":"routed"')
            first.tell(signal.SIGKILL)
            await first.ended()
            while routed.result["resultType"] != "complete":
                routed = await there.retry(routed)
            assert routed.text == "slept"
            await until_said(second, '"rung":"reattached"')
        events = (await legacy.observed())["events"]
    assert events.count("slow:started:fleet") == 1
