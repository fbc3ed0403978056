"""A client's `inputResponses`: are they well formed, and does each fit its question?

Well formed is decided for the whole map before any of it is used. Answers pass
to the legacy server untouched, but for what its revision cannot read. It knows
no exchange.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any, Final

from gateway.eras import forms
from gateway.eras.asks import as_object, is_url
from gateway.eras.policy import Unfit
from gateway.eras.vocabulary import Ask, Kind
from gateway.errors import InvalidParams
from gateway.wire.jsonrpc import NotJson, Params, Raw, decode, decode_members
from gateway.wire.versions import at_least

_ACTIONS: Final = frozenset({"accept", "decline", "cancel"})

_ENVELOPE: Final = frozenset({"jsonrpc", "id", "result", "error"})
"""The first drafts took whole JSON-RPC responses for answers; no final answer is made of these alone."""


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
    entries = {} if raw is None else _members(raw)
    if entries is None:
        raise InvalidParams(detail="inputResponses must be an object")
    answers: dict[str, Params] = {}
    for key, value in entries.items():
        members = _members(value)
        if members is None:
            raise InvalidParams(detail=f"inputResponses[{key[:64]!r}] must be an object")
        answers[key] = _unwrapped(members)
    return answers


def sift(asked: Mapping[str, Ask], given: Mapping[str, Params], unfit: Unfit) -> dict[str, Params]:
    """The answers that may be delivered. Keys that were not asked are ignored (basic/patterns/mrtr).

    Raises:
        InvalidParams: one is malformed, or does not fit and policy calls that an error.
    """
    deliverable = {}
    for key, ask in asked.items():
        answer = given.get(key)
        if answer is None:
            continue
        if check(ask, answer) is Fit.UNFIT:
            if unfit is Unfit.ERROR:
                raise InvalidParams(detail=f"the answer to {key!r} does not fit its requestedSchema")
            if unfit is Unfit.REASK:
                continue
        deliverable[key] = answer
    return deliverable


def check(ask: Ask, answer: Params) -> Fit:
    """How `answer` stands to `ask`.

    Raises:
        InvalidParams: it is not an answer to this kind of question at all.
    """
    if refusal_in(answer) is not None:
        return Fit.FITS
    match ask.kind:
        case Kind.ELICITATION:
            return _check_elicitation(ask, answer)
        case Kind.SAMPLING:
            has_text = isinstance(_value(answer, "role"), str) and isinstance(_value(answer, "model"), str)
            if not has_text or not isinstance(_value(answer, "content"), dict | list):
                raise InvalidParams(detail="a sampling answer needs role, content and model")
            return Fit.FITS
        case Kind.ROOTS:
            roots = _value(answer, "roots")
            if not isinstance(roots, list) or not all(
                isinstance(root, dict) and isinstance(root.get("uri"), str) for root in roots
            ):
                raise InvalidParams(detail="a roots answer needs a list of roots, each with a uri")
            return Fit.FITS


def is_usable(ask: Ask, answer: Params) -> bool:
    """May an answer that was sent ahead of its question be used? If not, the question is simply asked."""
    try:
        return check(ask, answer) is Fit.FITS
    except InvalidParams:
        return False


def is_accepted(answer: Params) -> bool:
    """Did the user say yes?"""
    return bool(_value(answer, "action") == "accept")


def refusal_in(answer: Params) -> tuple[int, str] | None:
    """Code and message, if the answer is a JSON-RPC error: how the first drafts said "no" to any question."""
    error = _value(answer, "error") if answer.keys() == {"error"} else None
    if not isinstance(error, dict):
        return None
    code, message = error.get("code"), error.get("message")
    if isinstance(code, bool) or not isinstance(code, int) or not isinstance(message, str):
        return None
    return code, message


def to_legacy_answer(ask: Ask, answer: Mapping[str, Any], version: str) -> Mapping[str, Any]:
    """The answer as a server of this revision can read it: before 2025-11-25 a sample was one block."""
    raw = answer.get("content")
    if ask.kind is not Kind.SAMPLING or not isinstance(raw, Raw) or at_least(version, "2025-11-25"):
        return answer
    blocks = decode(raw)
    if not isinstance(blocks, list):
        return answer
    texts = [block for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    chosen = (texts or blocks)[:1]
    if len(texts) > 1 and all(isinstance(block.get("text"), str) for block in texts):
        chosen = [{"type": "text", "text": "\n\n".join(block["text"] for block in texts)}]
    return {**answer, "content": chosen[0] if chosen else {"type": "text", "text": ""}}


def _unwrapped(members: Params) -> Params:
    """The answer itself, out of the envelope that the first drafts had around it."""
    if not members or not members.keys() <= _ENVELOPE:
        return members
    result = members.get("result")
    if result is not None and bytes(result) != b"null":
        return _members(result) or members
    return {"error": members["error"]} if "error" in members else members


def _check_elicitation(ask: Ask, answer: Params) -> Fit:
    action = _value(answer, "action")
    if not isinstance(action, str) or action not in _ACTIONS:
        raise InvalidParams(detail="an elicitation answer needs an action: accept, decline or cancel")
    if action != "accept" or is_url(ask):
        return Fit.FITS
    content = _value(answer, "content")
    if content is not None and not isinstance(content, dict):
        raise InvalidParams(detail="the content of an elicitation answer must be an object")
    schema = as_object(ask.params.get("requestedSchema"))
    return Fit.FITS if forms.fits(schema, content or {}) else Fit.UNFIT


def _members(raw: Raw) -> Params | None:
    try:
        return decode_members(raw)
    except NotJson:
        return None  # too deep to look into


def _value(members: Params, name: str) -> Any:
    raw = members.get(name)
    try:
        return None if raw is None else decode(raw)
    except NotJson:
        raise InvalidParams(detail=f"{name!r} of an answer holds what no value can be made of") from None
