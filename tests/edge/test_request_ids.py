"""The id of a request: a proxy's if it gave a sane one, else ours; on whatever answers it."""

import re

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from gateway.edge.cors import note_page
from gateway.edge.request_ids import id_of, note_id, sign

HEADER = "Holdfast-Request-Id"


@pytest.mark.parametrize("given", ["7f3c0e9a-52d4-4a0e-9f0b-0d4d5a3c1b2e", "0123abcd", "A_b-9" * 12])
def test_what_a_proxy_called_it_is_kept(given: str) -> None:
    """Ours: its log and ours speak of the same request."""
    request = make_mocked_request("POST", "/mcp", headers={"X-Request-Id": given})
    note_id(request)
    assert id_of(request) == given


@pytest.mark.parametrize(
    "given", [None, "", "short", "x" * 65, "two words", 'a"b,c=ddd', "a\x1b[31mredred", "ünïcödes"]
)
def test_what_is_no_id_is_not(given: str | None) -> None:
    """Ours: it goes into a log line and onto an answer."""
    headers = {} if given is None else {"X-Request-Id": given}
    request = make_mocked_request("POST", "/mcp", headers=headers)
    note_id(request)
    assert re.fullmatch("[0-9a-f]{16}", id_of(request) or "")


def test_each_request_has_its_own() -> None:
    """Ours."""
    requests = [make_mocked_request("POST", "/mcp") for _ in range(100)]
    for request in requests:
        note_id(request)
    assert len({id_of(request) for request in requests}) == 100


def test_an_answer_has_one_whoever_made_it() -> None:
    """Ours: another gateway behind us has written its own."""
    request = make_mocked_request("POST", "/mcp")
    note_id(request)
    response = web.Response(headers={"holdfast-request-id": "inner"})
    sign(request, response)
    assert response.headers.getall(HEADER) == [id_of(request)]


def test_a_page_may_read_it() -> None:
    """Fetch: only headers that are named are shown to a page of another origin."""
    request = make_mocked_request("POST", "/mcp", headers={"Origin": "https://app.example"})
    note_page(request, "https://app.example")
    note_id(request)
    response = web.Response()
    sign(request, response)
    assert HEADER in response.headers["Access-Control-Expose-Headers"]


def test_what_was_given_none_gets_none() -> None:
    """Ours."""
    response = web.Response()
    sign(make_mocked_request("POST", "/mcp"), response)
    assert HEADER not in response.headers
