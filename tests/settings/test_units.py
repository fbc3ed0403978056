"""Durations, sizes, addresses and URLs as people write them."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.settings.units import (
    Address,
    parse_address,
    parse_duration,
    parse_http_url,
    parse_rate,
    parse_size,
)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("50ms", 0.05),
        ("10s", 10),
        ("1.5s", 1.5),
        ("10m", 600),
        ("1h", 3600),
        ("1h30m", 5400),
        ("2d", 172800),
        ("0", 0),
        ("7", 7),
        (7, 7),
        (0.25, 0.25),
    ],
)
def test_a_duration_is_read_as_seconds(written: object, seconds: float) -> None:
    assert parse_duration(written) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "written",
    [
        "",
        "ten",
        "10 s",
        "10S",
        "-1s",
        "s",
        "1m ",
        "5 minutes",
        "\u0661s",
        "1e3",
        -1,
        True,
        None,
        [],
        math.nan,
        math.inf,
        "400d",
    ],
)
def test_what_is_no_duration_is_refused_without_repeating_it(written: object) -> None:
    with pytest.raises(ValueError, match="should be") as refusal:
        parse_duration(written)
    assert "minutes" not in str(refusal.value)


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("4MiB", 4194304),
        ("512KiB", 524288),
        ("1 GiB", 1073741824),
        ("1.5kB", 1500),
        ("2MB", 2000000),
        ("100B", 100),
        ("7", 7),
        (7, 7),
    ],
)
def test_a_size_is_read_as_bytes(written: object, size: int) -> None:
    assert parse_size(written) == size


@pytest.mark.parametrize(
    "written", ["", "0", "0.1B", "4mib", "MiB", "-4MiB", "4 XiB", 0, -1, 1.5, True, None, "\u0664MiB"]
)
def test_what_is_no_size_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="should be a size"):
        parse_size(written)


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("127.0.0.1:8080", Address("127.0.0.1", 8080)),
        ("localhost:0", Address("localhost", 0)),
        ("[::1]:65535", Address("::1", 65535)),
    ],
)
def test_an_address_is_read_and_written_alike(written: str, address: Address) -> None:
    assert parse_address(written) == address
    assert str(address) == written
    assert parse_address(address) is address


@pytest.mark.parametrize(
    "written", ["", "8080", ":8080", "::1:80", "h:x", "h:65536", "h:-1", "http://h:1", "a b:1", 8080, None]
)
def test_what_is_no_address_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match=r"HOST:PORT|at most 65535"):
        parse_address(written)


@pytest.mark.parametrize(
    "url", ["http://h", "https://h:8443/mcp?k=v", "http://[::1]:9000/mcp", "http://127.0.0.1/a%20b"]
)
def test_a_server_url_stays_as_it_is_written(url: str) -> None:
    assert parse_http_url(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "h/mcp",
        "ftp://h/",
        "http://",
        "http:///mcp",
        "http://h:x/",
        "http://h:99999/",
        "http://h:0/",
        "http://a b/",
        "http://h\n/",
        "http://[::1/",
        "http:\\\\h",
        "http://h/#top",
        "http://user:pw@h/",
        "http://user@h/",
        5,
        None,
    ],
)
def test_what_is_no_server_url_is_refused_without_repeating_it(url: object) -> None:
    with pytest.raises(ValueError, match="should") as refusal:
        parse_http_url(url)
    assert "pw" not in str(refusal.value)


@pytest.mark.parametrize(("parse", "unit"), [(parse_duration, "s"), (parse_size, "GiB"), (parse_rate, "/s")])
def test_what_no_float_can_hold_is_refused(parse: Callable[[object], float], unit: str) -> None:
    """Ours: a slip of the keyboard ends in a message with its place, not in a stack trace."""
    with pytest.raises(ValueError, match="should be"):
        parse("9" * 400 + unit)
    with pytest.raises(ValueError, match="should be"):
        parse(-(10**400))


def test_whole_numbers_of_any_length_are_read_or_refused() -> None:
    assert parse_size(10**400) == 10**400
    with pytest.raises(ValueError, match="366 days"):
        parse_duration(10**400)


@given(st.text() | st.integers() | st.floats() | st.none() | st.booleans())
def test_whatever_is_written_is_read_or_refused_and_nothing_else(value: object) -> None:
    for parse in (parse_duration, parse_size, parse_address, parse_http_url):
        try:
            parse(value)
        except ValueError:
            continue
