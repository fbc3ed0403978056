"""What is passed over, and what may not be: the answer that somebody waits for."""

import pytest

from gateway.errors import UpstreamSpokeNonsense
from gateway.upstreams.readable import messages
from gateway.wire.sse import SseEvent
from tests.support.calling import NO_MESSAGE, UNREADABLE_ANSWERS


@pytest.mark.parametrize("data", NO_MESSAGE)
def test_what_is_no_message_says_nothing(data: str) -> None:
    """LEGACY-WIRE 7: SDK clients of every version pass over what they cannot read."""
    assert messages(SseEvent(data=data.encode())) == []


@pytest.mark.parametrize("data", UNREADABLE_ANSWERS)
def test_an_answer_that_cannot_be_read_is_not_passed_over(data: str) -> None:
    """Ours: who waits for it would wait until the time is over."""
    with pytest.raises(UpstreamSpokeNonsense):
        messages(SseEvent(data=data.encode()))
