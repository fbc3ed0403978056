"""Letters between replicas: read by the addressee, by nobody else, and never taken for a ticket."""

import base64
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import StateRejected
from gateway.sealing.box import Box, Expected
from gateway.sealing.claims import Claims
from gateway.sealing.envelope import OVERHEAD_BYTES, Envelope, LetterRefused
from gateway.sealing.keyring import Key, Keyring

OLD, NEW, OTHER = (Key(bytes([number]) * 32) for number in range(3))


def _envelope(*keys: Key) -> Envelope:
    return Envelope(Keyring(keys or (OLD,)), os.urandom)


@given(letter=st.binary(max_size=2000), to=st.text(max_size=20))
def test_what_one_replica_seals_another_opens(letter: bytes, to: str) -> None:
    sealed = _envelope().seal(letter, to)
    assert len(sealed) == len(letter) + OVERHEAD_BYTES
    assert _envelope().open(sealed, to) == letter


@given(letter=st.binary(min_size=8, max_size=200))
def test_a_sealed_letter_shows_nothing_of_its_text(letter: bytes) -> None:
    one = _envelope()
    first, second = one.seal(letter, "b"), one.seal(letter, "b")
    head = OVERHEAD_BYTES - 16
    assert letter not in first[head:]
    assert first[head:] != second[head:]


@given(data=st.data(), letter=st.binary(max_size=50))
def test_a_letter_that_was_changed_anywhere_is_refused(data: st.DataObject, letter: bytes) -> None:
    sealed = bytearray(_envelope().seal(letter, "b"))
    place = data.draw(st.integers(0, len(sealed) - 1))
    sealed[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(LetterRefused):
        _envelope().open(bytes(sealed), "b")


@given(garbage=st.binary(max_size=200))
def test_what_nobody_sealed_is_refused(garbage: bytes) -> None:
    with pytest.raises(LetterRefused):
        _envelope().open(garbage, "b")


@given(cut=st.integers(1, OVERHEAD_BYTES + 20))
def test_a_letter_that_was_cut_is_refused(cut: int) -> None:
    with pytest.raises(LetterRefused):
        _envelope().open(_envelope().seal(b"x" * 20, "b")[:-cut], "b")


def test_a_letter_put_into_another_s_inbox_is_refused() -> None:
    sealed = _envelope().seal(b"for b", "b")
    with pytest.raises(LetterRefused, match="tag"):
        _envelope().open(sealed, "c")


def test_a_letter_under_a_key_that_is_not_in_the_ring_is_refused() -> None:
    with pytest.raises(LetterRefused, match="not in the ring"):
        _envelope(OLD).open(_envelope(OTHER).seal(b"x", "b"), "b")


def test_replicas_in_the_middle_of_a_rotation_read_each_other() -> None:
    before, during, after = _envelope(OLD, NEW), _envelope(NEW, OLD), _envelope(NEW)
    for writer, reader in ((before, during), (during, before), (during, after), (after, during)):
        assert reader.open(writer.seal(b"x", "b"), "b") == b"x"


def test_no_two_processes_write_under_the_same_key_and_number() -> None:
    """NIST SP 800-38D: a nonce used twice under one key gives both texts away."""
    heads = {_envelope().seal(b"", "b")[:-16] for _ in range(100)}
    assert len(heads) == 100


def test_a_ticket_is_no_letter_and_a_letter_no_ticket() -> None:
    ring = Keyring([OLD])
    box, envelope = Box(ring, os.urandom), Envelope(ring, os.urandom)
    claims = Claims(
        exchange="x",
        round=1,
        upstream="crm",
        method="tools/call",
        target="book",
        arguments="",
        issued_at=0,
        expires_at=600,
        owner="a",
    )
    ticket = base64.urlsafe_b64decode(box.seal(claims, b"alice") + "==")
    with pytest.raises(LetterRefused):
        envelope.open(ticket, "b")
    letter = base64.urlsafe_b64encode(envelope.seal(b"x" * 9, "b")).decode().rstrip("=")
    with pytest.raises(StateRejected, match="tag does not verify"):
        box.open(letter, Expected(b"alice", "crm", "tools/call", "book", ""), 1)


def test_names_that_were_made_up_do_not_push_out_those_of_replicas() -> None:
    one, other = _envelope(), _envelope()
    assert other.open(one.seal(b"x", "b"), "b") == b"x"
    for _ in range(1000):
        forged = bytearray(one.seal(b"x", "b"))
        forged[5:21] = os.urandom(16)
        with pytest.raises(LetterRefused):
            other.open(bytes(forged), "b")
    assert len(other._writers) == 1


def test_only_so_many_writers_are_remembered() -> None:
    reader = _envelope()
    for _ in range(300):
        assert reader.open(_envelope().seal(b"x", "b"), "b") == b"x"
    assert len(reader._writers) == 256


def test_letters_are_written_under_the_first_key_as_soon_as_the_ring_is_turned() -> None:
    """Issue: keys of the traffic between replicas rotate too."""
    ring = Keyring([OLD])
    here, there = Envelope(ring, os.urandom), _envelope(OLD, NEW)
    before = here.seal(b"x", "b")
    ring.turn([NEW, OLD])
    after = here.seal(b"x", "b")
    assert (before[1:5], after[1:5]) == (OLD.mark, NEW.mark)
    assert there.open(before, "b") == there.open(after, "b") == b"x"
    assert before[-24:] != after[-24:]


def test_a_key_that_left_the_ring_opens_nothing_any_more_even_if_it_did_before() -> None:
    """Ours: writers are remembered, which must not outlive their key."""
    ring = Keyring([NEW, OLD])
    letter = _envelope(OLD).seal(b"x", "b")
    reader = Envelope(ring, os.urandom)
    assert reader.open(letter, "b") == b"x"
    ring.turn([NEW])
    with pytest.raises(LetterRefused, match="not in the ring"):
        reader.open(letter, "b")
