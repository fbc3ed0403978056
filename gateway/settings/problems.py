"""What is wrong with a configuration, and where. Shows places, never values: a value may be a secret."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, TypeAlias

KeyPath: TypeAlias = tuple[str | int, ...]
_PLAIN: Final = re.compile(r"[A-Za-z0-9_<][A-Za-z0-9_<-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to mend."""

    path: str
    """Where: `upstreams.crm.sessions.mode`, or the name of a variable; empty for the whole file."""
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def show(path: KeyPath) -> str:
    """Write a path the way people read YAML: `sealing.keys[0]`, `input_keys["odd.name"]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(part)}]"
    return text


def did_you_mean(word: str, known: Iterable[str], spell: Callable[[str], str] = str) -> str:
    """Return `; did you mean …?` when one of the known words is close, else nothing."""
    close = get_close_matches(word, list(known), n=1)
    return f"; did you mean {spell(close[0])}?" if close else ""


def describe(error: Mapping[str, Any], known_keys: Iterable[str]) -> str:
    """Put one of pydantic's findings into words of our own; its `input` is looked at, never shown."""
    context: Mapping[str, Any] = error.get("ctx", {})
    kind = error["type"]
    if kind == "missing":
        return "is required"
    if kind == "extra_forbidden":
        return "unknown key" + did_you_mean(str(error["loc"][-1]), known_keys)
    if error["input"] is None:
        return "has no value; leave the key out to get the default"
    if kind == "value_error":
        return str(context["error"])
    if kind == "too_short":
        return "should not be empty"
    words = _WORDS.get(kind)
    return words.format_map(context) if words else str(error["msg"]).replace("Input should", "should", 1)


_WORDS: Final = {
    "dict_type": "should be a mapping (key: value)",
    "model_type": "should be a mapping (key: value)",
    "model_attributes_type": "should be a mapping (key: value)",
    "tuple_type": "should be a list",
    "string_type": "should be text; if it is meant as text, put it in quotes",
    "string_too_short": "should not be empty",
    "string_pattern_mismatch": "should be a name of lower-case letters, digits and '-', not beginning with '-'",
    "literal_error": "should be {expected}",
    "greater_than_equal": "should be at least {ge}",
    "int_type": "should be a whole number",
    "int_parsing": "should be a whole number",
    "int_parsing_size": "should be a smaller number",
    "int_from_float": "should be a whole number",
    "finite_number": "should be a whole number",
    "path_type": "should be the path of a file",
}
