"""Claims to bytes and back, and what is refused on the way back."""

import random
import tracemalloc
import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.sealing.claims import (
    MAX_UNFOLDED_BYTES,
    Claims,
    JournalEntry,
    PendingAsk,
    Unreadable,
    decode,
    encode,
    read,
)
from gateway.wire.jsonrpc import Raw

CLAIMS = Claims(
    exchange="x-1",
    round=2,
    upstream="crm",
    principal="f" * 64,
    method="tools/call",
    target="book",
    arguments="a" * 64,
    issued_at=1_800_000_000,
    expires_at=1_800_000_600,
    owner="replica-a",
    session_id="legacy-session",
    request_id="hf-7",
    last_event_id="e-9",
    pending=(
        PendingAsk("day", 0, "elicitation", "elicitation/create", Raw(b"{}")),
        PendingAsk("roots-1", "", "roots", "roots/list", Raw(b"{}")),
    ),
    journal=(JournalEntry("name", "elicitation", "c" * 64, Raw(b'{ "action":"accept" }')),),
)

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
moments = st.integers(0, 2**40)
any_claims = st.builds(
    Claims,
    exchange=names,
    round=st.integers(0, 1000),
    upstream=names,
    principal=names,
    method=names,
    target=names,
    arguments=names,
    issued_at=moments,
    expires_at=moments,
    owner=names,
    session_id=st.none() | names,
    request_id=st.none() | names,
    last_event_id=st.none() | names,
    pending=st.lists(
        st.builds(PendingAsk, names, st.integers() | names, names, names, st.binary(max_size=60).map(Raw)),
        max_size=4,
    ).map(tuple),
    journal=st.lists(
        st.builds(JournalEntry, names, names, names, st.binary(max_size=600).map(Raw)), max_size=4
    ).map(tuple),
)


def journal_of(*answers: bytes) -> Claims:
    entries = tuple(JournalEntry(f"q{n}", "sampling", "", Raw(answer)) for n, answer in enumerate(answers))
    return msgspec.structs.replace(CLAIMS, journal=entries)


def packed_with(**changes: object) -> bytes:
    return msgspec.msgpack.encode(msgspec.structs.replace(read(encode(CLAIMS)), **changes))


@given(any_claims)
def test_claims_come_back_as_they_were(claims: Claims) -> None:
    assert decode(encode(claims)) == claims


def test_an_answer_comes_back_byte_for_byte() -> None:
    """Ours: what we only forward is not re-modelled; spaces and big numbers stay."""
    answer = b'{ "n":1.0,  "big":123456789012345678901234567890 }'

    assert bytes(decode(encode(journal_of(answer))).journal[0].answer) == answer


@pytest.mark.parametrize(
    "id_",
    [
        0,
        1,
        -1,
        "",
        "0",
        "7",
        2**63 - 1,
        2**63,
        -(2**63),
        -(2**63) - 1,
        2**64,
        pytest.param(16**9000, id="huge"),
    ],
)
def test_an_ask_keeps_its_id_and_the_type_of_it(id_: int | str) -> None:
    claims = msgspec.structs.replace(
        CLAIMS, pending=(PendingAsk("day", id_, "elicitation", "elicitation/create", Raw(b"{}")),)
    )

    [ask] = decode(encode(claims)).pending

    assert ask.id == id_
    assert type(ask.id) is type(id_)


def test_a_ticket_without_a_journal_is_small() -> None:
    assert len(encode(msgspec.structs.replace(CLAIMS, journal=()))) < 450


def test_a_long_journal_is_deflated() -> None:
    assert len(encode(journal_of(b'{"action":"accept"}' * 1000))) < 1000


@pytest.mark.parametrize("secret", ["legacy-session", "replica-a"])
def test_what_the_client_must_not_learn_is_not_compressed_together_with_its_answers(secret: str) -> None:
    """Ours: a guess at the session id inside an answer must not make the ticket shorter."""
    noise = b'{"text":"' + b"lorem ipsum " * 50
    guessed = journal_of(noise + secret.encode() + b'"}')
    elsewhere = msgspec.structs.replace(guessed, session_id="-" * 14, owner="-" * 9)

    assert len(encode(guessed)) == len(encode(elsewhere))


def test_a_journal_that_deflating_does_not_help_is_left_as_it_is() -> None:
    noise = random.Random(1).randbytes(1000)
    packed = read(encode(journal_of(noise)))

    assert packed.unfolded_bytes == 0
    assert noise in packed.journal
    assert packed.unpack() == journal_of(noise)


@pytest.mark.parametrize("spare", [-64, 64])
def test_a_journal_at_the_bound_is_read_back_deflated_or_not(spare: int) -> None:
    claims = journal_of(b"0" * (MAX_UNFOLDED_BYTES - spare))
    packed = read(encode(claims))

    assert (packed.unfolded_bytes > 0) is (spare > 0)
    assert packed.unpack() == claims


def test_a_journal_that_would_inflate_beyond_the_bound_is_refused_before_it_is_inflated() -> None:
    bomb = zlib.compress(bytes(50_000_000), 9, -13)

    with pytest.raises(Unreadable, match="longer than any"):
        decode(packed_with(journal=bomb, unfolded_bytes=50_000_000))


@pytest.mark.parametrize("said", [1, 100, MAX_UNFOLDED_BYTES])
def test_a_journal_that_inflates_to_more_than_it_says_is_refused(said: int) -> None:
    bomb = packed_with(journal=zlib.compress(bytes(50_000_000), 9, -13), unfolded_bytes=said)

    tracemalloc.start()
    try:
        with pytest.raises(Unreadable, match="another length"):
            decode(bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000


def test_a_journal_is_refused_that_is_short_or_followed_by_something() -> None:
    packed = read(encode(journal_of(b"0" * 1000)))

    for changes in (
        {"journal": packed.journal[:-1], "unfolded_bytes": packed.unfolded_bytes},
        {"journal": packed.journal + b"x", "unfolded_bytes": packed.unfolded_bytes},
        {"journal": packed.journal, "unfolded_bytes": packed.unfolded_bytes + 1},
        {"journal": packed.journal, "unfolded_bytes": -1},
        {"journal": b"\xff" * 50, "unfolded_bytes": 1000},
        {"journal": packed.journal, "unfolded_bytes": 0},
        {"journal": b"\x91" * 100_000, "unfolded_bytes": 0},
    ):
        with pytest.raises(Unreadable):
            decode(packed_with(**changes))


def test_an_id_that_is_no_number_is_refused() -> None:
    with pytest.raises(Unreadable, match="no number"):
        decode(packed_with(pending=(("day", ("zz",), "elicitation", "", b""),)))


@given(st.binary(max_size=200))
def test_bytes_that_nobody_encoded_are_refused(data: bytes) -> None:
    with pytest.raises(Unreadable):
        decode(data)


@given(st.data())
def test_damaged_bytes_are_claims_or_refused_and_nothing_else(data: st.DataObject) -> None:
    whole = encode(journal_of(b"0" * 1000))
    place = data.draw(st.integers(0, len(whole) - 1))
    damaged = bytearray(whole)
    damaged[place] ^= data.draw(st.integers(1, 255))

    for broken in (bytes(damaged), whole[:place], whole + bytes([place % 256])):
        try:
            decode(broken)
        except Unreadable:
            continue


def test_another_format_is_refused() -> None:
    members = msgspec.msgpack.decode(encode(CLAIMS))
    assert members[0] == 1

    with pytest.raises(Unreadable, match="format 1"):
        decode(msgspec.msgpack.encode([2, *members[1:]]))


def test_members_that_a_later_version_adds_are_skipped() -> None:
    """Ours: both versions serve the same exchange during a rolling upgrade."""
    members = msgspec.msgpack.decode(encode(CLAIMS))

    assert decode(msgspec.msgpack.encode([*members, {"later": 1}])) == CLAIMS
    with pytest.raises(Unreadable):
        decode(msgspec.msgpack.encode(members[:-5]))
    with pytest.raises(Unreadable):
        decode(
            b"\xdc\x00\x16" + msgspec.msgpack.encode(members)[3:] + b"\x91" * 100_000
        )  # nested without end


def test_the_format_is_pinned() -> None:
    """A change here refuses the tickets that a running deployment has given out: raise the format number."""
    bare = Claims(
        exchange="x",
        round=1,
        upstream="u",
        method="m",
        target="t",
        arguments="a",
        issued_at=2,
        expires_at=3,
        owner="o",
        session_id="s",
        pending=(PendingAsk("k", 7, "elicitation", "elicitation/create", Raw(b"{}")),),
        journal=(JournalEntry("j", "roots", "d", Raw(b"{}")),),
    )

    assert msgspec.msgpack.decode(encode(bare)) == [
        *[1, "x", 1, "u", "", "m", "t", "a", 2, 3, "o", "s", None, None],
        [["k", 7, "elicitation", "elicitation/create", b"{}"]],
        msgspec.msgpack.encode([("j", "roots", "d", b"{}")]),
        *[0, "", 1, True, False],
    ]


def test_neither_answers_nor_the_session_are_shown() -> None:
    """House rule: no secrets and no answers in logs, nor in a traceback that prints values."""
    claims = journal_of(b'{"content":{"password":"hunter2"}}')

    for shown in (repr(claims), str(claims), repr(claims.journal), repr(read(encode(claims)))):
        assert "x-1" in shown or "q0" in shown
        for hidden in ("hunter2", "legacy-session", "f" * 64):
            assert hidden not in shown
