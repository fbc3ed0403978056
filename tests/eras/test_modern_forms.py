"""Forms as the libraries of legacy servers write them, in the shapes that 2026-07-28 has."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.eras.asks import input_request
from gateway.eras.modern_forms import modern_form
from gateway.wire.jsonrpc import decode, encode
from tests.support.asking import EVERYTHING, ask
from tests.support.schema_judge import judged

TEXT = {"type": "string"}
NULL = {"type": "null"}
COLOUR = {"type": "string", "enum": ["red", "blue"]}
TITLED = [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]


def form(field: Any, **definitions: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"it": field}, **({"$defs": definitions} if definitions else {})}


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ({"anyOf": [TEXT, NULL], "default": None, "title": "It"}, {"type": "string", "title": "It"}),
        ({"anyOf": [NULL, {"type": "integer", "minimum": 1}]}, {"type": "integer", "minimum": 1}),
        ({"oneOf": [{"type": "boolean"}, NULL]}, {"type": "boolean"}),
        ({"type": ["number", "null"]}, {"type": "number"}),
        ({"$ref": "#/$defs/Colour"}, COLOUR),
        ({"$ref": "#/$defs/Colour", "default": "red"}, {**COLOUR, "default": "red"}),
        ({"allOf": [{"$ref": "#/$defs/Colour"}], "title": "It"}, {**COLOUR, "title": "It"}),
        ({"anyOf": [{"$ref": "#/$defs/Colour"}, NULL]}, COLOUR),
        ({"enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"const": "a", "type": "string"}, {"type": "string", "enum": ["a"]}),
        ({"oneOf": TITLED}, {"type": "string", "oneOf": TITLED}),
        ({"type": "string", "format": "password"}, TEXT),
        ({"type": "string", "format": ["email"]}, TEXT),
        ({"type": "array", "items": {"$ref": "#/$defs/Colour"}}, {"type": "array", "items": COLOUR}),
        ({"type": "array", "items": {"enum": ["a"]}}, {"type": "array", "items": {**TEXT, "enum": ["a"]}}),
        (
            {"type": "array", "items": {"oneOf": TITLED}},
            {"type": "array", "items": {**TEXT, "anyOf": TITLED}},
        ),
        (
            {"anyOf": [{"const": "r"}, TITLED[1]]},
            {**TEXT, "oneOf": [{"const": "r", "title": "r"}, TITLED[1]]},
        ),
        ({"anyOf": [{"anyOf": TITLED}, NULL], "title": "It"}, {**TEXT, "oneOf": TITLED, "title": "It"}),
        ({**COLOUR, "anyOf": TITLED}, {**COLOUR, "anyOf": TITLED}),
        (
            {"type": "array", "items": {"anyOf": [{"const": "r", "title": None}]}},
            {"type": "array", "items": {"anyOf": [{"const": "r", "title": "r"}]}},
        ),
        (
            {"type": "array", "items": {"$ref": "#/$defs/Colour"}, "minItems": 1},
            {"type": "array", "items": COLOUR, "minItems": 1},
        ),
        ({**TEXT, "oneOf": [{"const": "r"}]}, {**TEXT, "oneOf": [{"const": "r", "title": "r"}]}),
        ({**TEXT, "title": None, "description": 7, "minLength": None, "maxLength": "9"}, TEXT),
        ({**TEXT, "minLength": 1.0, "maxLength": 2.5, "default": 7}, {**TEXT, "minLength": 1.0}),
        ({**COLOUR, "enumNames": None, "default": None}, COLOUR),
        ({"type": "integer", "minimum": "0", "maximum": 9.5}, {"type": "integer", "maximum": 9.5}),
        ({"type": "number", "default": True}, {"type": "number"}),
        ({"type": "boolean", "default": "yes"}, {"type": "boolean"}),
        (
            {"type": "array", "items": COLOUR, "minItems": None, "default": "red"},
            {"type": "array", "items": COLOUR},
        ),
    ],
)
def test_what_a_library_writes_is_said_in_the_words_there_are(written: Any, seen: Any) -> None:
    translated = modern_form(form(written, Colour=COLOUR))

    assert translated["properties"] == {"it": seen}
    assert not judged("PrimitiveSchemaDefinition", translated["properties"]["it"])


@pytest.mark.parametrize(
    "field",
    [
        TEXT,
        {"type": "string", "format": "email", "minLength": 1, "default": "a@b.example"},
        {"type": "string", "pattern": "^a$", "x-vendor": [1]},
        COLOUR,
        {"type": "string", "oneOf": TITLED},
        {"type": "array", "items": {"anyOf": TITLED}},
        {"type": "integer", "enum": [1, 2]},
    ],
)
def test_what_can_be_said_is_handed_on_byte_for_byte(field: Any) -> None:
    asked = ask(1, "elicitation/create", message="?", requestedSchema=form(field))

    assert input_request(asked, EVERYTHING)["params"]["requestedSchema"] is asked.params["requestedSchema"]


@pytest.mark.parametrize(
    "field",
    [
        {"$ref": "https://example.invalid/schema.json"},
        {"$ref": "#/$defs/Missing"},
        {"$ref": "#/$defs/Itself"},
        {"type": "object", "properties": {"a": TEXT}},
        {"anyOf": [TEXT, {"type": "integer"}]},
        {"type": "array", "items": TEXT},
        7,
        [],
        None,
    ],
)
def test_what_cannot_be_said_is_handed_on_as_it_is(field: Any) -> None:
    """Ours: some clients understand more than the specification has words for."""
    assert modern_form(form(field, Itself={"$ref": "#/$defs/Itself"}))["properties"] == {"it": field}


@pytest.mark.parametrize("odd", [None, "it", 7, [None], {}])
def test_a_form_is_shown_without_what_no_client_could_read(odd: Any) -> None:
    """Ours: a strict client turns away the whole round for `required: null`."""
    assert modern_form({**form(TEXT), "required": odd, "$schema": [odd]}) == form(TEXT)


def test_a_definition_does_not_unfold_into_megabytes() -> None:
    huge = {"type": "string", "description": "x" * 10_000}
    properties = {f"field{number}": {"$ref": "#/$defs/Huge"} for number in range(10_000)}
    written = {"type": "object", "properties": properties, "$defs": {"Huge": huge}}

    assert len(encode(modern_form(written))) < len(encode(written)) + 70_000


_WORDS = ["$ref", "anyOf", "oneOf", "allOf", "type", "const", "enum", "default", "format", "items", "title"]
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["null", "string", "array", "#/$defs/a", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_WORDS), inner, max_size=4),
    max_leaves=20,
)


@given(_VALUES, _VALUES, st.booleans())
def test_any_form_comes_out_as_one_and_only_once(field: Any, definition: Any, is_whole: bool) -> None:  # noqa: FBT001
    written = form(field, a=definition) if is_whole else {"properties": field, "$defs": definition}

    once = modern_form(written)
    assert once["type"] == "object"
    assert isinstance(once["properties"], dict)
    assert decode(encode(once)) == once
