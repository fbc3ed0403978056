"""The channel over Streamable HTTP, against a server that breaks off, refuses, forgets or sends elsewhere."""

import json
from typing import Any

import pytest

from gateway.errors import (
    UpstreamLost,
    UpstreamRefused,
    UpstreamSpokeNonsense,
    UpstreamUnauthorized,
    UpstreamUnreachable,
)
from gateway.upstreams import http_refusals
from gateway.upstreams.streamable_http import StreamableHttp
from gateway.upstreams.transport import SessionGone
from tests.support.calling import call, words
from tests.support.scripted import Scripted, Turn, notice, text_result

Json = dict[str, Any]

# --- broken connections ------------------------------------------------------------------------


async def test_a_refused_connection_proves_that_nothing_was_sent(
    server: Scripted, channel: StreamableHttp
) -> None:
    await server.stop()
    with pytest.raises(UpstreamUnreachable):
        await call(channel)
    with pytest.raises(UpstreamUnreachable):
        await channel.send(b"{}")


@pytest.mark.parametrize("how", ["reset", "hang_up"])
@pytest.mark.parametrize("where", ["before", "in headers", "in stream", "in json"])
async def test_any_other_break_may_have_run_the_call(
    server: Scripted, channel: StreamableHttp, how: str, where: str
) -> None:
    """ECOSYSTEM 3: only a failed connect proves that nothing was sent."""

    async def script(turn: Turn) -> None:
        match where:
            case "in headers":
                await turn.write(b"HTTP/1.1 200 OK\r\nContent-Ty")
            case "in stream":
                await turn.stream()
                await turn.event(notice("notifications/message", data=1))
            case "in json":
                await turn.write(
                    b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"js'
                )
        getattr(turn, how)()

    server.on["tools/call"] = script
    with pytest.raises(UpstreamLost) as lost:
        await call(channel)
    assert not isinstance(lost.value, SessionGone)
    assert len(server.seen("tools/call")) == 1, "sent again"


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
@pytest.mark.parametrize(
    ("coding", "is_read"), [("gzip", False), ("br", False), ("identity", True), ("", True)]
)
async def test_a_body_that_was_compressed_unasked_is_called_that(
    server: Scripted, channel: StreamableHttp, kind: str, coding: str, *, is_read: bool
) -> None:
    """Ours: "invalid start byte" would have operators look for a broken character."""

    async def script(turn: Turn) -> None:
        body = json.dumps(turn.answer(text_result("done")))
        framed = f"data: {body}\n\n" if kind == "text/event-stream" else body
        await turn.reply(200, framed, {"Content-Type": kind, "Content-Encoding": coding})

    server.on["tools/call"] = script
    if is_read:
        assert await call(channel)
    else:
        with pytest.raises(UpstreamSpokeNonsense, match=f"{kind} compressed by '{coding}'"):
            await call(channel)


async def test_what_is_no_http_is_called_that(server: Scripted, channel: StreamableHttp) -> None:
    """Ours: for the log; the kind of exception that a library has for it tells nobody anything."""

    async def script(turn: Turn) -> None:
        await turn.write(b"SSH-2.0-OpenSSH_9.6\r\n")
        turn.hang_up()

    server.on["tools/call"] = script
    with pytest.raises(UpstreamLost, match="no HTTP"):
        await call(channel)


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 404, 405, 406, 413, 421, 429, 500, 502, 503])
@pytest.mark.parametrize("body", ["", "Bad", "<html>Oops</html>", '{"error": "x"}', '{"jsonrpc":"2.0"}'])
async def test_a_refusal_of_the_request_keeps_its_status(
    server: Scripted, channel: StreamableHttp, status: int, body: str
) -> None:
    async def script(turn: Turn) -> None:
        await turn.reply(status, body)

    server.on["tools/call"] = script
    with pytest.raises(UpstreamRefused) as refused:
        await call(channel)
    assert refused.value.status == status
    server.on["answer"] = script
    with pytest.raises(UpstreamRefused):
        await channel.send(b'{"jsonrpc":"2.0","id":7,"result":{}}')


async def test_a_json_rpc_error_for_this_request_is_an_answer_whatever_the_status(
    server: Scripted, channel: StreamableHttp
) -> None:
    async def script(turn: Turn) -> None:
        error = {"code": -32602, "message": "Unknown tool"}
        body = json.dumps({"jsonrpc": "2.0", "id": turn.id, "error": error}).encode()
        await turn.stream({"Content-Type": "application/json"}, status=400)
        await turn.chunk(body[:20])  # in pieces: what came first is not all there is
        await turn.chunk(body[20:])
        await turn.finish()

    server.on["tools/call"] = script
    assert words(await call(channel)) == ["Unknown tool"]


@pytest.mark.parametrize("id_", ["server-error", None, "absent", "other"])
async def test_an_error_body_that_names_another_request_is_a_refusal(
    server: Scripted, channel: StreamableHttp, id_: Any
) -> None:
    """LEGACY-WIRE 5: never correlate them by id."""

    async def script(turn: Turn) -> None:
        body = {"jsonrpc": "2.0", "id": id_, "error": {"code": -32600, "message": "No"}}
        if id_ == "absent":
            del body["id"]
        await turn.json(body, 400)

    server.on["tools/call"] = script
    with pytest.raises(UpstreamRefused):
        await call(channel)


async def test_an_error_body_that_never_ends_does_not_hold_up_the_refusal(
    server: Scripted, channel: StreamableHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_refusals, "_BODY_SECONDS", 0.02)

    async def script(turn: Turn) -> None:
        await turn.stream(status=500)
        await turn.until_left()

    server.on["tools/call"] = script
    with pytest.raises(UpstreamRefused):
        await call(channel)


@pytest.mark.parametrize("status", [401, 403])
async def test_missing_credentials_come_with_their_challenge(
    server: Scripted, channel: StreamableHttp, status: int
) -> None:
    async def script(turn: Turn) -> None:
        await turn.reply(status, "no", {"WWW-Authenticate": 'Bearer realm="x"'})

    server.on["tools/call"] = server.on["answer"] = script
    for sending in (call(channel), channel.send(b'{"jsonrpc":"2.0","id":7,"result":{}}')):
        with pytest.raises(UpstreamUnauthorized) as refused:
            await sending
        assert refused.value.http_status == status
        assert refused.value.headers == {"WWW-Authenticate": 'Bearer realm="x"'}


# --- lost sessions -----------------------------------------------------------------------------

_SAYS_SO = [
    (404, "", None),
    (
        404,
        '{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}',
        None,
    ),
    (400, "Bad Request: No valid session ID provided", None),
    (
        400,
        '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No valid session ID provided"}}',
        None,
    ),
    (400, '{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Session expired"}}', None),
    (400, "<html>Unknown SESSION</html>", None),
    (400, "own", {"code": -32000, "message": "Bad Request: No valid session ID provided"}),
    (404, "own", {"code": -32001, "message": "Session not found"}),
]


@pytest.mark.parametrize(("status", "body", "error"), _SAYS_SO)
async def test_a_lost_session_is_known_by_what_servers_really_say(
    server: Scripted, channel: StreamableHttp, status: int, body: str, error: Json | None
) -> None:
    """LEGACY-WIRE 5: 404 by the specification, 400 in practice; the body is JSON, text or HTML."""

    async def script(turn: Turn) -> None:
        if error is None:
            await turn.reply(status, body)
        else:
            await turn.json({"jsonrpc": "2.0", "id": turn.id, "error": error}, status)

    server.on["tools/call"] = script
    channel.session_id = "s"
    with pytest.raises(SessionGone):
        await call(channel)


async def test_a_tools_own_error_about_some_session_is_no_lost_session(
    server: Scripted, channel: StreamableHttp
) -> None:
    """It ran: to send it again on a new session would run it twice."""

    async def script(turn: Turn) -> None:
        error = {"code": -32050, "message": "Your shop session has expired", "data": {"session": 1}}
        await turn.json({"jsonrpc": "2.0", "id": turn.id, "error": error}, 400)

    server.on["tools/call"] = script
    channel.session_id = "s"
    assert words(await call(channel)) == ["Your shop session has expired"]


@pytest.mark.parametrize(("status", "body"), [(404, "Not found"), (400, "Missing session ID")])
async def test_without_a_session_none_can_be_lost(
    server: Scripted, channel: StreamableHttp, status: int, body: str
) -> None:
    async def script(turn: Turn) -> None:
        await turn.reply(status, body)

    server.on["tools/call"] = script
    with pytest.raises(UpstreamRefused):
        await call(channel)


# --- redirects ---------------------------------------------------------------------------------


@pytest.mark.parametrize("location", ["/mcp/", "{origin}/mcp/", "mcp/"])
async def test_a_redirect_to_the_same_origin_is_followed(
    server: Scripted, channel: StreamableHttp, location: str
) -> None:
    """LEGACY-WIRE 5: trailing slash, 307."""

    async def script(turn: Turn) -> None:
        if turn.path == "/mcp":
            origin = server.url.removesuffix("/mcp")
            await turn.reply(307, headers={"Location": location.format(origin=origin)})
        else:
            await turn.result(text_result(turn.path))

    server.on["tools/call"] = script
    assert words(await call(channel)) == ["/mcp/"]
    assert [turn.headers["authorization"] for turn in server.turns] == ["Bearer t"] * 2
    assert server.turns[0].body == server.turns[1].body


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_call_is_never_carried_to_another_origin(
    server: Scripted, channel: StreamableHttp, status: int
) -> None:
    async with Scripted(sessions=False) as other:

        async def script(turn: Turn) -> None:
            await turn.reply(status, headers={"Location": other.url})

        server.on["tools/call"] = script
        with pytest.raises((UpstreamRefused, UpstreamSpokeNonsense)):
            await call(channel)
        assert other.turns == []


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_redirect_that_would_turn_the_call_into_a_get_is_a_refusal(
    server: Scripted, channel: StreamableHttp, status: int
) -> None:
    async def script(turn: Turn) -> None:
        await turn.reply(status, headers={"Location": "/elsewhere"})

    server.on["tools/call"] = script
    with pytest.raises(UpstreamRefused) as refused:
        await call(channel)
    assert refused.value.status == status
    assert len(server.turns) == 1


@pytest.mark.parametrize("location", ["/mcp?again", "http://[", None])
async def test_a_redirect_that_leads_nowhere_is_a_fault_of_the_server(
    server: Scripted, channel: StreamableHttp, location: str | None
) -> None:
    async def script(turn: Turn) -> None:
        await turn.reply(307, headers={} if location is None else {"Location": location})

    server.on["tools/call"] = script
    with pytest.raises((UpstreamRefused, UpstreamSpokeNonsense)):
        await call(channel)


async def test_a_goodbye_that_may_not_have_been_heard_is_said_again(
    server: Scripted, channel: StreamableHttp
) -> None:
    """Ours: nobody else knows the session, so it would stay at the server for as long as that likes."""

    async def reset_once(turn: Turn) -> None:
        if len(server.turns) == 1:
            turn.reset()
        else:
            await turn.reply(200)

    server.on["DELETE"] = reset_once
    channel.adopt("s1", "2025-06-18")
    await channel.close()
    assert [(turn.verb, turn.session) for turn in server.turns] == [("DELETE", "s1")] * 2
