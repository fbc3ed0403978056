"""Calls are held against the list that their caller was told, and lists are asked for as rarely as possible."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gateway.errors import HeaderMismatch, UpstreamFault, UpstreamLost, UpstreamTimedOut
from gateway.relay import tool_index
from gateway.relay.listener import Reply, RpcError
from gateway.relay.request import ClientRequest, Principal
from gateway.relay.tool_index import ToolIndex
from gateway.telemetry.names import Outcome
from gateway.upstreams.background import Background
from gateway.wire.jsonrpc import Raw, decode, encode

ANN = Principal("ann", b"ann", is_authenticated=True)
BOB = Principal("bob", b"bob", is_authenticated=True)

PLAIN = {"name": "plain", "inputSchema": {"type": "object"}}
ROUTED = {
    "name": "routed",
    "inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
}

pytestmark = pytest.mark.requirement("R21")


def call(tool: str = "routed", region: str | None = None, *lines: str, by: Principal = ANN) -> ClientRequest:
    arguments = {} if region is None else {"region": region}
    return ClientRequest(
        id=1,
        method="tools/call",
        params={"name": Raw(encode(tool)), "arguments": Raw(encode(arguments))},
        target=tool,
        principal=by,
        capabilities={},
        param_headers={"region": lines} if lines else {},
    )


class Upstream:
    """A server whose list has these pages; counts how often one is read."""

    def __init__(self, *pages: Sequence[dict[str, Any]]) -> None:
        self.pages = pages or ([PLAIN],)
        self.reads: list[str] = []
        self.answer: Callable[[], Reply] | None = None
        self.was_asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.background = Background()
        self.index = ToolIndex(self.read, self.background, seconds=5)

    async def read(self, request: ClientRequest) -> Reply:
        cursor = request.params.get("cursor")
        self.reads.append("" if cursor is None else decode(cursor))
        self.was_asked.set()
        await self.may_answer.wait()
        if self.answer is not None:
            return self.answer()
        return self.tell(request)

    def tell(self, request: ClientRequest) -> Reply:
        """As the relay does with every list that passes by."""
        cursor = request.params.get("cursor")
        number = 0 if cursor is None else int(decode(cursor))
        result: dict[str, Any] = {"tools": [Raw(encode(tool)) for tool in self.pages[number]]}
        if number + 1 < len(self.pages):
            result["nextCursor"] = Raw(encode(str(number + 1)))
        self.index.note(request, result)
        return Reply(Outcome.COMPLETE, result=result)

    def list(self, cursor: str | None = None, *, by: Principal = ANN) -> None:
        """A client lists."""
        params = {} if cursor is None else {"cursor": Raw(encode(cursor))}
        self.tell(ClientRequest(1, "tools/list", params, "", by, {}))

    async def refuses(self, request: ClientRequest) -> bool:
        try:
            await self.index.check(request)
        except HeaderMismatch:
            return True
        return False


async def test_a_call_is_held_against_the_list_that_was_told_to_its_caller() -> None:
    upstream = Upstream([ROUTED])
    upstream.list()

    assert not await upstream.refuses(call("routed", "eu", "eu"))
    assert await upstream.refuses(call("routed", "eu", "us"))
    assert await upstream.refuses(call("routed", "eu"))
    assert upstream.reads == []


async def test_the_refusal_names_the_header() -> None:
    upstream = Upstream([ROUTED])

    with pytest.raises(HeaderMismatch) as refused:
        await upstream.index.check(call("routed", "eu"))

    assert "Mcp-Param-Region is missing" in refused.value.message
    assert (refused.value.http_status, refused.value.rpc_code) == (400, -32020)


async def test_a_list_that_nobody_was_told_is_read_once_with_all_its_pages() -> None:
    upstream = Upstream([PLAIN], [PLAIN], [ROUTED])

    assert await upstream.refuses(call("routed", "eu"))
    assert not await upstream.refuses(call("plain"))
    assert not await upstream.refuses(call("routed", "eu", "eu"))
    assert upstream.reads == ["", "1", "2"]


async def test_a_server_without_annotations_is_asked_once_for_all_callers() -> None:
    upstream = Upstream()

    for caller in (ANN, BOB, ANN):
        assert not await upstream.refuses(call("plain", "eu", by=caller))

    assert upstream.reads == [""]


async def test_a_list_that_passes_by_makes_asking_needless() -> None:
    upstream = Upstream([PLAIN], [PLAIN])
    upstream.list()
    upstream.list("1")

    assert not await upstream.refuses(call("plain"))
    assert not await upstream.refuses(call("plain", by=BOB))
    assert upstream.reads == []


async def test_half_a_list_is_no_list() -> None:
    upstream = Upstream([PLAIN], [ROUTED])
    upstream.list()

    assert await upstream.refuses(call("routed", "eu"))
    assert upstream.reads == ["", "1"]


async def test_a_page_that_nothing_leads_to_is_not_taken() -> None:
    upstream = Upstream([PLAIN], [PLAIN], [ROUTED])
    upstream.list("2")
    upstream.list()
    upstream.list("1")

    await upstream.index.check(call("plain"))

    assert upstream.reads == ["", "1", "2"]


async def test_every_caller_has_a_list_of_its_own() -> None:
    upstream = Upstream([ROUTED])
    upstream.list(by=ANN)
    upstream.pages = ([PLAIN],)

    assert not await upstream.refuses(call("routed", "eu", by=BOB))
    assert await upstream.refuses(call("routed", "eu", by=ANN))
    assert upstream.reads == [""]


async def test_a_caller_who_sends_headers_has_its_own_list_read() -> None:
    """Ours: that somebody else was told of no header proves nothing about what this one was told."""
    upstream = Upstream([PLAIN])
    upstream.list(by=ANN)
    upstream.pages = ([ROUTED],)

    assert await upstream.refuses(call("routed", "eu", "us", by=BOB))
    assert upstream.reads == [""]


async def test_a_change_of_the_tools_empties_the_index() -> None:
    upstream = Upstream([ROUTED])
    upstream.list()
    upstream.pages = ([PLAIN],)

    upstream.index.forget()

    assert not await upstream.refuses(call("routed", "eu"))
    assert upstream.reads == [""]


@pytest.mark.parametrize(
    ("was", "became", "request_"),
    [
        pytest.param([ROUTED], [PLAIN], call("routed", "eu"), id="an annotation went"),
        pytest.param([PLAIN, ROUTED], [ROUTED], call("routed", "eu", "eu"), id="nothing that matters"),
    ],
)
async def test_nobody_is_refused_because_of_an_old_list(
    was: list[Any], became: list[Any], request_: ClientRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: another replica may have told the client a newer list than the one known here."""
    monkeypatch.setattr(tool_index, "_FRESH_SECONDS", 0.0)
    upstream = Upstream(was)
    upstream.list()
    upstream.pages = (became,)

    assert not await upstream.refuses(request_)


async def test_an_annotation_that_is_new_is_found_when_a_client_knows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tool_index, "_FRESH_SECONDS", 0.0)
    upstream = Upstream([PLAIN])
    upstream.list()
    upstream.pages = ([ROUTED],)

    assert await upstream.refuses(call("routed", "eu", "us"))
    assert upstream.reads == [""]


async def test_a_list_that_is_old_all_over_is_read_again_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_index, "_FRESH_SECONDS", 0.0)
    upstream = Upstream([PLAIN], [ROUTED])
    upstream.list()
    upstream.list("1")
    upstream.pages = ([PLAIN], [PLAIN])

    assert not await upstream.refuses(call("routed", "eu"))
    assert upstream.reads == ["", "1"]


async def test_a_mismatch_with_an_old_list_stays_one_if_no_newer_is_to_be_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tool_index, "_FRESH_SECONDS", 0.0)
    upstream = Upstream([ROUTED])
    upstream.list()
    upstream.answer = lambda: Reply.of(UpstreamLost("gone"))

    assert await upstream.refuses(call("routed", "eu"))


async def test_calls_that_come_together_wait_for_one_reading() -> None:
    upstream = Upstream([ROUTED])
    upstream.may_answer.clear()
    checks = [asyncio.ensure_future(upstream.refuses(call("routed", "eu"))) for _ in range(5)]
    await asyncio.wait_for(upstream.was_asked.wait(), 5)

    upstream.may_answer.set()

    assert await asyncio.gather(*checks) == [True] * 5
    assert upstream.reads == [""]


async def test_who_leaves_while_the_list_is_read_does_not_stop_the_others() -> None:
    upstream = Upstream([ROUTED])
    upstream.may_answer.clear()
    leaving = asyncio.ensure_future(upstream.refuses(call("routed", "eu")))
    await asyncio.wait_for(upstream.was_asked.wait(), 5)
    staying = asyncio.ensure_future(upstream.refuses(call("routed", "eu")))
    await asyncio.sleep(0)

    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    upstream.may_answer.set()

    assert await staying
    assert upstream.reads == [""]


@pytest.mark.parametrize(
    "answer",
    [
        lambda: Reply.of(UpstreamLost("gone")),
        lambda: Reply(Outcome.ERROR, error=RpcError(-32603, "no list today"), reason="upstream_error"),
    ],
)
async def test_without_a_list_calls_that_claim_nothing_go_on_and_others_do_not(
    answer: Callable[[], Reply],
) -> None:
    upstream = Upstream()
    upstream.answer = answer

    assert not await upstream.refuses(call("routed", "eu"))
    assert not await upstream.refuses(call("routed", "eu"))
    assert len(upstream.reads) == 1  # not asked again at once
    with pytest.raises(UpstreamFault):
        await upstream.index.check(call("routed", "eu", "eu"))


async def test_a_call_that_claims_nothing_does_not_wait_long_for_a_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tool_index, "_PATIENCE_SECONDS", 0.01)
    upstream = Upstream([ROUTED])
    upstream.may_answer.clear()

    assert not await upstream.refuses(call("routed", "eu"))

    upstream.may_answer.set()
    await upstream.background.settle(5)
    assert await upstream.refuses(call("routed", "eu"))
    assert upstream.reads == [""]


async def test_reading_a_list_does_not_take_for_ever() -> None:
    upstream = Upstream([ROUTED])
    upstream.may_answer.clear()
    upstream.index = ToolIndex(upstream.read, upstream.background, seconds=0.01)

    with pytest.raises(UpstreamTimedOut):
        await upstream.index.check(call("routed", "eu", "eu"))


async def test_a_server_that_has_no_lists_has_no_headers() -> None:
    upstream = Upstream()
    upstream.answer = lambda: Reply(Outcome.ERROR, error=RpcError(-32601, "Method not found"), status=404)

    assert not await upstream.refuses(call("routed", "eu", "us"))
    assert not await upstream.refuses(call("routed", "eu"))
    assert upstream.reads == [""]


async def test_a_server_that_leads_in_circles_is_left_in_time() -> None:
    upstream = Upstream()
    turns = iter(["a", "b", "a", "b"])

    async def read(request: ClientRequest) -> Reply:
        upstream.reads.append("")
        result = {"tools": Raw(b"[]"), "nextCursor": Raw(encode(next(turns)))}
        upstream.index.note(request, result)
        return Reply(Outcome.COMPLETE, result=result)

    upstream.index = ToolIndex(read, upstream.background, seconds=5)

    assert not await upstream.refuses(call("plain"))
    assert not await upstream.refuses(call("plain"))
    assert len(upstream.reads) == 3


async def test_a_server_whose_list_never_ends_is_left_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_index, "_MOST_PAGES", 4)
    upstream = Upstream(*([PLAIN],) * 100)

    assert not await upstream.refuses(call("plain"))
    assert not await upstream.refuses(call("plain"))
    assert upstream.reads == ["", "1", "2", "3"]


async def test_the_callers_of_long_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_index, "_MOST_CALLERS", 2)
    upstream = Upstream([ROUTED])

    for number in range(5):
        caller = Principal(f"p{number}", b"", is_authenticated=True)
        assert await upstream.refuses(call("routed", "eu", by=caller))

    assert len(upstream.index._listings) == 2


async def test_a_cursor_that_cannot_be_read_spoils_nothing() -> None:
    """Ours: a page that was asked for with what is no text is put where pages without a cursor are."""
    upstream = Upstream([ROUTED])
    page = ClientRequest(1, "tools/list", {"cursor": Raw(b'"\xff"')}, "", ANN, {})

    upstream.index.note(page, {"tools": [Raw(encode(ROUTED))], "nextCursor": Raw(b"1e999")})

    assert await upstream.refuses(call("routed", "eu", "us"))
