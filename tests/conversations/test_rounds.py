"""Rounds on the wire: what a question looks like, and what becomes of answers, good and bad."""

import json

import pytest

from tests.support.gateways import Gateways
from tests.support.peers import LegacyServers, Running
from tests.support.seen import seen_by, unique
from tests.support.verdicts import SERVER_INFO
from tests.support.wire import Wire, accept, sampled

NAME_FORM = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}


@pytest.mark.requirement("R5", "R22", "R23", "R34")
async def test_a_question_is_exactly_what_the_specification_shows(newest: Running, gateway: Gateways) -> None:
    """Spec: basic/patterns/mrtr, InputRequiredResult; neither ids nor legacy members are left in it."""
    served = await gateway(newest.url)

    async with Wire(served.url) as wire:
        asked = await wire.tool("ask_name", {"tag": "t"})

    assert (asked.status, asked.is_json) == (200, True)
    assert asked.message.keys() == {"jsonrpc", "id", "result"}
    assert asked.result.keys() == {"resultType", "inputRequests", "requestState", "_meta"}
    assert asked.result["_meta"].keys() == {SERVER_INFO}
    (key, question) = next(iter(asked.asked.items()))
    assert key == "name"
    assert question["method"] == "elicitation/create"
    params = question["params"]
    assert params.pop("mode", "form") == "form"
    assert params == {"message": "What is your name? [t]", "requestedSchema": NAME_FORM}


@pytest.mark.requirement("R36")
async def test_the_state_tells_nothing_to_who_reads_it(newest: Running, gateway: Gateways) -> None:
    """Design: the ticket is sealed; not even its base64 holds a readable word."""
    served = await gateway(newest.url)

    async with Wire(served.url) as wire:
        asked = await wire.tool("ask_name", {"tag": "visible-tag"})
        second = await wire.tool("ask_name", {"tag": "visible-tag"})

    assert asked.state.isascii()
    assert set(asked.state) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    assert asked.state != second.state
    assert "ask_name" not in asked.state


@pytest.mark.requirement("R37")
async def test_only_what_is_missing_is_asked_again(newest: Running, gateway: Gateways) -> None:
    """Spec: mrtr, "Error Handling"; the given answer is kept, clients do not send it twice."""
    served = await gateway(newest.url, settle="200ms")

    async with Wire(served.url) as wire:
        both = await wire.tool("ask_two_parallel")
        rest = await wire.retry(both, {"first": accept(first="Ada")})
        still = await wire.retry(rest)
        done = await wire.retry(still, {"last": accept(last="Lovelace")})

    assert set(both.asked) == {"first", "last"}
    assert set(rest.asked) == {"last"}
    assert still.asked == rest.asked
    assert len({both.state, rest.state, still.state}) == 3
    assert done.text == "Ada Lovelace"


@pytest.mark.requirement("R37")
async def test_answers_nobody_asked_for_are_ignored(newest: Running, gateway: Gateways) -> None:
    """Spec: mrtr, "Error Handling"."""
    served = await gateway(newest.url)

    async with Wire(served.url) as wire:
        asked = await wire.tool("ask_name")
        done = await wire.retry(asked, {"nobody": {"what": 1}, "name": accept(name="Ann"), "": {}})

    assert done.text == "Hello Ann"


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([], id="a list"),
        pytest.param("yes", id="a word"),
        pytest.param({"name": None}, id="null for an answer"),
        pytest.param({"name": "Ann"}, id="a word for an answer"),
        pytest.param({"name": {}}, id="no action"),
        pytest.param({"name": {"action": "perhaps"}}, id="an unknown action"),
        pytest.param({"name": {"action": True}}, id="an action that is no word"),
        pytest.param({"name": {"action": "accept", "content": ["Ann"]}}, id="content that is no object"),
        pytest.param({"name": {"roots": []}}, id="an answer to another question"),
    ],
)
@pytest.mark.requirement("R37")
async def test_a_malformed_answer_is_refused_and_the_right_one_still_works(
    legacy_servers: LegacyServers, gateway: Gateways, answers: object
) -> None:
    """Design: malformed -> -32602, the hold untouched."""
    server = legacy_servers.get("py-1.30")
    served = await gateway(server.url)
    tag = unique()

    async with Wire(served.url) as wire:
        asked = await wire.tool("ask_name", {"tag": tag})
        refused = await wire.retry(asked, answers)
        done = await wire.retry(asked, {"name": accept(name="Ann")})

    assert (refused.status, refused.error["code"]) == (400, -32602)
    assert refused.error.get("data", {}).get("reason") != "invalid_request_state"
    assert done.text == f"Hello Ann from {tag}"
    assert len((await seen_by(server)).calls(tag=tag)) == 1


@pytest.mark.parametrize("answer", [{}, {"role": "assistant", "content": "Paris", "model": "m"}, accept(a=1)])
@pytest.mark.requirement("R37")
async def test_malformed_answers_for_a_model_are_refused_too(
    newest: Running, gateway: Gateways, answer: dict[str, object]
) -> None:
    """Design: each kind of question has its own shape of answer."""
    served = await gateway(newest.url)

    async with Wire(served.url) as wire:
        asked = await wire.tool("sample")
        refused = await wire.retry(asked, {"sampling-1": answer})
        done = await wire.retry(asked, {"sampling-1": sampled("Rome")})

    assert (refused.status, refused.error["code"]) == (400, -32602)
    assert done.text == "Rome"


async def test_an_answer_that_does_not_fit_is_asked_for_again(newest: Running, gateway: Gateways) -> None:
    """Design: `reask`; legacy servers would fail the whole call (LEGACY-WIRE 6)."""
    served = await gateway(newest.url)

    async with Wire(served.url) as wire:
        asked = await wire.tool("ask_profile")
        (key,) = asked.asked
        again = await wire.retry(asked, {key: accept(name="", age=-1)})
        more = await wire.retry(again, {key: {"action": "accept"}})
        done = await wire.retry(more, {key: accept(name="Ann", age=42, colour="red")})

    assert again.asked == asked.asked
    assert more.asked == asked.asked
    assert json.loads(done.text) == {"name": "Ann", "age": 42, "colour": "red"}


@pytest.mark.parametrize("policy", ["forward", "error"])
async def test_what_does_not_fit_is_forwarded_or_refused_if_the_operator_says_so(
    newest: Running, gateway: Gateways, policy: str
) -> None:
    """Design: `invalid: reask | forward | error`."""
    served = await gateway(newest.url, asks={"invalid": policy})

    async with Wire(served.url) as wire:
        asked = await wire.tool("ask_profile")
        (key,) = asked.asked
        bad = await wire.retry(asked, {key: accept(name="", age=-1)})
        if policy == "forward":
            assert bad.result["isError"] is True  # the server's own verdict
        else:
            assert bad.error["code"] == -32602
            done = await wire.retry(asked, {key: accept(name="Ann", age=1)})
            assert json.loads(done.text) == {"name": "Ann", "age": 1}


async def test_the_first_drafts_form_of_an_answer_is_understood(newest: Running, gateway: Gateways) -> None:
    """Seeds: the first draft wrapped each answer as `{"result": ...}`."""
    served = await gateway(newest.url, settle="200ms")

    async with Wire(served.url) as wire:
        asked = await wire.tool("two_kinds")
        done = await wire.retry(
            asked, {"name": {"result": accept(name="octocat")}, "sampling-1": {"result": sampled("Rome")}}
        )

    assert done.text == "octocat: Rome"


async def test_answers_sent_ahead_are_used_and_the_rest_is_asked(newest: Running, gateway: Gateways) -> None:
    """Spec: mrtr lets a client that knows the questions answer at once; no round is spent on those."""
    served = await gateway(newest.url)
    first, last = {"first": accept(first="Ada")}, {"last": accept(last="Lovelace")}

    async with Wire(served.url) as wire:
        call = {"name": "ask_two_serial", "arguments": {}}
        whole = await wire.request("tools/call", call, {"inputResponses": {**first, **last, "x": accept()}})
        half = await wire.request("tools/call", call, {"inputResponses": first})
        done = await wire.retry(half, last)
        bad = await wire.request("tools/call", call, {"inputResponses": {"first": accept(first=1)}})

    assert whole.text == "Ada Lovelace"
    assert set(half.asked) == {"last"}
    assert done.text == "Ada Lovelace"
    assert set(bad.asked) == {"first"}
