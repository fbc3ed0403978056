"""A legacy server's back-channel request as one of the modern `inputRequests`: its key and its shape.

Legacy asks carry no key; clients and users see the key, so a good name matters
and it must be the same when a call is run again. Nothing here knows answers.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateway.eras.vocabulary import KIND_OF_METHOD, Ask, Kind
from gateway.wire import canonical
from gateway.wire.jsonrpc import Failure, Raw, Request, decode, encode

_NOT_EMBEDDED: Final = frozenset({"_meta", "task", "elicitationId"})
"""Members of legacy params that 2026-07-28's embedded requests do not have."""

_OPEN_SCHEMA: Final[Mapping[str, Any]] = {"type": "object", "properties": {}}

URL_ELICITATION_REQUIRED: Final = -32042
"""The legacy error that says: visit these URLs, then call again."""


@dataclass(frozen=True, slots=True)
class KeyNaming:
    """How asks get their names, from the upstream's configuration."""

    hint: str
    """The `_meta` member of an ask in which a server may name the key itself."""
    names: Sequence[str] = ()
    """Names configured for this tool, in order of asking."""

    def name(self, ask: Ask, *, position: int, taken: Container[str]) -> str:
        """The key for the exchange's ask number `position` (from 0), unlike any in `taken`."""
        wanted = self._hinted(ask) or self._configured(position) or _single_property(ask)
        if wanted is None:
            return _numbered(ask.kind.value, 1, taken)
        return wanted if wanted not in taken else _numbered(wanted, 2, taken)

    def _hinted(self, ask: Ask) -> str | None:
        meta = _object(ask.params.get("_meta"))
        hint = meta.get(self.hint)
        return hint if isinstance(hint, str) and hint else None

    def _configured(self, position: int) -> str | None:
        return self.names[position] if position < len(self.names) else None


def ask_of(request: Request) -> Ask | None:
    """The ask in an upstream's request; None when its method is none of the three."""
    kind = KIND_OF_METHOD.get(request.method)
    return None if kind is None else Ask(request.id, kind, request.method, request.params)


def asks_of_url_failure(failure: Failure) -> tuple[Ask, ...]:
    """The URL elicitations that error -32042 lists; empty when it lists none that a client could show."""
    data = _object(failure.data)
    listed = data.get("elicitations")
    if not isinstance(listed, list):
        return ()
    return tuple(
        Ask(
            None,
            Kind.ELICITATION,
            "elicitation/create",
            {name: Raw(encode(value)) for name, value in item.items()},
        )
        for item in listed
        if isinstance(item, dict)
        and isinstance(item.get("url"), str)
        and isinstance(item.get("message"), str)
    )


def is_url(ask: Ask) -> bool:
    """Does this elicitation send the user to a URL instead of showing a form?"""
    return ask.kind is Kind.ELICITATION and ("url" in ask.params or _text(ask.params.get("mode")) == "url")


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
            sampling = capabilities.get("sampling")
            if not (isinstance(sampling, dict) and "context" in sampling):
                # Deprecated, and only for clients that declare it; the request makes sense without it.
                params.pop("includeContext", None)
        case Kind.ELICITATION if is_url(ask):
            params["mode"] = "url"
        case Kind.ELICITATION:
            params["requestedSchema"] = _form_schema(params.get("requestedSchema"))
            params.setdefault("message", "")
    return {"method": ask.method, "params": params}


def _form_schema(raw: Raw | None) -> Raw | dict[str, Any]:
    """The schema as it was, unless it lacks what the modern schema requires of a form."""
    schema = _object(raw)
    if raw is not None and schema.get("type") == "object" and isinstance(schema.get("properties"), dict):
        return raw
    return {**schema, **{name: schema.get(name) or default for name, default in _OPEN_SCHEMA.items()}}


def _single_property(ask: Ask) -> str | None:
    """A form that asks for exactly one thing is best named by that thing."""
    if ask.kind is not Kind.ELICITATION or is_url(ask):
        return None
    properties = _object(ask.params.get("requestedSchema")).get("properties")
    if isinstance(properties, dict) and len(properties) == 1:
        return next(iter(properties)) or None
    return None


def _numbered(stem: str, start: int, taken: Container[str]) -> str:
    number = start
    while f"{stem}-{number}" in taken:
        number += 1
    return f"{stem}-{number}"


def _object(raw: Raw | None) -> dict[str, Any]:
    value = None if raw is None else decode(raw)
    return value if isinstance(value, dict) else {}


def _text(raw: Raw | None) -> str | None:
    value = None if raw is None else decode(raw)
    return value if isinstance(value, str) else None
