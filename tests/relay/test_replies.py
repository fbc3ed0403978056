"""The last word of a round, made of what the legacy side said."""

from typing import Any

import pytest
from msgspec.structs import replace

from gateway.eras.discovery import Introduction
from gateway.eras.vocabulary import Abort, Complete, CompleteFailure, Ending
from gateway.errors import CallLost, UpstreamTimedOut
from gateway.relay.listener import Reply
from gateway.relay.replies import completed, ending_reply, failed, input_required
from gateway.settings.upstream import Caching
from gateway.telemetry.names import Outcome
from gateway.wire.jsonrpc import Failure, Raw, decode, encode
from gateway.wire.versions import META_SERVER_INFO
from tests.support.asking import form
from tests.support.requests import tool_call

SERVER = Introduction("2025-11-25", {}, {"name": "legacy", "version": "1"}, None)
NAMELESS = Introduction("2025-11-25", {}, None, None)
CACHING = Caching()
FINE = Raw(b'{"content":[{"type":"text","text":"ok"}]}')
READ = replace(tool_call(), method="resources/read", target="file:///x")


def result_of(reply: Reply) -> Any:
    assert reply.error is None
    return decode(encode(reply.result))


@pytest.mark.requirement("R22", "R23")
def test_a_result_is_complete_and_names_its_server() -> None:
    reply = ending_reply(Complete(FINE), tool_call(), SERVER, CACHING)

    assert (reply.outcome, reply.status) == (Outcome.COMPLETE, 200)
    assert result_of(reply) == {
        "resultType": "complete",
        "content": [{"type": "text", "text": "ok"}],
        "_meta": {META_SERVER_INFO: {"name": "legacy", "version": "1"}},
    }


@pytest.mark.requirement("R24")
def test_only_a_cacheable_result_says_for_how_long_and_for_whom() -> None:
    caching = Caching.model_validate({"ttl": "5s", "scope": "public"})
    contents = Raw(b'{"contents":[{"uri":"file:///x","text":""}]}')

    read = result_of(completed(contents, READ, SERVER, caching))
    assert (read["ttlMs"], read["cacheScope"]) == (5000, "public")
    assert not {"ttlMs", "cacheScope"} & result_of(completed(FINE, tool_call(), SERVER, caching)).keys()


@pytest.mark.parametrize("result", [b"7", b"[]", b"null", b'"text"', b"[" * 5000])
def test_a_result_that_is_none_is_the_servers_failure(result: bytes) -> None:
    reply = completed(Raw(result), tool_call(), SERVER, CACHING)

    assert (reply.outcome, reply.status, reply.result) == (Outcome.UPSTREAM_FAILED, 200, None)
    assert reply.error is not None
    assert reply.error.code == -32603


def test_a_tools_own_failure_is_a_result() -> None:
    reply = completed(Raw(b'{"content":[],"isError":true}'), tool_call(), SERVER, CACHING)

    assert result_of(reply)["isError"] is True


@pytest.mark.requirement("R28")
def test_an_error_of_the_server_is_passed_on_in_the_words_of_this_revision() -> None:
    reply = failed(Failure("hf-1", -32602, "Unknown tool: book", None), tool_call())

    assert reply.error is not None
    assert (reply.outcome, reply.status) == (Outcome.ERROR, 400)
    assert (reply.error.code, reply.error.message) == (-32602, "Unknown tool: book")


@pytest.mark.requirement("R18")
@pytest.mark.parametrize(
    "ending",
    [
        CompleteFailure(Failure(1, -32603, "Client does not support elicitation", None)),
        Complete(
            Raw(b'{"isError":true,"content":[{"type":"text","text":"Client does not support elicitation"}]}')
        ),
    ],
)
def test_a_server_that_did_not_even_ask_failed_of_what_it_did_not_ask_for(ending: Ending) -> None:
    request = replace(tool_call(), capabilities={})

    reply = ending_reply(ending, request, SERVER, CACHING)
    assert reply.error is not None
    assert (reply.outcome, reply.error.code) == (Outcome.REFUSED, -32021)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(UpstreamTimedOut(), Outcome.UPSTREAM_FAILED), (CallLost("hold_expired"), Outcome.LOST)],
)
def test_an_error_of_our_own_looks_as_it_says_itself(error: Any, outcome: Outcome) -> None:
    reply = ending_reply(Abort(error), tool_call(), SERVER, CACHING)

    assert reply == Reply.of(error)
    assert reply.outcome is outcome


@pytest.mark.requirement("R34", "R23")
def test_questions_go_out_with_the_ticket() -> None:
    requests = {"a": {"method": "elicitation/create", "params": form(0, "a").params}}

    reply = input_required(requests, "sealed", SERVER)
    assert (reply.outcome, reply.status) == (Outcome.INPUT_REQUIRED, 200)
    assert result_of(reply) == {
        "resultType": "input_required",
        "inputRequests": {
            "a": {"method": "elicitation/create", "params": decode(encode(form(0, "a").params))}
        },
        "requestState": "sealed",
        "_meta": {META_SERVER_INFO: {"name": "legacy", "version": "1"}},
    }


@pytest.mark.requirement("R34")
def test_a_round_without_questions_is_the_ticket_alone() -> None:
    assert result_of(input_required({}, "sealed", NAMELESS)) == {
        "resultType": "input_required",
        "requestState": "sealed",
    }
