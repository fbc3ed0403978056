"""A guard before a real legacy server: wants a token, tells where to log in, lets everything else through.

It stands for a server that does its own OAuth. What it lets through it streams both ways; who is let in is the
test's to say, at any time. It knows nothing of the gateway.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

_BETWEEN_NEIGHBOURS = {"host", "connection", "content-length", "transfer-encoding", "keep-alive"}


@dataclass
class Guard:
    """What the guard does, and has seen."""

    admits: Callable[[web.Request], bool]
    issuer: str = "https://issuer.example"
    url: str = ""
    refused: list[str] = field(default_factory=list)
    """`Authorization` of those that were not let in."""
    seen: list[str | None] = field(default_factory=list)
    """`Authorization` of those that were."""
    status: int = 401

    @property
    def metadata_url(self) -> str:
        origin, _, path = self.url.rpartition("/")
        return f"{origin}/.well-known/oauth-protected-resource/{path}"

    @property
    def challenge(self) -> str:
        return f'Bearer realm="crm", resource_metadata="{self.metadata_url}", scope="crm:use"'


@asynccontextmanager
async def guarding(upstream: str, guard: Guard) -> AsyncIterator[Guard]:
    """Stand before the server at this URL."""
    origin, _, path = upstream.rpartition("/")
    http = aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=30),
        auto_decompress=False,
        connector=aiohttp.TCPConnector(limit=0),
    )

    async def pass_on(request: web.Request) -> web.StreamResponse:
        given = request.headers.get("Authorization")
        if not guard.admits(request):
            guard.refused.append(given or "")
            await request.read()
            return web.json_response(
                {"error": "no"}, status=guard.status, headers={"WWW-Authenticate": guard.challenge}
            )
        guard.seen.append(given)
        lines = [
            (name, value)
            for name, value in request.headers.items()
            if name.lower() not in _BETWEEN_NEIGHBOURS
        ]
        async with http.request(
            request.method, f"{origin}{request.path_qs}", headers=lines, data=await request.read() or None
        ) as response:
            kept = [
                (name, value)
                for name, value in response.headers.items()
                if name.lower() not in _BETWEEN_NEIGHBOURS
            ]
            answer = web.StreamResponse(status=response.status)
            for name, value in kept:
                answer.headers.add(name, value)
            await answer.prepare(request)
            async for chunk in response.content.iter_any():
                await answer.write(chunk)
            await answer.write_eof()
            return answer

    async def metadata(_: web.Request) -> web.Response:
        return web.json_response(
            {
                "resource": guard.url,
                "authorization_servers": [guard.issuer],
                "scopes_supported": ["crm:use"],
                "signed_metadata": "a.b.c",
            }
        )

    app = web.Application()
    app.router.add_get(f"/.well-known/oauth-protected-resource/{path}", metadata)
    app.router.add_route("*", "/{tail:.*}", pass_on)
    server = TestServer(app)
    # Streams that somebody still listens on do not hold up the end.
    await server.start_server(shutdown_timeout=0.1)
    async with http:
        guard.url = str(server.make_url(f"/{path}"))
        try:
            yield guard
        finally:
            await server.close()
