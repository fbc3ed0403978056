"""What libraries write where the protocol has fewer words: forms for clients, and answers for servers."""

from enum import Enum

import pytest
from pydantic import BaseModel

from tests.support.gateways import Gateways
from tests.support.peers import LegacyServers, ts_client
from tests.support.scripted import Scripted, Turn, ask, text_result
from tests.support.wire import Wire, sampled


class Colour(Enum):
    """Written as a definition, and a reference to it."""

    RED = "red"
    BLUE = "blue"


class Profile(BaseModel):
    """Most of it need not be filled in."""

    name: str
    nickname: str | None = None
    colour: Colour = Colour.RED


async def test_a_strict_client_can_show_a_form_that_a_library_wrote(gateway: Gateways) -> None:
    """Ours: `anyOf` with null, and `$ref`, are no words of the modern grammar, and one spoils the whole round."""

    async def tool(turn: Turn) -> None:
        await turn.stream()
        await turn.event(ask(1, params={"message": "?", "requestedSchema": Profile.model_json_schema()}))
        told = await turn.answered(1) or {}
        await turn.event(turn.answer(text_result(str(told.get("result")))))
        await turn.finish()

    async with Scripted(on={"tools/call": tool}) as server:
        served = await gateway(server.url)
        report = await ts_client(
            {
                "url": served.url,
                "answers": {"elicitation": [{"action": "accept", "content": {"name": "Ann"}}]},
                "calls": [{"method": "tools/call", "params": {"name": "echo", "arguments": {}}}],
            }
        )

    assert (
        report["results"][0]["result"]["content"][0]["text"]
        == "{'action': 'accept', 'content': {'name': 'Ann'}}"
    )


@pytest.mark.parametrize("kind", ["py-1.12", "py-1.30", "ts-1.12", "ts-1.32"])
async def test_an_answer_that_says_what_it_does_not_have_is_taken(
    legacy_servers: LegacyServers, gateway: Gateways, kind: str
) -> None:
    """Ours: TypeScript servers answer 400 to a null there, and the call was lost."""
    served = await gateway(legacy_servers.get(kind).url)

    async with Wire(served.url) as wire:
        asked = await wire.tool("sample")
        said = {**sampled("Rome"), "stopReason": None, "_meta": None}
        done = await wire.retry(asked, {"sampling-1": said})

    assert done.text == "Rome"
