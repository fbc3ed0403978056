"""A session's cookies are its own: they bring each of its requests to the replica that has it."""

import pytest
from aiohttp import hdrs
from multidict import CIMultiDict
from yarl import URL

from gateway.upstreams.cookies import keep
from gateway.upstreams.http1 import Http1
from gateway.upstreams.http_client import requested
from gateway.upstreams.streamable_http import StreamableHttp
from tests.support.calling import LIMIT, call, words
from tests.support.scripted import Scripted, Turn, text_result


def shown(*lines: str, before: str | None = None) -> str | None:
    headers = CIMultiDict[str]({} if before is None else {hdrs.COOKIE: before})
    keep(lines, headers)
    return headers.get(hdrs.COOKIE)


@pytest.mark.parametrize(
    ("lines", "before", "after"),
    [
        (["AWSALB=abc; Expires=Thu, 26 Nov 2026 00:00:00 GMT; Path=/"], None, "AWSALB=abc"),
        (["a=1", "b=2; HttpOnly"], None, "a=1; b=2"),
        (["a=2; Path=/"], "a=1; b=1", "b=1; a=2"),
        (["route=x"], "configured=yes", "configured=yes; route=x"),
        (["token=a=b=="], None, "token=a=b=="),
        (["a=; Max-Age=0"], "a=1; b=1", "b=1"),
        (["a=gone; max-age=0"], "a=1", None),
        (["", "=x", "nothing", ";"], None, None),
        (["a=\x00"], "b=1", "b=1"),
        (["a=" + 5000 * "x"], "b=1", "b=1"),
        ([f"c{number}=1" for number in range(33)], None, None),
    ],
)
def test_what_a_server_sets_is_what_it_is_shown(
    lines: list[str], before: str | None, after: str | None
) -> None:
    """RFC 6265, as far as one origin and one session need it."""
    assert shown(*lines, before=before) == after


async def test_each_request_of_a_session_has_its_cookie_and_no_other_session_has(
    server: Scripted, http: Http1
) -> None:
    """A balancer with sticky sessions, in front of a legacy server of more than one replica."""
    number = 0

    async def routed(turn: Turn) -> None:
        nonlocal number
        number += 1
        await turn.json(turn.answer(text_result("done")), headers={"Set-Cookie": f"route=r{number}; Path=/"})

    server.on["tools/call"] = routed
    one, two = (StreamableHttp(http, server.url, headers={}, max_event_bytes=LIMIT) for _ in range(2))
    assert words(await call(one)) == words(await call(two)) == ["done"]
    await one.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    await two.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    assert [turn.headers.get("cookie") for turn in server.turns] == [None, None, "route=r1", "route=r2"]


async def test_a_cookie_that_comes_with_a_redirect_is_shown_where_it_leads(
    server: Scripted, http: Http1
) -> None:
    async def moved(turn: Turn) -> None:
        if turn.path == "/mcp/":
            await turn.reply(200, "")
        else:
            await turn.reply(307, "", {"Location": "/mcp/", "Set-Cookie": "route=a"})

    server.on["answer"] = moved
    kept: dict[str, str] = {}
    async with requested(http, "POST", URL(server.url), headers=kept, body=b"{}", kept=kept):
        pass
    assert server.turns[-1].headers["cookie"] == kept[hdrs.COOKIE] == "route=a"
