"""A legacy server's form in the few shapes that 2026-07-28 has for a field. It knows no ask and no answer.

Servers let a library write their forms, and libraries write more than the
specification has words for: a field that may be null, a reference to a
definition, a format of their own. A strict client turns away the whole round
for one of these. Each is said in the words there are, where there are any; what
is left is handed on as it is, for clients that understand it. Answers are held
against the form as the server wrote it.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from gateway.wire.jsonrpc import encode

_DEFINITIONS: Final = ("#/$defs/", "#/definitions/")
_MOST_STEPS: Final = 8
"""From reference to reference, for one field."""
_MOST_INLINED: Final = 64 * 1024
"""Bytes that all references of a form may unfold to: a field each for one huge definition is an attack."""
_FORMATS: Final = frozenset({"email", "uri", "date", "date-time"})
_NULL: Final = {"type": "null"}


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value == value // 1


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


_Test = Callable[[Any], bool]
_ANY_FIELD: Final[Mapping[str, _Test]] = {"title": _is_text, "description": _is_text}
_MEMBERS: Final[Mapping[str, Mapping[str, _Test]]] = {
    "string": {"default": _is_text, "minLength": _is_count, "maxLength": _is_count, "enumNames": _is_texts},
    "number": {"default": _is_number, "minimum": _is_number, "maximum": _is_number},
    "integer": {"default": _is_number, "minimum": _is_number, "maximum": _is_number},
    "boolean": {"default": lambda value: isinstance(value, bool)},
    "array": {"default": _is_texts, "minItems": _is_count, "maxItems": _is_count},
}
"""What a member of a field of this type may be. For one that is something else clients turn the form away."""
_OF_FORM: Final[Mapping[str, _Test]] = {"required": _is_texts, "$schema": _is_text}


def modern_form(schema: dict[str, Any]) -> dict[str, Any]:
    """The form as a client of 2026-07-28 may see it; equal to `schema` if nothing had to be changed."""
    properties = schema.get("properties")
    form = {**schema, "type": "object", "properties": {}}
    if isinstance(properties, dict):
        definitions = _Definitions(schema)
        form["properties"] = {name: _field(field, definitions) for name, field in properties.items()}
    return _without_unfit(form, _OF_FORM)


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
    if _are_options(worded.get("anyOf")) and not {"enum", "oneOf"} & worded.keys():
        worded["oneOf"] = worded.pop("anyOf")
    if "type" not in worded and _is_choice(worded):
        worded["type"] = "string"
    if "default" in worded and worded["default"] is None:
        del worded["default"]  # a field that need not be filled in says so by not being required
    kind = worded.get("type")
    if kind == "string" and not _is_known_format(worded.get("format", "email")):
        del worded["format"]  # the server judges what it gets, as it always did
    if kind == "string" and _are_options(worded.get("oneOf")):
        worded["oneOf"] = [_titled(option) for option in worded["oneOf"]]
    if kind == "array" and isinstance(worded.get("items"), dict):
        worded["items"] = _of_several(worded["items"], definitions)
    return _without_unfit(worded, _ANY_FIELD, _MEMBERS.get(kind, {}) if isinstance(kind, str) else {})


def _is_known_format(value: Any) -> bool:
    return isinstance(value, str) and value in _FORMATS


def _without_unfit(members: dict[str, Any], *tests: Mapping[str, _Test]) -> dict[str, Any]:
    """Without the members that are not of the type that clients know them by."""
    may_be = {name: test for known in tests for name, test in known.items()}
    return {name: value for name, value in members.items() if name not in may_be or may_be[name](value)}


def _titled(option: dict[str, Any]) -> dict[str, Any]:
    """A choice that says what it is called: that is what makes it one to clients."""
    return option if isinstance(option.get("title"), str) else {**option, "title": option["const"]}


def _of_several(written: dict[str, Any], definitions: _Definitions) -> Any:
    """What several of may be chosen: titled ones stand under `anyOf` there, though under `oneOf` everywhere else."""
    if _are_options(written.get("anyOf")):
        return {**written, "anyOf": [_titled(option) for option in written["anyOf"]]}
    item = _field(written, definitions)
    if "anyOf" in item or not _are_options(item.get("oneOf")):
        return item
    return {"anyOf" if name == "oneOf" else name: value for name, value in item.items()}


def _is_choice(field: dict[str, Any]) -> bool:
    """Is one of several texts to be chosen? The lists of titled ones need no type to say so."""
    options = field.get("enum")
    if isinstance(options, list):
        return bool(options) and all(isinstance(option, str) for option in options)
    return _are_options(field.get("oneOf"))


def _are_options(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(option, dict) and isinstance(option.get("const"), str) for option in value
    )
