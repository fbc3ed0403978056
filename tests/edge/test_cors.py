"""What a browser is told, and what it is told only for pages that may call."""

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st

from gateway.edge.cors import is_question, note_page, permission, share


def headers_for(requested: list[str]) -> list[str]:
    answer = permission(requested, verbs="POST")
    return [name.strip().lower() for name in answer.headers["Access-Control-Allow-Headers"].split(",")]


def test_every_header_of_either_era_may_be_sent() -> None:
    """Ours: a page that asks for none of them by name is told all the same."""
    assert {
        "authorization",
        "content-type",
        "last-event-id",
        "mcp-protocol-version",
        "mcp-session-id",
        "mcp-method",
        "mcp-name",
    } <= set(headers_for([]))


def test_what_the_page_asks_for_is_given_once_and_only_if_it_is_a_name() -> None:
    """Ours: `Mcp-Param-*` has as many names as there are tools; what is no header name is not written back."""
    told = headers_for(["Mcp-Param-Region, MCP-PARAM-REGION,mcp-method", "x y, a:b, traceparent, \x7f"])
    assert told.count("mcp-param-region") == told.count("mcp-method") == told.count("traceparent") == 1
    assert not {"x y", "a:b", "\x7f", ""} & set(told)


@given(st.lists(st.text(), max_size=5))
def test_no_header_makes_it_stumble(requested: list[str]) -> None:
    """Ours: bad input costs nothing, and no line break gets out."""
    told = permission(requested, verbs="POST").headers["Access-Control-Allow-Headers"]
    assert "\n" not in told
    assert "\r" not in told


def test_a_long_list_is_cut() -> None:
    """Ours: the answer does not grow with the question."""
    assert len(headers_for([", ".join(f"x-{number}" for number in range(1000))])) < 100


@pytest.mark.parametrize(("verb", "asks"), [("OPTIONS", True), ("POST", False)])
def test_a_browser_s_question_is_known_by_its_verb(verb: str, *, asks: bool) -> None:
    """Fetch: a preflight is an OPTIONS with Access-Control-Request-Method."""
    request = make_mocked_request(verb, "/mcp", headers={"Access-Control-Request-Method": "POST"})
    assert is_question(request) is asks
    assert not is_question(make_mocked_request("OPTIONS", "/mcp"))


def test_nothing_is_added_for_who_is_no_page() -> None:
    """Ours: clients without Origin get what they always got."""
    response = web.Response()
    before = dict(response.headers)
    share(make_mocked_request("POST", "/mcp"), response)
    assert dict(response.headers) == before


@pytest.mark.parametrize(
    ("vary", "then"),
    [
        (None, "Origin"),
        ("Accept-Encoding", "Accept-Encoding, Origin"),
        ("accept, ORIGIN", "accept, ORIGIN"),
        ("*", "*"),
    ],
)
def test_a_cache_is_told_that_the_answer_is_for_this_origin(vary: str | None, then: str) -> None:
    """Fetch: `Vary: Origin`, beside what the upstream says; its own rules are replaced by ours."""
    request = make_mocked_request("POST", "/mcp")
    note_page(request, "https://app.example")
    own = {"Access-Control-Allow-Origin": "*", "access-control-allow-credentials": "true"}
    response = web.Response(headers={**own, **({} if vary is None else {"Vary": vary})})

    share(request, response)

    assert response.headers.getall("Access-Control-Allow-Origin") == ["https://app.example"]
    assert "Access-Control-Allow-Credentials" not in response.headers
    assert "Mcp-Session-Id" in response.headers["Access-Control-Expose-Headers"]
    assert response.headers.getall("Vary") == [then]
