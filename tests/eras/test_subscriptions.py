"""Who may hear what of `subscriptions/listen`."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types.methods import parse_server_notification, validate_server_result

from gateway.eras.notifications import CHANGES
from gateway.eras.subscriptions import (
    ACKNOWLEDGED,
    METHOD,
    UPDATED,
    Change,
    Heard,
    Hearing,
    Interest,
    acknowledgement,
    change_of,
    closing_result,
    offered,
    parse_interest,
)
from gateway.errors import InvalidParams
from gateway.wire.jsonrpc import Notification, Params, Raw, decode, encode

MODERN = "2026-07-28"
ID = "io.modelcontextprotocol/subscriptionId"
LISTS = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
}
ALL = {name: {"listChanged": True} for name in ("tools", "prompts", "resources")}

uris = st.text(alphabet="ab/?#:%é A", min_size=1, max_size=12)
filters = st.fixed_dictionaries(
    {},
    optional={
        **{member: st.booleans() for member in LISTS},
        "resourceSubscriptions": st.lists(uris, max_size=4),
        "taskIds": st.just(["t"]),
    },
)
ids = st.one_of(st.integers(), st.text(max_size=8))


def raw(**members: Any) -> Params:
    return {name: Raw(encode(value)) for name, value in members.items()}


def told(method: str, **params: Any) -> Change:
    change = change_of(Notification(method, raw(**params)))
    assert change is not None
    return change


def heard(hearing: Hearing, change: Change) -> list[tuple[str, str | None]]:
    return [(each.method, each.uri) for each in hearing.admit(change)]


def plain(each: Heard) -> dict[str, Any]:
    """As it goes out; fails unless the official models can read it."""
    params: dict[str, Any] = decode(encode(each.params))
    parse_server_notification(each.method, MODERN, params)
    return params


# --- what is wanted ----------------------------------------------------------------------------


@given(filters)
def test_a_filter_is_read_as_it_is_written(written: dict[str, Any]) -> None:
    wanted = parse_interest(raw(notifications=written), most_uris=9)

    assert wanted.lists == {member for member in LISTS if written.get(member)}
    assert list(wanted.uris) == list(dict.fromkeys(written.get("resourceSubscriptions", [])))
    assert bool(wanted) == bool(wanted.lists or wanted.uris)
    known = {name: value for name, value in written.items() if name in LISTS and value}
    assert wanted.as_filter() == known | ({"resourceSubscriptions": list(wanted.uris)} if wanted.uris else {})


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"notifications": None},
        {"notifications": []},
        {"notifications": "all"},
        {"notifications": {"toolsListChanged": "yes"}},
        {"notifications": {"promptsListChanged": 1}},
        {"notifications": {"resourceSubscriptions": "file:///a"}},
        {"notifications": {"resourceSubscriptions": ["file:///a", 1]}},
        {"notifications": {"resourceSubscriptions": {"file:///a": True}}},
        {"notifications": {"resourceSubscriptions": ["a:1", "a:2", "a:3"]}},
    ],
)
def test_a_malformed_filter_is_refused(params: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams):
        parse_interest(raw(**params), most_uris=2)


def test_the_same_resource_twice_is_one() -> None:
    wanted = parse_interest(raw(notifications={"resourceSubscriptions": ["a:1", "a:1"]}), most_uris=1)

    assert wanted.uris == ("a:1",)


# --- what is promised --------------------------------------------------------------------------


@pytest.mark.requirement("R39")
@pytest.mark.parametrize(
    ("capabilities", "lists", "resources"),
    [
        (ALL, [*LISTS], ["a:1"]),
        ({}, [], []),
        ({"tools": {}, "prompts": {"listChanged": False}, "resources": {}}, [], ["a:1"]),
        ({"tools": {"listChanged": 1}, "prompts": None, "resources": None}, [], []),
        ({"tools": True, "resources": {"subscribe": False}}, [], ["a:1"]),
        ({"prompts": {"listChanged": True}}, ["promptsListChanged"], []),
    ],
)
def test_a_server_is_asked_for_what_it_can_tell(
    capabilities: dict[str, Any], lists: list[str], resources: list[str]
) -> None:
    """Python servers say `subscribe: false` whatever they can do, so resources are tried one by one."""
    offer = offered(Interest(frozenset(LISTS), ("a:1",)), capabilities)

    assert offer == Interest(frozenset(lists), tuple(resources))


@given(ids, filters)
@pytest.mark.requirement("R39")
def test_an_acknowledgement_names_the_subscription_in_its_own_type(id_: int | str, written: Any) -> None:
    promised = parse_interest(raw(notifications=written), most_uris=9)

    params = decode(encode(acknowledgement(id_, promised)))

    parse_server_notification(ACKNOWLEDGED, MODERN, params)
    assert params == {"_meta": {ID: id_}, "notifications": promised.as_filter()}
    assert type(params["_meta"][ID]) is type(id_)


@pytest.mark.requirement("R41")
@pytest.mark.parametrize("id_", [0, 1, "", "listen-1", 2**53 + 1])
def test_a_graceful_end_is_a_result_that_names_the_subscription(id_: int | str) -> None:
    info = {"name": "s", "version": "1"}

    result = decode(encode(closing_result(id_, info)))

    validate_server_result(METHOD, MODERN, result)
    assert result == {
        "resultType": "complete",
        "_meta": {ID: id_, "io.modelcontextprotocol/serverInfo": info},
    }
    assert closing_result(id_, None)["_meta"] == {ID: id_}


# --- what is heard -----------------------------------------------------------------------------

notifications = st.sampled_from(
    [*LISTS.values(), UPDATED, "notifications/progress", "notifications/message", "notifications/cancelled"]
)


@given(ids, filters, notifications, uris)
@pytest.mark.requirement("R40")
def test_nobody_hears_what_was_not_promised(id_: int | str, written: Any, method: str, uri: str) -> None:
    promised = parse_interest(raw(notifications=written), most_uris=9)
    change = change_of(Notification(method, raw(uri=uri)))

    if change is None:
        assert method not in CHANGES
        return
    for each in Hearing(id_, promised).admit(change):
        params = plain(each)
        assert params["_meta"] == {ID: id_}
        if each.method == UPDATED:
            assert promised.uris
            assert params["uri"] in (uri, *promised.uris)
        else:
            assert each.method in {LISTS[member] for member in promised.lists}


@given(ids, filters)
def test_after_a_silence_everything_promised_is_told_and_no_more(id_: int | str, written: Any) -> None:
    promised = parse_interest(raw(notifications=written), most_uris=9)

    everything = list(Hearing(id_, promised).everything())

    assert [plain(each)["_meta"] for each in everything] == [{ID: id_}] * len(everything)
    assert {each.method for each in everything if each.uri is None} == {
        LISTS[member] for member in promised.lists
    }
    assert [each.uri for each in everything if each.uri is not None] == list(promised.uris)


@given(uris, st.lists(uris, max_size=3))
def test_who_subscribed_to_a_resource_hears_of_it_under_that_name(uri: str, others: list[str]) -> None:
    hearing = Hearing(1, Interest(uris=tuple(dict.fromkeys([uri, *others]))))

    assert (UPDATED, uri) in heard(hearing, told(UPDATED, uri=uri))


@pytest.mark.parametrize(
    ("subscribed", "said"),
    [
        ("HTTP://Example.com", "http://example.com/"),
        ("http://example.com/", "http://example.com"),
        ("note://é/ü", "note://%C3%A9/%C3%BC"),
        ("test://Static/A b", "test://Static/A%20b"),
        ("TEST://x", "test://x"),
        ('x://h/{y}|z^`"<>', "x://h/%7By%7D|z^%60%22%3C%3E"),
    ],
)
def test_a_uri_that_came_back_in_another_spelling_is_still_the_same(subscribed: str, said: str) -> None:
    """Pydantic's AnyUrl sends back the right-hand form of what it was sent; seen with the Python SDK."""
    assert heard(Hearing(1, Interest(uris=(subscribed,))), told(UPDATED, uri=said)) == [(UPDATED, subscribed)]


@pytest.mark.requirement("R40")
@pytest.mark.parametrize(
    ("subscribed", "said"),
    [
        ("file:///docs", "file:///docs/a.md"),
        ("file:///docs/", "file:///docs/a/b.md"),
        ("db://rows", "db://rows?page=2"),
        ("db://rows", "db://rows#7"),
        ("http://h", "http://H/x"),
    ],
)
def test_a_part_of_what_was_subscribed_to_is_told_under_its_own_name(subscribed: str, said: str) -> None:
    """server/resources: "this might be a sub-resource of the one that the client actually subscribed to"."""
    assert heard(Hearing(1, Interest(uris=(subscribed,))), told(UPDATED, uri=said)) == [(UPDATED, said)]


@pytest.mark.parametrize(
    ("subscribed", "said"),
    [
        ("file:///docs", "file:///docs2"),
        ("file:///docs/a", "file:///docs"),
        ("custom://HOST", "custom://host"),
        ("file:///a%2Fb", "file:///a/b"),
    ],
)
def test_another_resource_is_not_told(subscribed: str, said: str) -> None:
    assert heard(Hearing(1, Interest(uris=(subscribed,))), told(UPDATED, uri=said)) == []


def test_two_spellings_of_one_resource_are_two_subscriptions() -> None:
    hearing = Hearing(1, Interest(uris=("http://h", "http://h/")))

    assert heard(hearing, told(UPDATED, uri="http://h/")) == [(UPDATED, "http://h"), (UPDATED, "http://h/")]


def test_what_the_server_adds_is_kept_and_its_meta_gets_the_id() -> None:
    change = told(UPDATED, uri="a:1", title="T", extra=None, _meta={"com.example/x": 1, ID: "forged"})
    (each,) = Hearing(0, Interest(uris=("a:1",))).admit(change)

    assert plain(each) == {"uri": "a:1", "title": "T", "_meta": {"com.example/x": 1, ID: 0}}


@pytest.mark.parametrize("params", [{}, {"uri": None}, {"uri": 5}])
def test_an_update_of_nothing_is_no_change(params: dict[str, Any]) -> None:
    assert change_of(Notification(UPDATED, raw(**params))) is None


def test_meta_that_is_no_object_is_dropped() -> None:
    (each,) = Hearing(1, Interest(frozenset({"toolsListChanged"}))).admit(
        told(LISTS["toolsListChanged"], _meta="x")
    )

    assert plain(each) == {"_meta": {ID: 1}}


def test_each_change_says_which_lists_are_out_of_date() -> None:
    assert told(LISTS["toolsListChanged"]).lists == ("tools/list",)
    assert told(LISTS["promptsListChanged"]).lists == ("prompts/list",)
    assert told(LISTS["resourcesListChanged"]).lists == ("resources/list", "resources/templates/list")
    assert told(UPDATED, uri="a:1").lists == ()
