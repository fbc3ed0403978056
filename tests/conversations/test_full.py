"""What callers meet when the gateway has no more room: 503, when to come again, and nothing left behind."""

import asyncio
from typing import Any

import pytest

from tests.support.callers import callers
from tests.support.gateways import Gateways, Served
from tests.support.peers import Running
from tests.support.python_client import PythonClient, text_of
from tests.support.scripted import Scripted, Turn, ask, asking, text_result
from tests.support.waiting import until
from tests.support.wire import Answer, Wire, abandoned, accept

FLOOD = 200
ROOM = 10
LISTEN = {"notifications": {"toolsListChanged": True}}


def shed(answer: Answer) -> Answer:
    """It is a refusal that costs nothing: 503, Retry-After, and a JSON-RPC error with its id."""
    assert (answer.status, answer.error["code"]) == (503, -32603)
    assert int(answer.headers["Retry-After"]) >= 1
    assert answer.told == {}
    return answer


def place_of(served: Served) -> Any:
    return served.gateway._relays["legacy"]._place


async def test_a_flood_of_questions_is_bounded_and_leaves_nothing_behind(gateway: Gateways) -> None:
    """Issue: memory stays flat under an attack that only opens holds; exactly as many are held as may be."""
    async with Scripted() as server:
        server.on["tools/call"] = asking
        served = await gateway(server.url, holds={"max": ROOM}, sessions={"warm": 0})
        place = place_of(served)
        async with Wire(served.url) as wire:
            answers = await asyncio.gather(*(wire.tool("echo") for _ in range(FLOOD)))
            held = [answer for answer in answers if answer.status == 200]
            assert len(held) == ROOM == place.ledger.held
            for answer in answers:
                if answer.status != 200:
                    shed(answer)
            done = await asyncio.gather(
                *(wire.retry(asked, {"name": accept(name=str(n))}) for n, asked in enumerate(held))
            )
            assert [answer.text for answer in done] == [f"Hello {n}" for n in range(ROOM)]

            async def look() -> bool:
                # One session may be left: that in which the server introduced itself.
                is_idle = place.pool.counts()["open"] == place.pool.counts()["idle"] == len(server.known)
                return is_idle and len(server.known) <= 1 and not place.drivers and not place.ledger.held

            await until(look, 15)


async def test_a_greedy_caller_does_not_starve_another(newest: Running, gateway: Gateways) -> None:
    """Ours: `holds.per_principal`. What is held of the greedy one's is as good as before."""
    async with callers("api_key") as two:
        served = await gateway(newest.url, holds={"max": 10, "per_principal": 2}, auth=two.auth)
        async with Wire(served.url, headers=two.ann) as ann, Wire(served.url, headers=two.bob) as bob:
            hers = [await ann.tool("ask_name") for _ in range(2)]
            shed(await ann.tool("ask_name"))
            his = await bob.tool("ask_name")
            assert (await bob.retry(his, {"name": accept(name="Bob")})).text == "Hello Bob"
            assert (await ann.retry(hers[0], {"name": accept(name="Ann")})).text == "Hello Ann"
            assert (await ann.tool("ask_name")).asked, "there is room again"


async def test_holds_are_bounded_by_their_size_too(newest: Running, gateway: Gateways) -> None:
    """Ours: `holds.bytes`. A few calls with large arguments weigh as much as many."""
    served = await gateway(newest.url, holds={"bytes": "1MiB"})
    async with Wire(served.url) as wire:
        heavy = await wire.tool("ask_name", {"tag": "x" * 400_000})
        shed(await wire.tool("ask_name", {"tag": "y" * 700_000}))
        light = await wire.tool("ask_name")
        assert (await wire.retry(heavy, {"name": accept(name="Ann")})).text.startswith("Hello Ann")
        assert (await wire.tool("ask_name", {"tag": "z" * 400_000})).asked, "there is room again"
        assert (await wire.retry(light, {"name": accept(name="Lee")})).text == "Hello Lee"


@pytest.mark.parametrize("fails", [False, True])
async def test_what_a_server_says_while_its_client_is_away_weighs_too(
    gateway: Gateways, *, fails: bool
) -> None:
    """Ours: `holds.bytes` bounds what is kept, whenever it came; the calls that are held stay as good as before."""
    may_end = asyncio.Event()
    large = "x" * 2**20

    async def ends_by_itself(turn: Turn) -> None:
        await turn.stream()
        number = turn.server.number("ask")
        await turn.event(ask(number))
        if number == 1:
            await may_end.wait()
            error = {"jsonrpc": "2.0", "id": turn.id, "error": {"code": 7, "message": "no", "data": large}}
            await turn.event(error if fails else turn.answer(text_result(large)))
            await turn.finish()
        await turn.until_left()

    async with Scripted() as server:
        server.on["tools/call"] = ends_by_itself
        served = await gateway(server.url, holds={"bytes": "1MiB"})
        ledger = place_of(served).ledger
        async with Wire(served.url) as wire:
            held = await wire.tool("echo")
            assert (await wire.tool("echo")).asked, "questions are light"
            may_end.set()
            await until(lambda: is_over(ledger, 2**20))
            shed(await wire.tool("echo"))
            done = await wire.retry(held, {"name": accept(name="Ann")})
            assert (done.error["data"] if fails else done.text) == large


async def is_over(ledger: Any, size: int) -> bool:
    return bool(ledger._held_bytes > size)


async def test_of_a_call_that_has_ended_only_its_outcome_is_kept(newest: Running, gateway: Gateways) -> None:
    """Ours: outcomes wait a while for clients that lost them. What was said before must not wait with them."""
    served = await gateway(newest.url)
    async with Wire(served.url) as wire:
        asked = await wire.tool("ask_name", {"tag": "x" * 100_000})
        done = await wire.retry(asked, {"name": accept(name="A" * 100_000)})
        assert done.text.startswith("Hello A")
        (kept,) = place_of(served).ledger.everyone()
        assert kept.request.params == {}
        assert not kept._exchange.journal
        assert (await wire.retry(asked, {"name": accept(name="A" * 100_000)})).result == done.result


async def test_one_listener_too_many_is_shed(newest: Running, gateway: Gateways) -> None:
    """Ours: `subscriptions.max`."""
    served = await gateway(newest.url, subscriptions={"max": 1})
    opened = asyncio.Event()
    async with Wire(served.url) as wire:
        first = asyncio.ensure_future(wire.request("subscriptions/listen", LISTEN, opened=opened))
        async with asyncio.timeout(10):
            await opened.wait()
        shed(await wire.request("subscriptions/listen", LISTEN))
        await abandoned(first)


async def test_the_python_client_hears_a_clean_error_and_succeeds_later(
    newest: Running, gateway: Gateways
) -> None:
    """Ours: the same client, the same connection; a refusal for want of room breaks neither."""
    served = await gateway(newest.url, holds={"max": 1})
    async with Wire(served.url) as wire, PythonClient(served.url) as client:
        asked = await wire.tool("ask_name")
        async with asyncio.timeout(15):
            [refused] = await asyncio.gather(client.tool("ask_name"), return_exceptions=True)
        assert isinstance(refused, Exception)
        assert not isinstance(refused, TimeoutError)
        assert client.rounds[-1].status == 503
        assert (await wire.retry(asked, {"name": accept(name="Bob")})).text == "Hello Bob"
        assert text_of(await client.tool("ask_name")) == "Hello Ann"


async def test_a_server_that_is_down_is_left_alone_and_found_again(gateway: Gateways) -> None:
    """Ours: the breaker opens, answers without a handshake even while the server is back, and closes by one try."""
    async with Scripted() as server:
        served = await gateway(server.url, sessions={"warm": 0}, breaker={"failures": 2, "open": "1h"})
        await server.wait("notifications/initialized")
        await server.stop()
        async with Wire(served.url) as wire:

            async def look() -> list[Answer]:
                answer = await wire.tool("echo")
                return [answer] if answer.status == 503 else []

            down = shed((await until(look))[0])
            assert down.error["message"].startswith("The upstream server cannot be reached at the moment")
            await server.start()
            before = len(server.seen("initialize"))
            shed(await wire.tool("echo"))
            assert len(server.seen("initialize")) == before
            breaker = place_of(served).pool._open_for.__self__._breaker
            breaker._opened_at -= 3600
            assert (await wire.tool("echo")).text == "done"
            assert (await wire.tool("echo")).text == "done"


async def test_operators_see_how_many_calls_are_held_and_how_their_holds_ended(gateway: Gateways) -> None:
    """Ours: what is held is bounded, so operators must see how near the bound is; each hold ends once."""
    async with Scripted() as server:
        server.on["tools/call"] = asking
        served = await gateway(server.url, holds={"ttl": "2s"})
        value = served.gateway._metrics.registry.get_sample_value
        here = {"upstream": "legacy"}

        def counted() -> list[float]:
            ended = [value("holdfast_holds_total", {**here, "end": end}) for end in ("answered", "expired")]
            timed = value("holdfast_hold_seconds_count", here)
            return [number or 0 for number in (value("holdfast_holds_open", here), *ended, timed)]

        async with Wire(served.url) as wire:
            answered, _ = await wire.tool("echo"), await wire.tool("echo")
            assert counted() == [2, 0, 0, 0]
            await wire.retry(answered, {"name": accept(name="Ann")})
            assert counted() == [1, 1, 0, 1]
            await server.wait("notifications/cancelled")
            assert counted() == [0, 1, 1, 2]
