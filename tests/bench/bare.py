"""A bare streaming proxy, the yardstick: `python -m tests.bench.bare URL`. It parses nothing.

What any reverse proxy on aiohttp must do at least: take the request, send it on
over a kept-alive connection, and pass the response on as it comes.
"""

import asyncio
import sys
from typing import Final

import uvloop
from aiohttp import ClientSession, ClientTimeout, TCPConnector, web

_HOP_BY_HOP: Final = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "host", "content-length"}
)


async def _main(upstream: str) -> None:
    async with ClientSession(
        connector=TCPConnector(limit=0), timeout=ClientTimeout(total=None), auto_decompress=False
    ) as http:

        async def proxy(request: web.Request) -> web.StreamResponse:
            headers = {
                name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP
            }
            body = await request.read()
            async with http.request(request.method, upstream, headers=headers, data=body) as answer:
                kept = {
                    name: value for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP
                }
                response = web.StreamResponse(status=answer.status, headers=kept)
                response.content_length = answer.content_length
                await response.prepare(request)
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
                await response.write_eof()
                return response

        app = web.Application()
        app.router.add_route("*", "/mcp", proxy)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=4096).start()
        print(runner.addresses[0][1], flush=True)
        # The parent keeps our standard input open for as long as it wants us.
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        await runner.cleanup()


if __name__ == "__main__":
    uvloop.run(_main(sys.argv[1]))
