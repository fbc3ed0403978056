"""What a probe finds out of servers that are odd in one way each."""

import pytest

from gateway.errors import UpstreamFault, UpstreamUnauthorized
from gateway.relay.probe import probe
from gateway.settings.upstream import Upstream
from tests.support.scripted import Json, Scripted, Turn, introduction
from tests.support.scripted_sse import ScriptedSse, accept


def at(server: Scripted) -> Upstream:
    return Upstream.model_validate({"url": server.url})


async def test_a_list_is_read_to_its_last_page_and_a_session_is_left_closed() -> None:
    async def pages(turn: Turn) -> None:
        last = turn.message["params"].get("cursor") == "two"
        more = {} if last else {"nextCursor": "two"}
        await turn.result({"tools": [{"name": "b" if last else "a"}, "no tool"], **more})

    async with Scripted() as server:
        server.on["tools/list"] = pages
        findings = await probe(at(server))
        await server.wait("DELETE")

    assert [tool["name"] for tool in findings.tools] == ["a", "b"]
    assert (findings.has_session_id, findings.has_standing_stream) == (True, True)
    assert server.known == set()


async def test_a_server_with_one_session_for_all_is_seen_to() -> None:
    """As one transport of the TypeScript SDK for a whole process: the second `initialize` is refused."""

    async def once(turn: Turn) -> None:
        if [each.method for each in server.turns].count("initialize") == 1:
            await turn.result(introduction(server), {"Mcp-Session-Id": "only"})
        else:
            refusal = {"code": -32600, "message": "Invalid Request: Server already initialized"}
            await turn.json({"jsonrpc": "2.0", "error": refusal, "id": None}, status=400)

    async with Scripted(known={"only"}) as server:
        server.on["initialize"] = once
        findings = await probe(at(server))

    assert findings.serves_many is False


async def test_a_server_with_sessions_for_many_is_seen_to() -> None:
    async with Scripted() as server:
        assert (await probe(at(server))).serves_many is True
        await server.wait("DELETE", 2)
    assert server.known == set()


async def test_a_server_without_streams_is_seen_to_have_none() -> None:
    async def none(turn: Turn) -> None:
        await turn.reply(405)

    async def pong(turn: Turn) -> None:
        await turn.result({})

    async with Scripted(sessions=False) as server:
        server.on |= {"GET": none, "ping": pong, "server/discover": none}
        findings = await probe(at(server))

    assert (findings.has_session_id, findings.has_standing_stream, findings.answers_json) == (
        False,
        False,
        True,
    )
    assert findings.is_resumable is None, "a JSON answer shows nothing of streams that others may have"


async def test_events_with_ids_can_be_resumed() -> None:
    async def pong(turn: Turn) -> None:
        await turn.stream()
        await turn.chunk(b"id: 1\ndata: \n\n")
        await turn.event(turn.answer({"ok": True}))
        await turn.finish()

    async with Scripted() as server:
        server.on["ping"] = pong
        findings = await probe(at(server))

    assert (findings.answers_json, findings.is_resumable) == (False, True)


async def test_a_server_that_wants_credentials_says_so() -> None:
    async def refuse(turn: Turn) -> None:
        await turn.reply(401, "", {"WWW-Authenticate": "Bearer"})

    async with Scripted(sessions=False) as server:
        server.on |= {"initialize": refuse, "server/discover": refuse}
        with pytest.raises(UpstreamUnauthorized):
            await probe(at(server))


async def test_a_web_page_is_no_server() -> None:
    async def page(turn: Turn) -> None:
        await turn.reply(200, "<html>", {"Content-Type": "text/html"})

    async with Scripted(sessions=False) as server:
        server.on |= {"initialize": page, "server/discover": page, "GET": page}
        with pytest.raises(UpstreamFault):
            await probe(at(server))


@pytest.mark.parametrize("tells_all", [False, True])
async def test_a_server_that_tells_every_client_everything_is_seen_to(tells_all: bool) -> None:  # noqa: FBT001
    """As supergateway does over HTTP+SSE: one process, whose every word goes to all streams."""

    async def pong(turn: Turn) -> None:
        await accept(turn)
        assert isinstance(turn.server, ScriptedSse)
        own = turn.server.stream_of(turn)
        assert own is not None
        answer: Json = turn.answer({})
        for stream in list(turn.server.standing.values()) if tells_all else [own]:
            await stream.event(answer)

    async with ScriptedSse() as server:
        server.on["ping"] = pong
        findings = await probe(at(server))

    assert (findings.transport, findings.serves_many, findings.tells_all) == ("sse", True, tells_all)
