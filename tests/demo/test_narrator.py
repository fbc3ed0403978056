"""The narration: what a reader sees of an exchange, and what the client answers on the reader's behalf."""

import io

import pytest

from gateway.demo.legacy_server import Sighting
from gateway.demo.modern_client import Json, Round
from gateway.demo.narrator import Narrator, result_text, shorten
from gateway.demo.terminal import Terminal

STATE = "abcdefghijklm" + "x" * 400 + "nopqrstuvwxyz"
FORM: Json = {
    "method": "elicitation/create",
    "params": {"message": "When?", "requestedSchema": {"properties": {"time": {"type": "string"}}}},
}


class Page(io.StringIO):
    encoding = "utf-8"


@pytest.fixture
def page() -> Page:
    return Page()


@pytest.fixture
def narrator(page: Page) -> Narrator:
    return Narrator(Terminal(page, colour=False), is_interactive=False)


def received(result: Json) -> Round:
    return Round("received", "tools/call", {"id": 1, "result": result})


def sent(**more: object) -> Round:
    return Round("sent", "tools/call", {"id": 1, "params": {"name": "book_table", "arguments": {}, **more}})


INPUT_REQUIRED: Json = {
    "resultType": "input_required",
    "inputRequests": {"time": FORM},
    "requestState": STATE,
}


def test_the_state_is_shortened(narrator: Narrator, page: Page) -> None:
    narrator.heard(Sighting("asked", "s" * 32, {"id": 0, **FORM}))
    narrator.saw(received(INPUT_REQUIRED))

    assert STATE not in page.getvalue()
    assert "abcdefgh…stuvwxyz  (sealed, 426 bytes)" in page.getvalue()
    assert narrator.asks == 1


def test_results_fit_into_eighty_columns_too(page: Page) -> None:
    """Ours: the terminal broke them in the middle of a word, where no column is."""
    narrator = Narrator(Terminal(page, colour=False, width=80), is_interactive=False)
    narrator.saw(received({"resultType": "complete", "content": [{"type": "text", "text": "knot " * 20}]}))
    assert all(len(line) <= 80 for line in page.getvalue().splitlines())


def test_only_the_first_handshake_is_told(narrator: Narrator, page: Page) -> None:
    for session in ("a" * 32, "b" * 32):
        narrator.heard(Sighting("opened", session, {"protocolVersion": "2025-11-25"}))

    assert page.getvalue().count("initialize") == 1


def test_a_question_that_the_server_did_not_ask_again_is_told_as_the_gateways(
    narrator: Narrator, page: Page
) -> None:
    narrator.saw(sent())
    narrator.heard(Sighting("asked", "s", {"id": 0, **FORM}))
    narrator.saw(received(INPUT_REQUIRED))
    assert "asks again" not in page.getvalue()

    narrator.saw(sent(inputResponses={"time": {"action": "accept", "content": {"time": 7}}}))
    narrator.saw(received(INPUT_REQUIRED))
    assert "Holdfast asks again" in page.getvalue()
    assert narrator.rounds == 2


def test_both_streams_of_the_back_channel_are_named(narrator: Narrator, page: Page) -> None:
    narrator.heard(Sighting("asked", "s", {"id": 0, **FORM}, "POST"))
    sampling = {
        "id": 1,
        "method": "sampling/createMessage",
        "params": {"messages": [{"content": {"text": "long"}}]},
    }
    narrator.heard(Sighting("asked", "s", sampling, "GET"))

    assert "on the POST stream: elicitation/create, id 0" in page.getvalue()
    assert "on the GET stream: sampling/createMessage, id 1" in page.getvalue()
    assert "long" in page.getvalue()


async def test_nobody_typing_is_answered_for(narrator: Narrator, page: Page) -> None:
    assert await narrator.answer("time", FORM) == {"action": "accept", "content": {"time": "20:45"}}
    model = await narrator.answer("sampling-1", {"method": "sampling/createMessage", "params": {}})
    assert (model["role"], model["content"]["type"]) == ("assistant", "text")
    assert "answered for you" in page.getvalue()


async def test_the_word_decline_declines(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    async def typed(*_: object) -> str:
        return "decline"

    terminal = Terminal(page, colour=False)
    monkeypatch.setattr(terminal, "ask", typed)
    narrator = Narrator(terminal, is_interactive=True)

    assert await narrator.answer("time", FORM) == {"action": "decline"}


async def test_a_kind_of_question_that_it_does_not_know_is_an_error(narrator: Narrator) -> None:
    with pytest.raises(ValueError, match="roots/list"):
        await narrator.answer("roots-1", {"method": "roots/list"})


def test_text_and_tokens_are_put_short() -> None:
    assert result_text({"content": [{"type": "text", "text": "a"}, {"type": "image"}]}) == "a"
    assert shorten("short") == "short"
