"""A legacy server's back-channel request as one of the modern `inputRequests`: its key and its shape.

Legacy asks carry no key; clients and users see the key, so a good name matters
and it must be the same when a call is run again. Nothing here knows answers.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from gateway.eras.modern_forms import modern_form
from gateway.eras.modern_samples import modern_sample, most_tokens
from gateway.eras.vocabulary import KIND_OF_METHOD, Ask, Kind
from gateway.wire import canonical
from gateway.wire.jsonrpc import Failure, NotJson, Raw, Request, decode, encode

_NOT_EMBEDDED: Final = frozenset({"_meta", "task", "elicitationId"})
"""Members of legacy params that 2026-07-28's embedded requests do not have."""

URL_ELICITATION_REQUIRED: Final = -32042
"""The legacy error that says: visit these URLs, then call again."""

_TEXT: Final = b'"'
_LIST: Final = b"["
_OBJECT: Final = b"{"
_ABSENT: Final = b"n"
_NULL: Final = Raw(b"null")

_LONGEST_KEY: Final = 128
"""Keys go into every ticket; a name longer than this is no name."""


class KeyNaming(Struct, frozen=True):
    """How asks get their names, from the upstream's configuration."""

    hint: str
    """The `_meta` member of an ask in which a server may name the key itself."""
    names: Sequence[str] = ()
    """Names configured for this tool, in order of asking."""

    def name(self, ask: Ask, *, position: int, taken: Container[str]) -> str:
        """The key for the call's ask number `position` (from 0), unlike any in `taken`."""
        wanted = self._hinted(ask) or self._configured(ask, position) or _single_property(ask)
        if wanted is None:
            return _numbered(ask.kind.value, 1, taken)
        return wanted if wanted not in taken else _numbered(wanted, 2, taken)

    def _hinted(self, ask: Ask) -> str | None:
        return _name(as_object(ask.params.get("_meta")).get(self.hint))

    def _configured(self, ask: Ask, position: int) -> str | None:
        # Roots are asked for when the session has none yet, so they must not shift the tool's own names.
        if ask.kind is Kind.ROOTS or position >= len(self.names):
            return None
        return self.names[position]


def ask_of(request: Request) -> Ask | None:
    """The ask in an upstream's request; None when its method is none of the three."""
    kind = KIND_OF_METHOD.get(request.method)
    return None if kind is None else Ask(request.id, kind, request.method, request.params)


def asks_of_url_failure(failure: Failure) -> tuple[Ask, ...]:
    """The URL elicitations that error -32042 lists; empty when it lists none that a client could show."""
    if failure.code != URL_ELICITATION_REQUIRED:
        return ()
    listed = as_object(failure.data).get("elicitations")
    asks = (
        Ask(
            None,
            Kind.ELICITATION,
            "elicitation/create",
            {name: Raw(encode(value)) for name, value in item.items()},
        )
        for item in (listed if isinstance(listed, list) else ())
        if isinstance(item, dict) and "url" in item
    )
    return tuple(ask for ask in asks if is_url(ask) and is_well_formed(ask))


def is_url(ask: Ask) -> bool:
    """Does this elicitation send the user to a URL instead of showing a form?"""
    if ask.kind is not Kind.ELICITATION:
        return False
    mode = _plain(ask.params.get("mode"))
    return mode == "url" if isinstance(mode, str) else _is(ask, "url", _TEXT)


def uses_tools(ask: Ask) -> bool:
    """Does this sample offer the model tools?"""
    return any(ask.params.get(name, _NULL) != _NULL for name in ("tools", "toolChoice"))


def is_well_formed(ask: Ask) -> bool:
    """Has it what every client needs to show it? One malformed request spoils a client's whole round."""
    match ask.kind:
        case Kind.ROOTS:
            return True
        case Kind.SAMPLING:
            return _is(ask, "messages", _LIST) and most_tokens(ask.params.get("maxTokens")) is not None
        case Kind.ELICITATION:
            is_shown = _is(ask, "message", _TEXT + _ABSENT) and _is(ask, "mode", _TEXT + _ABSENT)
            if is_url(ask):
                return is_shown and _is(ask, "url", _TEXT)
            return is_shown and _is(ask, "requestedSchema", _OBJECT + _ABSENT)


def fingerprint(ask: Ask) -> str:
    """What identifies the question itself, whoever asks it again under whatever id."""
    content = {name: value for name, value in ask.params.items() if name not in _NOT_EMBEDDED}
    return canonical.digest(encode({"method": ask.method, "params": content}))


def input_request(ask: Ask, capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """The ask as a 2026-07-28 embedded request: `{method, params}` and nothing else."""
    kept = {
        name: value
        for name, value in ask.params.items()
        if name not in _NOT_EMBEDDED and bytes(value) != b"null"
    }
    params: dict[str, Any] = dict(kept)
    match ask.kind:
        case Kind.ROOTS:
            params = {}
        case Kind.SAMPLING:
            params = modern_sample(kept)
            sampling = capabilities.get("sampling")
            if not isinstance(sampling, Mapping) or sampling.get("context") in (None, False):
                # Deprecated, and only for clients that declare it; the request makes sense without it.
                params.pop("includeContext", None)
        case Kind.ELICITATION:
            params.setdefault("message", "")
            if is_url(ask):
                params["mode"] = "url"
            else:
                params["requestedSchema"] = _form_schema(params.get("requestedSchema"))
    return {"method": ask.method, "params": params}


def as_object(raw: Raw | None) -> dict[str, Any]:
    """The object in `raw`; an empty one for anything else."""
    value = _plain(raw)
    return value if isinstance(value, dict) else {}


def _plain(raw: Raw | None) -> Any:
    try:
        return None if raw is None else decode(raw)
    except NotJson:
        return None  # JSON, but no value can hold it: `1e999`


def _is(ask: Ask, name: str, first: bytes) -> bool:
    """Whether this parameter is of the type whose JSON starts so; megabytes of messages need not be read for it."""
    return bytes(memoryview(ask.params.get(name, _NULL))[:1]) in first


def _form_schema(raw: Raw | None) -> Raw | dict[str, Any]:
    """The schema as it was, unless it has what the modern schema knows no word for."""
    schema = as_object(raw)
    form = modern_form(schema)
    return raw if raw is not None and form == schema else form


def _single_property(ask: Ask) -> str | None:
    """A form that asks for exactly one thing is best named by that thing."""
    if ask.kind is not Kind.ELICITATION or is_url(ask):
        return None
    properties = as_object(ask.params.get("requestedSchema")).get("properties")
    if isinstance(properties, dict) and len(properties) == 1:
        return _name(next(iter(properties)))
    return None


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= _LONGEST_KEY else None


def _numbered(stem: str, start: int, taken: Container[str]) -> str:
    number = start
    while f"{stem}-{number}" in taken:
        number += 1
    return f"{stem}-{number}"
