"""A form as pydantic writes it for a legacy server, shown by a client that reads each field by the grammar."""

from enum import Enum

from pydantic import BaseModel

from tests.support.gateways import Gateways
from tests.support.peers import ts_client
from tests.support.scripted import Scripted, Turn, ask, text_result


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
