"""The whole tree of what Holdfast refuses or fails to do: codes, statuses, and the id that the log has too."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.edge.reply import body_of
from gateway.eras.failures import http_status
from gateway.errors import (
    CallLost,
    CapabilityMissing,
    ClientFault,
    GatewayError,
    Overloaded,
    RateLimited,
    StateRejected,
    UnsupportedVersion,
    UpstreamRefused,
    UpstreamUnauthorized,
)
from gateway.relay.letters import open_reply, pack_reply
from gateway.relay.listener import Reply
from gateway.wire.jsonrpc import decode

DEFINED = {-32020, -32021, -32022}
"""By 2026-07-28 itself; the rest of -32020..-32099 is kept for its successors."""
RETIRED = {-32002, -32042}

MADE: dict[type[GatewayError], Callable[[], GatewayError]] = {
    CapabilityMissing: lambda: CapabilityMissing({"sampling": {}}),
    UnsupportedVersion: lambda: UnsupportedVersion("1999-01-01", ("2026-07-28",)),
    CallLost: lambda: CallLost("hold_lost"),
    RateLimited: lambda: RateLimited(1.5),
    UpstreamRefused: lambda: UpstreamRefused(502),
    UpstreamUnauthorized: lambda: UpstreamUnauthorized(401, "Bearer"),
}


def tree(root: type[GatewayError]) -> Iterator[type[GatewayError]]:
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


# Of the gateway's own, that is: tests make some more.
KINDS = sorted({kind for kind in tree(GatewayError) if kind.__module__.startswith("gateway.")}, key=str)


def made(kind: type[GatewayError]) -> GatewayError:
    return MADE[kind]() if kind in MADE else kind("why")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.requirement("R27")
def test_no_error_has_a_code_that_this_revision_forbids(kind: type[GatewayError]) -> None:
    code = made(kind).rpc_code
    assert code in DEFINED or not -32099 <= code <= -32020
    assert code not in RETIRED


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.requirement("R15", "R27")
def test_the_status_is_one_under_which_the_code_can_be_read(kind: type[GatewayError]) -> None:
    """Ours: what HTTP itself refuses has HTTP's own status; all else has that of its code. 404 is for -32601."""
    error = made(kind)
    status = error.http_status
    assert (status == 404) == (error.rpc_code == -32601)
    if isinstance(error, RateLimited):
        assert status == 429
    elif isinstance(error, Overloaded):
        assert status == 503
    elif isinstance(error, UpstreamUnauthorized):
        assert status == 401
    elif isinstance(error, ClientFault) and status not in {400, 404}:
        assert error.rpc_code == -32600
        assert status in {401, 403, 405, 406, 408, 413, 415}
    else:
        assert status == http_status(error.rpc_code)


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind is not StateRejected], ids=lambda k: k.__name__
)
def test_every_error_tells_the_client_its_id(kind: type[GatewayError]) -> None:
    error = made(kind)
    reply = Reply.of(error)

    data = decode(body_of(reply, 7))["error"]["data"]
    assert reply.error_id
    assert data == {**(error.data or {}), "errorId": reply.error_id}
    assert Reply.of(error).error_id == reply.error_id, (
        "the same error has the same id, however often it is told"
    )
    assert Reply.of(made(kind)).error_id != reply.error_id
    assert open_reply(pack_reply(reply)).error_id == reply.error_id, "and from whichever replica it comes"


@pytest.mark.parametrize("possible", [True, False])
def test_a_lost_call_warns_of_side_effects_where_there_may_be_some_and_only_there(*, possible: bool) -> None:
    """Ours: what a person reads must not contradict `sideEffectsPossible`, which a program reads."""
    error = CallLost("hold_lost", side_effects_possible=possible)

    assert ("may have had side effects" in error.message) is possible
    assert error.data == {"reason": "hold_lost", "sideEffectsPossible": possible, "canStartAgain": True}


@pytest.mark.parametrize(
    ("required", "told"),
    [
        ({"elicitation": {}}, ": elicitation"),
        ({"elicitation": {"url": {}}, "sampling": {}}, ": elicitation.url, sampling"),
        ({}, ""),
    ],
)
def test_a_missing_capability_is_named_in_the_words_too(required: dict[str, Any], told: str) -> None:
    """Ours: most clients show their user nothing but the message."""
    message = CapabilityMissing(required).message
    assert message == "The request needs a client capability that was not declared" + told


def test_who_took_too_long_to_answer_is_told_so_in_words() -> None:
    """Ours: as above; "gone" alone sounds like a crash."""
    assert CallLost("hold_expired").message.startswith("The question was not answered in time")
    assert "may have had side effects" in CallLost("hold_expired").message
    assert "not answered in time" not in CallLost("hold_lost").message


@given(st.text(), st.text())
def test_a_refused_state_is_the_same_bytes_whatever_was_wrong(one: str, another: str) -> None:
    """Design: one frozen answer. Its id is for the log, which has the request's id beside it."""
    first, second = (Reply.of(StateRejected(cause)) for cause in (one, another))

    assert body_of(first, 7) == body_of(second, 7)
    assert first.error_id != second.error_id
    assert decode(body_of(first, 7))["error"]["data"] == {"reason": "invalid_request_state"}
