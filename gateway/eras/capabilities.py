"""What a client declared that it can do, and what an ask needs of it. It knows no exchange and no upstream.

Capabilities are read from the request at hand and never remembered
(basic/index, "Statelessness"). `elicitation: {}` means forms and nothing else.
"""

from collections.abc import Mapping
from typing import Any, Final

from gateway.eras.asks import is_url, uses_tools
from gateway.eras.vocabulary import Ask, Kind
from gateway.wire.jsonrpc import NotJson, Raw, decode
from gateway.wire.versions import at_least

_MODES: Final = frozenset({"form", "url"})

_NULL: Final = Raw(b"null")

_NOT_FOR_LEGACY: Final = frozenset({"extensions", "tasks"})
"""Modern extensions are negotiated with us, and the tasks of 2025-11-25 are another protocol than today's."""

_CARRIED: Final = frozenset({"io.modelcontextprotocol/ui"})
"""Extensions of both eras that add no message: what they consist of, `_meta` and resources, passes as it is."""


def normalise(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """The declaration with one spelling for each meaning.

    `null` and `false` say "no", `true` says `{}`; an elicitation capability that
    names no mode gets `form`. Anything in the place of an object that is none
    of these counts as declared without settings: the client did name it.
    """
    declared = _flags(capabilities)
    for name in ("sampling", "elicitation"):
        if name in declared:
            declared[name] = _flags(declared[name])
    elicitation = declared.get("elicitation")
    if elicitation is not None and _MODES.isdisjoint(elicitation):
        declared["elicitation"] = {"form": {}, **elicitation}
    return declared


def needs(ask: Ask) -> dict[str, Any]:
    """The client capabilities without which this ask cannot be put, as `requiredCapabilities` wants them.

    `includeContext` needs nothing: it is optional, deprecated, and left out
    for clients that did not declare `sampling.context`.
    """
    match ask.kind:
        case Kind.ELICITATION:
            return {"elicitation": {_mode(ask): {}}}
        case Kind.SAMPLING:
            return {"sampling": {"tools": {}} if uses_tools(ask) else {}}
        case Kind.ROOTS:
            return {"roots": {}}


def merged(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    """Both needs as one."""
    return {
        **left,
        **{
            name: merged(left[name], value)
            if isinstance(value, Mapping) and isinstance(left.get(name), Mapping)
            else value
            for name, value in right.items()
        },
    }


def is_declared(capabilities: Mapping[str, Any], ask: Ask) -> bool:
    """Whether the client said, on this request, that it can answer this ask."""
    declared = normalise(capabilities).get(ask.kind.value)
    if declared is None:
        return False
    match ask.kind:
        case Kind.ELICITATION:
            return _mode(ask) in declared
        case Kind.SAMPLING:
            return not uses_tools(ask) or "tools" in declared
        case Kind.ROOTS:
            return True


def for_legacy(capabilities: Mapping[str, Any], version: str) -> dict[str, Any]:
    """What to declare to a legacy server on behalf of this client, in the words of that revision.

    Equal abilities give equal results, so that sessions can be shared by what
    they were opened with. `roots.listChanged` is left out: no modern client
    sends that notification, and we must not promise it.
    """
    declared = {name: value for name, value in normalise(capabilities).items() if name not in _NOT_FOR_LEGACY}
    extensions = carried(capabilities.get("extensions"))
    if extensions:
        declared["extensions"] = extensions
    if "experimental" in declared:
        declared["experimental"] = _flags(declared["experimental"])
    if "roots" in declared:
        declared["roots"] = {}
    if "sampling" in declared and not at_least(version, "2025-11-25"):
        declared["sampling"] = {}
    elicitation = declared.pop("elicitation", {})
    modes = _MODES & elicitation.keys()
    if "url" in modes and at_least(version, "2025-11-25"):
        declared["elicitation"] = {mode: {} for mode in sorted(modes)}
    elif "form" in modes and at_least(version, "2025-06-18"):
        # Every server with elicitation reads `{}` as forms; those before 2025-11-25 know no other mode.
        declared["elicitation"] = {}
    return dict(sorted(declared.items()))


def carried(extensions: Any) -> dict[str, Any]:
    """Of the extensions that one side declares those that the other may know of, for they hold through us."""
    return {name: settings for name, settings in _flags(extensions).items() if name in _CARRIED}


def _flags(value: Any) -> dict[str, Any]:
    """An object of objects, whatever stood there."""
    if not isinstance(value, Mapping):
        return {}
    return {
        name: dict(setting) if isinstance(setting, Mapping) else {}
        for name, setting in value.items()
        if setting is not None and setting is not False
    }


def _mode(ask: Ask) -> str:
    if is_url(ask):
        return "url"
    try:
        mode = decode(ask.params.get("mode", _NULL))
    except NotJson:
        mode = None
    return mode if isinstance(mode, str) else "form"
