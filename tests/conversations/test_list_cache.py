"""What clients are told about keeping lists, and the lists that the gateway keeps itself."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.gateways import Gateways
from tests.support.listening import TOOLS, listening
from tests.support.scripted import Scripted, Turn, introduction, notice
from tests.support.waiting import until
from tests.support.wire import Answer, Wire

LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
TELLS: dict[str, Any] = {"tools": {"listChanged": True}, "prompts": {}, "resources": {}}


class Counting(Scripted):
    """A new tool each time that it is asked for its tools, in pages of one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.on["initialize"] = self._introduce
        self.on["tools/list"] = self._tools
        for method, member in zip(LISTS[1:], ("prompts", "resources", "resourceTemplates"), strict=True):
            self.on[method] = _listing(member)
        self.on["resources/read"] = _reading

    async def _introduce(self, turn: Turn) -> None:
        await turn.result({**introduction(self), "capabilities": TELLS}, self.new_session())

    async def _tools(self, turn: Turn) -> None:
        cursor = turn.message["params"].get("cursor")
        number = self.number("tools/list")
        tools = [{"inputSchema": {"type": "object"}, "name": f"tool-{number}"}]
        await turn.result({"tools": tools, **({} if cursor else {"nextCursor": "page two"})})


def _listing(member: str) -> Any:
    async def listing(turn: Turn) -> None:
        await turn.result({member: []})

    return listing


async def _reading(turn: Turn) -> None:
    contents = {"uri": turn.message["params"]["uri"], "text": str(turn.server.number("read"))}
    await turn.result({"contents": [contents]})


@pytest.fixture
async def server() -> AsyncIterator[Counting]:
    async with Counting() as counting:
        yield counting


def hints(answer: Answer) -> tuple[int, str]:
    return answer.result["ttlMs"], answer.result["cacheScope"]


async def tool(wire: Wire, **params: Any) -> str:
    (found,) = (await wire.request("tools/list", params)).result["tools"]
    return str(found["name"])


@pytest.mark.requirement("R24")
async def test_nobody_is_told_to_keep_anything_unless_it_is_configured(
    server: Counting, gateway: Gateways
) -> None:
    """CONFORMANCE 4.7: legacy servers state no lifetimes, so only `0` and `private` are always true."""
    served = await gateway(server.url)
    async with Wire(served.url) as wire:
        for method in ("server/discover", *LISTS):
            assert hints(await wire.request(method)) == (0, "private")
        assert hints(await wire.request("resources/read", {"uri": "a:1"})) == (0, "private")


@pytest.mark.requirement("R24")
async def test_each_kind_keeps_as_it_is_configured_and_the_same_on_all_pages(
    server: Counting, gateway: Gateways
) -> None:
    caching = {
        "ttl": "1m",
        "discover": {"ttl": "1h", "scope": "public"},
        "tools": {"scope": "public"},
        "prompts": {"ttl": "1s"},
        "templates": {"ttl": "2s"},
        "reads": {"ttl": 0},
    }
    served = await gateway(server.url, caching=caching)
    async with Wire(served.url) as wire:
        await until(lambda: _introduced(wire))
        assert hints(await wire.request("server/discover")) == (3_600_000, "public")
        for params in ({}, {"cursor": "page two"}):
            assert hints(await wire.request("tools/list", params)) == (60_000, "public")
        assert hints(await wire.request("prompts/list")) == (1000, "private")
        assert hints(await wire.request("resources/list")) == (60_000, "private")
        assert hints(await wire.request("resources/templates/list")) == (2000, "private")
        assert hints(await wire.request("resources/read", {"uri": "a:1"})) == (0, "private")


async def _introduced(wire: Wire) -> Any:
    return (await wire.request("server/discover")).result["capabilities"]


@pytest.mark.requirement("R26")
async def test_cursors_pass_through_and_what_is_none_is_refused_here(
    server: Counting, gateway: Gateways
) -> None:
    served = await gateway(server.url)
    async with Wire(served.url) as wire:
        assert (await wire.request("tools/list")).result["nextCursor"] == "page two"
        for cursor in ("page two", "", "é"):
            await wire.request("tools/list", {"cursor": cursor})
        assert [turn.message["params"].get("cursor") for turn in server.seen("tools/list")] == [
            None,
            "page two",
            "",
            "é",
        ]
        answer = await wire.request("tools/list", {"cursor": 2})
        assert (answer.status, answer.error["code"]) == (400, -32602)
        assert len(server.seen("tools/list")) == 4


async def test_the_server_is_asked_each_time_unless_lists_are_kept(
    server: Counting, gateway: Gateways
) -> None:
    served = await gateway(server.url)
    async with Wire(served.url) as wire:
        assert [await tool(wire), await tool(wire)] == ["tool-1", "tool-2"]


async def test_a_kept_list_is_given_page_by_page_until_the_server_says_that_it_changed(
    server: Counting, gateway: Gateways
) -> None:
    served = await gateway(server.url, cache={"lists": "private"})
    async with Wire(served.url) as wire:
        for _ in range(2):
            assert await tool(wire) == "tool-1"
            assert await tool(wire, cursor="page two") == "tool-2"
        async with listening(wire, toolsListChanged=True) as stream:
            await stream.honoured()
            for session in list(server.standing):
                await server.say(notice(TOOLS), session)
            assert await stream.heard() == [(TOOLS, None)]
            assert await tool(wire) == "tool-3", "who is told of a change must not get the list from before"


async def test_many_who_ask_at_once_cost_one_request(server: Counting, gateway: Gateways) -> None:
    served = await gateway(server.url, cache={"lists": "public"})
    async with Wire(served.url) as wire, Wire(served.url) as other:
        names = await asyncio.gather(*(tool(who) for who in (wire, other) for _ in range(20)))
        assert set(names) == {"tool-1"}


async def test_reads_are_never_kept(server: Counting, gateway: Gateways) -> None:
    served = await gateway(server.url, cache={"lists": "public"})
    async with Wire(served.url) as wire:
        texts = [(await wire.request("resources/read", {"uri": "a:1"})).text for _ in range(2)]
        assert texts == ["1", "2"]


async def test_callers_do_not_share_what_is_kept_for_each(server: Counting, gateway: Gateways) -> None:
    served = await gateway(server.url, auth={"mode": "passthrough"}, cache={"lists": "private"})
    async with (
        Wire(served.url, authorization="Bearer a") as ann,
        Wire(served.url, authorization="Bearer b") as ben,
    ):
        assert [await tool(ann), await tool(ben), await tool(ann), await tool(ben)] == [
            "tool-1",
            "tool-2",
            "tool-1",
            "tool-2",
        ]


async def test_a_server_that_was_restarted_is_asked_again(server: Counting, gateway: Gateways) -> None:
    served = await gateway(server.url, cache={"lists": "private"})
    async with Wire(served.url) as wire:
        assert await tool(wire) == "tool-1"
        await server.stop()
        await server.start()

        async def is_new() -> bool:
            return await tool(wire) == "tool-2"

        await until(is_new)


async def test_instructions_are_for_the_principal_that_got_them(server: Counting, gateway: Gateways) -> None:
    async def introduce(turn: Turn) -> None:
        who = turn.headers.get("authorization", "nobody")
        if who == "Bearer c":
            await turn.until_left()
            return
        await turn.result({**introduction(server), "instructions": f"For {who}"}, server.new_session())

    server.on["initialize"] = introduce
    served = await gateway(server.url, auth={"mode": "passthrough"})
    for token, words in (("a", "For Bearer a"), ("b", "For Bearer b"), ("c", None)):
        async with Wire(served.url, authorization=f"Bearer {token}") as wire:
            known = (await wire.request("server/discover")).result
            assert known.get("instructions") == words
            assert known["capabilities"] == {"tools": {}, "logging": {}, "completions": {}}
