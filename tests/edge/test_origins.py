"""Who may talk to a server on this machine, and to one on a network."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.edge.origins import is_loopback, origin_allowed


def local(
    origin: str | None, host: str | None, *, origins: tuple[str, ...] = (), hosts: tuple[str, ...] = ()
) -> bool:
    return origin_allowed(origin, host, listen_host="127.0.0.1", allowed_origins=origins, allowed_hosts=hosts)


def public(
    origin: str | None, host: str | None, *, origins: tuple[str, ...] = (), hosts: tuple[str, ...] = ()
) -> bool:
    return origin_allowed(origin, host, listen_host="0.0.0.0", allowed_origins=origins, allowed_hosts=hosts)


@pytest.mark.parametrize(
    "host", ["localhost:8080", "127.0.0.1:8080", "[::1]:8080", "localhost", "127.9.9.9", "LOCALHOST:1"]
)
def test_a_loopback_server_serves_loopback_names(host: str) -> None:
    assert local(None, host)
    assert local(f"http://{host}", host)
    assert local("http://localhost:6274", host), "a page of another local server, such as the inspector"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example.com",
        "evil.example.com:8080",
        "localhost.evil.com",
        "127.0.0.1.evil.com",
        "10.0.0.1",
        "",
        None,
        "user@localhost",
        "localhost/path",
        "localhost:port",
        "[::1",
        "0.0.0.0:8080",
    ],
)
def test_a_loopback_server_serves_no_foreign_name(host: str | None) -> None:
    """A rebound name arrives here with the attacker's Host, with or without an Origin."""
    assert not local(None, host)
    assert not local(f"http://{host}", host)


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example.com",
        "https://localhost.evil.com",
        "null",
        "",
        "file://",
        "http://",
        "localhost:8080",
        "http://localhost@evil.com",
        "http://localhost:x",
        "ftp://localhost",
        "chrome-extension://abc",
    ],
)
def test_a_loopback_server_serves_no_foreign_page(origin: str) -> None:
    assert not local(origin, "localhost:8080")


def test_configured_names_and_pages_are_served_on_loopback_too() -> None:
    hosts = ("gw.example.com", "other.example.com:8443")

    assert local(None, "gw.example.com:9999", hosts=hosts)
    assert local("https://gw.example.com", "GW.example.com", hosts=hosts)
    assert local(None, "other.example.com:8443", hosts=hosts)
    assert not local(None, "other.example.com", hosts=hosts)
    assert local("https://app.example.com", "localhost", origins=("https://APP.example.com:443/",))
    assert not local("http://app.example.com", "localhost", origins=("https://app.example.com",))
    assert local("chrome-extension://abc", "localhost", origins=("chrome-extension://abc",))
    assert not local("https://app.example.com", "evil.com", origins=("https://app.example.com",))


def test_a_public_server_serves_any_name_but_only_its_own_pages() -> None:
    assert public(None, "gw.example.com")
    assert public(None, None)
    assert public("https://gw.example.com", "gw.example.com"), "behind a TLS proxy"
    assert public("https://gw.example.com", "gw.example.com:443")
    assert public("http://10.0.0.1:8080", "10.0.0.1:8080")
    assert not public("http://10.0.0.1:9090", "10.0.0.1:8080")
    assert not public("https://evil.example.com", "gw.example.com")
    assert not public("http://localhost", "gw.example.com")
    assert not public("null", "gw.example.com")
    assert not public("https://gw.example.com", None)


def test_a_public_server_with_configured_names_serves_no_other() -> None:
    assert public(None, "gw.example.com", hosts=("gw.example.com",))
    assert not public(None, "evil.example.com", hosts=("gw.example.com",))
    assert not public("https://evil.example.com", "evil.example.com", hosts=("gw.example.com",))


def test_a_star_stands_for_all() -> None:
    """Ours: as `limits.allowed_origins` and `limits.allowed_hosts` say of themselves."""
    assert local("https://evil.example.com", "localhost", origins=("*",))
    assert not local("https://evil.example.com", "evil.example.com", origins=("*",)), (
        "the name is another matter"
    )
    assert local(None, "evil.example.com", hosts=("*",))
    assert public("null", None, origins=("*",), hosts=("*",))


@pytest.mark.parametrize("host", ["localhost", "app.localhost", "127.0.0.1", "::1", "[::1]", "localhost."])
def test_loopback_is_known_by_every_name(host: str) -> None:
    assert is_loopback(host)


@given(st.text(), st.text())
def test_no_header_makes_it_stumble(origin: str, host: str) -> None:
    local(origin, host)
    public(origin, host, origins=(origin,), hosts=(host,))
