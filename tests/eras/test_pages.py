"""Where a server may send a user, and what becomes of a question that would send them elsewhere."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.eras.pages import REFUSAL, has_unsafe_page, is_safe, without_unsafe_pages
from gateway.eras.vocabulary import ClientCalled, SendRefusal, UpstreamAsked
from gateway.wire.jsonrpc import Failure, Raw, encode
from tests.support.asking import EVERYTHING, Conversation, ask, form, page, pages_required

SAFE = [
    "https://bank.example",
    "https://bank.example/login?next=%2F#top",
    "https://bank.example:8443/é",
    "HTTPS://Bank.Example/",
    "https://xn--bcher-kva.example/",
    "https://[2001:db8::1]/",
    "http://localhost:8080/x",
    "http://app.localhost/",
    "http://127.0.0.1/x",
    "http://127.9.9.9:80/",
    "http://[::1]:3000/",
]
UNSAFE = [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "javascript://https://bank.example/%0aalert(1)",
    "data:text/html,x",
    "file:///etc/passwd",
    "vbscript:x",
    "ftp://bank.example/",
    "http://bank.example/",
    "http://localhost.evil.example/",
    "http://127.0.0.1.evil.example/",
    "https://bank.example@evil.example/",
    "https://user:pass@bank.example/",
    "https://bank.example\\@evil.example/",
    "https://bank.example\\.evil.example/",
    " https://bank.example/",
    "https://bank.example/ x",
    "https://bank.example/\r\nX: y",
    "java\tscript:alert(1)",
    "https://bank.example/\x00",
    "https://bank.example/\u202egpj.exe",
    "https://bank\u200b.example/",
    "https://b\u0430nk.example/",
    "https://bank.example:x/",
    "https://bank.example:99999/",
    "https://[::1/",
    "https:///bank.example",
    "https:bank.example",
    "https://",
    "//bank.example/",
    "/login",
    "",
    "https://" + "a" * 9000,
    None,
    7,
    ["https://bank.example"],
]


@pytest.mark.parametrize("url", SAFE)
def test_https_anywhere_and_http_on_this_machine_are_shown(url: str) -> None:
    """Ours: what a careful user would open."""
    assert is_safe(url)
    assert not has_unsafe_page(page(1, url))


@pytest.mark.requirement("R57")
@pytest.mark.parametrize("url", UNSAFE)
def test_everything_else_is_not(url: Any) -> None:
    """Ours: it would run something, read something, or look like something that it is not."""
    assert not is_safe(url)


@given(st.text())
def test_no_text_at_all_breaks_the_check(url: str) -> None:
    """Ours: the address is the server's word."""
    assert is_safe(url) in (True, False)


@pytest.mark.parametrize("mode", [{"mode": "url"}, {}, {"mode": "form"}, {"mode": "page"}])
def test_an_unsafe_page_is_refused_upstream_and_never_shown(mode: dict[str, Any]) -> None:
    """Ours: whatever the mode says, since clients may look at `url` alone."""
    talk = Conversation()
    talk.exchange.receive(ClientCalled(EVERYTHING, {}))
    asked = ask(3, "elicitation/create", message="?", url="javascript:alert(1)", **mode)
    (refusal,) = talk.exchange.receive(UpstreamAsked(asked))
    assert isinstance(refusal, SendRefusal)
    assert (refusal.code, refusal.message) == (-32602, REFUSAL)
    assert talk.exchange.open_asks == {}


def test_a_form_and_a_page_without_address_are_judged_elsewhere() -> None:
    """Ours: this module speaks of addresses only."""
    assert not has_unsafe_page(form(1, "a"))
    assert not has_unsafe_page(ask(1, "elicitation/create", message="?", url=None))
    assert has_unsafe_page(ask(1, "elicitation/create", message="?", url=Raw(b"1e999")))


def test_a_failure_that_lists_an_unsafe_page_is_told_without_it() -> None:
    """Ours: the -32042 error carries the pages in its data, which the client would get."""
    event = pages_required("https://bank.example", "javascript:alert(1)")
    told = without_unsafe_pages(event.failure)
    assert told == Failure(1, -32603, REFUSAL, None)


def test_other_failures_stay_as_they_are() -> None:
    """Ours: only -32042 sends users anywhere."""
    good = pages_required("https://bank.example").failure
    other = Failure(1, -32603, "no", Raw(encode({"elicitations": [{"url": "javascript:x"}]})))
    assert without_unsafe_pages(good) is good
    assert without_unsafe_pages(other) is other
