"""Discovery is answered from what the server said of itself, to this principal if possible, and never late."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gateway.eras.discovery import Introduction
from gateway.errors import UpstreamUnreachable
from gateway.relay import introductions as module
from gateway.relay.introductions import Acquaintance, Introductions
from gateway.upstreams.background import Background
from gateway.upstreams.pool import Caller
from tests.support.pools import caller
from tests.support.waiting import turns

ANN, BEN = caller("ann"), caller("ben")


def met(words: str, *, can_be_heard: bool = True) -> Acquaintance:
    return Acquaintance(Introduction("2025-11-25", {"tools": {}}, None, words), can_be_heard)


class Server:
    """Introduces itself when it may; to some it never does."""

    def __init__(self, background: Background) -> None:
        self.met: list[str] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.is_down = False
        self.introductions = Introductions(self._meet, background)

    async def _meet(self, who: Caller) -> None:
        self.met.append(who.principal)
        await self.may_answer.wait()
        if self.is_down:
            raise UpstreamUnreachable("down")
        self.introductions.note(who, met(f"Hello {who.principal}"))

    async def words_for(self, who: Caller) -> str | None:
        known = await self.introductions.of(who)
        return None if known is None else known.server.instructions


@asynccontextmanager
async def server() -> AsyncIterator[Server]:
    background = Background()
    try:
        yield Server(background)
    finally:
        await background.close()


async def test_each_principal_is_told_what_the_server_told_it() -> None:
    async with server() as asked:
        assert asked.introductions.latest is None
        for _ in range(2):
            assert await asked.words_for(ANN) == "Hello ann"
            assert await asked.words_for(BEN) == "Hello ben"
        assert asked.met == ["ann", "ben"]
        assert asked.introductions.latest is not None


async def test_many_who_ask_at_once_cause_one_introduction() -> None:
    async with server() as asked:
        asked.may_answer.clear()
        asking = [asyncio.ensure_future(asked.words_for(ANN)) for _ in range(9)]
        await turns()
        asked.may_answer.set()
        assert await asyncio.gather(*asking) == ["Hello ann"] * 9
        assert asked.met == ["ann"]


async def test_a_stranger_is_told_what_others_know_but_not_the_words_to_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.01)
    async with server() as asked:
        asked.introductions.note(ANN, met("Dear Ann", can_be_heard=False))
        asked.may_answer.clear()
        known = await asked.introductions.of(BEN)
        assert known == Acquaintance(
            Introduction("2025-11-25", {"tools": {}}, None, None), can_be_heard=False
        )


async def test_a_server_that_nobody_met_is_waited_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: an empty answer is worse than a late one, as long as it is not too late."""
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.0)
    async with server() as asked:
        asked.may_answer.clear()
        asyncio.get_running_loop().call_later(0.02, asked.may_answer.set)
        assert await asked.words_for(ANN) == "Hello ann"


async def test_a_server_that_is_down_from_the_start_is_unknown_and_asked_again() -> None:
    async with server() as asked:
        asked.is_down = True
        assert await asked.introductions.of(ANN) is None
        asked.is_down = False
        assert await asked.words_for(ANN) == "Hello ann"


async def test_what_it_says_last_counts() -> None:
    async with server() as asked:
        await asked.words_for(ANN)
        asked.introductions.note(ANN, met("I was upgraded"))
        assert await asked.words_for(ANN) == "I was upgraded"


async def test_it_remembers_so_many_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_KNOWN", 2)
    async with server() as asked:
        for name in ("a", "b", "c"):
            asked.introductions.note(caller(name), met(name))
        assert [await asked.words_for(caller(name)) for name in ("c", "b", "a")] == ["c", "b", "Hello a"]
