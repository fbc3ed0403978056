"""An upstream's 401 is handed on; what it says in `WWW-Authenticate` only where it is fit to be a header of ours."""

from typing import Any

import pytest

from tests.support.gateways import Gateways
from tests.support.scripted import Scripted, Turn
from tests.support.scripted_sse import ScriptedSse
from tests.support.wire import Wire

SETTINGS: dict[str, Any] = {"auth": {"mode": "passthrough"}, "sessions": {"warm": 0}}
LEFT_OUT = {
    "no UTF-8": b"Bearer \xff",
    "a surrogate": b"Bearer \xed\xa0\x80",
    "longer than clients read": b"B" * 9000,
    "much longer": b"B" * 40_000,
}
NO_HTTP = {
    "NUL": b"Bearer \x00",
    "control": b"Bearer \x01",
    "DEL": b"Bearer a\x7f",
    "escape": b"Bearer \x1b[31m",
    "CR": b"Bearer a\rX-Evil: y",
    "LF": b"Bearer a\nX-Evil: y",
    "folded": b"Bearer a\r\n X-Evil: y",
}


def challenging(server: Scripted, challenge: bytes) -> None:
    """From now on calls are refused like this."""

    async def refuse(turn: Turn) -> None:
        head = b"HTTP/1.1 401 No\r\nWWW-Authenticate: %s\r\nContent-Length: 0\r\n\r\n"
        await turn.write(head % challenge)

    server.on["tools/call"] = refuse


@pytest.mark.parametrize("challenge", LEFT_OUT.values(), ids=LEFT_OUT.keys())
@pytest.mark.parametrize("kind", [Scripted, ScriptedSse], ids=["streamable", "sse"])
async def test_what_no_header_may_carry_is_left_out_and_the_401_stays(
    gateway: Gateways, kind: type[Scripted], challenge: bytes
) -> None:
    """Ours: injected bytes, or a header so long that the client could not read the refusal at all."""
    async with kind() as server:
        challenging(server, challenge)
        served = await gateway(server.url, **SETTINGS)
        async with Wire(served.url, authorization="Bearer t") as client:
            heard = await client.tool("echo")
            server.on.pop("tools/call")
            assert (await client.tool("echo")).text == "done"
    assert heard.status == 401
    assert "WWW-Authenticate" not in heard.headers


@pytest.mark.parametrize("challenge", NO_HTTP.values(), ids=NO_HTTP.keys())
async def test_what_is_no_http_is_no_answer(gateway: Gateways, challenge: bytes) -> None:
    """RFC 9110, 5.5: CR, LF and NUL in a value are dangerous. Nothing of such a response is believed."""
    async with Scripted() as server:
        challenging(server, challenge)
        served = await gateway(server.url, **SETTINGS)
        async with Wire(served.url, authorization="Bearer t") as client:
            heard = await client.tool("echo")
            server.on.pop("tools/call")
            assert (await client.tool("echo")).text == "done"
    assert (heard.status, heard.error["code"]) == (200, -32603)
    assert not {"WWW-Authenticate", "X-Evil"} & set(heard.headers)


@pytest.mark.parametrize(
    "challenge", ['Bearer realm="é"', "Bearer a\tb", "B" * 4096], ids=["é", "tab", "long"]
)
async def test_what_is_fit_goes_on_as_it_came(gateway: Gateways, challenge: str) -> None:
    """Issue: a token that the upstream rejects is a 401 with its `WWW-Authenticate`."""
    async with Scripted() as server:
        challenging(server, challenge.encode())
        served = await gateway(server.url, **SETTINGS)
        async with Wire(served.url, authorization="Bearer t") as client:
            heard = await client.tool("echo")
    assert (heard.status, heard.headers["WWW-Authenticate"]) == (401, challenge)
