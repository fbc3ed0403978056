"""A client's `inputResponses`: are they well formed, and does each fit its question?

Well formed is decided for the whole map before any of it is used. Answers pass
to the legacy server untouched; this only looks at them. It knows no exchange.
"""

from enum import Enum, auto
from typing import Any, Final, NoReturn

import jsonschema_rs

from gateway.eras.asks import is_url
from gateway.eras.vocabulary import Ask, Kind
from gateway.errors import InvalidParams
from gateway.wire.jsonrpc import Params, Raw, decode, decode_members

_ACTIONS: Final = frozenset({"accept", "decline", "cancel"})


class Fit(Enum):
    """How an answer stands to its question."""

    FITS = auto()
    UNFIT = auto()
    """Well formed, but the accepted content is not what the question's schema asks for."""


def parse_responses(raw: Raw | None) -> dict[str, Params]:
    """The `inputResponses` of a request as key -> members; {} when there are none.

    Raises:
        InvalidParams: it is not an object of objects.
    """
    if raw is None:
        return {}
    entries = decode_members(raw)
    if entries is None:
        raise InvalidParams(detail="inputResponses must be an object")
    answers: dict[str, Params] = {}
    for key, value in entries.items():
        members = decode_members(value)
        if members is None:
            raise InvalidParams(detail=f"inputResponses[{key[:64]!r}] must be an object")
        answers[key] = _unwrapped(members)
    return answers


def _unwrapped(members: Params) -> Params:
    """The first drafts wrapped each answer as `{"result": {...}}`; no final answer has that member alone."""
    if members.keys() == {"result"}:
        return decode_members(members["result"]) or members
    return members


def check(ask: Ask, answer: Params) -> Fit:
    """How `answer` stands to `ask`.

    Raises:
        InvalidParams: it is not an answer to this kind of question at all.
    """
    match ask.kind:
        case Kind.ELICITATION:
            return _check_elicitation(ask, answer)
        case Kind.SAMPLING:
            if not isinstance(_value(answer, "role"), str) or not isinstance(
                _value(answer, "content"), dict | list
            ):
                raise InvalidParams(detail="a sampling answer needs role, content and model")
            if not isinstance(_value(answer, "model"), str):
                raise InvalidParams(detail="a sampling answer needs role, content and model")
            return Fit.FITS
        case Kind.ROOTS:
            roots = _value(answer, "roots")
            if not isinstance(roots, list) or not all(
                isinstance(r, dict) and isinstance(r.get("uri"), str) for r in roots
            ):
                raise InvalidParams(detail="a roots answer needs a list of roots, each with a uri")
            return Fit.FITS


def is_accepted(answer: Params) -> bool:
    """Did the user say yes?"""
    return bool(_value(answer, "action") == "accept")


def _check_elicitation(ask: Ask, answer: Params) -> Fit:
    action = _value(answer, "action")
    if not isinstance(action, str) or action not in _ACTIONS:
        raise InvalidParams(detail="an elicitation answer needs an action: accept, decline or cancel")
    if action != "accept" or is_url(ask):
        return Fit.FITS
    content = _value(answer, "content")
    if content is not None and not isinstance(content, dict):
        raise InvalidParams(detail="the content of an elicitation answer must be an object")
    return Fit.FITS if _fits(_schema(ask), content or {}) else Fit.UNFIT


def _schema(ask: Ask) -> dict[str, Any]:
    raw = ask.params.get("requestedSchema")
    schema = None if raw is None else decode(raw)
    return schema if isinstance(schema, dict) else {}


def _fits(schema: dict[str, Any], content: dict[str, Any]) -> bool:
    try:
        # A schema is the upstream's word: it must not make us fetch anything, nor spin in a regular expression.
        return jsonschema_rs.validator_for(schema, retriever=_refuse, validate_formats=False).is_valid(
            content
        )
    except Exception:  # noqa: BLE001 - the library raises several kinds; each means that the schema cannot be used
        # The server's schema is at fault, not the answer: let the server judge.
        return True


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"remote schema {uri}")


def _value(members: Params, name: str) -> Any:
    raw = members.get(name)
    return None if raw is None else decode(raw)
