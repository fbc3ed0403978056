"""A call that began in the legacy era and is run again by a modern server: which of its questions are answered already.

The same question is known by its kind and its content, as under any replay; of
a form the two eras write the mode differently, or not at all. Pure.
"""

from collections.abc import Sequence
from typing import Final

from gateway.eras.asks import fingerprint, is_url
from gateway.eras.questions import Entry
from gateway.eras.vocabulary import KIND_OF_METHOD, Ask, Kind
from gateway.wire.jsonrpc import NotJson, Params, Raw, decode, decode_members

_FORM: Final = Raw(b'"form"')


def known_answers(asked: Raw | None, journal: Sequence[Entry]) -> tuple[dict[str, Params], list[Entry]]:
    """The answers to a modern server's `inputRequests` that were given before, and what is left of the journal.

    An answer is used once: a server that asks the same again wants to hear something else.
    """
    left, found = list(journal), dict[str, Params]()
    for key, raw in _members(asked).items():
        ask = _ask(raw)
        prints = set() if ask is None else _fingerprints(ask)
        entry = next((entry for entry in left if entry.fingerprint in prints), None)
        if entry is not None:
            left.remove(entry)
            found[key] = entry.answer
    return found, left


def _ask(raw: Raw) -> Ask | None:
    members = _members(raw)
    try:
        method = decode(members["method"]) if "method" in members else None
    except NotJson:
        return None
    kind = KIND_OF_METHOD.get(method) if isinstance(method, str) else None
    return None if kind is None else Ask(None, kind, str(method), _members(members.get("params")))


def _fingerprints(ask: Ask) -> set[str]:
    if ask.kind is not Kind.ELICITATION or is_url(ask):
        return {fingerprint(ask)}
    bare = {name: value for name, value in ask.params.items() if name != "mode"}
    return {
        fingerprint(Ask(None, ask.kind, ask.method, params)) for params in (bare, {**bare, "mode": _FORM})
    }


def _members(raw: Raw | None) -> Params:
    try:
        return (None if raw is None else decode_members(raw)) or {}
    except NotJson:
        return {}
