"""A header that says who asks, or what, comes once: whoever stands before us may have read the other one."""

import asyncio
import json
from typing import Any

import pytest

from tests.fuzz.http_requests import legacy, modern, written
from tests.fuzz.mutation import dump
from tests.support.gateways import Gateways
from tests.support.scripted import Scripted
from tests.support.wire import Wire

SECONDS = 5.0
CREDENTIAL = "Bearer ada"
ONCE = {
    "Host": "evil.example",
    "Origin": "http://evil.example",
    "Authorization": "Bearer eve",
    "Mcp-Session-Id": "another",
    "Mcp-Protocol-Version": "2025-06-18",
    "Mcp-Method": "tools/list",
    "Content-Length": "5",
    "Content-Type": "text/plain",
}
CLIENTS = {"modern": modern, "legacy": legacy}


def request(era: str, double: str, *, is_same: bool) -> bytes:
    """A request that is good, but for one header that comes a second time."""
    headers, body = CLIENTS[era]("tools/call", name="echo", arguments={})
    data = dump(body).encode()
    whole = {
        **{name.title(): value for name, value in headers.items()},
        "Origin": "http://127.0.0.1",
        "Authorization": CREDENTIAL,
        "Content-Length": str(len(data)),
    }
    if era == "legacy" or double == "Mcp-Session-Id":
        whole["Mcp-Session-Id"] = "mine"
    if double not in whole:
        whole[double] = ONCE[double]
    again = whole[double] if is_same else ONCE[double]
    return written([*whole.items(), (double.lower(), again)], data)


async def told(url: str, data: bytes) -> tuple[int, Any]:
    """The status and the message of the answer."""
    host, port = url.removeprefix("http://").removesuffix("/mcp").split(":")
    async with asyncio.timeout(SECONDS):
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(data)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            return int(head.split(b" ")[1]), json.loads(await reader.readexactly(length))
        finally:
            writer.close()


@pytest.mark.parametrize("is_same", [True, False], ids=["same", "other"])
@pytest.mark.parametrize("double", ONCE)
@pytest.mark.parametrize("era", CLIENTS)
@pytest.mark.parametrize("auth", ["none", "passthrough"])
async def test_a_header_that_comes_twice_is_a_400_that_no_server_hears_of(
    gateway: Gateways, auth: str, era: str, double: str, *, is_same: bool
) -> None:
    """Issue: header smuggling (duplicates)."""
    async with Scripted() as server:
        served = await gateway(server.url, era="legacy", auth={"mode": auth}, sessions={"warm": 0})
        status, message = await told(served.url, request(era, double, is_same=is_same))
        assert not server.seen("tools/call")
        async with Wire(served.url, authorization=CREDENTIAL) as client:
            assert (await client.tool("echo")).text == "done"
    assert (status, message["jsonrpc"]) == (400, "2.0")
    assert message["error"]["code"] < 0
    assert "evil" not in json.dumps(message)
