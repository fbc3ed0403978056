"""A client's request: whose sessions it may use, and which call it is."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.errors import InvalidParams
from gateway.relay.request import ClientRequest
from gateway.wire.jsonrpc import Raw, decode, encode
from tests.support.requests import ADA, BOB, tool_call


def with_arguments(text: bytes | None) -> ClientRequest:
    request = tool_call()
    params = {name: value for name, value in request.params.items() if name != "arguments"}
    return replace(request, params=params if text is None else params | {"arguments": Raw(text)})


@pytest.mark.parametrize("text", [b'{ "b":1.0,"a":"\\u00e9" }', '{"a":"é","b":1}'.encode()])
def test_the_same_arguments_have_the_same_digest_however_they_are_written(text: bytes) -> None:
    assert (
        with_arguments(text).arguments_digest()
        == with_arguments('{"a":"é", "b":1e0}'.encode()).arguments_digest()
    )


def test_other_arguments_have_another_digest() -> None:
    texts = [None, b"null", b"{}", b'{"a":1}', b'{"a":"1"}', b'{"a":[1]}', b'{"a":1e999}', b'{"a":2e999}']

    assert len({with_arguments(text).arguments_digest() for text in texts}) == len(texts)


def test_a_session_is_never_anothers() -> None:
    request = tool_call()
    others = [
        replace(request, principal=BOB),
        replace(request, principal=replace_authorization("Bearer newer")),
        replace(request, capabilities={}),
        replace(request, capabilities={"elicitation": {"url": {}}}),
        replace(request, client_info={"name": "another", "version": "1"}),
    ]

    assert len({one.caller() for one in (request, *others)}) == 1 + len(others)


def replace_authorization(credential: str) -> Any:
    return type(ADA)(ADA.id, ADA.material, is_authenticated=True, authorization=credential)


def test_what_means_the_same_may_use_the_same_session() -> None:
    request = replace(tool_call(), capabilities={"elicitation": {}, "sampling": None, "roots": True})
    same = replace(
        request, id=9, params={}, target="other", capabilities={"elicitation": {"form": {}}, "roots": {}}
    )

    assert request.caller() == same.caller()


def test_no_client_info_is_as_good_as_an_empty_one() -> None:
    request = tool_call()

    assert request.caller() == replace(request, client_info={}).caller()


def test_credentials_are_not_shown() -> None:
    request = tool_call()

    shown = f"{request!r} {request.principal!r} {request.caller()!r}"
    assert not [secret for secret in ("s3cret", "ada's") if secret in shown]


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"x": value}
    return value


@pytest.mark.parametrize("levels", [33, 500, 5000])
def test_a_declaration_nested_beyond_reason_is_the_clients_mistake(levels: int) -> None:
    for request in (
        replace(tool_call(), capabilities=nested(levels)),
        replace(tool_call(), client_info=nested(levels)),
    ):
        with pytest.raises(InvalidParams):
            request.caller()


json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(["elicitation", "sampling", "roots", "x"]), json))
def test_whatever_a_client_declares_it_is_someone(capabilities: dict[str, Any]) -> None:
    caller = replace(tool_call(), capabilities=capabilities).caller()

    assert isinstance(decode(caller.capabilities.encode()), dict)
    assert encode(decode(caller.client_info.encode())) == b"{}"


@pytest.mark.parametrize("name", ["client_info", "capabilities"])
def test_what_a_client_says_of_itself_is_bounded(name: str) -> None:
    """Ours: it is kept, and each new one is another caller: a thousand of them must not fill the memory."""
    fits, too_long = ({"name": "x" * size, "version": "1"} for size in (65_000, 66_000))
    declared: dict[str, Any] = {"client_info": None, "capabilities": {}}
    assert replace(tool_call(), **{**declared, name: fits}).caller().principal == tool_call().principal.id
    with pytest.raises(InvalidParams, match="longer"):
        replace(tool_call(), **{**declared, name: too_long}).caller()
