"""The handshake is made in the newest words, and where these are refused in older ones that say the same."""

import asyncio
from typing import Any

import pytest

from gateway.errors import GatewayError, UpstreamLost, UpstreamRefused, UpstreamSpokeNonsense
from gateway.upstreams.handshake import shake_hands
from tests.support.channels import HELLO, FakeChannel, Json

ABLE: Json = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}},
    "roots": {},
}
PLAIN: Json = {"elicitation": {}, "sampling": {}, "roots": {}}


async def introduced(channel: FakeChannel) -> str:
    async with asyncio.timeout(5):
        return (await shake_hands(channel, "i", {"name": "c", "version": "1"}, ABLE)).version


def declines(*, code: int = -32603, data: Any = None, accepts: str = "2025-06-18") -> FakeChannel:
    """A server that answers every handshake with an error that is not made in words of this revision."""
    channel = FakeChannel(session_id=None)

    async def hello(message: Json, channel: FakeChannel) -> Json | None:
        if message["params"]["protocolVersion"] == accepts:
            return {**HELLO, "protocolVersion": accepts}
        error = {"code": code, "message": "no", **({} if data is None else {"data": data})}
        channel.say({"jsonrpc": "2.0", "id": message["id"], "error": error})
        return None

    channel.on["initialize"] = hello
    return channel


async def test_a_server_that_stumbles_at_details_is_told_without_them() -> None:
    """Java before 0.17 over stdio and HTTP+SSE: -32603, Unrecognized field "form"."""
    channel = declines()

    assert await introduced(channel) == "2025-06-18"
    first, second = channel.sent
    assert first["params"]["capabilities"] == ABLE
    assert second["params"]["capabilities"] == PLAIN
    assert first["id"] != second["id"]


async def test_a_server_that_refuses_with_400_is_told_without_them() -> None:
    """Java before 0.17 over Streamable HTTP: 400, with an error that is no JSON-RPC."""
    channel = FakeChannel(session_id=None)

    async def hello(message: Json, _: FakeChannel) -> Json:
        if message["params"]["capabilities"] != PLAIN:
            raise UpstreamRefused(400)
        return {**HELLO, "protocolVersion": "2025-06-18"}

    channel.on["initialize"] = hello
    assert await introduced(channel) == "2025-06-18"


async def test_a_server_that_names_the_revisions_it_speaks_is_spoken_to_in_the_newest_of_them() -> None:
    """The example of an error in every revision's "Lifecycle": Unsupported protocol version."""
    supported = {"supported": ["2023-01-01", "2024-11-05", "2025-03-26"], "requested": "2025-11-25"}
    channel = declines(code=-32602, data=supported, accepts="2025-03-26")

    assert await introduced(channel) == "2025-03-26"
    assert len(channel.sent) == 2


@pytest.mark.parametrize(
    "data",
    [
        {"supported": ["2023-01-01"]},
        {"supported": ["2025-11-25"]},
        {"supported": "2024-11-05"},
        ["2024-11-05"],
        3,
    ],
)
async def test_an_error_that_names_none_of_ours_says_nothing_about_revisions(data: Any) -> None:
    assert await introduced(declines(data=data)) == "2025-06-18"


async def test_a_server_that_refuses_both_is_asked_no_third_time_and_its_first_word_counts() -> None:
    channel = declines(accepts="never")

    with pytest.raises(UpstreamSpokeNonsense, match="error -32603"):
        await introduced(channel)
    assert len(channel.sent) == 2


@pytest.mark.parametrize(
    "refusal", [UpstreamRefused(404), UpstreamRefused(500), UpstreamLost("gone")], ids=repr
)
async def test_what_says_nothing_about_the_words_is_final(refusal: GatewayError) -> None:
    channel = FakeChannel(session_id=None)

    async def hello(_: Json, __: FakeChannel) -> None:
        raise refusal

    channel.on["initialize"] = hello
    with pytest.raises(type(refusal)):
        await introduced(channel)
    assert len(channel.sent) == 1


async def test_a_session_that_was_begun_all_the_same_is_not_introduced_to_again() -> None:
    """The second handshake would carry the id of the session in which the first one failed."""
    channel = declines()
    channel.session_id = "begun"

    with pytest.raises(UpstreamSpokeNonsense):
        await introduced(channel)
    assert len(channel.sent) == 1
