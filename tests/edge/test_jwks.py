"""An issuer's keys: few fetches, whoever asks; stale ones rather than none."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from joserfc.jwk import OctKey
from structlog.testing import capture_logs

from gateway.edge.jwks import PAUSE_SECONDS, Jwks, KeysUnusable, parse
from gateway.settings.auth import Jwt
from tests.support.issuer import Issuer, issuing, new_key
from tests.support.serving import free_port
from tests.support.waiting import until


class Clock:
    """Time as the test says."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with issuing() as started:
        yield started


def jwks(url: str, clock: Clock | None = None, **settings: Any) -> Jwks:
    return Jwks(Jwt.model_validate({"jwks_url": url, **settings}), now=clock or Clock())


async def test_many_who_want_keys_cause_one_fetch(issuer: Issuer) -> None:
    """Issue: cached, single-flight."""
    keys = jwks(f"{issuer.url}/jwks")
    await asyncio.gather(*(keys.refresh() for _ in range(20)))
    assert issuer.fetches == 1
    assert [key.kid for key in keys.keys] == ["first"]


async def test_made_up_key_names_do_not_hammer_the_issuer(issuer: Issuer) -> None:
    """Issue: refreshed on unknown kid, rate-limited."""
    clock = Clock()
    keys = jwks(f"{issuer.url}/jwks", clock)
    for _ in range(50):
        await keys.refresh()
    assert issuer.fetches == 1
    clock.now += PAUSE_SECONDS
    issuer.key = new_key("second")
    await keys.refresh()
    assert issuer.fetches == 2
    assert [key.kid for key in keys.keys] == ["second"]
    assert keys.generation == 2


async def test_while_the_issuer_is_down_the_old_keys_are_used(issuer: Issuer) -> None:
    """Issue: stale keys used while the issuer is down."""
    clock = Clock()
    keys = jwks(f"{issuer.url}/jwks", clock)
    await keys.refresh()
    issuer.is_down = True
    clock.now += PAUSE_SECONDS
    with capture_logs() as lines:
        await keys.refresh()
    assert [key.kid for key in keys.keys] == ["first"]
    assert keys.generation == 1
    assert [(line["event"], line["detail"], line["stale"]) for line in lines] == [
        ("jwks_failed", "HTTP 503", True)
    ]


async def test_keys_are_fetched_again_when_they_are_old(issuer: Issuer) -> None:
    """Issue: TTL. The clock of the pause stands still here, so only the loop's own turn is seen."""
    clock = Clock()
    keys = jwks(f"{issuer.url}/jwks", clock, jwks_ttl=0.01)
    fresh = asyncio.get_running_loop().create_task(keys.keep_fresh())

    async def fetched_again() -> bool:
        clock.now += PAUSE_SECONDS
        return issuer.fetches >= 3

    await until(fetched_again)
    fresh.cancel()
    await asyncio.gather(fresh, return_exceptions=True)
    assert keys.generation == 1, "the same keys are no news"


async def test_nobody_is_followed_elsewhere() -> None:
    """Issue: no redirects to other hosts; none at all, since the issuer was configured."""
    seen: list[str] = []

    async def elsewhere(request: web.Request) -> web.Response:
        seen.append(request.path)
        raise web.HTTPFound("/other")

    app = web.Application()
    app.router.add_get("/{tail:.*}", elsewhere)
    async with TestServer(app) as server:
        keys = jwks(str(server.make_url("/jwks")))
        await keys.refresh()
    assert seen == ["/jwks"]
    assert keys.keys == ()


@pytest.mark.parametrize(
    "body", [b"[]", b"{", b'{"keys": 1}', b'{"keys": []}', b"x" * 300_000, b"[" * 100_000]
)
async def test_what_is_no_key_set_changes_nothing(body: bytes) -> None:
    """Ours: size-capped, and whatever comes instead is only logged."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=body)

    app = web.Application()
    app.router.add_get("/jwks", answer)
    async with TestServer(app) as server:
        keys = jwks(str(server.make_url("/jwks")))
        await keys.refresh()
    assert keys.keys == ()


async def test_keys_come_from_a_file_as_well(tmp_path: Path) -> None:
    """Issue: optional JWKS from file."""
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps(Issuer().jwks()))
    keys = Jwks(Jwt.model_validate({"jwks_file": file}), now=Clock())
    await keys.refresh()
    assert [key.kid for key in keys.keys] == ["first"]


async def test_an_issuer_that_cannot_be_reached_is_told_with_its_name_and_the_reason(tmp_path: Path) -> None:
    """Ours: of several upstreams nobody knew whose keys were missing, nor why."""
    for way, why in (
        ({"jwks_file": tmp_path / "absent"}, "FileNotFoundError: No such file or directory"),
        ({"jwks_url": f"http://127.0.0.1:{free_port()}/jwks"}, "ClientConnectorError: Connect call failed"),
    ):
        with capture_logs() as logged:
            await Jwks(Jwt.model_validate({"issuer": "https://login.example", **way}), now=Clock()).refresh()
        [line] = logged
        assert line["issuer"] == "https://login.example"
        assert line["detail"].startswith(why)


def test_only_public_keys_for_signatures_are_taken() -> None:
    """Issue: never HS* with a JWKS; RFC 7517, 4.2: `use`."""
    good = new_key("good").as_dict(private=False)
    private = new_key("private").as_dict(private=True)
    secret = OctKey.generate_key(256, {"kid": "secret"}).as_dict(private=True)
    odd = [
        secret,
        private,
        {**good, "use": "enc"},
        {**good, "x": "!"},
        {"kty": "RSA"},
        {"kty": "XX"},
        7,
        good,
    ]
    assert [key.kid for key in parse(json.dumps({"keys": odd}).encode())] == ["good"]
    with pytest.raises(KeysUnusable):
        parse(json.dumps({"keys": odd[:-1]}).encode())
