"""JSON-RPC envelopes: what is written is read back, what is no message is refused, nothing breaks it."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.wire.jsonrpc import (
    Failure,
    Id,
    Notification,
    NotJson,
    NotJsonRpc,
    Raw,
    Request,
    Result,
    decode,
    decode_members,
    encode,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
    parse,
    parse_many,
    without_nulls,
)

ids = st.integers() | st.text(max_size=20)
methods = st.text(max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=10,
)
objects = st.dictionaries(st.text(max_size=6), values, max_size=5)


def same_id(one: Id | None, other: Id | None) -> bool:
    return type(one) is type(other) and one == other


def opened(params: dict[str, Raw]) -> dict[str, Any]:
    return {name: decode(value) for name, value in params.items()}


def envelope(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


# --- round trips -----------------------------------------------------------


@given(ids, methods, objects)
@example(0, "", {})
@example("", "tools/call", {})
@example(10**40, "m", {"n": -(10**40)})
def test_a_request_comes_back_as_it_was(id_: Id, method: str, params: dict[str, Any]) -> None:
    message = parse(encode_request(id_, method, params))

    assert isinstance(message, Request)
    assert same_id(message.id, id_)
    assert message.method == method
    assert opened(message.params) == params


@given(methods, objects)
def test_a_notification_comes_back_as_it_was(method: str, params: dict[str, Any]) -> None:
    message = parse(encode_notification(method, params))

    assert isinstance(message, Notification)
    assert message.method == method
    assert opened(message.params) == params


@given(ids, objects)
def test_a_result_comes_back_as_it_was(id_: Id, result: dict[str, Any]) -> None:
    message = parse(encode_result(id_, result))

    assert isinstance(message, Result)
    assert same_id(message.id, id_)
    assert decode(message.result) == result


@given(st.none() | ids, st.integers(), st.text(), values)
def test_a_failure_comes_back_as_it_was(id_: Id | None, code: int, text: str, data: Any) -> None:
    message = parse(encode_error(id_, code, text, data))

    assert isinstance(message, Failure)
    assert same_id(message.id, id_)
    assert (message.code, message.message) == (code, text)
    assert (None if message.data is None else decode(message.data)) == data


@given(values)
def test_any_value_survives_encoding_and_agrees_with_the_standard_library(value: Any) -> None:
    assert decode(encode(value)) == value
    assert json.loads(encode(value)) == value


@given(ids, objects, st.sampled_from([None, 1, "\t"]))
def test_what_is_forwarded_keeps_its_bytes(id_: Id, result: dict[str, Any], indent: int | str | None) -> None:
    """Ours: a proxy must not alter what it only passes on, not even the white space."""
    written = json.dumps(result, indent=indent).encode()
    message = parse(b'{"jsonrpc":"2.0","id":' + encode(id_) + b',"result":' + written + b"}")

    assert isinstance(message, Result)
    assert bytes(message.result) == written
    assert written in encode_result(id_, message.result)
    assert parse(encode_result(id_, message.result)) == message


def test_a_number_too_long_for_a_float_is_forwarded_digit_by_digit() -> None:
    message = parse(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"n":12345678901234567890123,"f":1.10}}')

    assert isinstance(message, Request)
    assert encode(message.params) == b'{"n":12345678901234567890123,"f":1.10}'


def test_absent_params_are_empty_and_stay_absent_when_there_are_none_to_send() -> None:
    assert parse(envelope(id=1, method="ping")) == Request(1, "ping", {})
    assert parse(envelope(method="notifications/initialized")) == Notification(
        "notifications/initialized", {}
    )
    assert json.loads(encode_request(1, "ping", None)) == {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert json.loads(encode_notification("n")) == {"jsonrpc": "2.0", "method": "n"}
    assert json.loads(encode_request(1, "m", {}))["params"] == {}


def test_an_error_without_a_readable_id_says_null() -> None:
    assert json.loads(encode_error(None, -32700, "Parse error")) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32700, "message": "Parse error"},
    }


# --- what counts as which message ------------------------------------------


def test_the_id_keeps_its_json_type() -> None:
    """Measured: mcp 1.12 ignores an answer to 0 that says "0"."""
    number, text = parse(envelope(id=0, method="m")), parse(envelope(id="0", method="m"))

    assert isinstance(number, Request)
    assert isinstance(text, Request)
    assert same_id(number.id, 0)
    assert same_id(text.id, "0")


def test_a_method_makes_it_a_request_whatever_else_is_there() -> None:
    assert isinstance(parse(envelope(id=1, method="m", result={}, vendor=[1])), Request)
    assert isinstance(parse(envelope(method="m", result={})), Notification)


def test_extra_members_are_ignored() -> None:
    assert parse(envelope(id=1, result=2, x={"y": []})) == Result(1, Raw(b"2"))


@pytest.mark.parametrize("id_", [{}, {"id": None}])
def test_a_failure_needs_no_id(id_: dict[str, None]) -> None:
    """Measured: servers that could not read the request send null, or no id at all."""
    message = parse(envelope(error={"code": -32600, "message": "Session not found"}, **id_))

    assert message == Failure(None, -32600, "Session not found", None)


def test_a_null_beside_the_real_answer_does_not_count() -> None:
    """JSON-RPC 1.0 libraries send both members."""
    assert parse(envelope(id=1, result={}, error=None)) == Result(1, Raw(b"{}"))
    assert parse(envelope(id=1, result=None, error={"code": 5, "message": "m"})) == Failure(1, 5, "m", None)


def test_a_failure_without_a_text_keeps_its_code() -> None:
    assert parse(envelope(id=1, error={"code": -32042, "data": {"a": 1}})) == Failure(
        1, -32042, "", Raw(b'{"a": 1}')
    )


@pytest.mark.parametrize(("written", "read"), [("1.0", 1), ("-0.0", 0), ("2e2", 200)])
def test_a_server_may_write_an_integer_as_a_fraction(written: str, read: int) -> None:
    """JSON Schema: 1.0 is an integer. Libraries that keep all numbers as doubles write it so; both SDKs read it."""
    asked = f'{{"jsonrpc":"2.0","method":"m","id":{written}}}'.encode()
    failed = f'{{"jsonrpc":"2.0","id":1,"error":{{"code":{written}}}}}'.encode()

    [request], [failure] = parse_many(asked), parse_many(failed)
    assert isinstance(request, Request)
    assert same_id(request.id, read)
    assert isinstance(failure, Failure)
    assert same_id(failure.code, read)
    with pytest.raises(NotJsonRpc):
        parse(asked)


def test_members_that_a_message_does_not_have_may_be_null() -> None:
    """Libraries that know one class for all messages write all its members."""
    assert parse(envelope(id=1, method="m", params=None, result=None, error=None)) == Request(1, "m", {})
    assert parse(envelope(method="m", params=None)) == Notification("m", {})
    assert parse(envelope(id=1, result={}, error=None, method=None, params=None)) == Result(1, Raw(b"{}"))


def test_a_server_may_tell_something_under_no_id_by_name() -> None:
    """JSON-RPC 1.0: the id of a notification is null. Of a client that is no message, and of a question neither."""
    told = envelope(id=None, method="notifications/progress", params={})

    assert parse_many(told) == [Notification("notifications/progress", {})]
    assert parse_many(b"[" + told + b"]") == [Notification("notifications/progress", {})]
    for body, read in ((told, parse), (envelope(id=None, method="roots/list"), parse_many)):
        with pytest.raises(NotJsonRpc):
            read(body)


@pytest.mark.parametrize(
    ("body", "id_"),
    [
        (b'{"id":7,"method":"m"}', 7),
        (b'{"jsonrpc":"1.0","id":"a","method":"m"}', "a"),
        (b'{"jsonrpc":2.0,"id":0,"method":"m"}', 0),
        (envelope(id=7, method="m", params=[1]), 7),
        (envelope(id=0, method="m", params="x"), 0),
        (envelope(id=7, method=5), 7),
        (envelope(id=7, method=None), 7),
        (envelope(id=7), 7),
        (envelope(id=7, result={}, error={"code": 1, "message": "m"}), 7),
        (envelope(id=7, error={"message": "no code"}), 7),
        (envelope(id=7, error={"code": 1.5, "message": "m"}), 7),
        (envelope(id=7, error="text"), 7),
        (envelope(id=None, method="m"), None),
        (envelope(id=True, method="m"), None),
        (envelope(id=1.0, method="m"), None),
        (envelope(id=1.0, method=5), None),
        (envelope(id=1.5, method="m"), None),
        (envelope(id={}, method="m"), None),
        (envelope(id=[1], method="m"), None),
        (envelope(result={}), None),
        (envelope(id=None, result={}), None),
        (envelope(), None),
        (b'{"jsonrpc":"2.0","method":"m","id":' + b"1" * 5000 + b"}", None),
        (b"{}", None),
        (b"[]", None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"m"}]', None),
        (b"null", None),
        (b'"text"', None),
        (b"17", None),
    ],
)
def test_json_that_is_no_message_is_refused_with_the_id_if_it_has_a_legal_one(
    body: bytes, id_: Id | None
) -> None:
    """Spec: an error echoes the request's id when it could be read; an id is a string or an integer."""
    with pytest.raises(NotJsonRpc) as refusal:
        parse(body)

    assert same_id(refusal.value.id, id_)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b'{"jsonrpc":"2.0","id":1,"method":"m"} x',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":01}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\xff"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"\xff":1}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\xed\xa0\x80"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\n"}}',
        b'{"jsonrpc":"1.0","id":1,"method":5,',
        b"event: message",
        '{"jsonrpc":"2.0","method":"m"}'.encode("utf-16"),
    ],
)
def test_what_is_not_json_is_told_apart_from_json_that_is_no_message(body: bytes) -> None:
    """Spec: -32700 for one, -32600 for the other; also when the wrong member comes before the broken end."""
    with pytest.raises(NotJson):
        parse(body)
    with pytest.raises(NotJson):
        parse_many(body)


# --- hostile and unlucky input ---------------------------------------------


@given(st.binary(max_size=80) | st.text(alphabet='{}[]":,\\ud8e+-.019ntf ', max_size=60).map(str.encode))
def test_any_bytes_are_a_message_or_are_refused(body: bytes) -> None:
    for read in (parse, parse_many, decode, decode_members):
        try:
            read(body)
        except (NotJson, NotJsonRpc):
            continue


@given(values)
def test_any_json_is_a_message_or_is_refused(value: Any) -> None:
    with pytest.raises(NotJsonRpc):
        parse(encode(value))


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_nesting_without_end_is_refused(opening: bytes) -> None:
    for body in (
        opening * 200_000,
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":' + opening * 200_000,
        b'{"id":1,"method":"m","params":{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}}",
    ):
        with pytest.raises(NotJson):
            parse(body)
        with pytest.raises(NotJson):
            decode(body)


@pytest.mark.parametrize("number", [b"1e999", b"1" * 5000])
def test_a_number_beyond_python_is_forwarded_but_not_opened(number: bytes) -> None:
    message = parse(b'{"jsonrpc":"2.0","id":1,"result":' + number + b"}")

    assert isinstance(message, Result)
    assert bytes(message.result) == number
    with pytest.raises(NotJson):
        decode(message.result)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (rb'"cut \ud83d"', "cut \ufffd"),
        (rb'"\ude00\ud83d\ud83d\ude00"', "\ufffd\ufffd\U0001f600"),
        (rb'"\uD83D\ude00 \uDBFF"', "\U0001f600 \ufffd"),
        (rb'"\\ud83d \ud83d \\\ud83d"', "\\ud83d \ufffd \\\ufffd"),
        (rb'"\ud83d\n\"\ud83d\u0041"', '\ufffd\n"\ufffdA'),
    ],
)
def test_half_a_character_does_not_lose_the_message(written: bytes, read: str) -> None:
    r"""A JavaScript server that cuts a text inside an emoji sends `\ud83d`; JavaScript clients read it."""
    message = parse(b'{"jsonrpc":"2.0","id":1,"result":' + written + b"}")

    assert isinstance(message, Result)
    assert decode(message.result) == read
    assert decode(written) == read


@given(st.text(alphabet=st.characters(exclude_categories=[]), max_size=20))
def test_any_javascript_string_can_be_read(text: str) -> None:
    """`json.dumps` writes lone surrogates as JavaScript does."""
    expected = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    assert decode(json.dumps(text).encode()).replace("\ufffd", "") == expected.replace("\ufffd", "")


def test_a_body_of_nothing_but_half_characters_is_refused() -> None:
    with pytest.raises(NotJson):
        parse(b'{"jsonrpc":"2.0","id":1,"result":"' + rb"\ud83d" * 5000 + b'"}')


@pytest.mark.parametrize(
    "broken", [rb'"\ud83d', rb'"\ud8"', rb'"\ud83g \ud83d"', b'"\\ud83d\\', rb'"\ud83d" x']
)
def test_mending_half_characters_makes_nothing_else_legal(broken: bytes) -> None:
    with pytest.raises(NotJson):
        decode(broken)


def test_a_reused_buffer_does_not_reach_into_the_message() -> None:
    buffer = bytearray(envelope(id=1, result={"a": "before"}))
    for view in (buffer, memoryview(buffer)):
        message = parse(view)
        [same] = parse_many(view)
        before = bytes(buffer)
        buffer[:] = b"x" * len(buffer)

        assert isinstance(message, Result)
        assert decode(message.result) == {"a": "before"}
        assert same == message
        buffer[:] = before


# --- batches and parts -----------------------------------------------------


@given(st.lists(st.tuples(ids, methods, objects), min_size=1, max_size=4), st.sampled_from([b"", b" \r\n\t"]))
def test_a_batch_is_read_in_order(requests: list[tuple[Id, str, dict[str, Any]]], blank: bytes) -> None:
    """Spec: 2025-03-26 servers may send batches; no other revision has them."""
    written = [encode_request(*request) for request in requests]

    assert parse_many(blank + b"[" + b", ".join(written) + b"]") == [parse(one) for one in written]
    assert parse_many(blank + written[0]) == [parse(written[0])]


@pytest.mark.parametrize(
    ("batch", "id_"),
    [(b"[]", None), (b"[1]", None), (b'[[{"jsonrpc":"2.0","method":"m"}]]', None), (b'[{"id":3}]', 3)],
)
def test_a_batch_of_no_messages_is_refused(batch: bytes, id_: Id | None) -> None:
    with pytest.raises(NotJsonRpc) as refusal:
        parse_many(batch)

    assert refusal.value.id == id_


def test_members_of_an_object_are_taken_apart_unread() -> None:
    assert decode_members(b'{"a":{ "b":1 },"c":1.0}') == {"a": Raw(b'{ "b":1 }'), "c": Raw(b"1.0")}
    assert decode_members(Raw(b"{}")) == {}
    for other in (b"[]", b"null", b'"{}"', b"1"):
        assert decode_members(other) is None
    with pytest.raises(NotJson):
        decode_members(b"{")


def test_messages_cannot_be_changed() -> None:
    message = parse(envelope(id=1, method="m"))

    with pytest.raises(AttributeError):
        message.method = "other"  # type: ignore[misc, union-attr]


def test_raw_is_the_type_that_the_decoder_gives() -> None:
    assert Raw is msgspec.Raw


@pytest.mark.parametrize(
    "body", [b'{"jsonrpc":"2.0","id":1,"result":{}}', b'[{"jsonrpc":"2.0","id":1,"result":{}}]']
)
def test_a_byte_order_mark_is_passed_over_once(body: bytes) -> None:
    """RFC 8259, 8.1: a parser may; a second one is a character like any other. Clients must not send any."""
    mark = b"\xef\xbb\xbf"
    assert parse_many(mark + body) == parse_many(body)
    with pytest.raises(NotJson):
        parse_many(mark + mark + body)
    with pytest.raises(NotJson):
        parse(mark + body)


def test_only_the_nulls_of_the_names_go_and_what_they_are_taken_from_stays() -> None:
    params = decode_members(b'{"a" : null , "b":null,"c":"null","d":[null]}') or {}

    assert list(without_nulls(params, ("a", "c", "d", "e"))) == ["b", "c", "d"]
    assert list(params) == ["a", "b", "c", "d"]
    assert without_nulls(params, ("c", "e")) is params
