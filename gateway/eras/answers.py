"""A client's `inputResponses`: are they well formed, and does each fit its question?

Well formed is decided for the whole map before any of it is used. Answers pass
to the legacy server untouched, but for what its revision cannot read. It knows
no exchange.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any, Final

from gateway.eras import forms
from gateway.eras.asks import as_object, is_url, uses_tools
from gateway.eras.policy import Unfit
from gateway.eras.shapes import NULL
from gateway.eras.vocabulary import Ask, Kind
from gateway.errors import InvalidParams
from gateway.wire.jsonrpc import NotJson, Params, Raw, decode, decode_members
from gateway.wire.versions import at_least

_ACTIONS: Final = frozenset({"accept", "decline", "cancel"})

_ENVELOPE: Final = frozenset({"jsonrpc", "id", "result", "error"})
"""The first drafts took whole JSON-RPC responses for answers; no final answer is made of these alone."""


_SAMPLED_SINCE: Final = {"audio": "2025-03-26", "tool_use": "2025-11-25", "tool_result": "2025-11-25"}
"""Kinds of block that a sample may be made of, where that was not always so."""

_PLAIN: Final = frozenset({"text", "image", "audio"})


class Inexpressible(ValueError):
    """An answer that the server's revision has no words for. Half of it would be a lie."""

    def __init__(self, what: str, version: str) -> None:
        super().__init__(f"The client's model answered with {what}, which protocol {version} cannot express")


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
    """The answer as a server of this revision can read it.

    Raises:
        Inexpressible: it says what this revision has no words for.
    """
    if "_meta" in answer or answer.get("stopReason") == NULL:
        # TypeScript servers turn the whole answer away if one of these is not what it should be, and the call is lost.
        answer = {name: value for name, value in answer.items() if not _is_idle(name, value)}
    raw = answer.get("content")
    if not isinstance(raw, Raw):
        return answer
    match ask.kind:
        case Kind.ELICITATION if bytes(memoryview(raw)[:1]) != b"{":
            # Old SDKs refuse nulls, and an empty object is `[]` to PHP: beside a "no" it says nothing anyway.
            return {name: value for name, value in answer.items() if name != "content"}
        case Kind.SAMPLING:
            block = _spread(ask, raw) if at_least(version, "2025-11-25") else _sample(raw, version)
            return answer if block is None else {**answer, "content": block}
        case _:
            return answer


def _is_idle(name: str, value: Any) -> bool:
    """Does this member of an answer say nothing that a server could read?"""
    if name == "_meta" and isinstance(value, Raw):
        return bytes(memoryview(value)[:1]) != b"{"
    return name == "stopReason" and bool(value == NULL)


def _sample(content: Raw, version: str) -> Any:
    """The one block that a sample is to be; None if it is that already."""
    try:
        sample = decode(content)
    except NotJson:
        raise Inexpressible("content that cannot be read", version) from None
    block = _one_block(sample, version) if isinstance(sample, list) else sample
    _check_block(block, version)
    return None if block is sample else block


def _spread(ask: Ask, content: Raw) -> Any:
    """The one block that a list of them can be; None if it is to stay as it is.

    A sample of 2025-11-25 may be several blocks, but the SDKs of that revision read them only in answer to a
    request that offered tools.
    """
    if uses_tools(ask) or bytes(memoryview(content)[:1]) != b"[":
        return None
    try:
        blocks = decode(content)
        kinds = {block["type"] for block in blocks}
        return _one_block(blocks, "2025-11-25") if kinds and kinds <= _PLAIN else None
    except (NotJson, Inexpressible, TypeError, KeyError):
        return None


def _one_block(blocks: list[Any], version: str) -> Any:
    """Before 2025-11-25 a sample was one block: several texts make one, several of other kinds none."""
    if len(blocks) == 1:
        return blocks[0]
    texts = [
        block["text"]
        for block in blocks
        if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)
    ]
    if len(texts) < len(blocks):
        raise Inexpressible("several blocks that are not all text", version)
    return {"type": "text", "text": "\n\n".join(texts)}


def _check_block(block: Any, version: str) -> None:
    kind = block.get("type") if isinstance(block, dict) else None
    since = _SAMPLED_SINCE.get(kind) if isinstance(kind, str) else None
    if since is not None and not at_least(version, since):
        raise Inexpressible(f"a block of type {kind}", version)


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
        raise InvalidParams(detail=f"{name!r} of an answer cannot be read as JSON") from None
