"""YAML text into plain values: stricter than YAML, and every complaint has its place."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.settings.problems import Problem
from gateway.settings.yaml_text import YamlInvalid, parse


def test_keys_are_the_text_that_they_look_like() -> None:
    """Ours: YAML 1.1 reads `on` as true and `1` as a number, which no upstream is called."""
    assert parse("on: 1\n1: 2\n2026-01-01: 3\nnull: 4") == ({"on": 1, "1": 2, "2026-01-01": 3, "null": 4}, [])


def test_a_key_written_twice_is_reported_with_its_path_and_lines() -> None:
    value, problems = parse("a: 1\nb:\n  - c: 1\n    c: 2\na: 3\n")
    assert value == {"a": 3, "b": [{"c": 2}]}
    assert problems == [
        Problem("a", "is written twice, in lines 1 and 5"),
        Problem("b[0].c", "is written twice, in lines 3 and 4"),
    ]


def test_anchors_and_merge_keys_work_and_own_keys_win() -> None:
    text = "base: &b {x: 1, y: 1}\none: {<<: *b, x: 2}\ntwo: {<<: *b, y: 2}\nagain: [*b, *b]\n"
    assert parse(text) == (
        {
            "base": {"x": 1, "y": 1},
            "one": {"x": 2, "y": 1},
            "two": {"x": 1, "y": 2},
            "again": [{"x": 1, "y": 1}] * 2,
        },
        [],
    )


def test_one_anchored_mapping_with_a_merge_is_not_reported_when_used_again() -> None:
    text = "a: &a {x: 1}\nb: &b {<<: *a, x: 2}\nc: *b\n"
    assert parse(text) == ({"a": {"x": 1}, "b": {"x": 2}, "c": {"x": 2}}, [])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: &a {b: *a}", Problem("a.b", "contains itself, through an alias")),
        ("a: !secret hunter2", Problem("a", "cannot be read as a YAML value (line 1)")),
        ("a: 2026-99-99", Problem("a", "cannot be read as a YAML value (line 1)")),
        ("a:\n  ? [x]\n  : 1", Problem("a", "a key should be text (line 2)")),
        ("a: {<<: 1}", Problem("a.<<", "merges something that is not a mapping")),
    ],
)
def test_what_cannot_be_a_value_is_reported_with_its_path(text: str, problem: Problem) -> None:
    assert parse(text)[1] == [problem]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: [1, 2", "line 1|line 2"),
        ("a: 1\n b: 2", "line 2"),
        ("a: 1\n---\nb: 2", "another document"),
        ("a: *hunter2", "undefined alias"),
        ("a: @hunter2", "cannot start any token"),
        (b"a: \xff\xff", "UTF-8"),
        ("a: \x01", "UTF-8"),
        ("[" * 2000 + "]" * 2000, "nested too deeply"),
    ],
)
def test_what_is_no_document_is_refused_without_showing_it(text: bytes | str, reason: str) -> None:
    with pytest.raises(YamlInvalid, match=reason) as refusal:
        parse(text)
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"a:\n\tb: 1\n", "line 2, column 1: a tab; YAML is indented with spaces"),
        ("a: 1\n\tb: 2", "line 2, column 1: a tab; YAML is indented with spaces"),
        ("a: 1\nb: {c: 2\n", r"line 3, column 1: .* \(while parsing a flow mapping that begins in line 2\)"),
        ("a: 'b\nc: d\n", r"line 3, column 1: .* \(while scanning a quoted scalar that begins in line 1\)"),
        (
            "a: 1\n---\nb: 2",
            "line 2, column 1: expected a single document in the stream but found another document",
        ),
    ],
)
def test_one_reading_is_enough_to_find_a_slip(text: bytes | str, told: str) -> None:
    """Ours: `found character that cannot start any token` was all that was said of a tab."""
    with pytest.raises(YamlInvalid) as refusal:
        parse(text)
    assert re.fullmatch(told, str(refusal.value))


def test_aliases_that_multiply_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(YamlInvalid, match="too large"):
        parse("\n".join(lines))


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "---\n", "~"])
def test_nothing_is_nothing(text: str) -> None:
    assert parse(text) == (None, [])


_PLAIN: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet="abc xyz"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="abc", min_size=1), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(_PLAIN)
def test_what_json_says_is_read_as_json_means_it(value: Any) -> None:
    assert parse(json.dumps(value)) == (value, [])


@given(st.text())
def test_any_text_is_read_or_refused_and_nothing_else(text: str) -> None:
    try:
        parse(text)
    except YamlInvalid:
        return
