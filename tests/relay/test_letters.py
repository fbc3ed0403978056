"""Letters as bytes and back: whole, and without what must not travel."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import CallLost, Overloaded, StateRejected, UpstreamUnauthorized
from gateway.relay.letters import (
    Accepted,
    Carry,
    Left,
    Letter,
    LetterInvalid,
    Said,
    Told,
    Unknown,
    decode,
    encode,
    kind_of,
    open_reply,
    open_round,
    pack_reply,
    pack_request,
)
from gateway.relay.listener import Reply
from gateway.relay.request import Principal
from gateway.telemetry.names import LetterKind, Outcome
from gateway.wire import jsonrpc
from gateway.wire.jsonrpc import Raw
from tests.support.couriers import request

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.integers(0, 2**63 - 1)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
raws = json_values.map(lambda value: Raw(jsonrpc.encode(value)))
members = st.dictionaries(names, raws, max_size=4)
letters = st.one_of(
    st.builds(Carry, names, numbers, names, names, numbers, names, st.binary(max_size=50)),
    st.builds(Accepted, numbers),
    st.builds(Told, numbers, numbers, st.lists(st.binary(max_size=20), max_size=4)),
    st.builds(Said, numbers, st.binary(max_size=50)),
    st.builds(Left, names, numbers),
    st.builds(Unknown, numbers),
)
OTHER = Principal(id="the exchange's own", material=b"", is_authenticated=True)


def _plain(raw: dict[str, Raw]) -> dict[str, bytes]:
    return {name: bytes(value) for name, value in raw.items()}


@given(letters)
def test_a_letter_comes_back_as_it_was(letter: Letter) -> None:
    assert decode(encode(letter)) == letter
    assert kind_of(letter) in LetterKind


@given(st.binary(max_size=200))
def test_what_is_no_letter_is_refused_and_nothing_worse(data: bytes) -> None:
    with contextlib.suppress(LetterInvalid):
        decode(data)


@given(letters, st.integers(1, 60))
def test_a_letter_that_was_cut_is_refused(letter: Letter, cut: int) -> None:
    with pytest.raises(LetterInvalid):
        decode(encode(letter)[:-cut])


ids = st.one_of(st.integers(), names, st.just(2**70), st.just(0), st.just(""))


@given(
    id=ids,
    params=members,
    target=names,
    capabilities=st.dictionaries(names, json_values, max_size=3),
    client_info=st.none() | st.dictionaries(names, json_values, max_size=3),
    log_level=st.none() | st.sampled_from(["debug", "error"]),
    progress_token=st.none() | ids,
)
def test_a_request_comes_back_as_it_was_sent_and_as_the_exchange_s_own(**given: Any) -> None:
    sent = request(**given)
    params = {name: value for name, value in sent.params.items() if name != "requestState"}
    carry = Carry("here", 1, "crm", "x", 2, "d", pack_request(sent))
    carried = open_round(carry)
    got = carried.request(OTHER)
    assert (carried.sender, carried.upstream, carried.exchange, carried.round, carried.digest) == (
        "here",
        "crm",
        "x",
        2,
        "d",
    )
    assert got.principal is OTHER
    assert _plain(got.params) == _plain(params)
    for name in ("id", "method", "target", "capabilities", "client_info", "log_level", "progress_token"):
        assert getattr(got, name) == getattr(sent, name)
        assert type(getattr(got, name)) is type(getattr(sent, name))


def test_neither_a_credential_nor_the_ticket_travels() -> None:
    packed = pack_request(request())
    assert b"hunter2" not in packed
    assert b"the ticket" not in packed
    assert b"bob" not in packed


def test_arguments_are_the_bytes_that_the_client_wrote() -> None:
    """A proxy must not alter what it forwards: 1.0 is not 1, and white space is the client's business."""
    carried = open_round(Carry("here", 1, "crm", "x", 1, "d", pack_request(request())))
    assert bytes(carried.request(OTHER).params["arguments"]) == b'{"n": 1.0}'


@given(result=members, status=st.integers(200, 599), headers=st.dictionaries(names, names, max_size=2))
def test_a_result_comes_back_as_it_was(result: dict[str, Raw], status: int, headers: dict[str, str]) -> None:
    reply = Reply(Outcome.COMPLETE, result=result, status=status, headers=headers)
    got = open_reply(pack_reply(reply))
    assert got.result is not None
    assert _plain(dict(got.result)) == _plain(result)
    assert (got.outcome, got.error, got.status, got.headers) == (Outcome.COMPLETE, None, status, headers)


def test_a_result_made_of_values_comes_back_as_the_same_json() -> None:
    result = {
        "resultType": "input_required",
        "inputRequests": {"day": {"n": 10**30}},
        "_meta": Raw(b'{"a": 1}'),
    }
    got = open_reply(pack_reply(Reply(Outcome.INPUT_REQUIRED, result=result)))
    assert jsonrpc.encode(got.result) == jsonrpc.encode(result)


@pytest.mark.parametrize(
    "error",
    [
        StateRejected("x"),
        CallLost("owner_lost"),
        Overloaded("x"),
        UpstreamUnauthorized(401, 'Bearer realm="x"'),
    ],
)
def test_an_error_comes_back_as_it_was(error: Any) -> None:
    reply = Reply.of(error)
    got = open_reply(pack_reply(reply))
    assert reply.error is not None
    assert got.error is not None
    assert (got.error.code, got.error.message) == (reply.error.code, reply.error.message)
    assert jsonrpc.encode(got.error.data) == jsonrpc.encode(reply.error.data)
    assert (got.outcome, got.status, got.headers) == (reply.outcome, reply.status, reply.headers)
    assert (got.reason, got.detail, got.result) == (reply.reason, reply.detail, None)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b"null", b"[1", b'["lost",null,null,200,{},null]', b"\xff"]
)
def test_what_is_no_reply_and_no_request_is_refused(data: bytes) -> None:
    with pytest.raises(LetterInvalid):
        open_reply(data)
    with pytest.raises(LetterInvalid):
        open_round(Carry("here", 1, "crm", "x", 1, "d", data))


def test_a_credential_travels_only_where_callers_refresh_theirs() -> None:
    """Ours: the replica that has the call must show the server the present one; else it has it already."""
    ann = Principal("p", b"ann", is_authenticated=True, authorization="Bearer new", outlives_credential=True)
    carried = open_round(Carry("here", 1, "crm", "x", 1, "d", pack_request(request(principal=ann))))
    before = Principal("p", b"ann", is_authenticated=True, authorization="Bearer old")
    assert carried.request(before).principal.authorization == "Bearer new"
    assert carried.request(before).principal.id == "p"
    plain = Principal("p", b"hunter3", is_authenticated=True, authorization="Bearer hunter3")
    assert b"hunter3" not in pack_request(request(principal=plain))
