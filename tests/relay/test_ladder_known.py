"""Orders of events that once went wrong, told again exactly: chance need not find them a second time."""

from gateway.relay.listener import Reply
from tests.relay.test_ladder_machine import Ladders, Round


def test_a_question_that_comes_while_a_call_is_brought_back_waits_for_its_client() -> None:
    """Ours: it was refused, for nobody had said yet what the client can do."""
    world = Ladders()
    world.first_call(upstream="steady", work=12.0)
    world.answer_again(which=0, round_=1, where=2, pause=0.3)
    world.drain(which=2, pause=8.0)
    world.freeze(which=3, pause=0.015)
    world.answer(which=2, where=5, pause=8.0)
    world.teardown()


def test_a_retry_that_slept_until_its_ticket_expired_starts_nothing() -> None:
    """Ours: what was done meanwhile was written down no more, and so it was done again."""
    world = Ladders()
    world.first_call(upstream="steady", work=0.0)
    world.freeze(which=3, pause=0.015)
    world.freeze(which=0, pause=2.0)
    world.call(which=2, upstream="steady", tool="again", questions=1, work=1.0, pause=0.015)
    world.thaw(pause=0.06)
    world.answer(which=2, where=5, pause=2.0)
    world.answer_one_that_fails(which=5, where=3, fault="freeze", instant=0.005, pause=0.06)
    world.answer_one_that_fails(which=5, where=5, fault="kill", instant=0.015, pause=0.0)
    world.let_holds_expire()
    world.let_holds_expire()
    world.teardown()


def test_an_orphaned_round_and_its_retry_do_not_both_bring_the_call_back() -> None:
    """Ours: two drivers of one call in one process each thought that they were alone."""
    world = Ladders()
    world.first_call(upstream="steady", work=12.0)
    world.answer(which=0, where=2, pause=0.06)
    world.kill(which=4, pause=0.06)
    world.freeze(which=2, pause=8.0)
    world.freeze(which=4, pause=0.005)
    world.answer_again(which=2, round_=1, where=3, pause=8.0)
    world.teardown()


def test_a_call_whose_client_has_no_ticket_yet_was_not_taken_over() -> None:
    """Ours: a replica that had slept asked after it before it was written down, and gave it up to nobody."""
    world = Ladders()
    world.call(which=0, upstream="steady", tool="once", questions=1, work=0.0, pause=0.06)
    world.freeze(which=0, pause=8.0)
    world.thaw(pause=2.0)
    world.teardown()


def test_a_doubt_goes_along_when_the_call_moves_on() -> None:
    """Ours: whoever had the call after a drain said that the server was slow, and knew nothing of the answers."""
    world = Ladders()
    told: list[Reply] = []
    judge = world.judge

    def listen(round_: Round, reply: Reply) -> None:
        told.append(reply)
        judge(round_, reply)

    world.judge = listen  # type: ignore[method-assign]
    world.first_call(upstream="steady", work=0.0)
    world.answer_one_that_fails(which=0, where=0, fault="kill", instant=0.015, pause=8.0)
    assert not world.servers["steady"].told, "it died between the book and the server"
    world.answer(which=0, where=0, pause=2.0)
    world.drain(which=0, pause=2.0)
    world.answer(which=0, where=0, pause=40.0)
    world.teardown()
    error = told[-1].error
    assert error is not None
    assert error.data["reason"] == "answers_in_doubt"
