"""Sessions as the legacy server sees them: how many, for whom, for how long, and what a lost one costs."""

import asyncio

import pytest

from gateway.telemetry.names import SessionState
from tests.support.gateways import UPSTREAM, Gateways
from tests.support.peers import FIXTURE_KINDS, LegacyServers, Running, start_legacy
from tests.support.scripted import Scripted, asking
from tests.support.seen import Seen, seen_by, sent_on, session_of, unique
from tests.support.waiting import until
from tests.support.wire import Wire, accept

BEARER = "Bearer sessions"


async def echoed(wire: Wire, server: Running, number: int) -> list[str]:
    """The sessions on which so many calls, one after the other, came."""
    words = [unique("echo") for _ in range(number)]
    for word in words:
        assert (await wire.tool("echo", {"text": word})).text == word
    return [await session_of(server, text=word) for word in words]


@pytest.mark.parametrize(
    ("mode", "authorization", "distinct"),
    [
        ("pooled", None, 1),
        ("pooled", BEARER, 1),
        ("fresh", None, 4),
        ("fresh", BEARER, 4),
        ("affinity", None, 1),
        ("affinity", BEARER, 1),
        ("auto", None, 4),
        ("auto", BEARER, 1),
    ],
)
async def test_the_mode_decides_how_many_sessions_calls_use(
    newest: Running, gateway: Gateways, mode: str, authorization: str | None, distinct: int
) -> None:
    """Design: `auto` is pooled for an authenticated principal, fresh for anybody else."""
    served = await gateway(newest.url, sessions={"mode": mode}, auth={"mode": "passthrough"})

    async with Wire(served.url, authorization=authorization) as wire:
        sessions = await echoed(wire, newest, 4)

    assert len(set(sessions)) == distinct


async def test_a_session_goes_the_whole_way_of_the_protocol(newest: Running, gateway: Gateways) -> None:
    """Issue: initialize, standing stream and `initialized` before the call, DELETE after it, one version."""
    served = await gateway(newest.url, sessions={"mode": "fresh", "warm": 0})
    word = unique("way")

    async with Wire(served.url) as wire:
        await wire.tool("echo", {"text": word})
    session = await session_of(newest, text=word)

    async def ended() -> bool:
        return "DELETE" in (await seen_by(newest)).methods(session)

    await until(ended)
    seen = await seen_by(newest)
    # The gateway may take a look at the tools first.
    way = [method for method in seen.methods(session) if method != "tools/list"]
    assert way == ["GET", "notifications/initialized", "tools/call", "DELETE"]
    assert {entry["version"] for entry in seen.session(session)} == {"2025-11-25"}


async def test_a_server_without_sessions_is_served_without(
    legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """Design: `auto` pools where no session id is issued; there is nothing of a caller's to keep apart."""
    server = legacy_servers.get("ts-1.32", stateless=True)
    served = await gateway(server.url)

    async with Wire(served.url) as wire:
        answers = await asyncio.gather(*(wire.tool("add", {"a": n, "b": 1}) for n in range(10)))

    assert [answer.text for answer in answers] == [str(n + 1) for n in range(10)]


@pytest.mark.parametrize("kind", ["py-1.30", "ts-1.32"])
async def test_a_server_that_answers_in_json_only_can_still_ask_on_its_standing_stream(
    legacy_servers: LegacyServers, gateway: Gateways, kind: str
) -> None:
    """LEGACY-WIRE 1: in JSON mode asks of the POST are swallowed, those of the GET stream work."""
    server = legacy_servers.get(kind, json_response=True)
    served = await gateway(server.url)

    async with Wire(served.url) as wire:
        asked = await wire.tool("ask_name_get")
        done = await wire.retry(asked, {"name": accept(name="Ann")})

    assert done.text == "Hello Ann"


@pytest.mark.parametrize("kind", ["py-1.30", "ts-1.32"])
async def test_a_server_with_an_event_store_is_served_like_any_other(
    legacy_servers: LegacyServers, gateway: Gateways, kind: str
) -> None:
    """LEGACY-WIRE 4: priming events, event ids, streams that stay open after the result."""
    server = legacy_servers.get(kind, event_store=True)
    served = await gateway(server.url, sessions={"mode": "pooled"})

    async with Wire(served.url) as wire:
        for _ in range(2):
            asked = await wire.tool("ask_two_serial")
            asked = await wire.retry(asked, {"first": accept(first="Ada")})
            done = await wire.retry(asked, {"last": accept(last="Lovelace")})
            assert done.text == "Ada Lovelace"


async def test_a_held_session_serves_nobody_else(newest: Running, gateway: Gateways) -> None:
    """Design: a question names no call, so a session is leased to one exchange at a time."""
    served = await gateway(newest.url, sessions={"mode": "pooled"})
    tags = [unique("held") for _ in range(3)]

    async with Wire(served.url) as wire:
        asked = [await wire.tool("ask_name_get", {"tag": tag}) for tag in tags]
        others = await echoed(wire, newest, 2)
        held = [await session_of(newest, tag=tag) for tag in tags]
        done = [
            await wire.retry(question, {"name": accept(name=tag)})
            for question, tag in zip(asked, tags, strict=True)
        ]
        after = await echoed(wire, newest, 1)

    assert len(set(held)) == 3
    assert set(held).isdisjoint(others)
    assert [answer.text for answer in done] == [f"Hello {tag} from {tag}" for tag in tags]
    assert set(after) <= set(held) | set(others)  # answered calls give their session back


async def test_calls_of_one_principal_take_turns_under_affinity(newest: Running, gateway: Gateways) -> None:
    """Design: calls serialized; who waits too long is told so, and nothing was sent for it."""
    served = await gateway(newest.url, sessions={"mode": "affinity", "wait": "500ms"})
    word = unique("turn")

    async with Wire(served.url) as wire:
        asked = await wire.tool("ask_name")
        busy = await wire.tool("echo", {"text": word})
        await wire.retry(asked, {"name": accept(name="Ann")})
        free = await wire.tool("echo", {"text": word})

    assert busy.status == 503
    assert busy.headers["Retry-After"] == "1"
    assert free.text == word
    assert len((await seen_by(newest)).calls(text=word)) == 1


async def test_holds_do_not_use_up_the_sessions_of_others(newest: Running, gateway: Gateways) -> None:
    """Design: a held session counts against `holds.max`, not against `sessions.max`."""
    served = await gateway(
        newest.url,
        sessions={"mode": "pooled", "max": 1, "wait": "2s", "warm": 0},
        holds={"max": 3},
    )

    async with Wire(served.url) as wire:
        asked = [await wire.tool("ask_name") for _ in range(3)]
        plain = await wire.tool("echo", {"text": "room for one more"})
        too_many = await wire.tool("ask_name")
        done = [await wire.retry(question, {"name": accept(name="Ann")}) for question in asked]

    assert plain.text == "room for one more"
    assert too_many.status == 503
    assert {answer.text for answer in done} == {"Hello Ann"}


# --- a server that forgets -----------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["pooled", "fresh"])
@pytest.mark.parametrize("kind", FIXTURE_KINDS)
async def test_a_restarted_server_costs_the_client_nothing(gateway: Gateways, kind: str, mode: str) -> None:
    """Issue: 404, and 400 where it means the same, -> initialize again and retry once: it cannot have run."""
    async with start_legacy(kind) as server:
        served = await gateway(server.url, sessions={"mode": mode})
        word = unique("lost")
        async with Wire(served.url) as wire:
            await echoed(wire, server, 2)
            await _spares(server)
            await server.forget_sessions()
            listed = await wire.request("tools/list")
            await server.forget_sessions()
            called = await wire.tool("echo", {"text": word})
            await server.forget_sessions()
            asked = await wire.tool("side_effect_then_ask", {"id": word})
            done = await wire.retry(asked, {"name": accept(name="Ann")})
            completed = await _after_loss(server, wire)

        assert listed.result["tools"]
        assert called.text == word
        assert done.text == "Hello Ann, effect 1"
        assert completed == ["rain"]
        seen = await seen_by(server)
        assert seen.counters[f"effect:{word}"] == 1
        assert len({call["session"] for call in seen.calls(text=word)}) == len(seen.calls(text=word))
        await served.gateway.stop()


async def _spares(server: Running) -> Seen:
    """Wait until there are idle sessions: those that a restart makes stale."""

    async def look() -> Seen | None:
        seen = await seen_by(server)
        return seen if seen.sessions else None

    found = await until(look)
    assert found is not None
    return found


async def _after_loss(server: Running, wire: Wire) -> list[str]:
    await server.forget_sessions()
    reference = {
        "ref": {"type": "ref/prompt", "name": "simple"},
        "argument": {"name": "topic", "value": "ra"},
    }
    completed = await wire.request("completion/complete", reference)
    values: list[str] = completed.result["completion"]["values"]
    return values


@pytest.mark.parametrize("kind", ["py-1.30", "ts-1.32"])
async def test_a_session_lost_while_held_is_a_lost_call_and_not_a_second_one(
    gateway: Gateways, kind: str
) -> None:
    """Issue: what may have run is not sent again; the client is told that it is gone."""
    async with start_legacy(kind) as server:
        served = await gateway(server.url)
        word = unique("gone")
        async with Wire(served.url) as wire:
            asked = await wire.tool("side_effect_then_ask", {"id": word})
            await server.forget_sessions()
            lost = await wire.retry(asked, {"name": accept(name="Ann")})
        assert "error" in lost.message
        assert (await seen_by(server)).counters[f"effect:{word}"] == 1
        await served.gateway.stop()


async def test_ids_of_requests_are_never_used_twice(newest: Running, gateway: Gateways) -> None:
    """LEGACY-WIRE 2: event stores of real servers leak between sessions that use the same ids."""
    served = await gateway(newest.url)
    other = await gateway(newest.url)
    words = [unique("id") for _ in range(6)]

    async with Wire(served.url) as wire, Wire(other.url) as elsewhere:
        for word in words:
            await asyncio.gather(wire.tool("echo", {"text": word}), elsewhere.tool("echo", {"text": word}))

    seen = await seen_by(newest)
    ids = [call["body"]["id"] for word in words for call in seen.calls(text=word)]
    assert len(ids) == len(set(ids)) == 12


async def test_a_cancelled_call_ends_its_session_and_not_the_next_one(
    newest: Running, gateway: Gateways
) -> None:
    """Design: a session that may still have something to say about its last call is not used again."""
    served = await gateway(newest.url, sessions={"mode": "pooled"})
    tag = unique("cancel")

    async with Wire(served.url) as wire:
        slow = asyncio.ensure_future(wire.tool("slow", {"seconds": 30, "tag": tag}))
        session = await session_of(newest, tag=tag)
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)
        await sent_on(newest, session, "notifications/cancelled")
        after = await echoed(wire, newest, 1)

    assert after != [session]


async def test_operators_see_how_many_sessions_there_are_and_what_they_do(gateway: Gateways) -> None:
    """Ours: `holdfast_sessions` is counted when it is scraped."""
    async with Scripted() as server:
        server.on["tools/call"] = asking
        served = await gateway(server.url, sessions={"mode": "pooled"})

        def counted() -> dict[SessionState, float | None]:
            value = served.gateway._metrics.registry.get_sample_value
            names = {state: {"upstream": UPSTREAM, "state": state.value} for state in SessionState}
            return {state: value("holdfast_sessions", labels) for state, labels in names.items()}

        async with Wire(served.url) as client:
            asked = await client.tool("greet")
            held = counted()
            assert held == {**held, SessionState.HELD: 1, SessionState.LEASED: 0, SessionState.OPENING: 0}
            assert "Ada" in (await client.retry(asked, {"name": accept(name="Ada")})).text
            assert counted() == {
                **held,
                SessionState.HELD: 0,
                SessionState.IDLE: (held[SessionState.IDLE] or 0) + 1,
            }
