"""Messages that wait: bounded in number and in bytes, and no answer is lost for what a server tells nobody."""

import sys

import pytest

from gateway.upstreams.backlog import Backlog
from gateway.wire.jsonrpc import Message, Notification, Raw, Request, Result, parse

ANSWER = Result(1, Raw(b'"' + b"a" * 1000 + b'"'))


def notice(text: str, size: int = 10) -> Notification:
    return Notification(text, {"data": Raw(b'"' + b"x" * size + b'"')})


def all_of(backlog: Backlog) -> list[Message]:
    return [backlog.take() for _ in range(len(backlog))]


def test_messages_keep_their_order() -> None:
    backlog = Backlog(9)
    messages: list[Message] = [
        notice("a"),
        Request("0", "roots/list", {"p": Raw(b"[ 1]")}),
        ANSWER,
        notice("b"),
    ]
    for message in messages:
        backlog.put(message)
    assert all_of(backlog) == messages


def test_of_too_many_the_oldest_go() -> None:
    """Ours: as it always was."""
    backlog = Backlog(2)
    for name in "abc":
        backlog.put(notice(name))
    assert all_of(backlog) == [notice("b"), notice("c")]


def test_of_too_many_bytes_the_oldest_go_but_no_answer() -> None:
    """Issue: endless streams, giant events. What a client waits for is not pushed out by what it never asked for."""
    backlog = Backlog(99, most_bytes=500)
    for message in (notice("a", 200), ANSWER, notice("b", 200), notice("c", 200)):
        backlog.put(message)
    assert all_of(backlog) == [ANSWER, notice("b", 200), notice("c", 200)]


def test_one_that_is_larger_than_all_may_be_is_kept_alone() -> None:
    """Ours: a single message has a bound of its own, `limits.event`."""
    backlog = Backlog(99, most_bytes=500)
    for message in (notice("a"), notice("b", 5000)):
        backlog.put(message)
    assert all_of(backlog) == [notice("b", 5000)]
    backlog.put(notice("c"))
    assert all_of(backlog) == [notice("c")], "what was taken does not count any more"


def test_a_message_does_not_keep_the_line_it_was_read_from() -> None:
    """Ours: a small parameter beside a giant member that nobody reads would keep the giant too."""
    line = b'{"jsonrpc":"2.0","method":"m","params":{"a":1},"junk":"%b"}' % (b"x" * 1000)
    before = sys.getrefcount(line)
    backlog = Backlog(9)
    backlog.put(parse(line))
    assert sys.getrefcount(line) == before
    assert all_of(backlog) == [Notification("m", {"a": Raw(b"1")})]


@pytest.mark.parametrize(
    ("messages", "is_it"),
    [([], False), ([ANSWER], True), ([notice("a")], False), ([ANSWER, notice("a")], False)],
)
def test_it_knows_whether_an_answer_is_all_there_is(messages: list[Message], is_it: bool) -> None:  # noqa: FBT001 - pytest gives it by name
    """Ours: only then can a reply be plain JSON."""
    backlog = Backlog(9)
    for message in messages:
        backlog.put(message)
    assert backlog.is_one_answer is is_it
