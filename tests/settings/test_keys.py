"""Sealing keys as they are written down."""

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.settings.keys import KeysFileUnusable, decode_key, read_keys_file

GOOD = base64.urlsafe_b64encode(bytes(range(200, 232))).decode().rstrip("=")
OTHER = "5f" * 32


@given(st.binary(min_size=32, max_size=80))
def test_every_way_of_writing_a_key_is_understood(key: bytes) -> None:
    padded, standard = base64.urlsafe_b64encode(key).decode(), base64.b64encode(key).decode()
    bare = (padded.rstrip("="), standard.rstrip("="))
    for text in (padded, standard, *bare, key.hex(), key.hex().upper()):
        assert decode_key(text) == key
        assert decode_key(f" {text}\n") == key


@given(st.binary(min_size=1, max_size=31))
def test_a_short_key_is_refused_however_it_is_written(key: bytes) -> None:
    padded = base64.urlsafe_b64encode(key).decode()
    for text in (padded, padded.rstrip("="), base64.b64encode(key).decode(), key.hex()):
        with pytest.raises(ValueError, match="is too short"):
            decode_key(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "=",
        "correct horse battery staple " * 3,
        "A" * 45,  # no bytes have so many digits
        "A" * 43 + "==",
        "A" * 44 + "=",
        "A" * 43 + "===",
        "=" + "A" * 43,
        "+" + "A" * 41 + "-",  # two alphabets at once
        "A" * 20 + "\n" + "A" * 23,
        "\u00e4" * 43,
        "\uff21" * 43,  # a full-width A
        "\ud800" * 43,
        "\u0660" * 64,  # an Arabic zero is a digit too
        "0x" + "ab" * 32 + ".",
        "${HOLDFAST_SEAL_KEY_THAT_WAS_NOT_REPLACED_BY_ANYTHING}",
    ],
)
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a key|is empty"):
        decode_key(text)


@given(st.text(max_size=80))
def test_any_text_that_is_refused_is_not_repeated(text: str) -> None:
    # Padding before the end: no form at all.
    with pytest.raises(ValueError, match=r"^is not a key in base64url, base64 or hex; `holdfast") as caught:
        decode_key(f"{text}=Z")

    # A UnicodeError would carry the text along.
    assert type(caught.value) is ValueError
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("hunter2hunter2", "too short"),
        ("ab" * 31, "too short"),
        ("not a key, by far not", "not a key"),
    ],
)
def test_a_refused_key_is_not_repeated(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as refusal:
        decode_key(text)
    assert not text or text not in str(refusal.value)


def test_a_keys_file_has_one_key_per_line_and_comments(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"\ufeff# newest first\n\n  {GOOD}  \r\n{OTHER}\n", encoding="utf-8")
    assert read_keys_file(file) == [GOOD, OTHER]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "contains no key"),
        (b"# only words\n", "contains no key"),
        (GOOD.encode() + b"\nhunter2hunter2\n", "line 2 is too short"),
        (b"\xff\xfe\x00", "not text"),
        (b"#" * (1024**2 + 1), "too large"),
    ],
)
def test_a_bad_keys_file_is_refused_without_showing_a_key(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    file = tmp_path / "keys"
    file.write_bytes(content)
    with pytest.raises(KeysFileUnusable, match=reason) as refusal:
        read_keys_file(file)
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize("name", ["absent", "nul\0"])
def test_a_keys_file_that_cannot_be_opened_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(KeysFileUnusable, match="cannot be"):
        read_keys_file(tmp_path / name)


def test_a_folder_of_keys_is_read_by_the_names_of_its_files(tmp_path: Path) -> None:
    """Issue: keys from a mounted secret; Kubernetes keeps its past in what begins with a dot."""
    old, new = "ab" * 32, "cd" * 32
    (tmp_path / "2-old").write_text(f"{old}\n")
    (tmp_path / "1-new").write_text(f"# since Monday\n{new}\n")
    (tmp_path / "..data").mkdir()
    assert read_keys_file(tmp_path) == [new, old]


def test_a_folder_without_keys_or_with_a_bad_one_is_refused_by_the_file_s_name(tmp_path: Path) -> None:
    """Ours: the text never shows a key, also not the beginning of one."""
    with pytest.raises(KeysFileUnusable, match="folder without keys"):
        read_keys_file(tmp_path)
    (tmp_path / "short").write_text("hunter2")
    with pytest.raises(KeysFileUnusable, match="its file 'short': line 1") as refusal:
        read_keys_file(tmp_path)
    assert "hunter2" not in str(refusal.value)
