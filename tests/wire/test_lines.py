"""Lines of a stdio server: the same however the stream is cut, promptly, within bounds."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.lines import Line, LineSplitter

ROOMY = 1 << 20
pieces = st.sampled_from(
    [b"\n", b"\r", b"\r\n", b"a", b"{}", b"longer words", "\u2028\u0085".encode(), b"\xff"]
)
streams = st.lists(pieces, max_size=30).map(b"".join)


def split(stream: bytes, places: list[int], most: int = ROOMY) -> list[Line]:
    splitter = LineSplitter(most)
    edges = [0, *sorted(min(place, len(stream)) for place in places), len(stream)]
    lines = [line for start, end in pairwise(edges) for line in splitter.feed(stream[start:end])]
    return lines + splitter.finish()


@given(streams, st.lists(st.integers(0, 100), max_size=8))
def test_it_does_not_matter_how_a_stream_is_cut(stream: bytes, places: list[int]) -> None:
    expected = [line.removesuffix(b"\r") for line in stream.split(b"\n")]
    assert split(stream, places) == [line for line in expected if line]


@given(streams, st.lists(st.integers(0, 100), max_size=8), st.integers(1, 8))
def test_a_line_that_is_too_long_costs_itself_and_no_other(
    stream: bytes, places: list[int], most: int
) -> None:
    fitting = [None if len(line) > most else line.removesuffix(b"\r") for line in stream.split(b"\n")]
    assert split(stream, places, most) == [line for line in fitting if line != b""]


def test_only_a_line_feed_ends_a_line() -> None:
    text = '{"a":"\u2028\u2029\u0085\ufeff"}'.encode()
    assert split(text + b"\r\n" + text, []) == [text, text]


def test_a_line_is_told_as_soon_as_it_ends() -> None:
    splitter = LineSplitter(ROOMY)
    assert splitter.feed(b"one\ntw") == [b"one"]
    assert splitter.feed(b"o\n") == [b"two"]
    assert splitter.finish() == []


def test_too_long_is_told_before_the_line_ends_and_once() -> None:
    splitter = LineSplitter(4)
    assert splitter.feed(b"123") == []
    assert splitter.feed(b"45") == [None]
    assert splitter.feed(b"6" * 1000) == []
    assert splitter.feed(b"7\nok\n") == [b"ok"]


def test_nothing_is_kept_of_a_line_that_is_too_long() -> None:
    splitter = LineSplitter(10)
    for _ in range(1000):
        splitter.feed(b"x" * 10)
    assert len(splitter._buffer) == 0
