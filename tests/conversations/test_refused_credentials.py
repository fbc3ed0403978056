"""Every way in, with every bad credential, in every mode that wants one: refused, and not passed on."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.fuzz.http_requests import modern, written
from tests.fuzz.mutation import dump
from tests.support.gateways import Gateways
from tests.support.issuer import Issuer, issuing
from tests.support.scripted import Scripted

KEY = "k" * 40
SECONDS = 10.0
Line = tuple[str, str]
Way = tuple[str, list[Line], bytes]

HOST = ("Host", "127.0.0.1")
SESSION = ("Mcp-Session-Id", "s-1")
EVENTS = ("Accept", "text/event-stream")
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}


def asks(method: str, **params: Any) -> Way:
    headers, body = modern(method, **params)
    return "POST", list(headers.items()), dump(body).encode()


def legacy(method: str, *lines: Line, **params: Any) -> Way:
    both = [HOST, ("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")]
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return "POST", [*both, *lines], json.dumps(body).encode()


WAYS: dict[str, Way] = {
    "call": asks("tools/call", name="echo", arguments={}),
    "discover": asks("server/discover"),
    "listen": asks("subscriptions/listen", notifications={"toolsListChanged": True}),
    "initialize": legacy("initialize", **HELLO),
    "legacy call": legacy("tools/call", SESSION, name="echo", arguments={}),
    "stream": ("GET", [HOST, EVENTS, SESSION], b""),
    "HTTP+SSE": ("GET", [HOST, EVENTS], b""),
    "end": ("DELETE", [HOST, SESSION], b""),
}


def credentials(good: str) -> dict[str, tuple[int, list[str]]]:
    """The status and the lines of `Authorization`; a lone surrogate is written as the byte that it stands for."""
    return {
        "none": (401, []),
        "nothing": (401, [""]),
        "no token": (401, ["Bearer "]),
        "another": (401, ["Bearer abc.def.ghi"]),
        "another scheme": (401, [f"Basic {good}"]),
        "no space": (401, [f"Bearer\t{good}"]),
        "two in one line": (401, [f"Bearer {good}, Bearer x"]),
        "no ASCII": (401, [f"Bearer \udcff\udcc3{good}"]),
        "long": (401, ["Bearer " + "x" * 7000]),
        "longer than any token": (401, ["Bearer " + "x" * 16_384]),
        "too long": (431, ["Bearer " + "x" * 40_000]),
        "twice": (400, [f"Bearer {good}"] * 2),
        "good and bad": (400, [f"Bearer {good}", "Bearer x"]),
    }


def access(mode: str, issuer: Issuer) -> tuple[dict[str, Any], str]:
    """The section, and a credential that is good under it."""
    if mode == "jwt":
        jwt = {"issuer": issuer.url, "jwks_url": f"{issuer.url}/jwks", "audience": ["crm"]}
        return {"mode": mode, "jwt": jwt}, issuer.token()
    return {"mode": mode, "api_keys": {"ann": hashlib.sha256(KEY.encode()).hexdigest()}}, KEY


@pytest.fixture
async def server() -> AsyncIterator[Scripted]:
    async with Scripted() as scripted:
        yield scripted


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with issuing() as started:
        yield started


async def answered(url: str, way: Way, lines: list[str]) -> tuple[int, str]:
    """Status and head of the answer."""
    verb, headers, body = way
    host, port = url.removeprefix("http://").removesuffix("/mcp").split(":")
    shown = [("Authorization", line) for line in lines]
    data = written([*headers, ("Content-Length", str(len(body))), *shown], body, verb=verb)
    async with asyncio.timeout(SECONDS):
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(data)
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
        finally:
            writer.close()
    return int(head.split(" ")[1]), head.lower()


@pytest.mark.parametrize("mode", ["jwt", "api_key"])
async def test_a_bad_credential_opens_no_way_in(
    server: Scripted, gateway: Gateways, issuer: Issuer, mode: str
) -> None:
    """Issue: let no one in; RFC 9110, 15.5.2: a 401 says how to come back."""
    section, good = access(mode, issuer)
    served = await gateway(server.url, auth=section)
    await server.wait("notifications/initialized")  # its own first meeting with the server, which is nobody's
    before = len(server.turns)

    for what, (status, lines) in credentials(good).items():
        for way, request in WAYS.items():
            found, head = await answered(served.url, request, lines)
            assert found == status, (what, way)
            assert ("www-authenticate: bearer" in head) is (status == 401), (what, way)

    assert len(server.turns) == before
    assert (await answered(served.url, WAYS["call"], [f"bearer   {good} "]))[0] == 200
