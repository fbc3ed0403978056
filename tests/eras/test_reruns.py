"""When a call that ended badly is worth another run."""

import pytest

from gateway.eras.reruns import is_error, is_worth_another_run
from gateway.eras.vocabulary import Abort, Complete, CompleteFailure, Ending
from gateway.errors import CallLost, CapabilityMissing, Overloaded, UpstreamLost, UpstreamTimedOut
from gateway.wire.jsonrpc import Failure, Raw

FINE = Complete(Raw(b'{"content":[]}'))
TOOL_FAILED = Complete(Raw(b'{"content":[],"isError":true}'))
ERROR = CompleteFailure(Failure(1, -32603, "timed out", None))


@pytest.mark.parametrize("error", [UpstreamLost("gone"), UpstreamTimedOut()])
def test_a_call_that_was_lost_with_its_server_is_worth_it(error: UpstreamLost) -> None:
    assert is_worth_another_run(Abort(error), was_late=False)
    assert is_worth_another_run(Abort(error), was_late=True)


@pytest.mark.parametrize("ending", [TOOL_FAILED, ERROR])
def test_a_call_that_failed_is_worth_it_only_for_an_answer_that_it_missed(ending: Ending) -> None:
    assert is_worth_another_run(ending, was_late=True)
    assert not is_worth_another_run(ending, was_late=False)


@pytest.mark.parametrize(
    "ending", [None, FINE, Abort(CallLost("x")), Abort(CapabilityMissing({})), Abort(Overloaded())]
)
def test_nothing_else_is(ending: Ending | None) -> None:
    assert not is_worth_another_run(ending, was_late=True)


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        (b'{"isError":true}', True),
        (b'{"isError": true , "content":[]}', True),
        (b'{"isError":false}', False),
        (b'{"isError":"true"}', False),
        (b"{}", False),
        (b"[true]", False),
        (b"[" * 5000, False),
    ],
)
def test_a_tool_failed_if_it_says_so(result: bytes, failed: bool) -> None:  # noqa: FBT001
    assert is_error(Raw(result)) is failed
