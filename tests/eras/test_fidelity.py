"""What passes through is what was written: every digit, every character, every unknown member, in its order.

Results are those that the schemas of the legacy revisions allow, with members that they do not know.
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gateway.eras.answers import parse_responses, to_legacy_answer
from gateway.eras.asks import input_request
from gateway.eras.notifications import PROGRESS, RoundFilter
from gateway.eras.requests import to_legacy_params
from gateway.eras.results import to_modern_result
from gateway.eras.vocabulary import KIND_OF_METHOD, Ask
from gateway.wire.jsonrpc import Raw, Request, encode, encode_request, parse
from tests.support.schemas import (
    LEGACY,
    RESULTS,
    Members,
    anything,
    literal,
    objects,
    result_of,
    texts,
    unknown,
    written,
)
from tests.support.verdicts import CACHEABLE, checked_message

SERVER = {"name": "legacy", "version": "1"}
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
EVERYTHING: dict[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}
LISTED = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
}
unhurried = settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # shrinking such trees takes minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


# --- up ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", LEGACY)
@pytest.mark.parametrize("method", RESULTS)
@unhurried
@given(data=st.data())
@pytest.mark.requirement("R22", "R23", "R24")
def test_a_result_is_what_the_server_wrote_and_valid_in_this_revision(
    method: str, version: str, data: st.DataObject
) -> None:
    legacy = data.draw(result_of(method, version))
    if method in LISTED:
        member, key = LISTED[method]
        legacy[member] = list({entry[key]: entry for entry in legacy[member]}.values())
    text = written(legacy, ascii_only=data.draw(st.booleans()))

    modern = encode(
        to_modern_result(
            method, Raw(text), server_info=SERVER, ttl_ms=7, cache_scope="private", version=version
        )
    )

    seen, said = literal(modern), literal(text)
    stamps = ("ttlMs", "cacheScope") if method in CACHEABLE else ()
    assert seen[:1] == [("resultType", "complete")]
    assert seen.without("resultType", "_meta", *stamps) == _as_modern(method, said)
    own = said["_meta"] if any(name == "_meta" for name, _ in said) else Members()
    assert seen["_meta"].without(SERVER_INFO) == own.without(SERVER_INFO)
    checked_message(method, {"jsonrpc": "2.0", "id": 0, "result": _plain(seen)})


def _as_modern(method: str, said: Members) -> Members:
    """All but what this revision took away, and what the TypeScript client turns the result away for."""
    kept = Members(pair for pair in said.without("_meta") if pair[1] is not None)
    if method == "completion/complete":
        return Members((name, value if name != "completion" else _countable(value)) for name, value in kept)
    if method != "tools/list":
        return kept
    return Members(
        (name, [tool.without("execution") for tool in value] if name == "tools" else value)
        for name, value in kept
    )


def _countable(completion: Members) -> Members:
    """Without a total that JavaScript would round."""
    total = dict(completion).get("total", 0)
    return completion if abs(int(total)) < 2**53 else completion.without("total")


def _plain(value: Any) -> Any:
    match value:
        case Members():
            return {name: _plain(member) for name, member in value}
        case list():
            return [_plain(item) for item in value]
        case _:
            return value if isinstance(value, int | str | None) else float(value)


@given(anything, objects)
def test_structured_content_is_any_value_whatever(value: Any, meta: dict[str, Any]) -> None:
    """Big integers and floats with all their digits: what is not touched is not read."""
    text = written({"content": [], "structuredContent": value, "_meta": meta})

    modern = to_modern_result(
        "tools/call", Raw(text), server_info=None, ttl_ms=0, cache_scope="private", version="2025-11-25"
    )

    said = literal(text)
    assert literal(encode(modern)).without("resultType", "content", "_meta") == Members(
        pair for pair in said.without("content", "_meta") if pair[1] is not None
    )


ASKED: dict[str, dict[str, Any]] = {
    "sampling/createMessage": {"messages": [], "maxTokens": 9},
    "elicitation/create": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}},
}


@pytest.mark.parametrize("method", ASKED)
@given(more=unknown, value=anything, text=texts)
@pytest.mark.requirement("R34")
def test_a_question_is_what_the_server_asked(
    method: str, more: dict[str, Any], value: Any, text: str
) -> None:
    params = {**more, **ASKED[method], "_meta": {"vendor": value}, "task": {"ttl": 1}}
    if method == "elicitation/create":
        params["message"] = text
        params["requestedSchema"] = {
            "type": "object",
            "x-vendor": value,
            "properties": {text: {"x-vendor": value, **({} if value is None else {"default": value})}},
        }
    else:
        params["metadata"] = {text: value}
    request = parse(
        encode_request(1, method, {name: Raw(written(member)) for name, member in params.items()})
    )
    assert isinstance(request, Request)

    shown = input_request(Ask(1, KIND_OF_METHOD[method], method, request.params), EVERYTHING)

    expected = literal(written({name: member for name, member in params.items() if member is not None}))
    assert literal(encode(shown)) == [("method", method), ("params", expected.without("_meta", "task"))]


@given(st.integers(-(2**200), 2**200), texts, unknown)
@pytest.mark.requirement("R31")
def test_progress_is_told_with_every_digit(progress: int, message: str, more: dict[str, Any]) -> None:
    notification = parse(
        written(
            {
                "jsonrpc": "2.0",
                "method": PROGRESS,
                "params": {"progressToken": "ours", "progress": progress, "message": message, **more},
            }
        )
    )
    told = RoundFilter("theirs", None).admit(notification)  # type: ignore[arg-type]

    assert told is not None
    seen = dict(literal(encode(told)))
    assert (seen["progressToken"], seen["progress"], seen["message"]) == ("theirs", progress, message)


# --- down -------------------------------------------------------------------------------------


@given(objects, objects, unknown, st.sampled_from(LEGACY))
def test_arguments_and_unknown_members_go_down_as_the_client_wrote_them(
    arguments: dict[str, Any], meta: dict[str, Any], more: dict[str, Any], version: str
) -> None:
    reserved = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    body = written(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {**more, "name": "t", "arguments": arguments, "_meta": {**meta, **reserved}},
        }
    )
    request = parse(body)
    assert isinstance(request, Request)

    sent = encode_request(
        2, "tools/call", to_legacy_params("tools/call", request.params, version=version, progress_token=None)
    )

    said, seen = literal(body)["params"], literal(sent)["params"]
    assert seen.without("_meta") == said.without("_meta")
    kept = said["_meta"].without("progressToken", *reserved)
    assert (seen["_meta"] if kept else Members()) == kept
    if not kept:
        assert "_meta" not in dict(seen)


@given(objects, unknown, st.sampled_from(LEGACY))
def test_answers_go_down_as_the_client_wrote_them(
    content: dict[str, Any], more: dict[str, Any], version: str
) -> None:
    given_ = {"who": {**more, "action": "accept", "content": content}}
    text = written(given_)

    (answer,) = parse_responses(Raw(text)).values()
    ask = Ask(1, KIND_OF_METHOD["elicitation/create"], "elicitation/create", {})
    sent = encode(to_legacy_answer(ask, answer, version))

    assert literal(sent) == literal(text)["who"]


@given(objects, anything)
def test_samples_go_down_as_the_clients_model_gave_them(block: dict[str, Any], more: Any) -> None:
    text = written(
        {"ask": {"role": "assistant", "model": "m", "content": {"type": "text", **block}, "x-more": more}}
    )

    (answer,) = parse_responses(Raw(text)).values()
    ask = Ask(1, KIND_OF_METHOD["sampling/createMessage"], "sampling/createMessage", {})

    for version in LEGACY:
        assert literal(encode(to_legacy_answer(ask, answer, version))) == literal(text)["ask"]
