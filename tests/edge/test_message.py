"""A message written in one piece looks to every client as the library's own response would."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

import pytest
from aiohttp import hdrs, web

from gateway.edge.front import Front
from gateway.edge.message import JsonMessage
from gateway.settings.model import Limits
from gateway.wire import headers as names

BODY = '{"jsonrpc": "2.0", "id": 1, "result": {"text": "gefüllt"}}'.encode()
LONG = b'"' + b"x" * 100_000 + b'"'
TYPE = {hdrs.CONTENT_TYPE: names.JSON, names.REQUEST_ID: "0123abcd"}
SECONDS = 5.0

Talk = Callable[[str], Awaitable[bytes]]


class Prepared:
    """Answers every request with the response that a test wants to see."""

    def __init__(self) -> None:
        self.kind: type[web.Response] = JsonMessage
        self.body = BODY
        self.status = 200
        self.headers: Mapping[str, str] = TYPE
        self.closes = False

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        await request.content.read()
        response = self.kind(body=self.body, status=self.status, headers=self.headers)
        if self.closes:
            response.force_close()
        return response


@pytest.fixture
def prepared() -> Prepared:
    return Prepared()


@pytest.fixture
async def talk(prepared: Prepared) -> AsyncIterator[Talk]:
    runner = Front({"/mcp": prepared.handle}, Limits()).runner()
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()

    async def say(text: str) -> bytes:
        """As many answers as there were questions, unless the connection is to be closed before."""
        reader, writer = await asyncio.open_connection(*runner.addresses[0][:2])
        try:
            writer.write(text.replace("\n", "\r\n").encode())
            answers = await answer_in(reader, has_body=not text.startswith("HEAD"))
            if text.count("/mcp") > 1 and b"Connection: close" not in answers:
                answers += await answer_in(reader, has_body=True)
            return answers
        finally:
            writer.close()
            await writer.wait_closed()

    yield say
    await runner.cleanup()


async def answer_in(reader: asyncio.StreamReader, *, has_body: bool) -> bytes:
    """One response, to its last byte."""
    async with asyncio.timeout(SECONDS):
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(re.findall(rb"Content-Length: (\d+)", head)[0]) if has_body else 0
        return head + await reader.readexactly(size)


def taken_apart(answer: bytes) -> tuple[str, dict[str, str], bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    fields = dict(line.split(": ", 1) for line in lines)
    assert len(fields) == len(lines), "a header twice"
    fields[hdrs.DATE] = "some date" if fields[hdrs.DATE].endswith(" GMT") else "no date"
    return first, fields, body


POST = "POST /mcp HTTP/1.1\nHost: localhost\nContent-Length: 2\n\n{}"
UNUSUAL = {
    "HTTP/1.0": "POST /mcp HTTP/1.0\nHost: localhost\nContent-Length: 2\n\n{}",
    "HTTP/1.0, kept": "POST /mcp HTTP/1.0\nHost: localhost\nConnection: keep-alive\nContent-Length: 2\n\n{}",
    "closing": "POST /mcp HTTP/1.1\nHost: localhost\nConnection: close\nContent-Length: 2\n\n{}",
    "HEAD": "HEAD /mcp HTTP/1.1\nHost: localhost\n\n",
    "GET": "GET /mcp HTTP/1.1\nHost: localhost\n\n",
}


@pytest.mark.parametrize("text", [POST, *UNUSUAL.values()], ids=["usual", *UNUSUAL])
async def test_it_is_the_same_response_whoever_asks_and_how(
    prepared: Prepared, talk: Talk, text: str
) -> None:
    """Ours: status line, headers and body are those of the way that is spared."""
    ours = taken_apart(await talk(text))
    prepared.kind = web.Response

    assert ours == taken_apart(await talk(text))


@pytest.mark.parametrize("status", [200, 400, 404, 429, 503, 299])
@pytest.mark.parametrize("more", [{}, {"Retry-After": "3", "X-Odd": "ünïcödé"}])
@pytest.mark.parametrize("body", [BODY, LONG, b""], ids=["short", "long", "empty"])
async def test_it_is_the_same_response_whatever_it_says(
    prepared: Prepared, talk: Talk, status: int, more: Mapping[str, str], body: bytes
) -> None:
    """Ours: also what has no name, is too long to be copied, or has more headers than most."""
    prepared.status, prepared.headers, prepared.body = status, {**TYPE, **more}, body
    ours = taken_apart(await talk(POST))
    prepared.kind = web.Response

    assert ours == taken_apart(await talk(POST))


async def test_a_connection_serves_the_next_request(talk: Talk) -> None:
    answers = await talk(POST + POST)

    assert answers.count(b"HTTP/1.1 200 OK") == answers.count(BODY) == 2


async def test_a_gateway_that_parts_closes_behind_it(prepared: Prepared, talk: Talk) -> None:
    """Ours: `drain` lets each response be the last on its connection."""
    prepared.closes = True
    answers = await talk(POST + POST)

    assert answers.count(b"HTTP/1.1 200 OK") == 1
    assert b"Connection: close" in answers
