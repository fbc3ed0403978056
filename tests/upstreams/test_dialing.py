"""Which transport a server speaks is found out by itself, remembered, and found out again when it changes."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from gateway.errors import UpstreamRefused, UpstreamUnauthorized, UpstreamUnreachable
from gateway.settings.upstream import Upstream
from gateway.upstreams.dialing import Dialer
from gateway.upstreams.pool import Caller
from gateway.upstreams.session import Session, open_session
from gateway.upstreams.transport import Channel
from tests.support.calling import LIMIT
from tests.support.scripted import Scripted, Turn
from tests.support.scripted_sse import ScriptedSse, open_stream
from tests.support.waiting import until

ODDITY = Path(__file__).parents[1] / "servers" / "stdio_oddity.py"
CALLER = Caller(
    principal="p", is_authenticated=False, capabilities="{}", client_info="{}", authorization="Bearer t"
)
Dial = Callable[[Dialer], Awaitable[Session]]


@pytest.fixture
async def dialer() -> AsyncIterator[Callable[..., Awaitable[Dialer]]]:
    dialers: list[Dialer] = []

    async def start(**upstream: Any) -> Dialer:
        made = Dialer("x", Upstream.model_validate(upstream), version="1", max_event_bytes=LIMIT)
        dialers.append(made)
        await made.start()
        return made

    yield start
    for each in dialers:
        await each.close()


@pytest.fixture
async def dial() -> AsyncIterator[Dial]:
    sessions: list[Session] = []

    async def greet(channel: Channel) -> Session:
        return await open_session(
            channel,
            request_id="init",
            client_info=None,
            capabilities={},
            on_early_ask=lambda *_: None,
            on_end=lambda _: None,
        )

    async def one(dialer: Dialer) -> Session:
        session = await dialer.dial(CALLER, greet)
        sessions.append(session)
        return session

    yield one
    for session in sessions:
        await session.close()


def known(way: Dialer) -> str | None:
    return way.transport


def shape(server: Scripted) -> list[str]:
    return [turn.method if turn.path != "/sse" else f"{turn.verb} /sse" for turn in server.turns]


@pytest.fixture
async def sse() -> AsyncIterator[ScriptedSse]:
    async with ScriptedSse() as scripted:
        yield scripted


async def refuse(turn: Turn) -> None:
    await turn.reply(404, "<html>Cannot POST</html>")


# --- finding out -------------------------------------------------------------------------------


async def test_streamable_http_is_found_and_nothing_else_tried(
    server: Scripted, dialer: Callable[..., Awaitable[Dialer]], dial: Dial
) -> None:
    way = await dialer(url=server.url)
    assert known(way) is None
    with capture_logs() as logged:
        await dial(way)
        await dial(way)
    assert known(way) == "streamable-http"
    assert [line["event"] for line in logged] == ["transport_found"], "once"
    assert shape(server).count("initialize") == 2


@pytest.mark.parametrize("status", [400, 404, 405])
async def test_http_sse_is_found_by_its_endpoint(
    sse: ScriptedSse, dialer: Callable[..., Awaitable[Dialer]], dial: Dial, status: int
) -> None:
    """2025-11-25, basic/transports, "Backwards Compatibility": 400, 404 or 405: GET, and expect `event: endpoint`."""

    async def not_here(turn: Turn) -> None:
        await turn.reply(status, "no")

    chosen = sse._script_for
    sse._script_for = (  # type: ignore[method-assign]
        lambda turn: not_here if (turn.verb, turn.path) == ("POST", "/sse") else chosen(turn)
    )
    way = await dialer(url=sse.url)
    session = await dial(way)
    assert known(way) == "sse"
    assert session.id == "s-1"
    said = [said for said, _ in groupby(shape(sse))]  # a handshake that is refused with 400 is made once more
    assert said[:3] == ["POST /sse", "GET /sse", "initialize"]


async def test_a_server_that_takes_its_messages_at_the_address_of_its_stream_is_found(
    sse: ScriptedSse, dialer: Callable[..., Awaitable[Dialer]], dial: Dial
) -> None:
    """Kotlin's SDK mounts both at one path, tells the query only, and misses the session in our handshake: 400."""
    sse.endpoint = "?sessionId={session}"

    async def wants_session(turn: Turn) -> None:
        await turn.reply(400, "sessionId query parameter is not provided")

    chosen = sse._script_for
    sse._script_for = (  # type: ignore[method-assign]
        lambda turn: wants_session if (turn.verb, turn.path) == ("POST", "/sse") else chosen(turn)
    )
    way = await dialer(url=sse.url)
    session = await dial(way)
    assert (known(way), session.id) == ("sse", "s-1")
    assert {turn.path for turn in sse.turns} == {"/sse", "/sse?sessionId=s-1"}


async def test_what_was_found_is_tried_first_from_then_on(
    sse: ScriptedSse, dialer: Callable[..., Awaitable[Dialer]], dial: Dial
) -> None:
    """Issue: the verdict is cached per upstream; never probed per request."""
    way = await dialer(url=sse.url)
    for _ in range(3):
        await dial(way)
    assert shape(sse).count("POST /sse") == 1
    assert shape(sse).count("GET /sse") == 3


async def test_credentials_go_with_either(
    sse: ScriptedSse, dialer: Callable[..., Awaitable[Dialer]], dial: Dial
) -> None:
    await dial(await dialer(url=sse.url))
    assert {turn.headers.get("authorization") for turn in sse.turns} == {"Bearer t"}


# --- when it changes ---------------------------------------------------------------------------


async def test_a_server_that_is_upgraded_is_found_again(
    sse: ScriptedSse, dialer: Callable[..., Awaitable[Dialer]], dial: Dial
) -> None:
    """Issue: re-checked when it stops holding."""
    way = await dialer(url=sse.url)
    await dial(way)
    port = sse.port
    await sse.stop()
    async with Scripted(sessions=False, port=port) as upgraded:

        async def no_stream(turn: Turn) -> None:
            await turn.reply(405)

        upgraded.on["GET"] = no_stream
        await dial(way)
        assert known(way) == "streamable-http"
        await upgraded.stop()


async def test_a_server_that_is_downgraded_is_found_again(
    server: Scripted, dialer: Callable[..., Awaitable[Dialer]], dial: Dial
) -> None:
    way = await dialer(url=f"http://127.0.0.1:{server.port}/sse")
    await dial(way)
    assert known(way) == "streamable-http"
    port = server.port
    await server.stop()
    async with ScriptedSse(port=port):
        await dial(way)
        assert known(way) == "sse"


async def test_if_neither_works_the_first_refusal_is_told_and_nothing_is_remembered(
    server: Scripted, dialer: Callable[..., Awaitable[Dialer]], dial: Dial
) -> None:
    server.on |= {"initialize": refuse, "GET": refuse}
    way = await dialer(url=server.url)
    with pytest.raises(UpstreamRefused) as refused:
        await dial(way)
    assert refused.value.status == 404
    assert "is the path of the url right?" in str(refused.value), "as it usually is not"
    assert known(way) is None
    assert shape(server) == ["initialize", "GET"]


async def test_a_server_that_is_down_is_not_taken_for_another_kind(
    sse: ScriptedSse, dialer: Callable[..., Awaitable[Dialer]], dial: Dial
) -> None:
    way = await dialer(url=sse.url)
    await dial(way)
    await sse.stop()
    with pytest.raises(UpstreamUnreachable):
        await dial(way)
    assert known(way) == "sse"


@pytest.mark.parametrize("status", [406, 429, 500, 503])
async def test_other_refusals_say_nothing_about_the_transport(
    server: Scripted, dialer: Callable[..., Awaitable[Dialer]], dial: Dial, status: int
) -> None:
    async def failing(turn: Turn) -> None:
        await turn.reply(status)

    server.on["initialize"] = failing
    with pytest.raises(UpstreamRefused):
        await dial(await dialer(url=server.url))
    assert shape(server) == ["initialize"]


async def test_a_login_is_asked_for_by_whichever_answers(
    sse: ScriptedSse, dialer: Callable[..., Awaitable[Dialer]], dial: Dial
) -> None:
    async def challenge(turn: Turn) -> None:
        await turn.reply(401, "", {"WWW-Authenticate": "Bearer"})

    sse.on["GET"] = challenge
    way = await dialer(url=sse.url)
    with pytest.raises(UpstreamUnauthorized):
        await dial(way)
    sse.on["GET"] = open_stream
    await dial(way)
    assert known(way) == "sse"


# --- what is configured ------------------------------------------------------------------------


async def test_a_configured_transport_is_the_only_one_tried(
    server: Scripted, sse: ScriptedSse, dialer: Callable[..., Awaitable[Dialer]], dial: Dial
) -> None:
    with pytest.raises(UpstreamRefused):
        await dial(await dialer(url=sse.url, transport="streamable-http"))
    assert shape(sse) == ["POST /sse"]
    await dial(await dialer(url=sse.url, transport="sse"))
    assert shape(sse).count("POST /sse") == 1
    server.on["GET"] = refuse
    with pytest.raises(UpstreamRefused):
        await dial(await dialer(url=server.url, transport="sse"))
    assert shape(server) == ["GET"]


@pytest.mark.parametrize("transport", ["auto", "stdio"])
async def test_a_command_is_started(
    dialer: Callable[..., Awaitable[Dialer]], dial: Dial, transport: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-I", "-S", str(ODDITY)]
    way = await dialer(command=command, transport=transport, cwd=tmp_path, env={"A": "b"})
    session = await dial(way)
    assert known(way) == "stdio"
    assert session.id is not None
    assert session.id.startswith("pid-")
    assert session.server.server_info == {"name": "oddity", "version": "1"}


async def test_a_session_is_left_where_the_settings_say_so(
    server: Scripted, dialer: Callable[..., Awaitable[Dialer]], dial: Dial
) -> None:
    """Ours: `sessions.end`, for sessions that are opened here and for those that another replica opened."""
    server.sessions = True
    way = await dialer(url=server.url, sessions={"end": "leave"})
    session = await dial(way)
    assert session.id is not None
    await session.close()
    await (await way.redial(CALLER, session.id, "2025-11-25")).close()
    assert "DELETE" not in shape(server)


async def test_what_a_command_was_given_under_env_does_not_come_back_in_the_log(
    dialer: Callable[..., Awaitable[Dialer]], dial: Dial
) -> None:
    """Ours: `env` is where such servers get their keys, and a bare key on standard error looks like nothing."""
    complains = (
        "import os, sys; print(os.environ['KEY'], flush=True); sys.exit('bad key ' + os.environ['KEY'])"
    )
    way = await dialer(
        command=[sys.executable, "-I", "-S", "-c", complains], era="legacy", env={"KEY": "correct horse"}
    )

    with capture_logs() as logged:
        with pytest.raises(UpstreamUnreachable):
            await dial(way)
        ended, *_ = await until(lambda: told(logged))  # a spare process may have ended as well

    assert ended["stderr"] == ["bad key [redacted]"]
    assert "correct horse" not in str(logged)


async def told(logged: list[EventDict]) -> list[EventDict]:
    return [line for line in logged if line["event"] == "upstream_exited"]
