"""Header values: what one side writes the other reads, and nothing is read in two ways."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.inbound import decode_header_value, encode_header_value

from gateway.wire.headers import HeaderUndecodable, accepts_both, decode_value, encode_value, media_type

looks_wrapped = st.builds("=?base64?{}?=".format, st.text(max_size=12))
padded = st.builds(
    "{}{}{}".format, st.sampled_from(["", " ", "\t", "\u00a0"]), st.text(), st.sampled_from(["", " ", "\n"])
)
texts = st.one_of(st.text(), looks_wrapped, padded)


def wrapped(payload: str) -> str:
    return f"=?base64?{payload}?="


@given(texts)
def test_any_text_comes_back_as_it_was(text: str) -> None:
    assert decode_value(encode_value(text)) == text


@given(texts)
def test_what_is_written_is_a_legal_header_value(text: str) -> None:
    """RFC 9110: visible characters, space and tab, and nothing that a hop may trim."""
    value = encode_value(text)

    assert all(character == "\t" or " " <= character <= "~" for character in value)
    assert value == value.strip()


@given(texts)
def test_the_reference_implementation_reads_ours_and_we_read_its(text: str) -> None:
    assert decode_header_value(encode_value(text)) == text
    assert decode_value(encode_header_value(text)) == text


@given(st.text(alphabet=st.characters(min_codepoint=0x20, max_codepoint=0x7E)))
def test_plain_values_are_written_plainly(text: str) -> None:
    if text == text.strip() and not text.startswith("=?base64?"):
        assert encode_value(text) == text


@given(st.text(max_size=40))
def test_reading_answers_or_refuses_and_never_breaks(text: str) -> None:
    for value in (text, wrapped(text)):
        try:
            decode_value(value)
        except HeaderUndecodable:
            continue


def test_white_space_around_a_value_does_not_count() -> None:
    """Spec: trim optional white space before comparing; inside the wrapping it does count."""
    assert decode_value(" \techo\t ") == "echo"
    assert decode_value(f" {wrapped('IGEg')}\t") == " a "
    assert decode_value("") == ""


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        ("aGk", "padding missing"),
        ("aGk==", "padding too long"),
        ("aGl=", "stray bits after the last byte"),
        ("aG k=", "white space inside"),
        ("aGk=\t", "white space at the end"),
        ("a-_=", "the url alphabet"),
        ("aGk=aGk=", "two texts in one"),
        ("/w==", "not UTF-8"),
        ("7aCA", "a surrogate in UTF-8"),
        ("*", "not base64 at all"),
    ],
)
def test_a_wrapping_that_another_reader_might_read_differently_is_refused(payload: str, why: str) -> None:
    """Spec: strict base64 with padding, UTF-8 inside."""
    with pytest.raises(HeaderUndecodable):
        decode_value(wrapped(payload))


@pytest.mark.parametrize("value", ["caf\u00e9", "a\udce9b", "a\nb", "a\rb", "a\x00b", "a\x7fb", "\u00a0a"])
def test_characters_that_no_header_may_carry_are_refused(value: str) -> None:
    """A server hands undecodable bytes over as surrogates, so they are among these."""
    with pytest.raises(HeaderUndecodable):
        decode_value(value)


@pytest.mark.parametrize(
    "value",
    ["=?BASE64?aGk=?=", "=?base64?aGk=", "aGk=?=", "=?base64?=", "x=?base64?aGk=?=", "=?utf-8?B?aGk=?="],
)
def test_what_only_resembles_the_wrapping_is_plain_text(value: str) -> None:
    """Spec: the markers are case-sensitive and enclose the whole value."""
    assert decode_value(value) == value
    assert decode_value(encode_value(value)) == value


def test_a_text_that_looks_wrapped_is_wrapped_again() -> None:
    text = wrapped("aGk=")

    assert encode_value(text) == wrapped(base64.b64encode(text.encode()).decode())
    assert decode_value(wrapped("")) == ""


@pytest.mark.parametrize(
    "accept",
    [
        "application/json, text/event-stream",
        "text/event-stream,application/json",
        "Application/JSON;q=0.5, TEXT/event-stream; q=1",
        "application/json;charset=utf-8 , text/*",
        "application/*, text/event-stream;q=0.001",
        "*/*",
        "text/html, */*;q=0.1",
    ],
)
def test_both_reply_forms_are_accepted_by_name_or_wildcard(accept: str) -> None:
    assert accepts_both(accept)


@pytest.mark.parametrize(
    "accept",
    [
        None,
        "",
        "application/json",
        "text/event-stream",
        "application/json, text/event-stream;q=0",
        "application/json; Q=0.000, text/event-stream",
        "*/*;q=0",
        "application/jsonx, text/event-stream",
        "application/json; x=text/event-stream",
        "text/*, text/event-stream",
    ],
)
def test_one_reply_form_alone_is_not_both(accept: str | None) -> None:
    assert not accepts_both(accept)


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        (None, ""),
        ("", ""),
        ("application/json", "application/json"),
        ("Application/JSON ; charset=utf-8", "application/json"),
        (" text/event-stream;charset=utf-8", "text/event-stream"),
        (";charset=utf-8", ""),
    ],
)
def test_the_media_type_is_read_without_case_and_parameters(content_type: str | None, expected: str) -> None:
    assert media_type(content_type) == expected
