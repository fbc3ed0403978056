"""Does a filled-in form fit its schema? It judges only what it can judge quickly; it knows no ask.

The schema is the upstream's word. It must not make us fetch anything, nor keep
the whole process busy: a form is a flat object of plain values (client/elicitation),
so a schema that is more than that is left to the server that wrote it.
"""

from typing import Any, Final, NoReturn

from gateway.wire.jsonrpc import encode

_MOST_SCHEMA_NODES: Final = 10_000

_LARGEST_PATTERN: Final = 100_000
"""Bytes that a pattern may unfold to."""

_MOST_PATTERNS: Final = 500
"""Each is compiled anew for each answer."""

_MOST_WORK: Final = 50_000_000
"""Nodes of the schema times bytes of the answer: at worst each is held against each. A tenth of a second or so."""

_PATTERNS: Final = ("pattern", "patternProperties")

_DEFINITIONS: Final = frozenset({"$defs", "definitions"})
_LOCAL: Final = ("#/$defs/", "#/definitions/")
_WANDERING: Final = frozenset({"$dynamicRef", "$recursiveRef"})


def fits(schema: dict[str, Any], content: dict[str, Any]) -> bool:
    """Whether `content` is what `schema` asks for. True also where only the server can tell."""
    nodes = _nodes(schema)
    if nodes is None or nodes * len(encode(content)) > _MOST_WORK:
        return True
    import jsonschema_rs  # noqa: PLC0415 - slow to import, and wanted only by those who are asked

    # The engine that never backtracks.
    patterns = jsonschema_rs.RegexOptions(size_limit=_LARGEST_PATTERN, dfa_size_limit=_LARGEST_PATTERN)
    try:
        validator = jsonschema_rs.validator_for(
            schema, retriever=_refuse, validate_formats=False, pattern_options=patterns
        )
        return validator.is_valid(content)
    except Exception:  # noqa: BLE001 - the library raises several kinds; each means that the schema cannot be used
        return True  # the schema is at fault, not the answer


def _nodes(schema: dict[str, Any]) -> int | None:
    """How large the schema is; None if that does not say how long it takes.

    Definitions that refer to nothing further cannot unfold into more than was written down.
    """
    waiting: list[tuple[Any, bool]] = [(schema, False)]
    looked_at = patterns = 0
    while waiting:
        node, is_definition = waiting.pop()
        looked_at += 1
        if isinstance(node, list):
            waiting += [(child, is_definition) for child in node]
        elif isinstance(node, dict):
            target = node.get("$ref", "")
            is_far = isinstance(target, str) and target != "" and not target.startswith(_LOCAL)
            if is_far or (is_definition and target) or not _WANDERING.isdisjoint(node):
                return None
            patterns += sum(
                len(node[name]) if isinstance(node.get(name), dict) else name in node for name in _PATTERNS
            )
            waiting += [(child, is_definition or name in _DEFINITIONS) for name, child in node.items()]
        if looked_at > _MOST_SCHEMA_NODES or patterns > _MOST_PATTERNS:
            return None
    return looked_at


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"remote schema {uri}")
