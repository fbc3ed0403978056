"""A server whose SDK would not ask, because the client cannot answer."""

import json
from typing import Any

import pytest

from gateway.eras.local_refusals import unmet_by_failure, unmet_by_result, unmet_by_words
from gateway.wire.jsonrpc import Failure, Raw

FORM: dict[str, Any] = {"elicitation": {"form": {}}}
URL: dict[str, Any] = {"elicitation": {"url": {}}}


def tool_result(*texts: str, **more: Any) -> Raw:
    content = [{"type": "text", "text": text} for text in texts]
    return Raw(json.dumps({"content": content, "isError": True, **more}).encode())


@pytest.mark.requirement("R18")
@pytest.mark.parametrize(
    ("words", "needs"),
    [
        ("Client does not support form elicitation.", FORM),
        ("Client does not support url elicitation.", URL),
        ("Client does not support URL elicitation (required for notifications/elicitation/complete)", URL),
        ("Client does not support elicitation (required for elicitation/create)", FORM),
        ("Client does not support sampling (required for sampling/createMessage)", {"sampling": {}}),
        ("Client does not support sampling tools capability.", {"sampling": {"tools": {}}}),
        ("Client does not support listing roots (required for roots/list)", {"roots": {}}),
        ("client does not support elicitation", FORM),
        ('client does not support "form" elicitation', FORM),
        ('client does not support "url" elicitation', URL),
        ("MCP error -32600: Client does not support form elicitation.", FORM),
        ("Client must be configured with sampling capabilities", {"sampling": {}}),
        ("Client must be configured with elicitation capabilities", FORM),
    ],
)
def test_the_words_of_real_sdks_tell_which_capability_is_missing(words: str, needs: Any) -> None:
    assert unmet_by_words(words, {}) == needs
    assert unmet_by_result(tool_result(words), {}) == needs


@pytest.mark.parametrize(
    ("words", "declared"),
    [
        ("Client does not support form elicitation.", {"elicitation": {}}),
        ("Client does not support url elicitation.", {"elicitation": {"url": {}}}),
        ("Client does not support sampling (required for sampling/createMessage)", {"sampling": {}}),
        ("Client does not support listing roots (required for roots/list)", {"roots": {}}),
    ],
)
def test_a_server_that_misses_what_was_declared_is_left_its_own_words(words: str, declared: Any) -> None:
    assert unmet_by_words(words, declared) is None


def test_a_mode_that_was_not_declared_is_missing_even_if_another_was() -> None:
    assert unmet_by_words("Client does not support url elicitation.", {"elicitation": {}}) == URL
    assert unmet_by_words("Client does not support form elicitation.", {"elicitation": {"url": {}}}) == FORM


@pytest.mark.parametrize(
    "result",
    [
        tool_result("Client does not support form elicitation.", isError=False),
        tool_result("Client does not support form elicitation.", "So I guessed."),
        tool_result("The client does not support sampling, so here is the raw text: …"),
        tool_result("Client does not support form elicitation." + " " * 2000),
        Raw(b'{"content":[{"type":"image","data":"","mimeType":"a/b"}],"isError":true}'),
        Raw(b'{"content":"Client does not support form elicitation.","isError":true}'),
        Raw(b'{"isError":true}'),
        Raw(b'"isError"'),
        Raw(b'{"content":[{"text":"\xff"}],"isError":true}'),
    ],
)
def test_any_other_result_says_nothing_about_capabilities(result: Raw) -> None:
    assert unmet_by_result(result, {}) is None


def missing(required: Any) -> Failure:
    data = json.dumps({"requiredCapabilities": required}).encode()
    return Failure(1, -32021, "sampling is needed", Raw(data))


@pytest.mark.requirement("R18")
def test_a_server_that_knows_this_revision_s_code_for_it_is_understood() -> None:
    """Servers on SDKs for both eras say it to legacy clients as well (Go 1.7), whose code means nothing else."""
    assert unmet_by_failure(missing({"sampling": {}}), {}) == {"sampling": {}}
    assert unmet_by_failure(missing(URL | {"roots": {}}), {"elicitation": {}, "roots": {}}) == URL
    assert unmet_by_failure(Failure(1, 0, "client does not support elicitation", None), {}) == FORM


@pytest.mark.parametrize(
    "failure",
    [
        missing({"roots": {}}),
        missing({}),
        missing({"sampling": True}),
        missing(["sampling"]),
        missing({"sampling": {"x": "y" * 2000}}),
        Failure(1, -32021, "sampling is needed", None),
        Failure(1, -32021, "sampling is needed", Raw(b'"\xff"')),
    ],
)
def test_a_code_that_misses_nothing_is_an_error_like_any_other(failure: Failure) -> None:
    """Ours: clients act on -32021, so it is said only where there is something that they could declare."""
    assert unmet_by_failure(failure, {"roots": {}}) is None
