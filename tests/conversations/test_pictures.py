"""Pictures, sounds and files whose data is not the base64 that it should be, before a client that insists on it."""

from typing import Any

import pytest

from tests.support.gateways import Gateways
from tests.support.peers import ts_client
from tests.support.scripted import Scripted, Turn, ask, introduction, text_result

PICTURE = {"type": "image", "data": "data:image/png;base64,aGk", "mimeType": "image/png"}
SHOWN = {**PICTURE, "data": "aGk="}


async def result_in_typescript(url: str, method: str, **params: Any) -> Any:
    plan = {
        "url": url,
        "capabilities": {"sampling": {}},
        "answers": {"sampling": "seen"},
        "calls": [{"method": method, **params}],
    }
    report = await ts_client(plan)
    assert "result" in report["results"][0], report["results"]
    return report["results"][0]["result"], report["asked"]


async def test_a_picture_as_a_data_url_does_not_lose_the_result(gateway: Gateways) -> None:
    """Ours: the TypeScript client turns away a whole result for data that is not base64 to the letter."""

    async def tool(turn: Turn) -> None:
        await turn.result({"content": [PICTURE, {"type": "text", "text": "a picture"}]})

    async with Scripted(on={"tools/call": tool}) as server:
        served = await gateway(server.url)
        result, _ = await result_in_typescript(served.url, "tools/call", name="echo", arguments={})

    assert result["content"] == [SHOWN, {"type": "text", "text": "a picture"}]


async def test_a_picture_to_look_at_does_not_lose_the_round(gateway: Gateways) -> None:
    """The same, for all questions of a round."""

    async def tool(turn: Turn) -> None:
        await turn.stream()
        params = {"messages": [{"role": "user", "content": PICTURE}], "maxTokens": 10}
        await turn.event(ask(1, "sampling/createMessage", params))
        told = await turn.answered(1) or {}
        await turn.event(turn.answer(text_result(told["result"]["content"]["text"])))
        await turn.finish()

    async with Scripted(on={"tools/call": tool}) as server:
        served = await gateway(server.url)
        result, asked = await result_in_typescript(served.url, "tools/call", name="echo", arguments={})

    assert [question["params"]["messages"][0]["content"] for question in asked] == [SHOWN]
    assert result["content"][0]["text"] == "seen"


@pytest.mark.parametrize(
    ("written", "shown"),
    [({"blob": "aGk"}, {"blob": "aGk="}), ({"blob": "plain words"}, {"text": "plain words"})],
)
async def test_a_file_that_is_not_base64_can_be_read(gateway: Gateways, written: Any, shown: Any) -> None:
    """The same, for what a resource holds."""

    async def initialize(turn: Turn) -> None:
        said = {**introduction(turn.server), "capabilities": {"resources": {}}}
        await turn.result(said, turn.server.new_session())

    async def read(turn: Turn) -> None:
        await turn.result({"contents": [{"uri": "test://a", **written}]})

    async with Scripted(on={"initialize": initialize, "resources/read": read}) as server:
        served = await gateway(server.url)
        result, _ = await result_in_typescript(served.url, "resources/read", uri="test://a")

    assert result["contents"] == [{"uri": "test://a", **shown}]
