"""Legacy servers with odd but legal habits on the wire, and odd but legal modern requests: right answers to both."""

import json
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from tests.support.gateways import Gateways
from tests.support.said import ASK
from tests.support.scripted import Script, Scripted, Turn, ask, asking, introduction, notice, text_result
from tests.support.wire import Wire, accept

Json = dict[str, Any]

META: Json = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


# --- streams ----------------------------------------------------------------------------------------


def _plain(turn: Turn, *messages: Json) -> bytes:
    return b"".join(turn.framed(message) for message in messages)


def _pretty(turn: Turn, *messages: Json) -> bytes:
    """A line of data for each line of JSON, without the space, and no name of the event."""
    return b"".join(
        b"".join(b"data:" + line.encode() + b"\n" for line in json.dumps(message, indent=2).split("\n"))
        + b"\n"
        for message in messages
    )


def _chatty(turn: Turn, *messages: Json) -> bytes:
    """Comments, a priming event with an id and no data, `retry`, an unknown event, unknown fields."""
    noise = (
        b": hi\n\nid: 1\nretry: 10\ndata:\n\nevent: weather\ndata: rain\n\nretry: soon\n\ncolour: blue\n:\n\n"
    )
    return noise + b"".join(noise + turn.framed(message, id="2") for message in messages) + noise


def _crlf(turn: Turn, *messages: Json) -> bytes:
    return _plain(turn, *messages).replace(b"\n", b"\r\n")


def _cr(turn: Turn, *messages: Json) -> bytes:
    return _plain(turn, *messages).replace(b"\n", b"\r")


def _bom(turn: Turn, *messages: Json) -> bytes:
    return b"\xef\xbb\xbf" + _plain(turn, *messages)


def _no_last_newline(turn: Turn, *messages: Json) -> bytes:
    """The last event has its end, but the stream ends right after it."""
    return _plain(turn, *messages).rstrip(b"\n") + b"\n\n"


FRAMINGS = [_plain, _pretty, _chatty, _crlf, _cr, _bom, _no_last_newline]
WORDS = "zwölf Boxkämpfer \u2028 \U0001f9ed"


@pytest.mark.parametrize("size", [1, 7, 4096])
@pytest.mark.parametrize("framing", FRAMINGS, ids=lambda framing: framing.__name__)
async def test_a_stream_may_be_framed_and_cut_anywhere(
    gateway: Gateways, framing: Callable[..., bytes], size: int
) -> None:
    """Issue: priming events, `retry`, CRLF, a byte order mark, chunks that end in mid-character."""

    async def call(turn: Turn) -> None:
        await turn.stream()
        first = framing(
            turn,
            notice("notifications/message", level="info", data=WORDS),
            ask("q", params={**ASK, "message": WORDS}),
        )
        for at in range(0, len(first), size):
            await turn.chunk(first[at : at + size])
        if await turn.answered("q") is not None:
            rest = framing(turn, turn.answer(text_result(WORDS)))
            rest = rest.removeprefix(b"\xef\xbb\xbf")
            for at in range(0, len(rest), size):
                await turn.chunk(rest[at : at + size])
            await turn.finish()

    async with Scripted(on={"tools/call": call}) as server:
        served = await gateway(server.url)
        async with Wire(served.url) as wire:
            asked = await wire.tool("echo", level="info")
            assert [entry["params"]["data"] for entry in asked.notifications] == [WORDS]
            ((key, question),) = asked.asked.items()
            assert question["params"]["message"] == WORDS
            done = await wire.retry(asked, {key: accept(name="Ann")})
    assert done.text == WORDS


# --- handshakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_server_may_choose_an_older_revision(gateway: Gateways, version: str) -> None:
    """Spec (each): what the server answers is spoken from then on, and named from 2025-06-18 on."""
    async with Scripted(version=version) as server:
        served = await gateway(server.url)
        async with Wire(served.url) as wire:
            assert (await wire.tool("echo")).text == "done"
        (call,) = server.seen("tools/call")
    assert call.headers.get("mcp-protocol-version", version) == version


async def test_a_server_of_an_unknown_revision_is_an_error_in_words(gateway: Gateways) -> None:
    """Ours: nobody can translate what nobody knows."""
    async with Scripted(version="1999-01-01") as server:
        served = await gateway(server.url)
        async with Wire(served.url) as wire:
            told = await wire.tool("echo")
    assert (told.status, told.error["code"]) == (200, -32603)


async def handshake_as_stream(turn: Turn) -> None:
    """`initialize` answered as a stream with a priming event and a log before the result."""
    await turn.stream(turn.server.new_session())
    await turn.chunk(b"id: 0\nretry: 50\ndata: \n\n")
    await turn.event(notice("notifications/message", level="info", data="starting"))
    await turn.event(turn.answer(introduction(turn.server)))
    await turn.finish()


async def handshake_with_rich_type(turn: Turn) -> None:
    """JSON, whatever the letters of its media type."""
    headers = {"Content-Type": "Application/JSON; Charset=UTF-8", **turn.server.new_session()}
    await turn.json(turn.answer(introduction(turn.server)), headers=headers)


async def handshake_with_bom(turn: Turn) -> None:
    """JSON with a byte order mark, as some frameworks write it."""
    body = b"\xef\xbb\xbf" + json.dumps(turn.answer(introduction(turn.server))).encode()
    await turn.reply(200, body, {"Content-Type": "application/json", **turn.server.new_session()})


@pytest.mark.parametrize(
    "script", [handshake_as_stream, handshake_with_rich_type, handshake_with_bom], ids=lambda s: s.__name__
)
async def test_a_handshake_may_come_in_many_forms(gateway: Gateways, script: Script) -> None:
    """Issue: odd ones."""
    async with Scripted(on={"initialize": script}) as server:
        served = await gateway(server.url)
        async with Wire(served.url) as wire:
            assert (await wire.tool("echo")).text == "done"


# --- statuses and ids -------------------------------------------------------------------------------


async def test_what_is_accepted_may_have_a_body_or_be_200(gateway: Gateways) -> None:
    """Issue: 202 with a body, 200 or 204 without one, for notifications and answers."""
    replies = iter([(202, "Accepted"), (200, ""), (200, "{}"), (204, "")] * 20)

    async def accepted(turn: Turn) -> None:
        status, body = next(replies)
        await turn.reply(status, body, {"Content-Type": "application/json"} if body else None)

    async def call(turn: Turn) -> None:
        await turn.stream()
        for name in ("one", "two", "three"):
            await turn.event(ask(name))
            if await turn.answered(name) is None:
                return
        await turn.event(turn.answer(text_result("thanks")))
        await turn.finish()

    on: dict[str, Script] = {"notifications/initialized": accepted, "answer": accepted, "tools/call": call}
    async with Scripted(on=on) as server:
        served = await gateway(server.url)
        async with Wire(served.url) as wire:
            answer = await wire.tool("echo")
            for _ in range(3):
                answer = await wire.retry(answer, {key: accept(name="Ann") for key in answer.asked})
    assert answer.text == "thanks"


async def test_a_session_id_on_later_responses_changes_nothing(gateway: Gateways) -> None:
    """LEGACY-WIRE: the id is given once, at `initialize`; what comes later is no new session."""

    async def call(turn: Turn) -> None:
        await turn.result(text_result("done"), {"Mcp-Session-Id": "another"})

    async with Scripted(on={"tools/call": call}) as server:
        served = await gateway(server.url, sessions={"mode": "pooled", "max": 1})
        async with Wire(served.url) as wire:
            for _ in range(3):
                assert (await wire.tool("echo")).text == "done"
        assert {turn.session for turn in server.seen("tools/call")} == {"session-1"}


@pytest.mark.parametrize("id_", [0, -1, 2**53 + 1, "", "0", "ü", "a" * 300])
async def test_questions_may_have_ids_of_any_legal_kind(gateway: Gateways, id_: int | str) -> None:
    """Design: ids of asks are echoed with their JSON type; never tested for truthiness."""

    async def call(turn: Turn) -> None:
        await turn.stream()
        await turn.event(ask(id_))
        if await turn.answered(id_) is not None:
            await turn.event(turn.answer(text_result("thanks")))
            await turn.finish()

    async with Scripted(on={"tools/call": call}) as server:
        served = await gateway(server.url)
        async with Wire(served.url) as wire:
            asked = await wire.tool("echo")
            done = await wire.retry(asked, {key: accept(name="Ann") for key in asked.asked})
    assert done.text == "thanks"


async def test_a_library_may_write_every_member_that_a_message_can_have(gateway: Gateways) -> None:
    """Ours: null where there is nothing, and integers as doubles. The Python SDK reads all of it."""
    nothing = {"id": None, "method": None, "params": None, "result": None, "error": None}

    async def call(turn: Turn) -> None:
        await turn.stream()
        progress = {"progressToken": turn.message["params"]["_meta"]["progressToken"], "progress": 1}
        await turn.event(
            {**nothing, "jsonrpc": "2.0", "method": "notifications/progress", "params": progress}
        )
        await turn.event({**nothing, "jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        await turn.event({**nothing, "jsonrpc": "2.0", "id": 7.0, "method": "roots/list"})
        if (told := await turn.answered(7)) is not None:
            result = text_result(told["result"]["roots"][0]["uri"])
            await turn.event({**nothing, "jsonrpc": "2.0", "id": turn.id, "result": result})
            await turn.finish()

    async with Scripted(on={"tools/call": call}) as server:
        served = await gateway(server.url)
        async with Wire(served.url) as wire:
            asked = await wire.tool("echo", token="t")
            done = await wire.retry(asked, {"roots-1": {"roots": [{"uri": "file:///a"}]}})
    assert [told["params"]["progress"] for told in asked.notifications] == [1]
    assert done.text == "file:///a"


# --- odd but legal requests ---------------------------------------------------------------------------


def request(id_: Any = 1, method: str = "tools/call", **more: Any) -> Json:
    params = {"name": "echo", "arguments": {}, "_meta": META} if method == "tools/call" else {"_meta": META}
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params, **more}


HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
    "Mcp-Name": "echo",
}
ODD_HEADERS: dict[str, dict[str, str]] = {
    "lower-case names": {name.lower(): value for name, value in HEADERS.items()},
    "upper-case names": {name.upper(): value for name, value in HEADERS.items()},
    "space around values": {**HEADERS, "Mcp-Name": "  echo\t", "Mcp-Method": " tools/call "},
    "a name in base64": {**HEADERS, "Mcp-Name": "=?base64?ZWNobw==?="},
    "accept in another order": {**HEADERS, "Accept": "text/event-stream;q=0.5 , application/json;q=0.9"},
    "accept anything": {**HEADERS, "Accept": "*/*"},
    "type with a charset": {**HEADERS, "Content-Type": "application/json; charset=utf-8"},
    "type in capitals": {**HEADERS, "Content-Type": "Application/JSON"},
    "a session id": {**HEADERS, "Mcp-Session-Id": "old", "Last-Event-ID": "7"},
    "an unknown parameter": {**HEADERS, "Mcp-Param-Unknown": "x"},
}
ODD_BODIES: dict[str, bytes] = {
    "spaces": b" \r\n\t" + json.dumps(request(), indent=3).encode() + b"\n\n",
    "escapes": json.dumps(request()).replace("echo", "\\u0065cho").encode(),
    "members in another order": json.dumps(dict(reversed(request().items()))).encode(),
    "unknown members": json.dumps(request(extra={"x": [1, {}]}, _meta={"y": 1})).encode(),
    "a null cursor of arguments": json.dumps(request())
    .replace('"arguments": {}', '"arguments": {"a": null}')
    .encode(),
}


async def posted(url: str, body: bytes, headers: dict[str, str]) -> tuple[int, Json]:
    async with aiohttp.ClientSession() as http, http.post(url, data=body, headers=headers) as response:
        return response.status, json.loads(await response.read())


@pytest.mark.requirement("R5")
@pytest.mark.requirement("R12")
@pytest.mark.requirement("R13")
@pytest.mark.parametrize("kind", ODD_HEADERS)
async def test_odd_but_legal_headers_are_understood(gateway: Gateways, kind: str) -> None:
    """Spec: names in any case, values without the space around them, sentinels decoded, the rest ignored."""
    async with Scripted() as server:
        served = await gateway(server.url)
        status, message = await posted(served.url, json.dumps(request()).encode(), ODD_HEADERS[kind])
    assert status == 200, message
    assert message["result"]["content"][0]["text"] == "done"


@pytest.mark.parametrize("kind", ODD_BODIES)
async def test_odd_but_legal_bodies_are_understood(gateway: Gateways, kind: str) -> None:
    """Spec: JSON is JSON, however it is written."""
    async with Scripted() as server:
        served = await gateway(server.url)
        status, message = await posted(served.url, ODD_BODIES[kind], HEADERS)
    assert status == 200, message
    assert message["result"]["content"][0]["text"] == "done"


@pytest.mark.requirement("R8")
@pytest.mark.parametrize("id_", [0, -7, 2**53, 10**30, "", "0", "null", "ü\u2028", "x" * 1000])
async def test_requests_may_have_ids_of_any_legal_kind(gateway: Gateways, id_: int | str) -> None:
    """Spec: a string or an integer; echoed with its JSON type and every digit."""
    async with Scripted() as server:
        served = await gateway(server.url)
        status, message = await posted(served.url, json.dumps(request(id_)).encode(), HEADERS)
    assert status == 200, message
    assert (message["id"], type(message["id"])) == (id_, type(id_))


@pytest.mark.requirement("R17")
async def test_nothing_is_remembered_of_a_connection(gateway: Gateways) -> None:
    """Spec: what the first request on a connection declared is not declared by the second."""

    def body(capabilities: Json | None) -> bytes:
        whole = request()
        name = "io.modelcontextprotocol/clientCapabilities"
        meta = {key: value for key, value in META.items() if key != name}
        whole["params"]["_meta"] = meta if capabilities is None else {**meta, name: capabilities}
        return json.dumps(whole).encode()

    answers: list[Json] = []
    opened: list[object] = []
    watch = aiohttp.TraceConfig()

    async def note(*_: object) -> None:
        opened.append(_)

    watch.on_connection_create_end.append(note)
    declared: tuple[Json | None, ...] = ({"elicitation": {}}, {}, None, {"elicitation": {}})
    async with Scripted(on={"tools/call": asking}) as server:
        served = await gateway(server.url)
        async with aiohttp.ClientSession(trace_configs=[watch]) as http:
            for capabilities in declared:
                async with http.post(served.url, data=body(capabilities), headers=HEADERS) as response:
                    answers.append(json.loads(await response.read()))

    asked, unasked, invalid, asked_again = answers
    assert len(opened) == 1, "all of it on one connection"
    assert asked["result"]["resultType"] == asked_again["result"]["resultType"] == "input_required"
    assert unasked["result"]["content"][0]["text"] == "Hello nobody"
    assert invalid["error"]["code"] == -32602
