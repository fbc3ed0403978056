"""Many at once: nobody is ever asked another's question or told another's answer."""

import asyncio
import random
from collections import Counter

from tests.support.gateways import Gateways
from tests.support.peers import Running
from tests.support.seen import seen_by, unique
from tests.support.wire import Answer, Wire, accept

CROWD = 200
TOOLS = ("ask_name", "ask_name_get")
"""On the call's own stream, and on the standing one, where nothing names the call."""


async def ask(wire: Wire, number: int, tag: str) -> Answer:
    asked = await wire.tool(TOOLS[number % 2], {"tag": tag})
    assert asked.asked["name"]["params"]["message"] == f"What is your name? [{tag}]"
    return asked


async def reply(wire: Wire, asked: Answer, tag: str) -> None:
    done = await wire.retry(asked, {"name": accept(name=f"N-{tag}")})
    assert done.text == f"Hello N-{tag} from {tag}"


async def test_two_hundred_held_at_once_get_each_their_own_answer(newest: Running, gateway: Gateways) -> None:
    """Issue: 200 concurrent exchanges with distinct answers, no mix-up; answered in any order."""
    served = await gateway(newest.url)
    tags = [unique("crowd") for _ in range(CROWD)]

    async with Wire(served.url) as wire:
        asked = await asyncio.gather(*(ask(wire, number, tag) for number, tag in enumerate(tags)))
        assert len({question.state for question in asked}) == CROWD
        pairs = list(zip(asked, tags, strict=True))
        random.Random(7).shuffle(pairs)
        await asyncio.gather(*(reply(wire, question, tag) for question, tag in pairs))

    seen = await seen_by(newest)
    sessions = Counter(call["session"] for tag in tags for call in seen.calls(tag=tag))
    assert sessions.most_common(1)[0][1] == 1  # each call was sent once, each on a session of its own
    assert len(sessions) == CROWD


async def test_a_crowd_that_comes_and_goes_shares_sessions_and_nothing_else(
    newest: Running, gateway: Gateways
) -> None:
    """Issue: two clients at once never see each other's questions; here on sessions that are used again."""
    served = await gateway(newest.url, sessions={"mode": "pooled", "max": 64}, auth={"mode": "passthrough"})
    tokens = [f"Bearer {unique('crowd')}" for _ in range(2)]

    async def converse(wire: Wire, number: int) -> None:
        tag = unique("pool")
        await reply(wire, await ask(wire, number, tag), tag)

    async with (
        Wire(served.url, authorization=tokens[0]) as ann,
        Wire(served.url, authorization=tokens[1]) as bob,
    ):
        await asyncio.gather(*(converse((ann, bob)[number % 2], number // 2) for number in range(CROWD)))

    seen = await seen_by(newest)
    used = [{entry["session"] for entry in seen.authorized(token)} - {None} for token in tokens]
    assert used[0].isdisjoint(used[1])
    assert 0 < len(used[0] | used[1]) <= CROWD
