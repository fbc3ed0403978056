"""A gateway dies at the worst moment: its book says that answers were taken, or that all is over, and no more.

What the book says is written into it by the test, in the words of `stores.redis`: the moment itself lasts less
than a millisecond. Everything else is real.
"""

import contextlib
import secrets
import signal
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from tests.support.peers import Running, start_legacy
from tests.support.redis import RedisServer
from tests.support.serving import serving
from tests.support.waiting import until
from tests.support.wire import Answer, Wire, accept

_TAKEN = 3
"""The stage of a first round whose answers were taken."""
_DONE = 2**31


@contextlib.asynccontextmanager
async def bereaved(
    folder: Path,
    redis: RedisServer,
    legacy: Running,
    tool: str,
    *,
    stage: int | None,
    answers: Sequence[str] = (),
    questions: int = 1,
    **upstream: Any,
) -> AsyncIterator[tuple[Wire, Answer]]:
    """A client with its first ticket, whose owner died at this stage, or after these answers; at another replica."""
    store = redis.url.get_secret_value()
    settings: dict[str, Any] = {
        "store": store,
        "sealing": {"keys": [secrets.token_urlsafe(32)]},
        "replica_heartbeat": "0.2s",
    }
    for name in ("first", "second"):
        (folder / name).mkdir()
    upstream = {"url": legacy.url, **upstream}
    async with (
        serving(folder / "second", upstream, **settings) as second,
        serving(folder / "first", upstream, **settings) as first,
        Wire(first.url) as there,
        Wire(second.url) as here,
    ):
        asked = last = await there.tool(tool, {"id": "one", "questions": questions})
        for answer in answers:
            [key] = last.asked
            last = await there.retry(last, {key: accept(answer=answer)})
        first.tell(signal.SIGKILL)
        await first.ended()
        if stage is not None:
            await _write_stage(store, stage)
        yield here, asked


async def _write_stage(store: str, stage: int) -> None:
    async with Redis.from_url(store) as book:
        [key] = [key async for key in book.scan_iter("holdfast:owner:*")]
        known = await book.get(key)
        assert isinstance(known, bytes)
        fence, _, owner = known.decode().split(" ", 2)
        await book.set(key, f"{fence} {stage} {owner}", keepttl=True)


def _told(answer: Answer) -> dict[str, Any]:
    return {name: value for name, value in answer.error["data"].items() if name != "errorId"}


async def test_answers_that_may_have_been_delivered_are_not_delivered_again(
    own_redis_server: RedisServer, tmp_path: Path
) -> None:
    """Ours (rung 3): only the result can be waited for; if none comes, the client learns what is in doubt."""
    async with start_legacy("py-1.30", event_store=True) as legacy:
        async with bereaved(
            tmp_path, own_redis_server, legacy, "ask_chain", stage=_TAKEN, call_timeout="1s"
        ) as (client, asked):
            refused = await client.retry(asked, {"answer": accept(answer="forty-two")})
        observed = await legacy.observed()
    assert refused.error["code"] == -31001
    assert _told(refused) == {
        "reason": "answers_in_doubt",
        "sideEffectsPossible": True,
        "canStartAgain": True,
    }
    assert not [entry for entry in observed["http"] if "forty-two" in str(entry.get("body"))]


async def test_a_call_that_may_run_again_does_not_wait_for_what_is_in_doubt(
    own_redis_server: RedisServer, tmp_path: Path
) -> None:
    """Ours (rung 4): the answers go to a run of their own, and the old one is ended."""
    async with (
        start_legacy("py-1.30", event_store=True) as legacy,
        bereaved(tmp_path, own_redis_server, legacy, "ask_chain_again", stage=_TAKEN) as (client, asked),
    ):
        done = await client.retry(asked, {"answer": accept(answer="forty-two")})
        assert done.text == '{"id": "one", "answers": ["forty-two"]}'
        await _until_ended(legacy)


async def test_questions_that_died_with_their_owner_on_the_way_are_asked_again(
    own_redis_server: RedisServer, tmp_path: Path
) -> None:
    """Ours (rung 3): the answers were delivered, the next question was asked, and the client heard nothing of it."""
    async with start_legacy("py-1.30", event_store=True) as legacy:
        async with bereaved(
            tmp_path, own_redis_server, legacy, "ask_chain", stage=None, answers=["forty-two"], questions=2
        ) as (client, asked):
            more = await client.retry(asked, {"answer": accept(answer="forty-two")})
            [key] = more.asked
            assert more.asked[key]["params"]["message"] == "one question 2"
            done = await client.retry(more, {key: accept(answer="forty-three")})
            assert done.text == '{"id": "one", "answers": ["forty-two", "forty-three"]}'
        observed = await legacy.observed()
    for answer in ("'forty-two'", "'forty-three'"):
        assert len([entry for entry in observed["http"] if answer in str(entry.get("body"))]) == 1


async def test_an_outcome_that_died_with_its_owner_is_said_to_be_lost(
    own_redis_server: RedisServer, tmp_path: Path
) -> None:
    """Ours (rung 5): the ticket is good, the call ran to its end, and nobody has what it said."""
    async with (
        start_legacy("py-1.30", event_store=True) as legacy,
        bereaved(tmp_path, own_redis_server, legacy, "ask_chain_again", stage=_DONE) as (client, asked),
    ):
        refused = await client.retry(asked, {"answer": accept(answer="forty-two")})
    assert _told(refused) == {"reason": "outcome_lost", "sideEffectsPossible": True, "canStartAgain": True}


async def test_the_session_of_a_call_that_is_refused_is_ended(
    own_redis_server: RedisServer, tmp_path: Path
) -> None:
    """Ours (rung 5): whoever opened it is dead; only the ticket knows that it is there."""
    async with (
        start_legacy("py-1.30") as legacy,
        bereaved(tmp_path, own_redis_server, legacy, "ask_chain", stage=None) as (client, asked),
    ):
        refused = await client.retry(asked, {"answer": accept(answer="forty-two")})
        assert _told(refused)["reason"] == "hold_lost"
        await _until_ended(legacy)


async def _until_ended(legacy: Running) -> None:
    """Wait until the session of the first call was deleted."""

    async def look() -> bool:
        seen = (await legacy.observed())["http"]
        session = next(entry["session"] for entry in seen if "tools/call" in str(entry.get("body")))
        return any(entry["verb"] == "DELETE" and entry["session"] == session for entry in seen)

    await until(look, 15)
