"""A token opens for the request it was sealed for, and for nothing else; every refusal looks the same."""

import base64
import random
import traceback
from collections.abc import Callable
from dataclasses import replace
from itertools import count

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import StateRejected
from gateway.sealing import claims as codec
from gateway.sealing.box import Box, ClaimsTooLarge, Expected
from gateway.sealing.claims import Claims, JournalEntry, PendingAsk
from gateway.sealing.keyring import Key, Keyring
from gateway.wire.jsonrpc import Raw

OLD, NEW, FOREIGN = (Key(bytes([n]) * 32) for n in (1, 2, 3))
NOW = 1_800_000_000
DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
ALICE = b"Bearer alice-s3cret"
SESSION = "legacy-session-0001"

CLAIMS = Claims(
    exchange="x-1",
    round=1,
    upstream="crm",
    method="tools/call",
    target="book",
    arguments="a" * 64,
    issued_at=NOW,
    expires_at=NOW + 600,
    owner="replica-a",
    session_id=SESSION,
    pending=(PendingAsk("day", 7, "elicitation", "elicitation/create", Raw(b"{}")),),
    journal=(
        JournalEntry("name", "elicitation", "c" * 64, Raw(b'{"action":"accept","content":{"pin":"9731"}}')),
    ),
)
EXPECTED = Expected(principal=ALICE, upstream="crm", method="tools/call", target="book", arguments="a" * 64)


def counting_nonces() -> Callable[[int], bytes]:
    numbers = count(1)
    return lambda size: next(numbers).to_bytes(size, "big")


def box_of(*keys: Key, max_token_bytes: int = 65536) -> Box:
    return Box(Keyring(keys), counting_nonces(), max_token_bytes=max_token_bytes)


def refusal_of(
    token: str, expected: Expected = EXPECTED, now: float = NOW, box: Box | None = None
) -> StateRejected:
    """The refusal, after all that holds for every refusal was checked."""
    with pytest.raises(StateRejected) as caught:
        (box or BOX).open(token, expected, now)
    refusal = caught.value
    assert (refusal.message, refusal.data) == (
        "Invalid or expired requestState",
        {"reason": "invalid_request_state"},
    )
    assert (refusal.rpc_code, refusal.http_status, refusal.headers) == (-32602, 400, {})
    told = "".join(traceback.format_exception(refusal)) + repr(refusal)
    for hidden in ("s3cret", SESSION, "9731", "a" * 64, FINGERPRINT):
        assert hidden not in told
    return refusal


BOX = box_of(OLD)
FINGERPRINT = OLD.fingerprint(ALICE)
TOKEN = BOX.seal(CLAIMS, ALICE)
DATA = base64.urlsafe_b64decode(TOKEN + "=" * (-len(TOKEN) % 4))


def text_of(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def forged(plain: bytes) -> str:
    """What only a holder of the key can make: a true seal around anything."""
    bound, nonce = b"\x01" + OLD.mark, bytes(12)
    return text_of(bound + nonce + OLD.seal(nonce, plain, bound))


# --- what opens ---


def test_a_token_gives_back_the_claims_with_the_principal_as_a_fingerprint() -> None:
    assert BOX.open(TOKEN, EXPECTED, NOW) == msgspec.structs.replace(CLAIMS, principal=FINGERPRINT)


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(names, names, names, names, st.binary(max_size=40), st.binary(max_size=3000))
def test_any_claims_come_back(
    upstream: str, method: str, target: str, arguments: str, principal: bytes, answer: bytes
) -> None:
    claims = msgspec.structs.replace(
        CLAIMS,
        upstream=upstream,
        method=method,
        target=target,
        arguments=arguments,
        journal=(JournalEntry("q", "sampling", "", Raw(answer)),),
    )
    token = BOX.seal(claims, principal)

    opened = BOX.open(token, Expected(principal, upstream, method, target, arguments), NOW)

    assert opened == msgspec.structs.replace(claims, principal=OLD.fingerprint(principal))
    assert set(token) <= set(DIGITS)


def test_a_principal_in_the_claims_is_not_believed() -> None:
    token = BOX.seal(msgspec.structs.replace(CLAIMS, principal=OLD.fingerprint(b"mallory")), ALICE)

    assert BOX.open(token, EXPECTED, NOW).principal == FINGERPRINT
    refusal_of(token, replace(EXPECTED, principal=b"mallory"))


def test_the_same_claims_sealed_twice_are_two_tokens() -> None:
    """Ours: a nonce is never used again, and two rounds never show the same state."""
    one, two = BOX.seal(CLAIMS, ALICE), BOX.seal(CLAIMS, ALICE)

    assert one != two
    assert BOX.open(one, EXPECTED, NOW) == BOX.open(two, EXPECTED, NOW)


def test_the_token_is_laid_out_as_the_module_says_and_shows_nothing_else() -> None:
    assert DATA[:5] == b"\x01" + OLD.mark
    plain = OLD.open(DATA[5:17], DATA[17:], DATA[:5])
    assert codec.decode(plain).exchange == "x-1"
    assert len(TOKEN) < 800
    for readable in (b"x-1", b"crm", b"book", SESSION.encode(), b"9731", b"replica-a", ALICE):
        assert readable not in DATA


# --- rotation ---


def test_a_ticket_of_the_old_key_opens_while_the_old_key_is_in_the_ring() -> None:
    for ring in ((OLD, NEW), (NEW, OLD), (FOREIGN, NEW, OLD)):
        assert box_of(*ring).open(TOKEN, EXPECTED, NOW).exchange == "x-1"


def test_the_first_key_seals_and_a_removed_key_opens_nothing() -> None:
    token = box_of(NEW, OLD).seal(CLAIMS, ALICE)

    assert box_of(NEW).open(token, EXPECTED, NOW).principal == NEW.fingerprint(ALICE)
    for foreign, box in ((token, BOX), (TOKEN, box_of(NEW))):
        assert str(refusal_of(foreign, box=box)) == "sealed with a key that is not in the ring"


def test_a_foreign_key_under_a_known_mark_opens_nothing() -> None:
    bound, nonce = b"\x01" + OLD.mark, bytes(12)
    plain = codec.encode(msgspec.structs.replace(CLAIMS, principal=FINGERPRINT))

    assert BOX.open(forged(plain), EXPECTED, NOW).exchange == "x-1"
    assert (
        str(refusal_of(text_of(bound + nonce + FOREIGN.seal(nonce, plain, bound)))) == "tag does not verify"
    )


def test_version_and_key_are_bound_into_the_seal() -> None:
    nonce, plain = bytes(12), codec.encode(msgspec.structs.replace(CLAIMS, principal=FINGERPRINT))
    for bound in (b"\x02" + OLD.mark, b"\x01" + NEW.mark):
        sealed = nonce + OLD.seal(nonce, plain, bound)
        assert str(refusal_of(text_of(b"\x01" + OLD.mark + sealed))) == "tag does not verify"
        refusal_of(text_of(bound + sealed), box=box_of(OLD, NEW))
    token = text_of(b"\x02" + OLD.mark + nonce + OLD.seal(nonce, plain, b"\x02" + OLD.mark))
    assert str(refusal_of(token)) == "token of another version"


# --- another request ---


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (replace(EXPECTED, principal=b"Bearer bob"), "ticket of another principal"),
        (replace(EXPECTED, principal=b""), "ticket of another principal"),
        (replace(EXPECTED, principal=FINGERPRINT.encode()), "ticket of another principal"),
        (replace(EXPECTED, upstream="wiki"), "ticket for another upstream"),
        (replace(EXPECTED, method="prompts/get"), "ticket for another method"),
        (replace(EXPECTED, target="cancel"), "ticket for another target"),
        (replace(EXPECTED, target="book\u0000"), "ticket for another target"),
        (replace(EXPECTED, target="\ud800"), "ticket for another target"),
        (replace(EXPECTED, arguments="b" * 64), "ticket for other arguments"),
        (replace(EXPECTED, arguments=""), "ticket for other arguments"),
    ],
)
def test_a_token_is_worth_nothing_for_another_request(other: Expected, reason: str) -> None:
    """Spec: requestState should be bound to principal, method and parameters."""
    assert str(refusal_of(TOKEN, other)) == reason


@given(st.text(max_size=80))
def test_a_token_is_worth_nothing_for_any_other_value(value: str) -> None:
    refusal_of(TOKEN, replace(EXPECTED, upstream="crm" + value + "m"))
    refusal_of(TOKEN, replace(EXPECTED, method=value + "tools/calls"))
    refusal_of(TOKEN, replace(EXPECTED, target=value + "books"))
    refusal_of(TOKEN, replace(EXPECTED, arguments="a" * 65 + value))
    refusal_of(TOKEN, replace(EXPECTED, principal=ALICE + b"+" + value.encode("utf-8", "surrogatepass")))


def test_all_that_is_wrong_is_named_at_once() -> None:
    """Ours: all checks are made, then there is one verdict."""
    nothing = Expected(principal=b"", upstream="", method="", target="", arguments="")

    assert str(refusal_of(TOKEN, nothing, NOW + 600)) == (
        "ticket expired, of another principal, for another upstream, for another method, "
        "for another target, for other arguments"
    )


@pytest.mark.parametrize("late", [0, 0.001, 1, 10**9, float("inf"), float("nan")])
def test_a_token_expires_at_its_expiry(late: float) -> None:
    assert str(refusal_of(TOKEN, now=CLAIMS.expires_at + late)) == "ticket expired"


@pytest.mark.parametrize("early", [0.001, 1, 599, 600, 700])
def test_a_token_opens_until_its_expiry_also_where_the_clock_is_behind(early: float) -> None:
    assert BOX.open(TOKEN, EXPECTED, CLAIMS.expires_at - early).round == 1


# --- another text ---


def test_any_single_changed_bit_is_refused() -> None:
    """Spec: tampered state must be refused."""
    whole = int.from_bytes(DATA, "big")
    for bit in range(len(DATA) * 8):
        with pytest.raises(StateRejected):
            BOX.open(text_of((whole ^ 1 << bit).to_bytes(len(DATA), "big")), EXPECTED, NOW)


@given(st.integers(0, len(TOKEN) - 1), st.characters() | st.sampled_from(DIGITS + "=+/ "))
def test_a_character_more_or_less_or_another_is_refused(place: int, character: str) -> None:
    refusal_of(TOKEN[:place] + character + TOKEN[place:])
    refusal_of(TOKEN[:place] + TOKEN[place + 1 :])
    if character != TOKEN[place]:
        refusal_of(TOKEN[:place] + character + TOKEN[place + 1 :])


def test_every_truncation_is_refused() -> None:
    for length in range(len(TOKEN)):
        refusal_of(TOKEN[:length])
        refusal_of(TOKEN[length + 1 :])
    for length in range(len(DATA)):
        refusal_of(text_of(DATA[:length]))


@given(st.text(min_size=1, max_size=40))
def test_every_extension_is_refused(more: str) -> None:
    refusal_of(TOKEN + more)
    refusal_of(more + TOKEN)
    assert str(refusal_of(text_of(DATA + more.encode("utf-8", "surrogatepass")))) == "tag does not verify"


@pytest.mark.parametrize(
    "more", ["-TAMPERED", "=", "==", "====", "\n", " ", "\t", "A", "AAAA", "\u0000", TOKEN]
)
def test_extensions_that_lenient_decoders_forgive_are_refused(more: str) -> None:
    """The first is what the conformance suite does."""
    refusal_of(TOKEN + more)
    refusal_of(more + TOKEN)


@pytest.mark.parametrize("length", [0, 1, 2])
def test_only_one_text_stands_for_a_token(length: int) -> None:
    """Ours: stray bits in the last character, padding and the other alphabet are no second spelling."""
    token = BOX.seal(msgspec.structs.replace(CLAIMS, target="t" * length), ALICE)
    expected = replace(EXPECTED, target="t" * length)
    assert BOX.open(token, expected, NOW).target == "t" * length
    canonical = "token is not canonical base64url"

    spare_bits = {0: 0, 2: 4, 3: 2}[len(token) % 4]
    for stray in range(1, 2**spare_bits):
        twin = token[:-1] + DIGITS[DIGITS.index(token[-1]) + stray]
        assert base64.urlsafe_b64decode(twin + "==") == base64.urlsafe_b64decode(token + "==")
        assert str(refusal_of(twin, expected)) == canonical
    if len(token) % 4:
        assert str(refusal_of(token + "=" * (-len(token) % 4), expected)) == canonical
    for digit, other in (("-", "+"), ("_", "/")):
        if digit in token:
            assert str(refusal_of(token.replace(digit, other), expected)) == canonical
    assert str(refusal_of(f"{token[:9]}\n{token[9:]}", expected)) == canonical


@given(st.text(max_size=300) | st.text(DIGITS, max_size=300) | st.binary(max_size=200).map(text_of))
def test_any_other_text_is_refused(text: str) -> None:
    refusal_of(text)
    refusal_of(TOKEN[:7] + text)


# --- size ---


def test_a_token_over_the_limit_is_refused_before_anything_is_done_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("looked at the token")

    monkeypatch.setattr("gateway.sealing.box._from_text", never)
    monkeypatch.setattr(Key, "open", never)
    monkeypatch.setattr(Key, "fingerprint", never)

    assert str(refusal_of("A" * 65537)) == "token too long"
    assert str(refusal_of(TOKEN, box=box_of(OLD, max_token_bytes=len(TOKEN) - 1))) == "token too long"


def test_what_is_sealed_fits_the_limit_and_what_would_not_fit_is_not_sealed() -> None:
    for length in (0, 1, 2, 3):
        claims = msgspec.structs.replace(CLAIMS, target="t" * length)
        token = BOX.seal(claims, ALICE)
        exact, short = (box_of(OLD, max_token_bytes=len(token) - less) for less in (0, 1))

        assert exact.open(exact.seal(claims, ALICE), replace(EXPECTED, target="t" * length), NOW).round == 1
        with pytest.raises(
            ClaimsTooLarge, match=rf"^a token of {len(token)} bytes, at most {len(token) - 1} "
        ):
            short.seal(claims, ALICE)


@pytest.mark.parametrize(
    ("answer", "least", "most"),
    [
        (random.Random(1).randbytes(48_000), 64_000, 65_536),
        (b'{"text":"' + b"lorem ipsum " * 20_000, 100, 4_000),
    ],
    ids=["noise", "text"],
)
def test_a_long_answer_goes_round_and_text_is_deflated(answer: bytes, least: int, most: int) -> None:
    claims = msgspec.structs.replace(CLAIMS, journal=(JournalEntry("q", "sampling", "", Raw(answer)),))
    token = BOX.seal(claims, ALICE)

    assert least < len(token) <= most
    assert BOX.open(token, EXPECTED, NOW).journal == claims.journal


def test_an_answer_too_long_to_be_inflated_again_is_not_sealed() -> None:
    """Ours: a megabyte of zeros would deflate to a short token, and each retry would inflate it."""
    zeros = JournalEntry("q", "sampling", "", Raw(b"0" * 1_000_000))

    with pytest.raises(ClaimsTooLarge):
        BOX.seal(msgspec.structs.replace(CLAIMS, journal=(zeros,)), ALICE)


# --- a true seal around what is not for us ---


def test_claims_of_another_format_are_refused() -> None:
    assert str(refusal_of(forged(b""))) == "unreadable claims: not claims of format 1"
    assert (
        str(refusal_of(forged(msgspec.msgpack.encode([2, "x"]))))
        == "unreadable claims: not claims of format 1"
    )


def test_a_bomb_under_a_true_seal_is_not_inflated() -> None:
    packed = codec.read(codec.encode(msgspec.structs.replace(CLAIMS, principal=FINGERPRINT)))
    bomb = msgspec.msgpack.encode(msgspec.structs.replace(packed, unfolded_bytes=2**40))

    assert str(refusal_of(forged(bomb))) == "unreadable claims: a journal longer than any that is deflated"


def test_nothing_is_unfolded_for_a_request_that_is_not_the_right_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """DESIGN: nothing inside is used before all is checked."""

    def never(*_: object) -> None:
        raise AssertionError("unfolded the journal")

    monkeypatch.setattr("gateway.sealing.claims._unfold", never)

    for other in (replace(EXPECTED, principal=b"bob"), replace(EXPECTED, arguments="")):
        refusal_of(TOKEN, other)
    refusal_of(TOKEN, now=NOW + 600)
    with pytest.raises(AssertionError, match="unfolded"):
        BOX.open(TOKEN, EXPECTED, NOW)


# --- what is shown ---


def test_no_secret_is_shown() -> None:
    with pytest.raises(ClaimsTooLarge) as caught:
        box_of(OLD, max_token_bytes=100).seal(CLAIMS, ALICE)

    too_large = "".join(traceback.format_exception(caught.value))
    for shown in (repr(BOX), repr(EXPECTED), str(EXPECTED), repr(Keyring([OLD])), too_large):
        for hidden in ("s3cret", SESSION, "9731", FINGERPRINT, repr(b"\x01" * 32)[2:-1], "01" * 32):
            assert hidden not in shown
