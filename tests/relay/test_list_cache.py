"""Lists that are kept: for whom, how long, and until they change."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.errors import UpstreamUnreachable
from gateway.relay.list_cache import ListCache
from gateway.relay.listener import Reply, RpcError
from gateway.relay.request import ClientRequest
from gateway.settings.upstream import Cache
from gateway.telemetry.names import Outcome
from gateway.upstreams.background import Background
from tests.support.asked import BEN, request
from tests.support.waiting import turns, until


class Server:
    """Gives a new list each time, when it may."""

    def __init__(self, background: Background, **settings: Any) -> None:
        self.cache = ListCache(Cache.model_validate({"lists": "private", **settings}), background)
        self.asked: list[str] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.answer: Reply | Exception | None = None

    async def list(self, wanted: ClientRequest | None = None) -> Any:
        reply = await self.cache.get(wanted or request("tools/list"), self._fetch)
        return reply.result and reply.result["number"]

    def listing(self, wanted: ClientRequest | None = None) -> asyncio.Task[Any]:
        return asyncio.ensure_future(self.list(wanted))

    async def _fetch(self, wanted: ClientRequest) -> Reply:
        self.asked.append(wanted.method)
        number = len(self.asked)
        await self.may_answer.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer or Reply(Outcome.COMPLETE, result={"number": number})


@asynccontextmanager
async def server(**settings: Any) -> AsyncIterator[Server]:
    background = Background()
    try:
        yield Server(background, **settings)
    finally:
        await background.close()


async def given_up(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_nothing_is_kept_unless_it_is_configured() -> None:
    async with server(lists="none") as asked:
        assert not asked.cache.is_on
    async with server() as asked:
        assert asked.cache.is_on


async def test_a_list_is_fetched_once_while_it_is_kept() -> None:
    async with server() as asked:
        assert [await asked.list() for _ in range(3)] == [1, 1, 1]


async def test_a_list_that_is_too_old_is_fetched_again() -> None:
    async with server(ttl=0.001) as asked:
        assert await asked.list() == 1

        async def is_new() -> bool:
            return bool(await asked.list() == 2)

        await until(is_new)


@pytest.mark.parametrize(
    "other",
    [
        request("prompts/list"),
        request("tools/list", cursor=""),
        request("tools/list", cursor="2"),
        request("tools/list", by=BEN),
        replace(request("tools/list"), capabilities={"sampling": {}}),
        replace(request("tools/list"), client_info={"name": "x", "version": "1"}),
    ],
)
async def test_what_may_make_a_difference_is_kept_apart(other: ClientRequest) -> None:
    async with server() as asked:
        assert [await asked.list(), await asked.list(other), await asked.list(other)] == [1, 2, 2]


@pytest.mark.parametrize(
    "other",
    [
        request("tools/list", id_="x"),
        request("tools/list", _meta={"traceparent": "00-1-2-01"}),
        replace(request("tools/list"), log_level="debug", progress_token=3),
    ],
)
async def test_what_makes_none_is_not(other: ClientRequest) -> None:
    async with server() as asked:
        assert [await asked.list(), await asked.list(other)] == [1, 1]


async def test_a_public_list_is_everybodys_but_what_clients_can_do_counts() -> None:
    async with server(lists="public") as asked:
        assert [await asked.list(), await asked.list(request("tools/list", by=BEN))] == [1, 1]
        assert await asked.list(replace(request("tools/list"), capabilities={"sampling": {}})) == 2


async def test_many_who_want_it_at_once_cause_one_request() -> None:
    """Issue: single-flight on a miss."""
    async with server() as asked:
        asked.may_answer.clear()
        listings = [asked.listing() for _ in range(50)]
        await turns()
        asked.may_answer.set()
        assert await asyncio.gather(*listings) == [1] * 50
        assert asked.asked == ["tools/list"]


async def test_one_who_leaves_does_not_take_it_from_the_others() -> None:
    async with server() as asked:
        asked.may_answer.clear()
        leaving, staying = asked.listing(), asked.listing()
        await turns()
        await given_up(leaving)
        asked.may_answer.set()
        assert await staying == 1


async def test_when_all_have_left_the_request_is_cancelled() -> None:
    async with server() as asked:
        asked.may_answer.clear()
        listings = [asked.listing(), asked.listing()]
        await turns()
        for listing in listings:
            await given_up(listing)
        asked.may_answer.set()
        assert await asked.list() == 2


async def test_a_failure_is_told_to_all_who_wait_and_not_kept() -> None:
    async with server() as asked:
        asked.answer = UpstreamUnreachable("no")
        asked.may_answer.clear()
        listings = [asked.listing(), asked.listing()]
        await turns()
        asked.may_answer.set()
        told = await asyncio.gather(*listings, return_exceptions=True)
        assert told == [asked.answer] * 2
        asked.answer = Reply(Outcome.ERROR, error=RpcError(-32603, "no"))
        assert await asked.list() is None
        asked.answer = None
        assert [await asked.list(), await asked.list()] == [3, 3]


async def test_a_list_that_changed_is_dropped_at_once_and_no_other() -> None:
    async with server() as asked:
        await asked.list()
        await asked.list(request("tools/list", cursor="2"))
        await asked.list(request("prompts/list"))
        asked.cache.drop(["tools/list"])
        assert await asked.list(request("prompts/list")) == 3
        assert [await asked.list(), await asked.list(request("tools/list", cursor="2"))] == [4, 5]


async def test_what_is_under_way_when_it_changes_is_neither_kept_nor_shared() -> None:
    """Ours: it may have been read before the change."""
    async with server() as asked:
        asked.may_answer.clear()
        before = asked.listing()
        await turns()
        asked.cache.drop(["tools/list"])
        after = asked.listing()
        await turns()
        asked.may_answer.set()
        assert [await before, await after, await asked.list()] == [1, 2, 2]


async def test_after_a_silence_nothing_is_kept() -> None:
    async with server() as asked:
        await asked.list()
        asked.cache.clear()
        assert [await asked.list(), await asked.list()] == [2, 2]


async def test_memory_is_bounded_and_what_is_used_stays() -> None:
    async with server(size=30) as asked:  # two lists of 12 bytes
        pages = [request("tools/list", cursor=str(number)) for number in range(3)]
        assert [await asked.list(page) for page in pages[:2]] == [1, 2]
        assert await asked.list(pages[0]) == 1
        assert await asked.list(pages[2]) == 3
        assert await asked.list(pages[0]) == 1
        assert await asked.list(pages[1]) == 4


async def test_a_list_larger_than_all_the_memory_is_passed_on() -> None:
    async with server(size=1) as asked:
        assert [await asked.list(), await asked.list()] == [1, 2]
