"""Mutated tickets against the real ticket office: every one is refused, with the same bytes, as soon as any other.

Also the cross attempts: good tickets of one caller, tried as others, elsewhere, for other calls, or too late.
"""

import binascii
import random
import statistics
import string
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Final

from msgspec.structs import replace

from gateway.edge.reply import body_of
from gateway.errors import StateRejected
from gateway.relay.listener import Reply
from gateway.relay.request import ClientRequest
from gateway.relay.tickets import TicketOffice, Whereabouts
from gateway.sealing.box import Box
from gateway.sealing.keyring import Key, Keyring
from tests.support.asking import accept, form, held, raw
from tests.support.requests import BOB, tool_call

NOW: Final = 1_800_000_000.0
HERE: Final = Whereabouts("s-1", "hf-r-7", "e_3", "2025-11-25")
DIGITS: Final = string.ascii_letters + string.digits + "-_"
FROZEN: Final = (
    b'{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Invalid or expired requestState",'
    b'"data":{"reason":"invalid_request_state"}}}'
)


@dataclass
class Findings:
    """What became of the attempts."""

    tried: Counter[str] = field(default_factory=Counter)
    accepted: list[str] = field(default_factory=list)
    """Which way in was found; there must be none."""
    different: list[str] = field(default_factory=list)
    """What was refused with other words."""
    crashed: list[str] = field(default_factory=list)

    def add(self, other: "Findings") -> None:
        self.tried += other.tried
        self.accepted += other.accepted
        self.different += other.different
        self.crashed += other.crashed

    @property
    def faults(self) -> list[str]:
        return [*self.accepted, *self.different, *self.crashed]


class Office:
    """Two upstreams under one ring, and somebody else's ring."""

    def __init__(self, rng: random.Random) -> None:
        self.now = NOW
        ring = Keyring([Key(rng.randbytes(32)), Key(rng.randbytes(32))])
        self.ours = self._office(Box(ring, rng.randbytes), "crm")
        self.elsewhere = self._office(Box(ring, rng.randbytes), "erp")
        self.foreign = self._office(Box(Keyring([Key(rng.randbytes(32))]), rng.randbytes), "crm")

    def _office(self, box: Box, upstream: str) -> TicketOffice:
        return TicketOffice(box, upstream=upstream, replica="r", ttl=600, now=lambda: self.now)


def seal(office: TicketOffice, rng: random.Random, request: ClientRequest) -> str:
    """A ticket of a random exchange: one to three questions, perhaps one answered."""
    names = rng.sample(["a", "b", "c"], rng.randrange(1, 4))
    talk = held(*(form(number, name) for number, name in enumerate(names)))
    if len(names) > 1 and rng.random() < 0.5:
        talk.retry({names[0]: accept(**{names[0]: "x" * rng.randrange(400)})})
    return office.write(f"x-{rng.randrange(10**9)}", talk.exchange, request, HERE).token


# --- ways to change a ticket ----------------------------------------------------------------


def _bytes_of(token: str) -> bytes:
    return binascii.a2b_base64(token.replace("-", "+").replace("_", "/") + "=" * (-len(token) % 4))


def _text_of(data: bytes) -> str:
    text = binascii.b2a_base64(data, newline=False).decode().rstrip("=")
    return text.replace("+", "-").replace("/", "_")


def _flip(token: str, other: str, rng: random.Random) -> str:
    data = bytearray(_bytes_of(token))
    for _ in range(rng.randrange(1, 4)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return _text_of(bytes(data))


def _digit(token: str, other: str, rng: random.Random) -> str:
    place = rng.randrange(len(token))
    return token[:place] + rng.choice(DIGITS) + token[place + 1 :]


def _truncate(token: str, other: str, rng: random.Random) -> str:
    return token[: rng.randrange(len(token))]


def _extend(token: str, other: str, rng: random.Random) -> str:
    more = "".join(rng.choices(DIGITS, k=rng.randrange(1, 40)))
    return token + more if rng.random() < 0.5 else more + token


def _splice(token: str, other: str, rng: random.Random) -> str:
    one, two = _bytes_of(token), _bytes_of(other)
    cut = rng.randrange(1, min(len(one), len(two)))
    return _text_of(one[:cut] + two[cut:])


def _shuffle(token: str, other: str, rng: random.Random) -> str:
    data = bytearray(_bytes_of(token))
    i, j = rng.randrange(len(data)), rng.randrange(len(data))
    data[i], data[j] = data[j], data[i]
    return _text_of(bytes(data))


def _reencode(token: str, other: str, rng: random.Random) -> str:
    """The same bytes in another spelling: padding, the other alphabet, white space, stray bits at the end."""
    match rng.randrange(6):
        case 0:
            return token + "=" * rng.randrange(1, 4)
        case 1:
            return token.replace("-", "+").replace("_", "/") + "="
        case 2:
            place = rng.randrange(len(token) + 1)
            return token[:place] + rng.choice("\n\r\t =.,%\x00") + token[place:]
        case 3:
            return token[:-1] + rng.choice(DIGITS)
        case 4:
            return binascii.b2a_hex(_bytes_of(token)).decode()
        case _:
            return "".join(f"%{ord(c):02x}" if rng.random() < 0.1 else c for c in token) + "%"


def _unicode(token: str, other: str, rng: random.Random) -> str:
    """Characters that look alike, or that some decoders drop."""
    place = rng.randrange(len(token))
    odd = rng.choice(["\uff21", "\u0410", "\u200b", "\ufeff", "\u0130", "\ud800", "\U0001d400", "\xad", "é"])
    return token[:place] + odd + token[place + rng.randrange(2) :]


def _other_mark(token: str, other: str, rng: random.Random) -> str:
    data = _bytes_of(token)
    return _text_of(data[:1] + rng.randbytes(4) + data[5:])


def _noise(token: str, other: str, rng: random.Random) -> str:
    return _text_of(rng.randbytes(rng.randrange(400)))


WAYS: Final[dict[str, Callable[[str, str, random.Random], str]]] = {
    "bits flipped": _flip,
    "a character changed": _digit,
    "cut short": _truncate,
    "extended": _extend,
    "spliced from two tickets": _splice,
    "bytes exchanged": _shuffle,
    "spelt otherwise": _reencode,
    "odd Unicode": _unicode,
    "another key's mark": _other_mark,
    "noise": _noise,
}


def fuzz(seed: int, number: int) -> Findings:
    """So many mutants, of tickets made anew every thousand."""
    rng = random.Random(seed)
    office, findings, request = Office(rng), Findings(), tool_call()
    ways = list(WAYS.items())
    good: list[str] = []
    for count in range(number):
        if count % 1000 == 0:
            good = [seal(office.ours, rng, request) for _ in range(4)]
        token, other = rng.sample(good, 2)
        name, change = ways[count % len(ways)]
        mutant = change(token, other, rng)
        while mutant in good:
            mutant = _flip(mutant, other, rng)
        _try(office.ours, mutant, request, name, findings)
    return findings


def fuzz_across(seed: int, number: int) -> Findings:
    """So many good tickets, each tried by whom and for what it was not made."""
    rng = random.Random(seed)
    office, findings, request = Office(rng), Findings(), tool_call()
    attempts: list[tuple[str, TicketOffice, ClientRequest]] = [
        ("as another principal", office.ours, tool_call(principal=BOB)),
        ("at another upstream", office.elsewhere, request),
        ("under a foreign key", office.foreign, request),
        ("for another tool", office.ours, tool_call("cancel")),
        ("for another method", office.ours, replace(request, method="prompts/get")),
        ("with other arguments", office.ours, replace(request, params=raw({"arguments": {"city": "Oslo"}}))),
        ("with no arguments", office.ours, replace(request, params={})),
    ]
    for _ in range(number):
        token = seal(office.ours, rng, request)
        for name, where, who in attempts:
            _try(where, token, who, name, findings)
        office.now = NOW + 606
        _try(office.ours, token, request, "too late", findings)
        office.now = NOW
        office.ours.check(token, request)  # and all the time it was good
    return findings


def _try(office: TicketOffice, token: str, request: ClientRequest, name: str, findings: Findings) -> None:
    findings.tried[name] += 1
    try:
        office.check(token, request)
    except StateRejected as error:
        if body_of(Reply.of(error), 7) != FROZEN:
            findings.different.append(name)
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        findings.crashed.append(f"{name}: {error!r}")
    else:
        findings.accepted.append(name)


def fuzz_on_all_cores(seed: int, number: int, *, cores: int = 2) -> Findings:
    """The same, in several processes."""
    parts = [(seed * 1000 + part, number // 20 + (part < number % 20)) for part in range(20)]
    findings = Findings()
    with get_context("spawn").Pool(cores) as pool:
        for found in pool.starmap(fuzz, parts):
            findings.add(found)
    return findings


# --- how long a refusal takes ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Timing:
    """How long refusals of one kind took, in microseconds."""

    name: str
    median: float
    low: float
    high: float
    """The quartiles."""


def timings(seed: int, rounds: int) -> list[Timing]:
    """Refusals of tickets of one length for different reasons, taken in turn so that all meet the same noise."""
    rng = random.Random(seed)
    office, request = Office(rng), tool_call()
    token = seal(office.ours, rng, request)
    data = _bytes_of(token)

    def flipped(place: int) -> str:
        return _text_of(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])

    cases: list[tuple[str, TicketOffice, str, ClientRequest]] = [
        ("another key's mark", office.ours, _other_mark(token, token, rng), request),
        ("nonce changed", office.ours, flipped(8), request),
        ("first sealed byte changed", office.ours, flipped(len(data) // 3), request),
        ("tag changed", office.ours, flipped(len(data) - 1), request),
        ("another principal", office.ours, token, tool_call(principal=BOB)),
        ("another upstream", office.elsewhere, token, request),
        ("another tool", office.ours, token, tool_call("cancel")),
        (
            "other arguments",
            office.ours,
            token,
            replace(request, params=raw({"name": "book", "arguments": {"city": "Oslo"}})),
        ),
    ]
    taken: list[list[float]] = [[] for _ in cases]
    for _ in range(rounds):
        for place in rng.sample(range(len(cases)), len(cases)):
            _, where, text, who = cases[place]
            taken[place].append(_seconds(where, text, who))
    return [_summary(name, times) for (name, *_), times in zip(cases, taken, strict=True)]


def _seconds(office: TicketOffice, token: str, request: ClientRequest) -> float:
    started = time.perf_counter()
    try:
        office.check(token, request)
    except StateRejected as error:
        body_of(Reply.of(error), 7)
    return time.perf_counter() - started


def _summary(name: str, times: list[float]) -> Timing:
    low, median, high = (value * 1e6 for value in statistics.quantiles(times, n=4))
    return Timing(name, median, low, high)


def all_ways() -> Iterator[str]:
    """Names of all mutations."""
    yield from WAYS
