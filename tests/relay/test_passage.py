"""Headers that concern only two neighbours, and responses that are complete."""

import pytest

from gateway.relay.passage import Knock, Passage, end_to_end


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


@pytest.mark.parametrize(
    ("verb", "session", "headers", "names_revision", "before_streamable", "elsewhere", "perhaps"),
    [
        ("GET", None, (), False, True, True, True),
        ("GET", None, (), True, False, True, True),
        ("GET", None, [("Last-Event-ID", "7")], False, False, True, False),
        ("GET", "s", (), False, False, False, False),
        ("POST", None, (), False, False, False, False),
    ],
    ids=["a GET from nowhere", "with a revision", "resuming", "with a session", "a POST"],
)
def test_who_begins_a_visit_depends_on_whether_sessions_without_an_id_are_possible(
    verb: str,
    session: str | None,
    headers: list[tuple[str, str]],
    *,
    names_revision: bool,
    before_streamable: bool,
    elsewhere: bool,
    perhaps: bool,
) -> None:
    """Our bridged sessions always have an id, so elsewhere nobody else comes without one."""
    knock = Knock(verb, "/mcp", "", headers, b"", session, shows_version=names_revision)

    assert knock.is_visit(to_streamable_http=True) is before_streamable
    assert knock.is_visit(to_streamable_http=False) is elsewhere
    assert knock.may_be_visit is perhaps
