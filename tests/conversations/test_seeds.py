"""The examples of the documents that this product was born from, message for message."""

import pytest

from tests.support.gateways import Gateways
from tests.support.peers import Running
from tests.support.wire import Wire, accept, sampled

GITHUB = {
    "method": "elicitation/create",
    "params": {
        "message": "Please provide your GitHub username",
        "requestedSchema": {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        },
    },
}
WEATHER = "Current weather in New York:\nTemperature: 72°F\nConditions: Partly cloudy"
BUG = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
RESOLVED = "Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created."
KEYS = {
    "get_weather": ["github_login"],
    "update_work_item": ["resolution", "duplicate_of"],
    "two_kinds": ["github_login", "capital_of_france"],
}


def without_mode(question: dict[str, object]) -> dict[str, object]:
    """Newer servers write `mode: form`, which is what its absence means."""
    params = question["params"]
    assert isinstance(params, dict)
    assert params.get("mode", "form") == "form"
    kept = {name: value for name, value in params.items() if name != "mode"}
    return {**question, "params": kept}


@pytest.mark.requirement("R34")
@pytest.mark.parametrize("wrapped", [False, True], ids=["final form", "first draft's form"])
async def test_the_weather_is_told_once_the_github_login_is_known(
    newest: Running, gateway: Gateways, *, wrapped: bool
) -> None:
    """Seeds: the basic workflow."""
    served = await gateway(newest.url, input_keys=KEYS)
    octocat = accept(name="octocat")

    async with Wire(served.url) as wire:
        asked = await wire.tool("get_weather", {"location": "New York"})
        done = await wire.retry(asked, {"github_login": {"result": octocat} if wrapped else octocat})

    assert list(asked.asked) == ["github_login"]
    assert without_mode(asked.asked["github_login"]) == GITHUB
    assert done.text == WEATHER
    assert not done.result.get("isError")


async def test_a_bug_is_resolved_as_a_duplicate_in_two_rounds(newest: Running, gateway: Gateways) -> None:
    """Seeds: Azure DevOps custom rules, one question leading to the next."""
    served = await gateway(newest.url, input_keys=KEYS)

    async with Wire(served.url) as wire:
        first = await wire.tool("update_work_item", BUG)
        second = await wire.retry(first, {"resolution": accept(resolution="Duplicate")})
        done = await wire.retry(second, {"duplicate_of": accept(duplicateOfId=4301)})

    asked = first.asked["resolution"]["params"]
    assert asked["message"] == "Resolving Bug #4522 requires a resolution. How was this bug resolved?"
    assert asked["requestedSchema"]["properties"]["resolution"]["enum"] == [
        "Fixed",
        "Won't Fix",
        "Duplicate",
        "By Design",
    ]
    assert list(second.asked) == ["duplicate_of"]
    assert second.asked["duplicate_of"]["params"]["requestedSchema"]["required"] == ["duplicateOfId"]
    assert first.state != second.state
    assert done.text == RESOLVED


async def test_the_first_answer_may_come_without_a_state(newest: Running, gateway: Gateways) -> None:
    """Seeds: in the example the first retry carries no requestState; it is a new call with an answer sent ahead."""
    served = await gateway(newest.url, input_keys=KEYS)
    call = {"name": "update_work_item", "arguments": BUG}
    resolution = {"resolution": {"result": accept(resolution="Duplicate")}}

    async with Wire(served.url) as wire:
        second = await wire.request("tools/call", call, {"inputResponses": resolution})
        done = await wire.retry(second, {"duplicate_of": {"result": accept(duplicateOfId=4301)}})

    assert list(second.asked) == ["duplicate_of"]
    assert done.text == RESOLVED


@pytest.mark.requirement("R34")
async def test_two_kinds_of_request_come_in_one_result(newest: Running, gateway: Gateways) -> None:
    """Seeds: inputRequests with an elicitation and a sampling request, every member of it kept."""
    served = await gateway(newest.url, settle="200ms")

    async with Wire(served.url) as wire:
        asked = await wire.tool("two_kinds")
        done = await wire.retry(asked, {"name": accept(name="octocat"), "sampling-1": sampled("Paris")})

    assert without_mode(asked.asked["name"]) == GITHUB
    assert asked.asked["sampling-1"]["method"] == "sampling/createMessage"
    wanted = asked.asked["sampling-1"]["params"]
    assert wanted["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "What is the capital of France?"}}
    ]
    assert wanted["modelPreferences"] == {
        "hints": [{"name": "claude-3-sonnet"}],
        "intelligencePriority": 0.8,
        "speedPriority": 0.5,
    }
    assert (wanted["systemPrompt"], wanted["maxTokens"]) == ("You are a helpful assistant.", 100)
    assert done.text == "octocat: Paris"


@pytest.mark.requirement("R37")
async def test_unexpected_data_is_ignored_and_the_question_put_again(
    newest: Running, gateway: Gateways
) -> None:
    """Seeds: "Client sends unexpected data"; with a state, and without one."""
    served = await gateway(newest.url, input_keys=KEYS)
    call = {"name": "get_weather", "arguments": {"location": "New York"}}
    unexpected = {
        "not_requested_info": accept(not_requested_param_name="Information the server did not request")
    }

    async with Wire(served.url) as wire:
        fresh = await wire.request("tools/call", call, {"inputResponses": unexpected})
        again = await wire.retry(fresh, unexpected)
        misfit = await wire.retry(again, {"github_login": accept(not_requested_parameter="x")})
        done = await wire.retry(misfit, {"github_login": accept(name="octocat")})

    assert without_mode(fresh.asked["github_login"]) == GITHUB
    assert again.asked == fresh.asked
    assert misfit.asked == fresh.asked
    assert done.text == WEATHER
