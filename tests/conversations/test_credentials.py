"""Credentials on their way to an upstream: refreshed, refused, replaced; and what a refusal costs, which is nothing."""

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from tests.support.gateways import Gateways, Served
from tests.support.guarded import Guard, guarding
from tests.support.issuer import Issuer, issuing
from tests.support.legacy_client import LegacyClient
from tests.support.peers import MODERN_KIND, LegacyServers, start_legacy
from tests.support.redis import RedisServer
from tests.support.scripted import Scripted, Turn
from tests.support.wire import Answer, Wire, accept

KEY = "ab" * 32


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with issuing() as started:
        yield started


def jwt(issuer: Issuer) -> dict[str, Any]:
    return {"issuer": issuer.url, "audience": ["crm"], "jwks_url": f"{issuer.url}/jwks"}


class Admitted(set[str]):
    """The credentials that an upstream accepts, as of now."""

    def __call__(self, request: web.Request) -> bool:
        return request.headers.get("Authorization") in self


@pytest.fixture(params=[("py-1.30", "streamable-http"), ("ts-1.32", "streamable-http"), ("py-1.30", "sse")])
async def guard(request: pytest.FixtureRequest, legacy_servers: LegacyServers) -> AsyncIterator[Guard]:
    """Both transports, behind somebody who checks credentials."""
    kind, transport = request.param
    server = legacy_servers.get(kind, transport=transport)
    async with guarding(server.url, Guard(Admitted())) as started:
        yield started


def admit(guard: Guard, *credentials: str) -> None:
    guard.admits = Admitted(credentials)


def yes_to(asked: Answer) -> dict[str, Any]:
    return {key: accept(name="Ann") for key in asked.asked}


async def with_ask(served: Served, credential: str) -> Answer:
    async with Wire(served.url, authorization=credential) as wire:
        return await wire.tool("ask_name")


# --- refused, and refreshed ------------------------------------------------------------------


async def test_a_refreshed_token_keeps_its_call(guard: Guard, gateway: Gateways, issuer: Issuer) -> None:
    """Issue: principal of verified claims; the server sees the new token with the answer."""
    old, new, other = issuer.bearer(jti="1"), issuer.bearer(jti="2"), issuer.bearer(sub="bob")
    served = await gateway(guard.url, auth={"mode": "passthrough", "jwt": jwt(issuer)})
    admit(guard, old)
    asked = await with_ask(served, old)
    admit(guard, new, other)
    guard.seen.clear()

    async with (
        Wire(served.url, authorization=old) as expired,
        Wire(served.url, authorization=other) as bob,
        Wire(served.url, authorization=new) as ann,
    ):
        refused = await expired.retry(asked, yes_to(asked))
        stolen = await bob.retry(asked, yes_to(asked))
        done = await ann.retry(asked, yes_to(asked))

    assert refused.status == 401
    assert "resource_metadata" in refused.headers["WWW-Authenticate"]
    assert stolen.error["data"] == {"reason": "invalid_request_state"}
    assert "Ann" in done.text
    assert new in guard.seen


async def test_what_was_answered_with_another_token_leaves_no_session_behind_that_shows_it(
    guard: Guard, gateway: Gateways, issuer: Issuer
) -> None:
    """Issue: forwarded credentials are part of a session's key; two tokens of one user may allow different things."""
    one, other = issuer.bearer(jti="1"), issuer.bearer(jti="2")
    served = await gateway(guard.url, auth={"mode": "passthrough", "jwt": jwt(issuer)})
    admit(guard, one, other)
    asked = await with_ask(served, one)

    async with Wire(served.url, authorization=other) as wire:
        assert "Ann" in (await wire.retry(asked, yes_to(asked))).text
    admit(guard, one)
    async with Wire(served.url, authorization=one) as wire:
        assert (await wire.tool("add", {"a": 1, "b": 2})).text == "3"


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_answer_consumes_nothing(guard: Guard, gateway: Gateways, status: int) -> None:
    """Issue: a token that the upstream rejects is a 401 with its challenge, and consumes nothing."""
    guard.status = status
    served = await gateway(guard.url, auth={"mode": "passthrough"})
    admit(guard, "Bearer ann")
    asked = await with_ask(served, "Bearer ann")

    async with Wire(served.url, authorization="Bearer ann") as wire:
        admit(guard)
        refused = [await wire.retry(asked, yes_to(asked)) for _ in range(2)]
        admit(guard, "Bearer ann")
        done = await wire.retry(asked, yes_to(asked))
        again = await wire.retry(asked, yes_to(asked))

    assert [answer.status for answer in refused] == [status, status]
    assert all('realm="crm"' in answer.headers["WWW-Authenticate"] for answer in refused)
    assert "Ann" in done.text
    assert again.text == done.text


async def test_of_several_answers_none_is_lost(legacy_servers: LegacyServers, gateway: Gateways) -> None:
    """Ours: all of a round's answers were refused, so all are asked for again under the same ticket."""
    async with guarding(legacy_servers.get("py-1.30").url, Guard(Admitted({"Bearer ann"}))) as guard:
        served = await gateway(guard.url, settle="200ms", auth={"mode": "passthrough"})
        async with Wire(served.url, authorization="Bearer ann") as wire:
            asked = await wire.tool("ask_two_parallel")
            answers = {
                key: accept(**dict.fromkeys(ask["params"]["requestedSchema"]["properties"], "Ann"))
                for key, ask in asked.asked.items()
            }
            admit(guard)
            refused = await wire.retry(asked, answers)
            admit(guard, "Bearer ann")
            done = await wire.retry(asked, answers)

    assert len(answers) == 2
    assert refused.status == 401
    assert done.result["resultType"] == "complete"
    assert done.text.count("Ann") == 2


async def test_a_call_on_an_open_session_is_refused_with_the_challenge(
    guard: Guard, gateway: Gateways
) -> None:
    """Issue: 401 on a call as on `initialize`; the next one with a good token succeeds."""
    served = await gateway(guard.url, sessions={"mode": "pooled"}, auth={"mode": "passthrough"})
    admit(guard, "Bearer ann")
    async with Wire(served.url, authorization="Bearer ann") as wire:
        await wire.tool("add", {"a": 1, "b": 2})
        admit(guard)
        refused = await wire.tool("add", {"a": 1, "b": 2})
        admit(guard, "Bearer ann")
        done = await wire.tool("add", {"a": 1, "b": 2})

    assert refused.status == 401
    assert "resource_metadata" in refused.headers["WWW-Authenticate"]
    assert done.text == "3"


async def test_a_refreshed_token_reaches_the_replica_that_has_the_call(
    legacy_servers: LegacyServers, gateway: Gateways, issuer: Issuer, redis_server: RedisServer
) -> None:
    """Ours: the answer is delivered elsewhere, and there too with the token that is good."""
    old, new = issuer.bearer(jti="1"), issuer.bearer(jti="2")
    shared: dict[str, Any] = {
        "settings": {"store": redis_server.url.get_secret_value(), "sealing": {"keys": [KEY]}},
        "auth": {"mode": "passthrough", "jwt": jwt(issuer)},
        "replay": "never",
    }
    async with guarding(legacy_servers.get("py-1.30").url, Guard(Admitted({old}))) as guard:
        here, there = await gateway(guard.url, **shared), await gateway(guard.url, **shared)
        asked = await with_ask(here, old)
        admit(guard, new)
        async with (
            Wire(there.url, authorization=old) as expired,
            Wire(there.url, authorization=new) as ann,
        ):
            refused = await expired.retry(asked, yes_to(asked))
            done = await ann.retry(asked, yes_to(asked))

    assert refused.status == 401
    assert "Ann" in done.text


# --- replaced ----------------------------------------------------------------------------------


@pytest.mark.requirement("R50")
async def test_the_upstream_is_shown_what_is_configured_and_nothing_of_the_client(
    legacy_servers: LegacyServers, gateway: Gateways, issuer: Issuer
) -> None:
    """Issue: static header from a secret; the client's Authorization must not be forwarded. Both eras of clients."""
    static = {"Authorization": "Bearer static"}
    async with guarding(legacy_servers.get("py-1.30").url, Guard(Admitted({"Bearer static"}))) as guard:
        served = await gateway(
            guard.url, auth={"mode": "jwt", "jwt": jwt(issuer), "upstream_headers": static}
        )
        async with (
            Wire(served.url, authorization=issuer.bearer()) as wire,
            LegacyClient(served.url, authorization=issuer.bearer()) as legacy,
        ):
            modern = json.loads((await wire.tool("whoami")).text)
            old = json.loads(await legacy.text("whoami"))

    assert modern["authorization"] == old["authorization"] == "Bearer static"
    assert guard.refused == []
    assert set(guard.seen) == {"Bearer static"}


@pytest.mark.requirement("R50")
async def test_a_modern_upstream_is_not_shown_the_client_s_token_either(
    gateway: Gateways, issuer: Issuer
) -> None:
    """Specification: no token passthrough, whichever era the server is of."""
    async with (
        start_legacy(MODERN_KIND, arguments=["--modern-only"]) as server,
        guarding(server.url, Guard(lambda request: "X-Token" in request.headers)) as guard,
    ):
        served = await gateway(
            guard.url, auth={"mode": "jwt", "jwt": jwt(issuer), "upstream_headers": {"X-Token": "static"}}
        )
        async with Wire(served.url, authorization=issuer.bearer()) as wire, Wire(served.url) as nobody:
            listed = await wire.request("tools/list")
            refused = await nobody.request("tools/list")

    assert listed.result["tools"]
    assert refused.status == 401
    assert set(guard.seen) == {None}


async def test_a_refusal_of_our_own_credentials_is_no_reason_to_log_in_again(
    legacy_servers: LegacyServers, gateway: Gateways, issuer: Issuer
) -> None:
    """Ours: a client that was told 401 would log in again and again, in vain."""
    async with guarding(legacy_servers.get("py-1.30").url, Guard(Admitted())) as guard:
        served = await gateway(guard.url, auth={"mode": "jwt", "jwt": jwt(issuer)})
        async with Wire(served.url, authorization=issuer.bearer()) as wire:
            refused = await wire.tool("add", {"a": 1, "b": 2})

    assert refused.status == 200
    assert refused.error["code"] == -32603
    assert refused.told == {"upstreamStatus": 401}
    assert "WWW-Authenticate" not in refused.headers


async def test_a_server_that_wants_credentials_and_gets_none_is_told_with_the_way_out(
    gateway: Gateways,
) -> None:
    """Ours: `serve --upstream` in front of such a server; clients logged in again and again, in vain."""

    async def refuse(turn: Turn) -> None:
        await turn.reply(401, "", {"WWW-Authenticate": "Bearer"})

    async with Scripted() as server:
        server.on |= {"initialize": refuse}
        with capture_logs() as logged:
            served = await gateway(server.url)
            async with Wire(served.url, authorization="Bearer mine") as client:
                refused = await client.tool("echo")
            passing = await gateway(server.url, auth={"mode": "passthrough"})
            async with Wire(passing.url, authorization="Bearer mine") as client:
                await client.tool("echo")
    assert refused.status == 401
    without, passed = [line["detail"] for line in logged if line["event"] == "round"]
    assert without.startswith("HTTP 401: it was sent no credentials; auth.mode passthrough")
    assert passed == "HTTP 401"


async def test_a_token_goes_on_where_that_is_configured(
    legacy_servers: LegacyServers, gateway: Gateways, issuer: Issuer
) -> None:
    """Issue: upstream credentials `forward`."""
    served = await gateway(
        legacy_servers.get("py-1.30").url,
        auth={"mode": "jwt", "jwt": jwt(issuer), "upstream": "forward"},
    )
    token = issuer.bearer()
    async with Wire(served.url, authorization=token) as wire:
        who = json.loads((await wire.tool("whoami")).text)

    assert who["authorization"] == token


async def test_a_legacy_client_is_told_the_same(
    legacy_servers: LegacyServers, gateway: Gateways, issuer: Issuer
) -> None:
    """Ours: also where its messages are carried to a server of another transport."""
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
    headers = {"Accept": "application/json, text/event-stream", "Authorization": issuer.bearer()}
    found: list[tuple[int, str | None]] = []
    async with guarding(legacy_servers.get("py-1.30", transport="sse").url, Guard(Admitted())) as guard:
        for auth in ({"mode": "passthrough"}, {"mode": "jwt", "jwt": jwt(issuer)}):
            served = await gateway(guard.url, transport="sse", auth=auth)
            async with (
                aiohttp.ClientSession() as http,
                http.post(served.url, json=hello, headers=headers) as response,
            ):
                found.append((response.status, response.headers.get("WWW-Authenticate")))
        own = f"{served.url.removesuffix('/mcp')}/.well-known/oauth-protected-resource/mcp"

    (status, challenge), refused = found
    assert status == 401
    assert challenge is not None
    assert guard.metadata_url not in challenge
    assert own.partition("/.well")[1] in challenge
    assert refused == (502, None)
