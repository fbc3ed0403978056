"""How an exchange ends: what a result means after a refused question, and what the client is told that it lacks."""

from typing import Any

from gateway.eras.endings import PAGE_NOT_OPENED, judged, lacking
from gateway.eras.vocabulary import Abort, Complete
from gateway.wire.jsonrpc import Raw

NEEDS: dict[str, Any] = {"sampling": {}}
WELL, BADLY = Raw(b'{"content":[]}'), Raw(b'{"isError":true}')


def test_a_result_is_the_result() -> None:
    assert judged(WELL, {}) == judged(WELL, NEEDS) == Complete(WELL)
    assert judged(BADLY, {}) == Complete(BADLY)


def test_a_tool_that_failed_after_it_was_refused_failed_for_that() -> None:
    """basic/lifecycle: -32021 says which capabilities to declare."""
    ending = judged(BADLY, NEEDS)
    assert isinstance(ending, Abort)
    assert (ending.error.rpc_code, ending.error.data) == (-32021, {"requiredCapabilities": NEEDS})


def test_what_is_lacking_is_as_it_was_when_it_ended() -> None:
    needs = dict(NEEDS)
    ending = lacking(needs)
    needs.clear()
    assert ending.error.data == {"requiredCapabilities": NEEDS}


def test_a_page_that_was_not_opened_is_named() -> None:
    assert "page" in PAGE_NOT_OPENED.failure.message
