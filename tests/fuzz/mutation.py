"""Seeded ways to spoil bytes and JSON values. It knows neither HTTP nor MCP."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

_INTERESTING: Final = (
    *(
        b"\x00",
        b"\r",
        b"\n",
        b"\r\n",
        b"\r\n\r\n",
        b"\n\n",
        b" ",
        b"\t",
        b":",
        b",",
        b"=",
        b"%",
        b"\xff",
        b"\x80",
    ),
    *(
        b"\xf0\x9f\x98\x80",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"\xe2\x80\xa8",
        b'"',
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
    ),
    *(b"null", b"-1", b"0", b"1e999", b"\\ud800", b"\\u0000", b"data: ", b"id: ", b"event: ", b"../", b"%2f"),
)


class Text(str):
    """JSON that is written as it stands, valid or not."""

    __slots__ = ()


def deep(levels: int, opening: str = "[", closing: str = "]") -> Text:
    """A value inside so many others."""
    return Text(opening * levels + "0" + closing * levels)


ODD: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 2**64, 10**40, 0.5, -0.0),
    *(Text("1e999"), Text("-1e-999"), Text("1E400"), Text("9" * 5000), Text("01"), Text("NaN"), Text("1.0")),
    *(
        "",
        " ",
        "\x00",
        "\r\n",
        "a\r\nX-Evil: 1",
        "\u2028",
        "\ufeff",
        "é",
        "😀",
        "x" * 3000,
        "../..",
        "__proto__",
    ),
    *(Text(r'"\ud800"'), Text(r'"\udc00\ud800"'), Text(r'"\u0000"'), Text('"\x01"'), Text('"\\x"')),
    *([], {}, [[]], [None], {"": ""}, [1, "1"], {"a": {"a": {"a": 1}}}, list(range(200))),
    *(deep(100), deep(1500), deep(1500, '{"a":', "}"), Text('{"a":1,"a":2}'), Text('{"id":1,"id":2}')),
)


def odd(rng: random.Random) -> Any:
    """One of these, to keep."""
    return copy.deepcopy(rng.choice(ODD))


def dump(value: Any) -> str:
    """JSON text, in which a `Text` stands as it is."""
    if isinstance(value, Text):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(str(name))}:{dump(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(dump(item) for item in value) + "]"
    return json.dumps(value)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in `value` with each key or index in it."""
    if isinstance(value, Text):
        return
    if isinstance(value, dict | list):
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        for key in keys:
            yield value, key
            yield from places(value[key])


def spoil_json(value: Any, rng: random.Random, times: int) -> Any:
    """The value with members replaced, removed, added, doubled or renamed. `value` itself is changed."""
    for _ in range(times):
        found = list(places(value))
        if not found:
            return odd(rng)
        container, key = rng.choice(found)
        match rng.randrange(6):
            case 0 | 1 | 2:
                container[key] = odd(rng)
            case 3:
                del container[key]
            case 4 if isinstance(container, dict):
                container[rng.choice(("", "id", "_meta", "method", "error", "result", "\x00", "x" * 200))] = (
                    odd(rng)
                )
            case 5 if isinstance(container, dict):
                container[str(key).swapcase()] = container.pop(key)
            case _:
                container[key] = [container[key]]
    return value


def spoil_bytes(data: bytes, rng: random.Random, times: int) -> bytes:
    """The bytes with flips, holes, repeats, insertions, or an early end."""
    for _ in range(times):
        data = rng.choice(_BYTE_WAYS)(data, rng)
    return data


def _flip(data: bytes, rng: random.Random) -> bytes:
    if not data:
        return b"\x00"
    place = rng.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << rng.randrange(8))]) + data[place + 1 :]


def _hole(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + data[start + rng.randrange(1, 20) :]


def _repeat(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    end = start + rng.randrange(1, 60)
    return data[:end] + data[start:end] + data[end:]


def _insert(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(data) + 1)
    return data[:place] + rng.choice(_INTERESTING) + data[place:]


def _early_end(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _noise(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(data) + 1)
    return data[:place] + rng.randbytes(rng.randrange(1, 12)) + data[place:]


_BYTE_WAYS: Final[tuple[Callable[[bytes, random.Random], bytes], ...]] = (
    *(_flip, _flip, _flip, _insert, _insert, _hole, _repeat, _noise, _early_end),
)
