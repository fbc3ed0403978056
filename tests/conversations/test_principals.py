"""Who is calling: credentials reach the server they are for, and two callers never meet in anything."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.support.gateways import Gateways
from tests.support.peers import LegacyServers, Running
from tests.support.python_client import PythonClient
from tests.support.seen import seen_by, unique
from tests.support.wire import Wire, accept

PASSTHROUGH = {"auth": {"mode": "passthrough"}}
CHALLENGE = 'Bearer realm="crm", resource_metadata="https://crm.example/.well-known/oauth-protected-resource"'


def bearer() -> str:
    return f"Bearer {unique('token')}"


async def test_the_credential_reaches_the_server_with_every_request(
    newest: Running, gateway: Gateways
) -> None:
    """Issue: passthrough; also on the standing stream, on answers and on DELETE."""
    served = await gateway(newest.url, sessions={"mode": "fresh", "warm": 0}, **PASSTHROUGH)
    token = bearer()

    async with Wire(served.url, authorization=token) as wire:
        asked = await wire.tool("ask_name")
        await wire.retry(asked, {"name": accept(name="Ann")})
        who = json.loads((await wire.tool("whoami")).text)
    await served.gateway.stop()

    assert who["authorization"] == token
    seen = await seen_by(newest)
    ours = seen.authorized(token)
    sessions = {entry["session"] for entry in ours} - {None}
    # One `tools/list` is the gateway's own look at the tools, under the same credential.
    assert len(sessions) in {2, 3}
    assert {entry["verb"] for entry in ours} == {"POST", "GET", "DELETE"}
    assert [entry for session in sessions for entry in seen.session(session)] != []
    assert all(entry["authorization"] == token for session in sessions for entry in seen.session(session))


async def test_without_passthrough_no_credential_goes_anywhere(newest: Running, gateway: Gateways) -> None:
    """Issue: `mode: none`; a token for the gateway is nobody else's business."""
    served = await gateway(newest.url)

    async with Wire(served.url, authorization=bearer()) as wire:
        who = json.loads((await wire.tool("whoami")).text)

    assert who["authorization"] is None


@pytest.mark.parametrize("mode", ["auto", "pooled", "fresh", "affinity"])
async def test_two_principals_never_share_a_session(newest: Running, gateway: Gateways, mode: str) -> None:
    """Design: a session is never shared by two principals, in no mode; nobody in particular is one too."""
    served = await gateway(newest.url, sessions={"mode": mode}, **PASSTHROUGH)
    tokens = [bearer(), bearer(), None]

    sessions: list[set[str]] = []
    for token in tokens:
        async with Wire(served.url, authorization=token) as wire:
            who = [json.loads((await wire.tool("whoami")).text) for _ in range(3)]
        assert {entry["authorization"] for entry in who} == {token}
        sessions.append({entry["session"] for entry in who})

    ann, bob, nobody = sessions
    assert ann.isdisjoint(bob)
    assert nobody.isdisjoint(ann | bob)


async def test_what_a_server_keeps_in_a_session_is_kept_per_principal(
    newest: Running, gateway: Gateways
) -> None:
    """Design: `affinity`, one session per principal."""
    served = await gateway(newest.url, sessions={"mode": "affinity"}, **PASSTHROUGH)

    async with (
        Wire(served.url, authorization=bearer()) as ann,
        Wire(served.url, authorization=bearer()) as bob,
    ):
        await asyncio.gather(
            ann.tool("remember", {"value": "ann's"}), bob.tool("remember", {"value": "bob's"})
        )
        told = await asyncio.gather(ann.tool("recall"), bob.tool("recall"))

    assert [answer.text for answer in told] == ["ann's", "bob's"]


async def test_roots_are_asked_once_per_principal_and_never_given_to_another(
    newest: Running, gateway: Gateways
) -> None:
    """Design: the answer is remembered for this principal's later sessions, so that it is asked once."""
    served = await gateway(newest.url, sessions={"mode": "fresh"}, **PASSTHROUGH)

    async with (
        Wire(served.url, authorization=bearer()) as ann,
        Wire(served.url, authorization=bearer()) as bob,
        Wire(served.url) as nobody,
    ):
        told = await ann.retry(await ann.tool("roots"), {"roots-1": {"roots": [{"uri": "file:///ann"}]}})
        again = await ann.tool("roots")
        asked = await bob.tool("roots")
        anonymous = await nobody.tool("roots")
        bobs = await bob.retry(asked, {"roots-1": {"roots": [{"uri": "file:///bob"}]}})
        await nobody.retry(anonymous, {"roots-1": {"roots": [{"uri": "file:///x"}]}})
        anonymous_again = await nobody.tool("roots")

    assert told.text == again.text == "file:///ann"
    assert bobs.text == "file:///bob"
    assert set(anonymous_again.asked) == {"roots-1"}  # nobody in particular may be somebody else by now


async def test_remembered_roots_are_forgotten_in_time(
    legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """Design: `roots_ttl`."""
    served = await gateway(legacy_servers.get("ts-1.32").url, asks={"roots_ttl": 0}, **PASSTHROUGH)

    async with Wire(served.url, authorization=bearer()) as wire:
        await wire.retry(await wire.tool("roots"), {"roots-1": {"roots": [{"uri": "file:///a"}]}})
        again = await wire.tool("roots")

    assert set(again.asked) == {"roots-1"}


# --- an upstream that refuses ------------------------------------------------------------------


@pytest.fixture
async def guarded() -> AsyncIterator[str]:
    """An upstream that wants a token and refuses one by name."""

    async def mcp(request: web.Request) -> web.Response:
        if request.headers.get("Authorization") == "Bearer banned":
            return web.json_response({"error": "forbidden"}, status=403)
        return web.json_response({"error": "who"}, status=401, headers={"WWW-Authenticate": CHALLENGE})

    app = web.Application()
    app.router.add_route("*", "/mcp", mcp)
    async with TestServer(app) as server:
        yield str(server.make_url("/mcp"))


@pytest.mark.requirement("R3")
async def test_the_servers_challenge_reaches_the_client(guarded: str, gateway: Gateways) -> None:
    """Issue: whether a caller is good enough is the upstream's to say, in its own words."""
    served = await gateway(guarded, **PASSTHROUGH)

    async with Wire(served.url) as nobody, Wire(served.url, authorization="Bearer banned") as banned:
        listed = await nobody.request("tools/list")
        called = await nobody.tool("echo", {"text": "x"})
        refused = await banned.tool("echo", {"text": "x"})

    for answer in (listed, called):
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"] == CHALLENGE
        assert answer.error["code"] == -32600
    assert refused.status == 403
    assert "WWW-Authenticate" not in refused.headers


@pytest.mark.requirement("R25")
async def test_discovery_does_not_fail_because_the_server_wants_a_login(
    guarded: str, gateway: Gateways
) -> None:
    """MODERN-WIRE 1.4: an error on discover makes clients fall back to the legacy handshake."""
    served = await gateway(guarded, **PASSTHROUGH)

    async with PythonClient(served.url) as client:
        version = client.client.protocol_version

    assert version == "2026-07-28"
