"""Filled-in forms against schemas that a server wrote, some of them with ill intent."""

import socket
import time
from pathlib import Path
from typing import Any

import pytest

from gateway.eras.forms import fits

NAMED = {"type": "object", "properties": {"name": {"type": "string", "minLength": 2}}, "required": ["name"]}
WRONG: dict[str, Any] = {"name": 7}
PATIENCE = 0.5
"""Seconds. The bombs below take minutes, or for ever, where they go off."""


def unfolding(levels: int) -> dict[str, Any]:
    """A schema of a few lines that is 2**levels to validate."""
    each = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**each, f"d{levels}": {}}}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (NAMED, {"name": "Ada", "extra": 1}, {"name": "A"}),
        (NAMED, {"name": "Ada"}, {}),
        ({"properties": {"n": {"type": "integer", "maximum": 9}}}, {"n": 9}, {"n": 10}),
        ({"properties": {"n": {"type": "number"}}}, {"n": 1.5}, {"n": "1.5"}),
        ({"properties": {"b": {"type": "boolean"}}}, {"b": False}, {"b": 0}),
        ({"properties": {"c": {"enum": ["red", "blue"]}}}, {"c": "red"}, {"c": "green"}),
        (
            {"properties": {"c": {"oneOf": [{"const": "r", "title": "Red"}, {"const": "b"}]}}},
            {"c": "r"},
            {"c": "g"},
        ),
        (
            {"properties": {"c": {"type": "array", "items": {"enum": ["r", "b"]}, "maxItems": 1}}},
            {"c": ["r"]},
            {"c": ["r", "b"]},
        ),
        ({"properties": {"p": {"pattern": "^[0-9]{3}$"}}}, {"p": "123"}, {"p": "12"}),
        ({"additionalProperties": False, "properties": {"a": {}}}, {"a": 1}, {"b": 1}),
    ],
)
def test_what_a_form_can_ask_for_is_judged(schema: Any, good: Any, bad: Any) -> None:
    assert fits(schema, good)
    assert not fits(schema, bad)


def test_definitions_as_pydantic_writes_them_are_judged() -> None:
    schema = {
        "$defs": {"Colour": {"enum": ["red", "blue"], "type": "string"}},
        "properties": {
            "c": {"$ref": "#/$defs/Colour"},
            "o": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["c"],
        "type": "object",
    }

    assert fits(schema, {"c": "red", "o": None})
    assert not fits(schema, {"c": "green"})


def test_no_schema_asks_for_nothing() -> None:
    assert fits({}, {"anything": [1]})


def test_formats_are_the_servers_to_judge() -> None:
    assert fits({"properties": {"mail": {"type": "string", "format": "email"}}}, {"mail": "ada"})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"properties": 7},
        {"properties": {"name": {"pattern": "("}}},
        {"$schema": 7},
        {"$schema": "https://example.invalid/dialect"},
        {"required": "name"},
        {"$ref": "#/$defs/missing"},
        {"properties": {"name": {"$ref": 7}}},
    ],
)
def test_a_broken_schema_is_left_to_the_server_that_wrote_it(schema: dict[str, Any]) -> None:
    assert fits(schema, WRONG)


NEEDS_B_BESIDE_A: dict[str, Any] = {"if": {"required": ["a"]}, "then": {"required": ["b"]}}
FIRST_IS_TEXT: dict[str, Any] = {"properties": {"a": {"prefixItems": [{"type": "string"}]}}}
MORE_THAN_FIVE: dict[str, Any] = {"properties": {"a": {"minimum": 5, "exclusiveMinimum": True}}}
ONE: dict[str, Any] = {"properties": {"a": {"const": 1}}}
DIALECTS: list[tuple[str | None, str, list[dict[str, Any]]]] = [
    (None, "2020-12", [FIRST_IS_TEXT, NEEDS_B_BESIDE_A, ONE]),
    ("https://json-schema.org/draft/2020-12/schema", "2020-12", [FIRST_IS_TEXT, NEEDS_B_BESIDE_A, ONE]),
    ("https://json-schema.org/draft/2019-09/schema", "2019-09", [NEEDS_B_BESIDE_A, ONE]),
    ("http://json-schema.org/draft-07/schema#", "draft 7", [NEEDS_B_BESIDE_A, ONE]),
    ("http://json-schema.org/draft-06/schema#", "draft 6", [ONE]),
    ("http://json-schema.org/draft-04/schema#", "draft 4", [MORE_THAN_FIVE]),
]
"""With the keywords that each knows, and others of them do not."""


@pytest.mark.requirement("R60")
@pytest.mark.parametrize(("dialect", "_", "known"), DIALECTS)
def test_a_schema_is_judged_by_the_dialect_that_it_names(
    dialect: str | None, _: str, known: list[dict[str, Any]]
) -> None:
    """Spec: basic/index, "Schema Dialect": 2020-12 if it names none."""
    named = {} if dialect is None else {"$schema": dialect}
    wrong = {"a": [1]}
    broken_by: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (FIRST_IS_TEXT, wrong),
        (NEEDS_B_BESIDE_A, wrong),
        (ONE, {"a": 2}),
        (MORE_THAN_FIVE, {"a": 5}),
    ]
    assert [rule for rule, content in broken_by if not fits({**named, **rule}, content)] == known


@pytest.mark.requirement("R61")
def test_the_documents_say_which_dialects_are_known() -> None:
    """Spec: basic/index, "Implementation Requirements"."""
    told = (Path(__file__).parents[2] / "docs" / "security.md").read_text("utf-8")
    assert all(name in " ".join(told.split()) for _, name, _ in DIALECTS)


@pytest.mark.requirement("R56")
def test_a_remote_schema_is_never_fetched() -> None:
    """A question must not make the gateway send a request to wherever the server likes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        there = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
        schemas: list[dict[str, Any]] = [
            {"$ref": there},
            {"$schema": there},
            {"$id": there, "properties": {"name": {"$ref": "other.json"}}},
            {"properties": {"name": {"$ref": f"{there}#/name"}}},
            {"allOf": [{"$ref": there}]},
            {"$dynamicRef": there},
            {"$ref": "#/$defs/a", "$defs": {"a": {"$id": there, "$ref": "x"}}},
            {"$ref": "file:///etc/hostname"},
        ]
        for schema in schemas:
            assert fits(schema, WRONG), schema
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.parametrize(
    ("schema", "content"),
    [
        ({"properties": {"x": {"pattern": "^(a+)+$"}}}, {"x": "a" * 5000 + "!"}),
        ({"properties": {"x": {"pattern": "(a|aa)*b"}}}, {"x": "a" * 5000}),
        ({"properties": {"x": {"pattern": r"^(?=(a+)+$)\1b"}}}, {"x": "a" * 5000}),
        ({"properties": {"x": {"pattern": "((a{1,99}){1,99}){1,99}$"}}}, {"x": "a" * 5000 + "!"}),
        ({"properties": {"x": {"pattern": r"(\w{100}){100}"}}}, {"x": "a" * 50_000 + "!"}),
        ({"patternProperties": {"^(a+)+$": {"type": "string"}}}, {"a" * 5000 + "!": 1}),
        (unfolding(40), {}),
        ({"$ref": "#"}, {}),
        ({"properties": {"x": {"$ref": "#"}}, "allOf": [{"$ref": "#"}] * 9}, {"x": {"x": {}}}),
        ({"$dynamicRef": "#a", "$dynamicAnchor": "a"}, {}),
        ({"properties": {str(n): {"type": "string"} for n in range(50_000)}}, {"1": "x"}),
        ({"properties": {"x": {"uniqueItems": True}}}, {"x": [{"n": n} for n in range(20_000)]}),
    ],
    ids=lambda value: "content" if not value or "x" in value else None,
)
def test_no_schema_keeps_the_process_busy(schema: dict[str, Any], content: dict[str, Any]) -> None:
    started = time.process_time()
    fits(schema, content)

    assert time.process_time() - started < PATIENCE


def test_a_schema_too_deep_to_look_into_does_no_harm() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(5000):
        schema = {"allOf": [schema]}

    assert fits(schema, {})


def test_numbers_beyond_all_bounds_do_no_harm() -> None:
    assert fits({"properties": {"n": {"type": "integer"}}}, {"n": 10**40})


def _text(**rules: object) -> dict[str, object]:
    return {"type": "string", **rules}


@pytest.mark.parametrize(
    ("schema", "content"),
    [
        ({f"p{n}": _text(pattern=f"[a-z]{{1,200}}{n}") for n in range(501)}, {"p0": 7}),
        ({"a": {"type": "array", "items": {"enum": list(range(9000))}}}, {"a": ["x"] * 2000}),
    ],
    ids=["patterns", "schema times answer"],
)
def test_what_would_take_long_is_left_to_the_server(
    schema: dict[str, object], content: dict[str, object]
) -> None:
    """Ours: the schema is the server's and the answer is the client's; together they must not stop the process."""
    assert fits({"type": "object", "properties": schema}, content)


def test_many_pattern_properties_are_left_to_the_server() -> None:
    """Ours: each pattern is held against each name."""
    schema = {"type": "object", "patternProperties": {f"^a{n}$": False for n in range(501)}}
    assert fits(schema, {"a1": 1})
    assert not fits({"type": "object", "patternProperties": {"^a1$": False}}, {"a1": 1})


def test_a_pattern_that_backtracks_elsewhere_does_not_here() -> None:
    """Ours: `(a+)+$` is the classic; the engine is linear, so this ends."""
    schema = {"type": "object", "properties": {"a": _text(pattern="^(a+)+$")}}
    assert not fits(schema, {"a": "a" * 100_000 + "!"})
