"""The event stream: the same events however it is cut, promptly, within bounds."""

import re
from collections.abc import Iterable, Iterator
from itertools import combinations, pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.wire.sse import EventTooLarge, SseEvent, SseParser, encode_comment, encode_message

BOM = b"\xef\xbb\xbf"
ROOMY = 1 << 20
UNUSUAL = "\u2028\u2029\u0085\ufeff\v\f\x1c\x1e"
"""Line ends to `str.splitlines`, not to an event stream; real servers send the first four unescaped."""

line_ends = st.sampled_from([b"\n", b"\r", b"\r\n"])
words = st.text(alphabet=st.sampled_from(f"ab7: \0é{UNUSUAL}"), max_size=6).map(str.encode)
names = st.sampled_from([b"data", b"id", b"event", b"retry", b"", b"other", b"Data", b" data"])
fields = st.builds(
    lambda name, colon, value: name + colon + value, names, st.sampled_from([b":", b": ", b":  "]), words
)
lines = st.one_of(st.just(b""), fields, names, words, st.just(b"retry: 700"), st.just(b": ping - 2026-01-01"))
orderly = st.lists(st.tuples(lines, line_ends).map(b"".join), max_size=20).map(b"".join)
pieces = st.sampled_from(
    [
        b"\r",
        b"\n",
        b"\r\n",
        b":",
        b" ",
        b"data",
        b"id",
        b"retry",
        b"event",
        b"1",
        b"\0",
        b"\xff",
        BOM,
        "\u2028".encode(),
    ]
)
disorderly = st.lists(pieces, max_size=30).map(b"".join)
streams = st.builds(
    lambda bom, body: bom + body, st.sampled_from([b"", BOM, BOM + BOM, BOM[:2]]), orderly | disorderly
)


@st.composite
def cut_streams(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    stream = draw(streams)
    places = draw(st.lists(st.integers(0, len(stream)), max_size=12))
    return stream, cut(stream, sorted(places))


def cut(stream: bytes, places: Iterable[int]) -> list[bytes]:
    edges = [0, *places, len(stream)]
    return [stream[start:end] for start, end in pairwise(edges)]


def every_cut(stream: bytes) -> Iterator[list[bytes]]:
    inner = range(1, len(stream))
    for how_many in range(len(stream)):
        for places in combinations(inner, how_many):
            yield cut(stream, places)


def read(chunks: Iterable[bytes], limit: int = ROOMY) -> tuple[list[SseEvent], str | None, bool]:
    """Events, last id, and whether the limit was passed."""
    parser = SseParser(limit)
    events: list[SseEvent] = []
    try:
        for chunk in chunks:
            events += parser.feed(chunk)
    except EventTooLarge as error:
        return events + error.events, parser.last_event_id, True
    return events, parser.last_event_id, False


def oracle(stream: bytes) -> tuple[list[SseEvent], str | None, bool]:
    """The same by other means: the whole stream at hand, line by line, no state kept between."""
    *whole_lines, _unfinished = re.split(rb"\r\n|\r|\n", stream.removeprefix(BOM))
    events: list[SseEvent] = []
    last_id: str | None = None
    block: list[tuple[bytes, bytes]] = []
    for line in whole_lines:
        if line:
            matched = re.fullmatch(rb"([^:]*)(?:: ?(.*))?", line, re.DOTALL)
            assert matched is not None
            block.append((matched[1], matched[2] or b""))
            continue
        data = [value for name, value in block if name == b"data"]
        kinds = [value.decode(errors="replace") for name, value in block if name == b"event"]
        ids = [
            value.decode(errors="replace") for name, value in block if name == b"id" and b"\0" not in value
        ]
        waits = [int(value) for name, value in block if name == b"retry" and re.fullmatch(rb"[0-9]+", value)]
        if ids:
            last_id = ids[-1] or None
        if data or ids or waits:
            kind = (kinds[-1] if kinds else "") or "message"
            events.append(
                SseEvent(kind, b"\n".join(data), ids[-1] if ids else None, waits[-1] if waits else None)
            )
        block = []
    return events, last_id, False


# --- every chunking --------------------------------------------------------


@given(cut_streams())
@example((b"data: a\r\n\r\ndata: b\r\r", [b"data: a\r", b"\n\r", b"\ndata: b\r", b"\r"]))
@example((BOM + b"data: a\n\n", [BOM[:1], b"", BOM[1:2], BOM[2:] + b"data: a\n\n"]))
def test_every_chunking_gives_the_same_events(stream_and_chunks: tuple[bytes, list[bytes]]) -> None:
    stream, chunks = stream_and_chunks

    assert read(chunks) == oracle(stream)


@given(streams)
@example(b'event: message\r\ndata: {"id":1}\r\n\r\n')
@example(b'event: message\ndata: {"id":1}\n\n')
@example(b"data: \n\r\n")
@example(b"data:  a\r\n\n")
@example(b"data: a\rb\n\n")
def test_whole_and_byte_by_byte_are_the_same(stream: bytes) -> None:
    assert read([stream]) == oracle(stream)
    assert read(stream[i : i + 1] for i in range(len(stream))) == oracle(stream)


@pytest.mark.parametrize(
    "stream",
    [
        BOM + b"data:a\r\n\r\n",
        b"id:1\r\n\r\n\r\r",
        b"data:a\r\rid\n\r\n",
        b":\r\r\ndata\n\r\n\r",
        "data:\u2028\r\r".encode(),
        BOM + BOM + b"data\n\n",
    ],
)
def test_all_chunkings_of_a_short_stream_give_the_same_events(stream: bytes) -> None:
    expected = oracle(stream)

    for chunks in every_cut(stream):
        assert read(chunks) == expected, chunks


@given(cut_streams(), st.integers(0, 24))
def test_the_limit_does_not_depend_on_the_chunking(
    stream_and_chunks: tuple[bytes, list[bytes]], limit: int
) -> None:
    stream, chunks = stream_and_chunks

    assert read(chunks, limit) == read([stream], limit)


# --- what comes out, and when ----------------------------------------------


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_an_event_is_handed_out_as_soon_as_its_blank_line_ends(end: bytes) -> None:
    """A lone CR is not held back until it is known whether LF follows: the server may say nothing more."""
    parser = SseParser(ROOMY)
    stream = b"data: a" + end + end
    first = len(stream) if end == b"\n" else stream.rindex(b"\r") + 1

    for byte in stream[: first - 1]:
        assert parser.feed(bytes([byte])) == []
    assert parser.feed(stream[first - 1 : first]) == [SseEvent(data=b"a")]
    assert parser.feed(stream[first:]) == []
    assert parser.feed(b"data: b" + end + end) == [SseEvent(data=b"b")]


def test_only_a_byte_order_mark_at_the_very_start_is_dropped() -> None:
    assert read([BOM + b"data: a\n\n" + b"data: " + BOM + b"\n\n"])[0] == [
        SseEvent(data=b"a"),
        SseEvent(data=BOM),
    ]
    assert read([b"data: a\n\n", BOM + b"data: b\n\n"])[0] == [SseEvent(data=b"a")]


def test_unusual_characters_in_data_are_no_line_ends() -> None:
    """Measured: servers of both SDKs send U+2028, U+2029, U+0085 and U+FEFF unescaped."""
    text = f'"a{UNUSUAL}b"'.encode()

    assert read([b"data: " + text + b"\n\n"])[0] == [SseEvent(data=text)]


def test_data_lines_are_joined_and_lose_one_space_only() -> None:
    assert read([b"data:a\ndata:  b \ndata\ndata: c\n\n"])[0] == [SseEvent(data=b"a\n b \n\nc")]


@pytest.mark.parametrize(
    "priming",
    [b"id: X\r\ndata: \r\nretry: 700\r\n\r\n", b"id: X\nretry: 700\ndata: \n\n", b"id: X\nretry: 700\n\n"],
)
def test_a_priming_event_is_handed_out_with_empty_data(priming: bytes) -> None:
    """Spec: 2025-11-25 begins a resumable stream with an id and no data."""
    parser = SseParser(ROOMY)

    assert parser.feed(priming) == [SseEvent("message", b"", "X", 700)]
    assert parser.last_event_id == "X"


def test_comments_are_silent_also_after_an_id() -> None:
    events, last_id, _ = read(
        [b"id: 1\ndata: a\n\n", b": ping\r\n\r\n", b": keepalive\n\n", b":\n\n", b"\n\n\n"]
    )

    assert events == [SseEvent(data=b"a", id="1")]
    assert last_id == "1"


def test_an_event_type_alone_is_no_event_and_does_not_colour_the_next() -> None:
    assert read([b"event: endpoint\n\ndata: a\n\nevent: endpoint\ndata: /m?s=1\n\n"])[0] == [
        SseEvent("message", b"a"),
        SseEvent("endpoint", b"/m?s=1"),
    ]


def test_an_unfinished_event_is_not_handed_out_and_its_id_is_not_resumed_from() -> None:
    """Resuming after an event that was not received would lose it."""
    parser = SseParser(ROOMY)

    assert parser.last_event_id is None
    assert len(parser.feed(b"id: 1\ndata: a\n\nid: 2\ndata: b\n")) == 1
    assert parser.last_event_id == "1"


def test_an_id_with_nul_is_ignored_and_an_empty_one_ends_resumption() -> None:
    parser = SseParser(ROOMY)

    assert parser.feed(b"id: 1\ndata: a\n\nid: 2\0\ndata: b\n\n") == [
        SseEvent(data=b"a", id="1"),
        SseEvent(data=b"b"),
    ]
    assert parser.last_event_id == "1"
    assert parser.feed(b"id\ndata: c\n\n") == [SseEvent(data=b"c", id="")]
    assert parser.last_event_id is None


@pytest.mark.parametrize("wait", ["", "-1", "1.5", "7s", "+7", "\u0667", "9" * 5000])
def test_a_retry_time_that_is_no_number_is_ignored(wait: str) -> None:
    assert read([f"retry: {wait}\ndata: a\n\n".encode()])[0] == [SseEvent(data=b"a")]


# --- bounds ----------------------------------------------------------------


def test_a_line_that_never_ends_is_refused_at_the_limit() -> None:
    parser = SseParser(1000)
    parser.feed(b"data: " + b"x" * 994)

    with pytest.raises(EventTooLarge):
        parser.feed(b"x")


@pytest.mark.parametrize("start", [b"", b"event: message\n"])
def test_a_whole_message_over_the_limit_is_refused_though_it_came_at_once(start: bytes) -> None:
    message = start + b"data: " + b"x" * 60 + b"\n\n"

    assert read([message], limit=60) == ([], None, True)
    assert read([message], limit=len(message)) == ([SseEvent(data=b"x" * 60)], None, False)


@pytest.mark.parametrize("line", [b"data: " + b"x" * 50 + b"\n", b"data\n", b"data:x\r\n"])
def test_many_lines_of_one_event_are_refused_at_the_limit(line: bytes) -> None:
    events, _, too_large = read([line] * 2000, limit=1000)

    assert too_large
    assert events == []


def test_many_events_and_comments_pass_a_small_limit() -> None:
    stream = b"data: " + b"x" * 50 + b"\n\n: a comment without a blank line\n"

    assert len(read([stream * 500], limit=60)[0]) == 500


def test_what_was_complete_before_the_limit_is_not_lost() -> None:
    with pytest.raises(EventTooLarge) as refusal:
        SseParser(100).feed(b"data: a\n\ndata: " + b"x" * 200 + b"\n\n")

    assert refusal.value.events == [SseEvent(data=b"a")]


def test_a_large_event_in_many_chunks_comes_out_whole() -> None:
    data = b"x" * 3_000_000
    stream = b"event: message\r\ndata: " + data + b"\r\n\r\n"

    assert read((stream[i : i + 65536] for i in range(0, len(stream), 65536)), limit=4 << 20)[0] == [
        SseEvent(data=data)
    ]


# --- writing ---------------------------------------------------------------


@given(st.binary())
def test_a_written_message_is_one_event_without_id(data: bytes) -> None:
    written = encode_message(data)

    assert read([written])[0] == [SseEvent(data=re.sub(rb"\r\n|\r", b"\n", data))]
    assert re.search(rb"^id", written, re.MULTILINE) is None


def test_a_message_is_written_plainly() -> None:
    assert encode_message(b'{"a":1}') == b'event: message\ndata: {"a":1}\n\n'
    assert encode_message(b'{\r\n"a":1}') == b'event: message\ndata: {\ndata: "a":1}\n\n'


@given(st.text())
def test_a_written_comment_is_no_event_and_no_part_of_one(text: str) -> None:
    comment = encode_comment(text)

    assert read([comment])[0] == []
    assert read([comment, encode_message(b"1"), encode_comment()])[0] == [SseEvent(data=b"1")]
