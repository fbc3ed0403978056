"""What a hostile client sends is refused clearly, reaches no server, and does its neighbour no harm."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.fuzz.http_requests import modern, written
from tests.fuzz.mutation import Text, deep, dump
from tests.support.gateways import Gateways, Served
from tests.support.scripted import Scripted, asking
from tests.support.wire import Wire, accept

SECONDS = 10.0
Line = tuple[str, str]


@pytest.fixture
async def server() -> AsyncIterator[Scripted]:
    async with Scripted() as scripted:
        scripted.on["prompts/get"] = asking
        yield scripted


@pytest.fixture
async def served(gateway: Gateways, server: Scripted) -> Served:
    # Refused legacy clients: what is looked at here is what modern ones send.
    return await gateway(
        server.url, legacy_clients="refuse", sessions={"warm": 0}, settings={"limits": {"body_timeout": "1s"}}
    )


async def sent(served: Served, data: bytes) -> tuple[int, bytes]:
    """Status and body of the answer to these bytes; 0 if the connection was closed instead."""
    host, port = served.url.removeprefix("http://").removesuffix("/mcp").split(":")
    async with asyncio.timeout(SECONDS):
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(data)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            return int(head.split(b" ")[1]), await reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return 0, b""
        finally:
            writer.close()


def call(*more: Line, without: tuple[str, ...] = (), path: str = "/mcp", **changes: Any) -> bytes:
    headers, body = modern("tools/call", name="echo", arguments={})
    body["params"] |= changes
    data = dump(body).encode("utf-8", "surrogatepass")
    lines = [line for line in headers.items() if line[0] not in without]
    return written([*lines, ("Content-Length", str(len(data))), *more], data, path=path)


DOUBLES: list[Line] = [
    ("Host", "127.0.0.1"),
    ("host", "evil.example"),
    ("Mcp-Method", "tools/call"),
    ("mcp-name", "other"),
    ("MCP-Protocol-Version", "2025-11-25"),
    ("Content-Type", "application/json"),
    ("Content-Length", "5"),
]
BODIES: dict[str, dict[str, Any]] = {
    "a deep argument as state": {"requestState": deep(5000)},
    "megabytes of state": {"requestState": "A" * 3_000_000},
    "state of many keys": {"requestState": {f"k{n}": n for n in range(20_000)}},
    "a hundred thousand answers": {
        "inputResponses": {f"k{n}": 1 for n in range(100_000)},
        "requestState": "x",
    },
    "an endless number as a name": {"name": Text("9" * 100_000)},
    "a huge exponent as state": {"requestState": Text("1e999999999")},
    "half a character": {"name": Text(r'"\ud800"')},
    "two names": {"name": Text('"echo","name":"other"')},
}
PATHS = [
    "//mcp",
    "/./mcp",
    "/x/../mcp",
    "/%6dcp",
    "/mcp%2f",
    "/mcp//",
    "/mcp%00",
    "/MCP",
    "http://127.0.0.1/mcp",
]
IDS = ["null", "1.5", "true", "[]", "{}", "[[1]]", '{"a":1}', "1e3", "-0.0", "1e400"]


async def is_unharmed(served: Served, server: Scripted) -> None:
    """Nothing of the attack reached the server, and the neighbour is served."""
    assert server.seen("tools/call") == []
    async with Wire(served.url) as neighbour:
        assert (await neighbour.tool("echo")).text == "done"


@pytest.mark.parametrize("double", DOUBLES, ids="-".join)
async def test_a_header_that_must_come_once_comes_once(
    served: Served, server: Scripted, double: Line
) -> None:
    """Ours: whoever reads the other line sees another request (request smuggling)."""
    status, _ = await sent(served, call(double))
    assert status in (400, 415)
    await is_unharmed(served, server)


@pytest.mark.parametrize("header", ["Authorization", "Origin", "Mcp-Session-Id"])
async def test_two_different_lines_of_who_asks_are_refused(
    served: Served, server: Scripted, header: str
) -> None:
    """Ours: the gateway would judge by one, and the server behind it by the other."""
    origin = served.url.removesuffix("/mcp")
    status, body = await sent(served, call((header, origin), (header, origin)))
    assert (status, json.loads(body)["error"]["code"]) == (400, -32020)
    await is_unharmed(served, server)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, identity", "x"])
async def test_a_compressed_body_is_refused_and_not_inflated(
    served: Served, server: Scripted, encoding: str
) -> None:
    """Ours: a bomb is small until it is opened."""
    status, _ = await sent(served, call(("Content-Encoding", encoding)))
    assert status == 415
    await is_unharmed(served, server)


@pytest.mark.parametrize(
    "coding", ["gzip, chunked", "chunked, chunked", "identity", "xchunked", "chunked\x0b"]
)
async def test_odd_transfer_codings_are_refused(served: Served, server: Scripted, coding: str) -> None:
    """RFC 9112, 6.1: what cannot be delimited for certain is refused, and the connection closed."""
    headers, _ = modern("tools/call", name="echo")
    status, _ = await sent(served, written([*headers.items(), ("Transfer-Encoding", coding)], b"0\r\n\r\n"))
    assert status in (0, 400)
    await is_unharmed(served, server)


@pytest.mark.parametrize("name", BODIES)
async def test_a_body_bomb_is_refused(served: Served, server: Scripted, name: str) -> None:
    """Ours: depth, size, number or spelling, it is the client's fault and costs the server nothing."""
    status, body = await sent(served, call(**BODIES[name]))
    assert status == 400, body
    assert json.loads(body)["error"]["code"] in (-32700, -32600, -32602, -32020)
    await is_unharmed(served, server)


@pytest.mark.parametrize("path", PATHS)
async def test_a_path_is_taken_as_it_is_written(served: Served, server: Scripted, path: str) -> None:
    """Ours: nothing is decoded, joined or tidied that a proxy before us may have read otherwise."""
    status, _ = await sent(served, call(path=path))
    assert status == 404
    await is_unharmed(served, server)


@pytest.mark.parametrize("id_", IDS)
async def test_an_id_is_a_string_or_an_integer(served: Served, server: Scripted, id_: str) -> None:
    """basic, "Requests": an id is a string or an integer, and not null."""
    headers, body = modern("tools/call", name="echo", arguments={})
    body["id"] = Text(id_)
    data = dump(body).encode()
    lines = [*headers.items(), ("Content-Length", str(len(data)))]
    status, answer = await sent(served, written(lines, data))
    assert (status, json.loads(answer)["id"]) == (400, None)
    await is_unharmed(served, server)


async def test_a_storm_of_retries_with_one_ticket_delivers_one_answer(
    served: Served, server: Scripted
) -> None:
    """Ours: a ticket works once; the rest join the round, or are told that it is over."""
    async with Wire(served.url) as client:
        asked = await client.request("prompts/get", {"name": "p"})
        answers = await asyncio.gather(
            *(client.retry(asked, {"name": accept(name="Ada")}) for _ in range(50))
        )
        others = await asyncio.gather(
            *(client.retry(asked, {"name": accept(name=f"Eve {n}")}) for n in range(20))
        )
    assert {answer.status for answer in answers} == {200}
    assert {(answer.status, answer.error["message"]) for answer in others} == {
        (400, "Invalid or expired requestState")
    }
    assert len(server.seen("answer")) == 1


async def test_a_flood_of_holds_is_shed_and_the_neighbour_is_served(
    gateway: Gateways, server: Scripted
) -> None:
    """Ours: what is held is bounded, and plain calls need no hold."""
    served = await gateway(server.url, holds={"max": 5}, sessions={"warm": 0})
    async with Wire(served.url) as flood, Wire(served.url) as neighbour:
        held = await asyncio.gather(*(flood.request("prompts/get", {"name": "p"}) for _ in range(20)))
        assert sorted({answer.status for answer in held}) == [200, 503]
        assert sum(answer.status == 200 for answer in held) == 5
        assert (await neighbour.tool("echo")).text == "done"
        kept = next(answer for answer in held if answer.status == 200)
        assert (await flood.retry(kept, {"name": {"action": "decline"}})).status == 200


async def test_a_body_in_drops_is_given_up_and_holds_up_nobody(served: Served, server: Scripted) -> None:
    """Ours: slow loris on the body."""
    status, body = await sent(served, call()[:-3])
    assert (status, json.loads(body)["error"]["message"]) == (408, "The request body did not arrive in time")
    await is_unharmed(served, server)


async def test_a_client_with_megabytes_to_say_of_itself_is_refused(served: Served, server: Scripted) -> None:
    """Ours: what it declares is kept, for every new name anew."""
    named = {"name": "a", "version": "x" * 1_000_000}
    headers, body = modern("tools/call", name="echo", arguments={})
    body["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] = named
    data = dump(body).encode()
    status, told = await sent(served, written([*headers.items(), ("Content-Length", str(len(data)))], data))
    assert (status, json.loads(told)["error"]["code"]) == (400, -32602)
    assert len(told) < 500
    await is_unharmed(served, server)
