"""What each legacy revision says differently, row by row, in both directions: nothing is lost without a word.

The rows are those of the schema differences between the revisions; what holds for all of them is tested elsewhere.
"""

from typing import Any

import pytest

from gateway.eras.answers import Inexpressible, to_legacy_answer
from gateway.eras.asks import asks_of_url_failure, input_request
from gateway.eras.capabilities import for_legacy, is_declared
from gateway.eras.discovery import Introduction, discover_result
from gateway.eras.failures import to_modern_failure
from gateway.eras.requests import initialize_params, to_legacy_params
from gateway.eras.results import to_modern_result
from gateway.eras.vocabulary import Ask, Kind
from gateway.wire.jsonrpc import Failure, Raw, decode, encode
from tests.support.asking import EVERYTHING, SAMPLE, accept, ask, form, raw, sampling

Json = dict[str, Any]

V2024, V2503, V2506, V2511 = REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
OLD = (V2024, V2503, V2506)

TEXT: Json = {"type": "text", "text": "Paris"}
IMAGE: Json = {"type": "image", "data": "AA==", "mimeType": "image/png"}
AUDIO: Json = {"type": "audio", "data": "AA==", "mimeType": "audio/wav"}
EMBEDDED: Json = {"type": "resource", "resource": {"uri": "a://b", "text": "x"}}
LINK: Json = {"type": "resource_link", "uri": "a://b", "name": "b"}
TOOL_USE: Json = {"type": "tool_use", "id": "1", "name": "t", "input": {}}
TOOL_RESULT: Json = {"type": "tool_result", "toolUseId": "1", "content": []}
PLAIN: Json = {"experimental": {"x": {}}, "logging": {}}


def up(method: str, result: Json, version: str) -> Json:
    modern = to_modern_result(
        method,
        Raw(encode(result)),
        server_info={"name": "s", "version": "1"},
        ttl_ms=0,
        cache_scope="private",
        version=version,
    )
    value: Json = decode(encode(modern))
    return value


def sampled(version: str, content: Any) -> Any:
    legacy = to_legacy_answer(sampling(0), raw(SAMPLE | {"content": content}), version)
    return decode(encode(legacy))["content"]


# --- up ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "block"),
    [
        *((version, block) for version in REVISIONS for block in (TEXT, IMAGE, EMBEDDED)),
        *((version, AUDIO) for version in REVISIONS[1:]),
        *((version, LINK) for version in REVISIONS[2:]),
        (V2506, TEXT | {"_meta": {"a": 1}}),
        (V2511, LINK | {"icons": [{"src": "https://x/i.png"}]}),
    ],
)
def test_every_kind_of_content_goes_up_as_it_is(version: str, block: Json) -> None:
    assert up("tools/call", {"content": [block]}, version)["content"] == [block]
    message = {"role": "user", "content": block}
    assert up("prompts/get", {"messages": [message]}, version)["messages"] == [message]


@pytest.mark.parametrize(
    ("version", "tool"),
    [
        (V2024, {"description": "d"}),
        (V2503, {"annotations": {"readOnlyHint": True}}),
        (V2506, {"title": "T", "outputSchema": {"type": "object"}, "_meta": {"a": 1}}),
        (V2511, {"icons": [{"src": "https://x/i.png"}]}),
    ],
)
def test_every_member_of_a_tool_goes_up_and_execution_goes(version: str, tool: Json) -> None:
    whole = {"name": "t", "inputSchema": {"type": "object"}, **tool}
    listed = up("tools/list", {"tools": [whole | {"execution": {"taskSupport": "optional"}}]}, version)
    assert listed["tools"] == [whole]


@pytest.mark.parametrize("version", [V2506, V2511])
def test_structured_content_goes_up_beside_the_text(version: str) -> None:
    result = {"content": [TEXT], "structuredContent": {"city": "Paris"}}
    assert up("tools/call", result, version).items() >= result.items()


@pytest.mark.parametrize(
    ("version", "declared", "seen"),
    [
        (V2024, {"prompts": {}}, {"prompts": {}, "completions": {}}),
        (V2024, {"resources": {}}, {"resources": {}, "completions": {}}),
        (V2024, {"tools": {}}, {"tools": {}}),
        (V2503, {"prompts": {}}, {"prompts": {}}),
        (V2503, {"prompts": {}, "completions": {}}, {"prompts": {}, "completions": {}}),
        (V2511, {"tools": {}, "tasks": {"list": {}}}, {"tools": {}}),
        *((version, PLAIN, PLAIN) for version in REVISIONS),
    ],
)
def test_capabilities_of_the_server(version: str, declared: Json, seen: Json) -> None:
    """Completion is older than the capability that tells of it."""
    known = Introduction(version, declared, {"name": "s", "version": "1"}, None)
    told = discover_result(known, gateway_info={}, ttl_ms=0, cache_scope="private")
    assert told["capabilities"] == seen


@pytest.mark.parametrize("version", REVISIONS)
def test_a_missing_resource_is_said_with_a_standard_code(version: str) -> None:
    failure = Failure(1, -32002, "Resource not found", None)
    told = to_modern_failure(failure, method="resources/read", params=raw({"uri": "a://b"}))
    assert (told.code, decode(encode(told.data))) == (-32602, {"uri": "a://b"})


def test_an_address_that_must_be_visited_becomes_a_question() -> None:
    """2025-11-25 only: error -32042."""
    listed = {"mode": "url", "url": "https://x", "elicitationId": "e", "message": "Visit"}
    (question,) = asks_of_url_failure(Failure(1, -32042, "", Raw(encode({"elicitations": [listed]}))))
    assert decode(encode(input_request(question, EVERYTHING))) == {
        "method": "elicitation/create",
        "params": {"mode": "url", "url": "https://x", "message": "Visit"},
    }


@pytest.mark.parametrize(
    "field",
    [
        pytest.param({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]}, id=V2506),
        pytest.param({"type": "boolean", "default": True}, id=f"{V2506}-default"),
        pytest.param({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}, id=f"{V2511}-titled"),
        pytest.param(
            {"type": "array", "items": {"type": "string", "enum": ["a"]}, "default": ["a"]},
            id=f"{V2511}-several",
        ),
        pytest.param(
            {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
            id=f"{V2511}-several-titled",
        ),
        pytest.param({"type": "number", "default": 1.5}, id=f"{V2511}-default"),
    ],
)
def test_every_form_of_a_field_is_shown_as_it_was_asked(field: Json) -> None:
    schema = {"type": "object", "properties": {"a": field}, "required": ["a"]}
    question = ask(0, "elicitation/create", message="?", requestedSchema=schema, _meta={"a": 1}, task={})
    shown = decode(encode(input_request(question, EVERYTHING)))
    assert shown["params"] == {"message": "?", "requestedSchema": schema}


@pytest.mark.parametrize(
    ("version", "content"),
    [
        (V2024, TEXT),
        (V2024, IMAGE),
        (V2503, AUDIO),
        (V2511, [TEXT, TOOL_USE]),
        (V2511, TOOL_RESULT),
    ],
)
def test_every_form_of_a_message_for_the_model_is_passed_on(version: str, content: Any) -> None:
    messages = [{"role": "user", "content": content}]
    question = ask(0, "sampling/createMessage", messages=messages, maxTokens=1, _meta={}, task={})
    shown = decode(encode(input_request(question, EVERYTHING)))
    assert shown["params"] == {"messages": messages, "maxTokens": 1}


def test_a_question_with_tools_needs_a_client_that_has_them() -> None:
    question = ask(0, "sampling/createMessage", messages=[], maxTokens=1, tools=[{"name": "t"}])
    assert is_declared({"sampling": {"tools": {}}}, question)
    assert not is_declared({"sampling": {}}, question), "told as a missing capability, not asked without them"


# --- down ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "declared"),
    [
        (V2024, {"roots": {}, "sampling": {}}),
        (V2503, {"roots": {}, "sampling": {}}),
        (V2506, {"elicitation": {}, "roots": {}, "sampling": {}}),
        (
            V2511,
            {"elicitation": {"form": {}, "url": {}}, "roots": {}, "sampling": {"context": {}, "tools": {}}},
        ),
    ],
)
def test_a_client_is_introduced_in_the_words_of_the_revision(version: str, declared: Json) -> None:
    assert for_legacy(EVERYTHING, version) == declared
    told = initialize_params({"name": "c", "version": "1", "title": None}, EVERYTHING, version)
    assert told == {
        "protocolVersion": version,
        "capabilities": declared,
        "clientInfo": {"name": "c", "version": "1"},
    }


@pytest.mark.parametrize(
    ("version", "is_kept"), [(V2024, False), (V2503, False), (V2506, True), (V2511, True)]
)
@pytest.mark.parametrize(
    "reference", [{"type": "ref/prompt", "name": "p"}, {"type": "ref/resource", "uri": "a://{b}"}]
)
def test_completion_has_a_context_since_2025_06_18(version: str, is_kept: Any, reference: Json) -> None:
    params = {"ref": reference, "argument": {"name": "a", "value": "v"}, "context": {"arguments": {"b": "c"}}}
    sent = to_legacy_params("completion/complete", raw(params), version=version, progress_token=None)
    assert sent.keys() == {"ref", "argument"} | ({"context"} if is_kept else set())
    assert decode(encode(sent["ref"])) == reference


@pytest.mark.parametrize(
    ("version", "content", "told"),
    [
        *((version, TEXT, TEXT) for version in REVISIONS),
        *((version, [IMAGE], IMAGE) for version in OLD),
        *((version, [TEXT, TEXT], {"type": "text", "text": "Paris\n\nParis"}) for version in REVISIONS),
        *((V2511, [block], block) for block in (TEXT, IMAGE, AUDIO)),
        (V2503, AUDIO, AUDIO),
        (V2506, [AUDIO], AUDIO),
        *((V2511, content, content) for content in ([TEXT, IMAGE], [TOOL_USE], TOOL_USE)),
        (V2511, [], []),
        (V2511, ["odd"], ["odd"]),
    ],
)
def test_a_sample_that_the_revision_can_express(version: str, content: Any, told: Any) -> None:
    """SDKs: the Python and the TypeScript one of 2025-11-25 refuse lists in answer to a request without tools."""
    assert sampled(version, content) == told


@pytest.mark.parametrize("content", [[TEXT], [TEXT, TEXT], [TOOL_USE]])
def test_a_sample_with_tools_stays_the_list_that_it_is(content: Any) -> None:
    ask = Ask(0, Kind.SAMPLING, "sampling/createMessage", raw({"tools": []}))
    assert decode(to_legacy_answer(ask, raw(SAMPLE | {"content": content}), V2511)["content"]) == content


@pytest.mark.parametrize(
    ("version", "content", "words"),
    [
        *((version, [TEXT, IMAGE], "several blocks that are not all text") for version in OLD),
        *((version, TOOL_USE, "a block of type tool_use") for version in OLD),
        *((version, [TOOL_RESULT], "a block of type tool_result") for version in OLD),
        (V2024, AUDIO, "a block of type audio"),
        (V2024, [AUDIO], "a block of type audio"),
    ],
)
def test_a_sample_that_it_cannot_express_is_refused_in_plain_words(
    version: str, content: Any, words: str
) -> None:
    """Half an answer would be a silent loss: the server is told instead why there is none."""
    with pytest.raises(Inexpressible, match=f"{words}, which protocol {version} cannot express"):
        sampled(version, content)


@pytest.mark.parametrize("version", REVISIONS[2:])
def test_a_form_is_answered_as_the_client_wrote_it_but_for_what_is_no_content(version: str) -> None:
    answer = raw(accept(a=1.5, b=["x"], c=True))
    assert to_legacy_answer(form(0, "a"), answer, version) is answer
    declined = raw({"action": "decline", "content": None})
    assert decode(encode(to_legacy_answer(form(0, "a"), declined, version))) == {"action": "decline"}


@pytest.mark.parametrize("idle", [{"stopReason": None, "_meta": None}, {"_meta": []}, {"_meta": "x"}])
@pytest.mark.parametrize("version", REVISIONS)
def test_a_sample_is_told_without_what_it_does_not_have(version: str, idle: dict[str, Any]) -> None:
    """Measured: TypeScript servers answer 400 to these, which ends the call."""
    said = raw(SAMPLE | idle)

    assert decode(encode(to_legacy_answer(sampling(0), said, version))) == SAMPLE


def test_what_stands_beside_a_sample_is_told_as_it_is() -> None:
    said = raw(SAMPLE | {"stopReason": "endTurn", "_meta": {"x": None}, "x-vendor": None})

    assert encode(to_legacy_answer(sampling(0), said, V2511)) == encode(said)


@pytest.mark.parametrize("odd", [[], "", 0, False])
@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_no_is_a_no_whatever_stands_beside_it(action: str, odd: Any) -> None:
    """Ours: PHP writes an empty object as `[]`, and real servers turn away the whole answer for it."""
    said = raw({"action": action, "content": odd})

    assert decode(encode(to_legacy_answer(form(0, "a"), said, REVISIONS[-1]))) == {"action": action}
