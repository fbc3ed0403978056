"""Headers that concern only two neighbours, and responses that are complete."""

from gateway.relay.passage import Passage, end_to_end


def test_neighbours_headers_and_those_that_connection_names_are_dropped_in_any_case() -> None:
    lines = [
        ("CONNECTION", "close, x-one"),
        ("X-One", "1"),
        ("x-two", "2"),
        ("X-Two", "3"),
        ("Keep-Alive", "5"),
        ("Transfer-Encoding", "chunked"),
        ("Upgrade", "h2c"),
        ("Set-Cookie", "a"),
        ("Set-Cookie", "b"),
    ]

    assert end_to_end(lines, without=frozenset({"x-two"})) == [("Set-Cookie", "a"), ("Set-Cookie", "b")]


async def test_a_complete_response_has_its_length_and_one_chunk() -> None:
    passage = Passage.refused(404, -32001, "Session not found")
    (body,) = [chunk async for chunk in passage.chunks]

    assert ("Content-Length", str(len(body))) in passage.headers
    assert b"-32001" in body
    assert [chunk async for chunk in Passage.of(202).chunks] == []
