"""What the protocol's own schemas allow, as strategies: legacy results and questions as any server might write them.

The schemas of all revisions lie in `tests/schema` as published.
"""

import json
import string
from decimal import Decimal
from functools import cache
from typing import Any

from hypothesis import strategies as st

from tests.support.schema_judge import definitions as definitions_of

Json = dict[str, Any]

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
RESULTS = {
    "tools/call": "CallToolResult",
    "prompts/get": "GetPromptResult",
    "resources/read": "ReadResourceResult",
    "completion/complete": "CompleteResult",
    "tools/list": "ListToolsResult",
    "prompts/list": "ListPromptsResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
}
_LEAST, _MOST = -(2**200), 2**200
_DEEPEST = 6
_MOMENTS = st.sampled_from(["2025-01-12T15:00:58Z", "2025-01-12T15:00:58.123456Z"])
"""The schemas say no more than that it is a string; the specification says of which kind, and clients insist."""

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    [
        "\u2028\u2029",
        "\U0001f9ed\U0001f3f3\ufe0f\u200d\U0001f308",
        "\x00\x1f\x7f\x85\ufeff",
        "\\u0041",
        "</script>",
        "e\u0301",
    ]
)
numbers = st.integers(_LEAST, _MOST) | st.floats(allow_nan=False, allow_infinity=False)
anything = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, anything, max_size=4)
unknown = st.dictionaries(texts.map("x-{}".format), anything, max_size=2)
"""Members that no revision defines."""


@cache
def result_of(method: str, version: str) -> st.SearchStrategy[Json]:
    """Results of this method that the schema of this revision allows, with members that it does not know."""
    definitions = definitions_of(version)
    return built(definitions[RESULTS[method]], definitions)


def built(schema: Json, definitions: Json, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values that fit a schema; of JSON Schema only what MCP's own makes use of."""
    if "$ref" in schema:
        return built(definitions[schema["$ref"].rsplit("/", 1)[1]], definitions, depth)
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    for either in ("anyOf", "oneOf"):
        if either in schema:
            ways = [way for way in schema[either] if way != {"type": "null"}]
            return st.one_of([built(way, definitions, depth) for way in ways])
    match schema.get("type"):
        case list() as types:
            return st.one_of([built({**schema, "type": one}, definitions, depth) for one in types])
        case "object":
            return _object(schema, definitions, depth)
        case "array":
            entries = (
                st.just([]) if depth > _DEEPEST else built(schema.get("items", {}), definitions, depth + 1)
            )
            return st.lists(entries, max_size=3) if depth <= _DEEPEST else entries
        case "string":
            return _string(schema)
        case "integer" | "number" as kind:
            least, most = schema.get("minimum"), schema.get("maximum")
            if kind == "number" and most is not None:
                return st.floats(least, most, allow_nan=False)
            whole = st.integers(least if least is not None else _LEAST, most if most is not None else _MOST)
            return (
                whole
                if kind == "integer"
                else whole | st.floats(min_value=least, allow_nan=False, allow_infinity=False)
            )
        case "boolean":
            return st.booleans()
        case _:
            return anything


def _object(schema: Json, definitions: Json, depth: int) -> st.SearchStrategy[Json]:
    properties: Json = schema.get("properties", {})
    needed = schema.get("required", [])
    if not properties:
        more = schema.get("additionalProperties", True)
        values = (
            built(more, definitions, depth + 1) if isinstance(more, dict) and depth <= _DEEPEST else anything
        )
        return st.dictionaries(texts, values, max_size=2)
    members = {
        name: _MOMENTS if name == "lastModified" else built(properties[name], definitions, depth + 1)
        for name in properties
        if depth <= _DEEPEST or name in needed
    }
    required = {name: member for name, member in members.items() if name in needed}
    optional = {name: member for name, member in members.items() if name not in needed}
    fixed = st.fixed_dictionaries(required, optional=optional)
    # In any order: it is part of what the server wrote.
    return st.builds(lambda known, more: {**known, **more}, fixed, unknown).flatmap(
        lambda whole: st.permutations(list(whole)).map(lambda names: {name: whole[name] for name in names})
    )


def _string(schema: Json) -> st.SearchStrategy[str]:
    match schema.get("format"):
        case "byte" | "base64":
            return st.sampled_from(["", "AAAA", "aGVsbG8="])
        case "uri" | "uri-template":
            return st.text(string.ascii_letters, min_size=1, max_size=5).map("test://{}".format)
        case _:
            return texts


def written(value: Any, *, ascii_only: bool = False) -> bytes:
    """As a server writes it."""
    return json.dumps(value, ensure_ascii=ascii_only).encode()


def literal(data: bytes) -> Any:
    """What JSON says to the letter: members in order, numbers with every digit, integers apart from others."""
    return json.loads(data, object_pairs_hook=Members, parse_float=Decimal)


class Members(list[tuple[str, Any]]):
    """An object, as the pairs that it was written with."""

    def __getitem__(self, name: Any) -> Any:
        return dict(self)[name] if isinstance(name, str) else super().__getitem__(name)

    def without(self, *names: str) -> "Members":
        """The rest of it."""
        return Members(pair for pair in self if pair[0] not in names)
