"""What a client said that it can do, on this request and no other."""

from typing import Any

import pytest
from mcp_types import ClientCapabilities

from gateway.eras.capabilities import for_legacy, is_declared, needs, normalise
from gateway.eras.vocabulary import KIND_OF_METHOD, Ask
from gateway.wire.jsonrpc import Raw, encode


def ask(method: str, **params: Any) -> Ask:
    return Ask(
        1, KIND_OF_METHOD[method], method, {name: Raw(encode(value)) for name, value in params.items()}
    )


FORM = ask("elicitation/create", message="?", requestedSchema={"type": "object", "properties": {}})
NAMED_FORM = ask("elicitation/create", mode="form", message="?")
URL = ask("elicitation/create", mode="url", message="?", url="https://x", elicitationId="e")
UNNAMED_URL = ask("elicitation/create", message="?", url="https://x")
ODD = ask("elicitation/create", mode="voice", message="?")
SAMPLING = ask("sampling/createMessage", messages=[], maxTokens=1, tools=None)
CONTEXT = ask("sampling/createMessage", messages=[], maxTokens=1, includeContext="thisServer")
TOOLS = ask("sampling/createMessage", messages=[], maxTokens=1, tools=[])
CHOICE = ask("sampling/createMessage", messages=[], maxTokens=1, toolChoice={"mode": "auto"})
ROOTS = ask("roots/list")


@pytest.mark.requirement("R35")
@pytest.mark.parametrize(
    ("capabilities", "can", "cannot"),
    [
        ({}, [], [FORM, URL, SAMPLING, ROOTS]),
        ({"elicitation": {}}, [FORM, NAMED_FORM], [URL, UNNAMED_URL, ODD, SAMPLING]),
        ({"elicitation": {"form": {}}}, [FORM], [URL]),
        ({"elicitation": {"url": {}}}, [URL, UNNAMED_URL], [FORM, NAMED_FORM]),
        ({"elicitation": {"form": {}, "url": {}}}, [FORM, URL], [ODD]),
        ({"elicitation": {"form": {"applyDefaults": True}}}, [FORM], [URL]),
        ({"elicitation": {"com.example/tone": {}}}, [FORM], [URL]),
        ({"sampling": {}}, [SAMPLING, CONTEXT], [TOOLS, CHOICE, FORM]),
        ({"sampling": {"tools": {}}}, [SAMPLING, TOOLS, CHOICE], []),
        ({"sampling": {"context": {}}}, [SAMPLING, CONTEXT], [TOOLS]),
        ({"roots": {"listChanged": True}}, [ROOTS], [SAMPLING]),
        ({"elicitation": None, "sampling": False, "roots": True}, [ROOTS], [FORM, SAMPLING]),
    ],
)
def test_only_what_was_declared_may_be_asked(
    capabilities: dict[str, Any], can: list[Ask], cannot: list[Ask]
) -> None:
    assert [ask for ask in can if not is_declared(capabilities, ask)] == []
    assert [ask for ask in cannot if is_declared(capabilities, ask)] == []


@pytest.mark.parametrize(
    ("question", "required"),
    [
        (FORM, {"elicitation": {"form": {}}}),
        (URL, {"elicitation": {"url": {}}}),
        (SAMPLING, {"sampling": {}}),
        (CONTEXT, {"sampling": {}}),
        (TOOLS, {"sampling": {"tools": {}}}),
        (ROOTS, {"roots": {}}),
    ],
)
def test_a_need_is_told_as_an_object_of_capability_objects(question: Ask, required: dict[str, Any]) -> None:
    assert needs(question) == required
    ClientCapabilities.model_validate(required)


def test_who_declares_what_an_ask_needs_can_be_asked() -> None:
    for question in (FORM, URL, ODD, SAMPLING, TOOLS, ROOTS):
        assert is_declared(needs(question), question)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"elicitation": {}}, {"elicitation": {"form": {}}}),
        ({"elicitation": {"url": True}}, {"elicitation": {"url": {}}}),
        ({"sampling": True, "roots": None}, {"sampling": {}}),
        ({"experimental": {"x": {"y": 1}}}, {"experimental": {"x": {"y": 1}}}),
        ({"sampling": {"tools": None}}, {"sampling": {}}),
    ],
)
def test_each_meaning_has_one_spelling(written: dict[str, Any], meant: dict[str, Any]) -> None:
    assert normalise(written) == meant
    assert normalise(meant) == meant


EVERYTHING = {
    "roots": {"listChanged": True},
    "sampling": {"tools": {}, "context": {}},
    "elicitation": {"form": {}, "url": {}},
    "experimental": {"com.example/x": {}},
    "extensions": {"io.modelcontextprotocol/tasks": {}},
    "tasks": {"list": {}},
}


@pytest.mark.parametrize(
    ("version", "declared"),
    [
        (
            "2025-11-25",
            {
                "elicitation": {"form": {}, "url": {}},
                "experimental": {"com.example/x": {}},
                "roots": {},
                "sampling": {"context": {}, "tools": {}},
            },
        ),
        (
            "2025-06-18",
            {"elicitation": {}, "experimental": {"com.example/x": {}}, "roots": {}, "sampling": {}},
        ),
        ("2025-03-26", {"experimental": {"com.example/x": {}}, "roots": {}, "sampling": {}}),
    ],
)
def test_a_legacy_server_hears_of_it_in_its_own_words(version: str, declared: dict[str, Any]) -> None:
    assert for_legacy(EVERYTHING, version) == declared


@pytest.mark.requirement("R58")
@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_legacy_server_hears_that_a_client_can_show_its_pages(version: str) -> None:
    """MCP Apps: servers offer tools with a page only to clients that declare them, and their helper looks here."""
    ui = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}
    declared = {"extensions": {**ui, "io.modelcontextprotocol/tasks": {}, "com.example/x": {}}}

    assert for_legacy(declared, version) == {"extensions": ui}


def test_forms_alone_are_declared_as_every_server_understands_them() -> None:
    assert for_legacy({"elicitation": {"form": {}}}, "2025-11-25") == {"elicitation": {}}
    assert for_legacy({"elicitation": {}}, "2025-11-25") == {"elicitation": {}}


def test_a_client_that_only_opens_urls_is_not_passed_off_as_one_with_forms() -> None:
    assert for_legacy({"elicitation": {"url": {}}}, "2025-11-25") == {"elicitation": {"url": {}}}
    assert for_legacy({"elicitation": {"url": {}}}, "2025-06-18") == {}


def test_equal_abilities_are_declared_equally_to_the_byte() -> None:
    one = {"sampling": {}, "elicitation": {}, "roots": {"listChanged": True}}
    other = {"roots": {}, "elicitation": {"form": {}}, "sampling": True}

    assert encode(for_legacy(one, "2025-11-25")) == encode(for_legacy(other, "2025-11-25"))


def test_a_mode_that_cannot_be_read_is_as_good_as_none() -> None:
    """Ours: what was skipped while it was read may turn out to be no text at all; forms are what is left."""
    question = Ask(1, KIND_OF_METHOD["elicitation/create"], "elicitation/create", {"mode": Raw(b'"\xff"')})

    assert needs(question) == needs(FORM)
    assert is_declared({"elicitation": {}}, question)
