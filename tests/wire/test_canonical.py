"""The digest: equal for all spellings of one value, different for any two values."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from gateway.wire.canonical import digest

numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
blanks = st.text(alphabet=" \t\r\n", max_size=2)


def oracle(value: Any) -> str:
    """The same equality by other means."""
    return json.dumps(_with_integers(value), sort_keys=True)


def _with_integers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_integers(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_with_integers(item) for item in value]
    # Through the text: a float stands for the number that its JSON spells, not for its binary neighbour.
    if isinstance(value, float) and value.is_integer():
        return _spelt_integer(repr(value))
    return value


def _spelt_integer(text: str) -> int:
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = fraction.rstrip("0")
    return int(whole + fraction + "0" * (int(exponent or 0) - len(fraction)))


@st.composite
def spellings(draw: st.DrawFn, value: Any) -> str:
    """One of the many ways to write the value down."""
    before, after = draw(blanks), draw(blanks)
    return before + draw(_spelt(value)) + after


@st.composite
def _spelt(draw: st.DrawFn, value: Any) -> str:
    if isinstance(value, dict):
        members = draw(st.permutations(list(value.items())))
        return "{" + ",".join(f"{draw(spellings(k))}:{draw(spellings(v))}" for k, v in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(draw(spellings(item)) for item in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**300:
        return draw(st.sampled_from([f"{value}", f"{value}.0", f"{value}.000", f"{value}e0", f"{value}0E-1"]))
    if isinstance(value, float) and "e" not in repr(value):
        return draw(st.sampled_from([repr(value), f"{value!r}00", f"{value!r}e+0"]))
    return json.dumps(value)


@given(st.data())
def test_spelling_does_not_matter(data: st.DataObject) -> None:
    value = data.draw(values)
    one, other = data.draw(spellings(value)), data.draw(spellings(value))

    assert digest(one.encode()) == digest(other.encode())


@given(values, values)
def test_two_values_share_a_digest_only_if_they_are_equal(one: Any, other: Any) -> None:
    same_digest = digest(json.dumps(one).encode()) == digest(json.dumps(other).encode())

    assert same_digest == (oracle(one) == oracle(other))


@given(values)
def test_raw_and_bytes_have_the_same_digest(value: Any) -> None:
    text = json.dumps(value).encode()

    assert digest(Raw(text)) == digest(text)


@given(st.binary(max_size=60))
def test_any_bytes_have_a_digest(raw: bytes) -> None:
    assert re.fullmatch("[0-9a-f]{64}", digest(raw))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (None, b"{}"),
        (None, b"null"),
        (None, b""),
        (b"null", b"{}"),
        (b"{}", b"[]"),
        (b"1", b"true"),
        (b"0", b"false"),
        (b"1", b'"1"'),
        (b"0.5", b'"0.5"'),
        (b"[1,2]", b"[2,1]"),
        (b'{"a":null}', b"{}"),
        (b'"A"', b'"a"'),
        ('"\u00e9"'.encode(), '"e\u0301"'.encode()),
        (b"9007199254740993.0", b"9007199254740992"),
        (b"0.1", b"0.1000000000000000000000000000000000001"),
        (b"1e999", b"2e999"),
        (b"1e400", b"1e401"),
        (b"1e99999999999999999999", b"2e99999999999999999999"),
        (b"1" * 5000, b"2" * 5000),
    ],
)
def test_different_values_have_different_digests(one: bytes | None, other: bytes | None) -> None:
    assert digest(one) != digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"1", b"1.0"),
        (b"-0.0", b"0"),
        (b"100", b"1e2"),
        (b"100000000000000000000000", b"1e23"),
        (b"10e400", b"1e401"),
        (b"1.50", b"15e-1"),
        (b'{"a":1,"b":{"c":2,"d":3}}', b'{ "b" : {"d":3.0, "c":2}, "a":1 }'),
        (b'"\\u00e9\\/"', '"\u00e9/"'.encode()),
        (b'"\\ud83d\\ude00"', '"\U0001f600"'.encode()),
        (b'{"a":1,"a":2}', b'{"a":2}'),
    ],
)
def test_equal_values_have_equal_digests(one: bytes, other: bytes) -> None:
    assert digest(one) == digest(other)


def test_absurd_numbers_cost_nothing() -> None:
    """Written out, this one would fill the memory."""
    assert digest(b'{"n":1e999999999}') == digest(b'{"n":10E+999999998}')


def test_nesting_beyond_reason_still_has_a_digest() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000

    assert digest(deep) == digest(deep)
    assert digest(deep) != digest(deep[1:-1])
