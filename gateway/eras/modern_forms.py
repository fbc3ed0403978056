"""A legacy server's form in the few shapes that 2026-07-28 has for a field. It knows no ask and no answer.

Servers let a library write their forms, and libraries write more than the
specification has words for: a field that may be null, a reference to a
definition, a format of their own. A strict client turns away the whole round
for one of these. Each is said in the words there are, where there are any; what
is left is handed on as it is, for clients that understand it. Answers are held
against the form as the server wrote it.
"""

from typing import Any, Final

from gateway.wire.jsonrpc import encode

_DEFINITIONS: Final = ("#/$defs/", "#/definitions/")
_MOST_STEPS: Final = 8
"""From reference to reference, for one field."""
_MOST_INLINED: Final = 64 * 1024
"""Bytes that all references of a form may unfold to: a field each for one huge definition is an attack."""
_FORMATS: Final = frozenset({"email", "uri", "date", "date-time"})
_NULL: Final = {"type": "null"}


def modern_form(schema: dict[str, Any]) -> dict[str, Any]:
    """The form as a client of 2026-07-28 may see it; equal to `schema` if nothing had to be changed."""
    properties = schema.get("properties")
    form = {**schema, "type": "object", "properties": {}}
    if isinstance(properties, dict):
        definitions = _Definitions(schema)
        form["properties"] = {name: _field(field, definitions) for name, field in properties.items()}
    return form


class _Definitions:
    """What references in a form refer to."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._room = _MOST_INLINED

    def find(self, reference: Any) -> dict[str, Any] | None:
        """The definition, if it is in the form, and there is room for it."""
        for prefix in _DEFINITIONS:
            if isinstance(reference, str) and reference.startswith(prefix):
                known = self._schema.get(prefix[2:-1])
                found = known.get(reference[len(prefix) :]) if isinstance(known, dict) else None
                if isinstance(found, dict):
                    self._room -= len(encode(found))
                    return found if self._room >= 0 else None
        return None


def _field(written: Any, definitions: _Definitions) -> Any:
    if not isinstance(written, dict):
        return written
    field = written
    for _ in range(_MOST_STEPS):
        simpler = _simpler(field, definitions)
        if simpler is None:
            break
        field = simpler
    return _worded(field, definitions)


def _simpler(field: dict[str, Any], definitions: _Definitions) -> dict[str, Any] | None:
    """One step from how a library says it to what it says. None: it is as simple as it gets."""
    rest = {name: value for name, value in field.items() if name not in ("$ref", "allOf", "anyOf", "oneOf")}
    found = definitions.find(field.get("$ref"))
    if found is not None:
        return {**found, **rest}
    match field.get("allOf"):
        case [dict() as only]:
            return {**only, **rest}
    for name in ("anyOf", "oneOf"):
        match field.get(name):
            case [dict() as one, other] if other == _NULL:
                return {**one, **rest}
            case [other, dict() as one] if other == _NULL:
                return {**one, **rest}
    match field.get("type"):
        case [str() as kind, "null"] | ["null", str() as kind]:
            return {**field, "type": kind}
    return None


def _worded(field: dict[str, Any], definitions: _Definitions) -> dict[str, Any]:
    """The field without words that no client knows."""
    worded = dict(field)
    if isinstance(worded.get("const"), str) and "enum" not in worded:
        worded["enum"] = [worded.pop("const")]
    if "type" not in worded and _is_choice(worded):
        worded["type"] = "string"
    if "default" in worded and worded["default"] is None:
        del worded["default"]  # a field that need not be filled in says so by not being required
    if worded.get("type") == "string" and worded.get("format", "email") not in _FORMATS:
        del worded["format"]  # the server judges what it gets, as it always did
    if worded.get("type") == "array" and isinstance(worded.get("items"), dict):
        worded["items"] = _field(worded["items"], definitions)
    return worded


def _is_choice(field: dict[str, Any]) -> bool:
    """Is one of several texts to be chosen? The lists of titled ones need no type to say so."""
    options = field.get("enum")
    if isinstance(options, list):
        return bool(options) and all(isinstance(option, str) for option in options)
    titled = field.get("oneOf")
    return isinstance(titled, list) and all(
        isinstance(option, dict) and isinstance(option.get("const"), str) for option in titled
    )
