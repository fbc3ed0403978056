"""What is still open at the end: a leak, unless it is shown that nobody can have known its name."""

from tests.chaos.sightings import Passing, Sightings

INITIALIZE = b'POST /mcp HTTP/1.1\r\n\r\n{"jsonrpc":"2.0","id":"hf-a-1","method":"initialize","params":{}}'
TOLD = b"HTTP/1.1 200 OK\r\nmcp-session-id: s1\r\n\r\n"
SPOKEN = b"POST /mcp HTTP/1.1\r\nMcp-Session-Id: s1\r\n\r\n"


def opening(sightings: Sightings) -> Passing:
    passing = Passing("a.1")
    sightings.there(passing, INITIALIZE)
    sightings.there(passing, INITIALIZE)  # the end of a part is looked at again
    return passing


def test_a_session_that_its_gateway_spoke_of_is_a_leak_unless_that_was_killed() -> None:
    """Ours: nothing was in the way of ending it, even if the wire was cut later."""
    sightings = Sightings()
    passing = opening(sightings)
    sightings.back(passing, TOLD)
    sightings.there(passing, SPOKEN)
    sightings.ended(passing, is_cut=True)
    assert sightings.leaked(["s1"], set()) == (["s1, last used by a.1"], 0, 0)
    assert sightings.leaked(["s1"], {"a.1"}) == ([], 1, 0)


def test_a_name_on_a_wire_that_was_cut_may_not_have_been_read() -> None:
    """Ours: a reset takes along what lies in the buffers, and a slow machine reads late."""
    sightings = Sightings()
    passing = opening(sightings)
    sightings.back(passing, TOLD)
    assert sightings.leaked(["s1"], set())[0], "the wire is whole"
    sightings.ended(passing, is_cut=True)
    assert sightings.leaked(["s1"], set()) == ([], 0, 1)


def test_a_name_that_was_never_seen_is_excused_only_by_a_cut_or_a_death() -> None:
    """Ours: a gateway that hangs up on its own handshake leaks a session that no wire has seen."""
    sightings = Sightings()
    sightings.ended(opening(sightings), is_cut=False)
    assert len(sightings.leaked(["s1"], set())[0]) == 1
    assert sightings.leaked(["s1"], {"a.1"}) == ([], 0, 1)
    sightings.ended(opening(sightings), is_cut=True)
    assert sightings.leaked(["s1"], set()) == ([], 0, 1)
