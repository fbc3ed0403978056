"""Legacy servers that are odd in ways that real ones are: each works as far as it can, and says clearly where it ends.

Where a real server shows the oddity it is a real one; the rest is scripted after recordings of real ones.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from gateway.upstreams import streamable_http
from tests.support.gateways import Gateways
from tests.support.peers import ONE_CLIENT_KIND, LegacyServers, start_legacy
from tests.support.python_client import PythonClient, text_of
from tests.support.scripted import Json, Scripted, Turn, ask, asking, introduction, notice, text_result
from tests.support.scripted_sse import ScriptedSse, open_stream
from tests.support.seen import seen_by
from tests.support.wire import Answer, Wire, accept

NEWEST = ("py-1.30", "ts-1.32")
LATE = "The upstream server did not answer in time"
NOBODY_HEARD = (
    "The upstream server asked a question and then did not answer in time; it keeps no sessions, "
    "so what the client said may never have reached the call that asked"
)
Script = Callable[[Turn], Awaitable[None]]


@pytest.fixture
async def server() -> AsyncIterator[Scripted]:
    async with Scripted() as scripted:
        yield scripted


def failed(answer: Answer, message: str) -> Answer:
    """It is an upstream's failure: HTTP 200, -32603, in these words."""
    assert (answer.status, answer.error["code"], answer.error["message"]) == (200, -32603, message)
    return answer


# --- servers without sessions ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["py-1.12", "py-1.26", "py-1.30", "ts-1.12", "ts-1.32"])
async def test_a_stateless_server_serves_everything_that_does_not_ask(
    legacy_servers: LegacyServers, gateway: Gateways, kind: str
) -> None:
    served = await gateway(legacy_servers.get(kind, stateless=True).url)

    async with PythonClient(served.url) as client:
        assert text_of(await client.tool("add", {"a": 1, "b": 2})) == "3"
        assert (await client.client.list_tools()).tools
        assert await client.carry_out("resources/read", {"uri": "test://static/hello"})
        assert await client.carry_out("prompts/get", {"name": "simple", "arguments": {"topic": "rain"}})


async def test_a_question_of_a_stateless_server_ends_in_a_clear_error_and_not_in_a_hang(
    legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """LEGACY-WIRE 1: the answer is taken with 202 by an instance that never asked. Nobody can answer it."""
    served = await gateway(legacy_servers.get("py-1.30", stateless=True).url, call_timeout="600ms")

    async with Wire(served.url) as wire:
        asked = await wire.tool("ask_name")
        failed(await wire.retry(asked, {"name": accept(name="Ann")}), NOBODY_HEARD)
        assert (await wire.tool("add", {"a": 1, "b": 2})).text == "3", "and the next call works"


async def test_a_stateless_server_that_refuses_to_ask_says_so_itself(
    legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """TypeScript 1.32 never saw the handshake, so it thinks that nobody can answer."""
    served = await gateway(legacy_servers.get("ts-1.32", stateless=True).url, call_timeout="2s")

    async with Wire(served.url) as wire:
        told = await wire.tool("ask_name")

    assert told.result["isError"] is True
    assert "does not support" in told.text


async def test_a_server_without_session_ids_that_remembers_its_calls_is_answered(gateway: Gateways) -> None:
    """One process for one user needs no ids: that a question cannot be answered is found out, not presumed."""
    async with Scripted(sessions=False, on={"tools/call": asking}) as server:
        served = await gateway(server.url)
        async with Wire(served.url) as wire:
            asked = await wire.tool("echo")
            assert (await wire.retry(asked, {"name": accept(name="Ann")})).text == "Hello Ann"


# --- JSON only -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NEWEST)
async def test_a_server_in_json_mode_asks_on_its_standing_stream_and_loses_what_it_asks_elsewhere(
    legacy_servers: LegacyServers, gateway: Gateways, kind: str
) -> None:
    """LEGACY-WIRE 1: an ask of the POST is swallowed by the server; nobody ever hears it."""
    served = await gateway(legacy_servers.get(kind, json_response=True).url, call_timeout="600ms")

    async with Wire(served.url) as wire:
        assert (await wire.tool("add", {"a": 1, "b": 2})).text == "3"
        asked = await wire.tool("ask_name_get")
        assert (await wire.retry(asked, {"name": accept(name="Ann")})).text == "Hello Ann"
        failed(await wire.tool("ask_name"), LATE)


# --- strict handshakes -----------------------------------------------------------------------------


async def test_a_server_that_knows_no_modes_of_elicitation_asks_all_the_same(
    server: Scripted, gateway: Gateways
) -> None:
    """Java before 0.17: 400 with a serialised exception, Unrecognized field "form"; plain `elicitation` it knows."""

    async def hello(turn: Turn) -> None:
        if turn.message["params"]["capabilities"].get("elicitation"):
            await turn.json({"cause": None, "stackTrace": [], "jsonRpcError": {"code": -32600}}, 400)
            return
        await turn.result({**introduction(server), "protocolVersion": "2025-06-18"}, server.new_session())

    server.on = {"initialize": hello, "tools/call": asking}
    served = await gateway(server.url)

    async with Wire(served.url, capabilities={"elicitation": {"form": {}, "url": {}}}) as wire:
        asked = await wire.tool("echo")
        assert (await wire.retry(asked, {"name": accept(name="Ann")})).text == "Hello Ann"


# --- no GET stream ---------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [404, 405, 501])
async def test_a_server_without_a_get_stream_asks_on_the_stream_of_the_call(
    server: Scripted, gateway: Gateways, status: int
) -> None:
    async def none(turn: Turn) -> None:
        await turn.reply(status, "<h1>no</h1>")

    server.on = {"GET": none, "tools/call": asking}
    served = await gateway(server.url)

    async with Wire(served.url) as wire:
        asked = await wire.tool("echo")
        assert (await wire.retry(asked, {"name": accept(name="Ann")})).text == "Hello Ann"


# --- one stream for everything ----------------------------------------------------------------------


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_server_that_says_everything_on_its_get_stream_is_heard(
    server: Scripted, gateway: Gateways, *, is_streamed: bool
) -> None:
    """As over HTTP+SSE: a POST is only taken (202), or its stream stays empty. Both legacy SDK clients go by the id."""

    async def call(turn: Turn) -> None:
        await (turn.stream() if is_streamed else turn.reply(202))
        number = turn.server.number("ask")
        await turn.server.say(ask(number), turn.session)
        answer = await turn.server.wait_for_answer(number)
        greeting = f"Hello {answer['result']['content']['name']}"
        await turn.server.say(turn.answer(text_result(greeting)), turn.session)
        if is_streamed:
            await turn.until_left()

    server.on = {"tools/call": call}
    served = await gateway(server.url)

    async with Wire(served.url) as wire:
        asked = await wire.tool("echo")
        assert (await wire.retry(asked, {"name": accept(name="Ann")})).text == "Hello Ann"


# --- streams that are closed to be read on -----------------------------------------------------------


@pytest.mark.parametrize("kind", ["py-1.26", "py-1.30", "ts-1.32"])
async def test_a_server_that_hangs_up_and_wants_to_be_polled_is_polled(
    legacy_servers: LegacyServers, gateway: Gateways, kind: str
) -> None:
    """SEP-1699: a priming event with `retry`, a clean end without a result, the rest by GET with the last id."""
    server = legacy_servers.get(kind, event_store=True, arguments=("--retry-ms", "50"))
    served = await gateway(server.url)

    async with PythonClient(served.url) as client:
        assert text_of(await client.tool("hang_up_then_ask")) == "Hello Ann"

    seen = await seen_by(server)
    assert seen.events.count("hung up") >= 2
    assert [entry for entry in seen.http if entry["verb"] == "GET" and entry["lastEventId"]]


async def test_a_stream_that_ends_after_its_first_event_is_read_on_from_there(
    server: Scripted, gateway: Gateways
) -> None:
    async def prime(turn: Turn) -> None:
        await turn.stream()
        await turn.event("", event=None, id="e1", retry=10)
        await turn.finish()

    async def stream(turn: Turn) -> None:
        await turn.stream()
        if "last-event-id" not in turn.headers:
            await turn.until_left()
            return
        (call,) = server.seen("tools/call")
        await turn.event(ask(1), id="e2")
        if await turn.answered(1) is not None:
            await turn.event(call.answer(text_result("read on")), id="e3")
            await turn.finish()

    server.on = {"tools/call": prime, "GET": stream}
    served = await gateway(server.url)

    async with Wire(served.url) as wire:
        asked = await wire.tool("echo")
        assert (await wire.retry(asked, {"name": accept(name="Ann")})).text == "read on"
    assert [
        turn.headers["last-event-id"] for turn in server.seen("GET") if "last-event-id" in turn.headers
    ] == ["e1"]


@pytest.mark.parametrize("kind", ["py-1.12", "py-1.30", "ts-1.12", "ts-1.32"])
async def test_an_event_store_that_keeps_the_stream_open_after_the_result_keeps_nobody_waiting(
    legacy_servers: LegacyServers, gateway: Gateways, kind: str
) -> None:
    served = await gateway(legacy_servers.get(kind, event_store=True).url)

    async with PythonClient(served.url) as client:
        assert text_of(await client.tool("ask_name")) == "Hello Ann"
        assert text_of(await client.tool("add", {"a": 1, "b": 2})) == "3"


async def test_a_stream_left_open_after_the_result_is_not_waited_for(
    server: Scripted, gateway: Gateways
) -> None:
    async def lingering(turn: Turn) -> None:
        await turn.stream()
        await turn.event(turn.answer(text_result("done")), id="e1")
        await turn.until_left()

    server.on["tools/call"] = lingering
    served = await gateway(server.url)

    async with Wire(served.url) as wire:
        async with asyncio.timeout(3):
            assert (await wire.tool("echo")).text == "done"


# --- no headers ------------------------------------------------------------------------------------


async def test_no_response_headers_before_the_first_event_is_not_silence(
    legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """TypeScript 1.12: nothing comes, not even a status, until there is an event; a connect time-out is none of it."""
    served = await gateway(legacy_servers.get("ts-1.12").url, connect_timeout="200ms")

    async with Wire(served.url) as wire:
        assert (await wire.tool("slow", {"seconds": 0.5})).text == "slept"
        asked = await wire.tool("ask_name_get")
        assert (await wire.retry(asked, {"name": accept(name="Ann")})).text == "Hello Ann"


# --- redirects ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
async def test_a_redirect_to_the_trailing_slash_is_followed_with_the_call(
    gateway: Gateways, transport: str
) -> None:
    """LEGACY-WIRE 5: 307, as frameworks do it; relative or absolute."""
    scripted = ScriptedSse() if transport == "sse" else Scripted(on={"tools/call": asking})
    async with scripted as server:
        chosen = server._script_for

        async def move(turn: Turn) -> None:
            await turn.reply(307, headers={"Location": f"{turn.path}/"})

        def script_for(turn: Turn) -> Script:
            if turn.path in ("/mcp", "/sse"):
                return move
            turn.path = turn.path.rstrip("/")
            return chosen(turn)

        server._script_for = script_for  # type: ignore[method-assign]
        served = await gateway(server.url)
        async with Wire(served.url) as wire:
            if transport == "sse":
                assert (await wire.tool("echo")).text == "done"
                return
            asked = await wire.tool("echo")
            assert (await wire.retry(asked, {"name": accept(name="Ann")})).text == "Hello Ann"


async def test_a_redirect_to_another_origin_carries_nothing_there(
    server: Scripted, gateway: Gateways
) -> None:
    async with Scripted() as other:

        async def move(turn: Turn) -> None:
            await turn.reply(307, headers={"Location": other.url})

        server.on["tools/call"] = move
        served = await gateway(server.url, auth={"mode": "passthrough"})
        async with Wire(served.url, authorization="Bearer secret") as wire:
            failed(await wire.tool("echo"), "The upstream server sent an answer that is not valid MCP")
        assert other.turns == []


# --- who may speak to it -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["py-1.26", "py-1.30"])
async def test_a_server_that_checks_host_and_origin_sees_its_own_and_none(
    legacy_servers: LegacyServers, gateway: Gateways, kind: str
) -> None:
    """LEGACY-WIRE 5: these answer 421 and 403 to foreign ones. A browser's origin is ours to judge, not theirs."""
    settings = {"limits": {"allowed_origins": ["https://app.example"], "allowed_hosts": ["gateway.example"]}}
    served = await gateway(legacy_servers.get(kind).url, settings=settings)

    async with Wire(served.url) as wire:
        foreign = {"Origin": "https://app.example", "Host": "gateway.example"}
        assert (await wire.tool("add", {"a": 1, "b": 2}, headers=foreign)).text == "3"


@pytest.mark.parametrize(("status", "code"), [(421, -32603), (403, -32600)])
async def test_a_server_that_does_not_want_us_is_told_with_its_status(
    server: Scripted, gateway: Gateways, status: int, code: int
) -> None:
    async def refuse(turn: Turn) -> None:
        await turn.reply(status, "Invalid Host header")

    server.on["initialize"] = refuse
    served = await gateway(server.url, sessions={"warm": 0})

    async with Wire(served.url) as wire:
        told = await wire.tool("echo")
    assert told.error["code"] == code
    assert "Invalid Host" not in json.dumps(told.message), "the page is the operator's business"
    if status == 421:
        assert told.error["data"]["upstreamStatus"] == 421
    else:
        assert told.status == 403


# --- batches -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["json", "stream"])
async def test_a_batch_of_a_2025_03_26_server_is_taken_apart(gateway: Gateways, form: str) -> None:
    """The one revision with batches: a log, then the result, in one array."""

    async def batch(turn: Turn) -> None:
        log = notice("notifications/message", level="error", data="first")
        both = [log, turn.answer(text_result("done"))]
        if form == "json":
            await turn.json(both)
        else:
            await turn.stream()
            await turn.event(both)
            await turn.finish()

    async with Scripted(version="2025-03-26", on={"tools/call": batch}) as server:
        served = await gateway(server.url)
        async with Wire(served.url) as wire:
            done = await wire.tool("echo", level="error")

    assert done.text == "done"
    assert [note["params"]["data"] for note in done.notifications] == ["first"]


async def test_questions_in_a_batch_come_in_one_round_and_are_answered_one_by_one(gateway: Gateways) -> None:
    async def batch(turn: Turn) -> None:
        await turn.stream()
        await turn.event([ask(1, "roots/list", {}), ask(2, "roots/list", {})])
        if await turn.answered(1) is not None and await turn.answered(2) is not None:
            await turn.event([turn.answer(text_result("both"))])
            await turn.finish()

    async with Scripted(version="2025-03-26", on={"tools/call": batch}) as server:
        served = await gateway(server.url)
        async with Wire(served.url) as wire:
            asked = await wire.tool("echo")
            done = await wire.retry(asked, {key: {"roots": []} for key in asked.asked})

        assert done.text == "both"
        assert all(isinstance(turn.message, dict) for turn in server.seen("answer"))


# --- words that an old revision does not have --------------------------------------------------------


async def test_a_sample_that_an_old_server_cannot_read_is_refused_and_told_why(gateway: Gateways) -> None:
    """Before 2025-11-25 a sample is one block; the tool hears why it gets none, and nothing is left out."""

    async def sample(turn: Turn) -> None:
        await turn.stream()
        await turn.event(ask(1, "sampling/createMessage", {"messages": [], "maxTokens": 9}))
        answer = await turn.answered(1)
        if answer is not None:
            await turn.event(turn.answer(text_result(answer["error"]["message"]) | {"isError": True}))
            await turn.finish()

    async with Scripted(version="2025-06-18", on={"tools/call": sample}) as server:
        served = await gateway(server.url)
        async with Wire(served.url) as wire:
            asked = await wire.tool("echo")
            (key,) = asked.asked
            picture = {"type": "image", "data": "AA==", "mimeType": "image/png"}
            content = [{"type": "text", "text": "See:"}, picture]
            told = await wire.retry(asked, {key: {"role": "assistant", "model": "m", "content": content}})

    assert told.result["isError"] is True
    assert "several blocks that are not all text, which protocol 2025-06-18 cannot express" in told.text


# --- error bodies ------------------------------------------------------------------------------------------

REFUSAL: Json = {"jsonrpc": "2.0", "error": {"code": -32000, "message": "Bad Request: busy"}}


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(REFUSAL),
        json.dumps({**REFUSAL, "id": None}),
        json.dumps({**REFUSAL, "id": "server-error"}),
        "<!DOCTYPE html><html><body>Bad Request</body></html>",
        "Bad Request",
        "",
    ],
    ids=["no-id", "null-id", "foreign-id", "html", "text", "empty"],
)
async def test_an_error_body_of_any_kind_is_the_refusal_of_this_call(
    server: Scripted, gateway: Gateways, body: str
) -> None:
    """LEGACY-WIRE 5: never correlate them by id."""

    async def refuse(turn: Turn) -> None:
        await turn.reply(400, body, {"Content-Type": "application/json" if body[:1] == "{" else "text/html"})

    server.on["tools/call"] = refuse
    served = await gateway(server.url)

    async with Wire(served.url) as wire:
        told = failed(await wire.tool("echo"), "The upstream server refused the request")
        assert told.error["data"]["upstreamStatus"] == 400
    assert len(server.seen("tools/call")) == 1


# --- one client only ------------------------------------------------------------------------------------------


async def test_a_server_for_one_client_only_is_served_through_one_session(gateway: Gateways) -> None:
    """LEGACY-WIRE 7: a second stream steals all traffic from the first, and the process ends when one leaves."""
    one = {"mode": "pooled", "max": 1, "warm": 1, "idle": "10m"}
    async with start_legacy(ONE_CLIENT_KIND, transport="sse") as server:
        served = await gateway(server.url, sessions=one)
        async with Wire(served.url) as wire:
            tools = {tool["name"] for tool in (await wire.request("tools/list")).result["tools"]}
            sums = await asyncio.gather(*(wire.tool("add", {"a": n, "b": 1}) for n in range(5)))
            asked = await wire.tool("sampleLLM", {"prompt": "Capital?", "maxTokens": 20})
            (key,) = asked.asked
            answer = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"}
            done = await wire.retry(asked, {key: answer})
            after = await wire.tool("echo", {"message": "still here"})
        assert server.process.poll() is None
        assert server.said().count("Received connection") == 1

    assert {"add", "sampleLLM"} <= tools
    assert [f"{n} and 1 is {n + 1}." in answer.text for n, answer in enumerate(sums)] == [True] * 5
    assert "Paris" in done.text
    assert "still here" in after.text


# --- capabilities ---------------------------------------------------------------------------------------------


async def test_a_tool_list_that_depends_on_what_was_declared_is_each_client_s_own(gateway: Gateways) -> None:
    async def initialize(turn: Turn) -> None:
        session = turn.server.new_session()
        if "elicitation" in turn.message["params"]["capabilities"]:
            able.add(session["Mcp-Session-Id"])
        await turn.result(introduction(turn.server), session)

    async def tools(turn: Turn) -> None:
        names = ["plain", *(["asking"] if turn.session in able else [])]
        await turn.result({"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]})

    able: set[str] = set()
    async with Scripted(on={"initialize": initialize, "tools/list": tools}) as server:
        served = await gateway(server.url, sessions={"mode": "pooled"})
        async with Wire(served.url) as wire:
            declared: list[Json | None] = [None, {}, {"sampling": {}}, None]
            found = [
                [
                    tool["name"]
                    for tool in (await wire.request("tools/list", capabilities=given)).result["tools"]
                ]
                for given in declared
            ]
    assert found == [["plain", "asking"], ["plain"], ["plain"], ["plain", "asking"]]


# --- what comes on the GET stream -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["py-1.12", "py-1.26"])
async def test_progress_and_logs_on_the_get_stream_reach_the_call_that_runs(
    legacy_servers: LegacyServers, gateway: Gateways, kind: str
) -> None:
    """LEGACY-WIRE 8: these send progress there. Two streams have no common order, so the last steps may be late."""
    served = await gateway(legacy_servers.get(kind).url)

    async with PythonClient(served.url, log_level="warning") as client:
        for _ in range(5):
            await client.tool("ask_then_progress", {"steps": 3})
            await client.tool("logs_get", {"levels": ["debug", "error"]})

    assert client.progress, "of fifteen steps some come in time"
    assert set(client.progress) <= {(1, 3), (2, 3), (3, 3)}
    assert {record.level for record in client.logs} == {"error"}


async def test_progress_and_logs_on_the_get_stream_keep_their_order(
    server: Scripted, gateway: Gateways
) -> None:
    async def work(turn: Turn) -> None:
        token = turn.message["params"]["_meta"]["progressToken"]
        await server.wait_until(lambda: turn.session in server.standing)
        await turn.stream()
        for step in (1, 2, 3):
            await server.say(
                notice("notifications/progress", progressToken=token, progress=step), turn.session
            )
        await server.say(notice("notifications/message", level="error", data="said"), turn.session)
        await turn.event(ask(1))  # what came before it has been heard by the time it is answered
        if await turn.answered(1) is not None:
            await turn.event(turn.answer(text_result("done")))
            await turn.finish()

    server.on["tools/call"] = work
    served = await gateway(server.url, settle="300ms", sessions={"warm": 0})

    async with Wire(served.url) as wire:
        asked = await wire.tool("echo", token="t", level="error")
        done = await wire.retry(asked, {"name": accept(name="Ann")})
    assert done.text == "done"
    params = [note["params"] for note in asked.notifications]
    assert [given.get("progress", given.get("data")) for given in params] == [1, 2, 3, "said"]


# --- which transport ------------------------------------------------------------------------------------------------


async def test_a_post_that_is_answered_with_an_endpoint_is_http_sse_at_once(gateway: Gateways) -> None:
    """A framework that routes every verb alike: the POST opens a stream whose first event says what this is."""
    async with ScriptedSse() as server:
        chosen = server._script_for
        server._script_for = (  # type: ignore[method-assign]
            lambda turn: open_stream if turn.path == "/sse" else chosen(turn)
        )
        served = await gateway(server.url)
        async with asyncio.timeout(3), Wire(served.url) as wire:
            assert (await wire.tool("echo")).text == "done"
            before = [turn for turn in server.turns if (turn.verb, turn.path) == ("POST", "/sse")]
            assert (await wire.tool("echo")).text == "done"
            after = [turn for turn in server.turns if (turn.verb, turn.path) == ("POST", "/sse")]

    assert before == after, "it is known from then on"


def test_patience_with_streams_is_longer_than_that_of_any_test() -> None:
    """Otherwise these tests would prove nothing."""
    assert streamable_http._REPOLL_SECONDS[0] >= 5
