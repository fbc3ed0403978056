"""Authentication settings that are wrong together, each with its place; and the values they are made of."""

from pathlib import Path
from typing import Any

import pytest

from gateway.settings.auth import Auth
from gateway.settings.check import check
from gateway.settings.load import ConfigInvalid, load
from gateway.settings.model import Settings
from tests.support.certificates import Authority

URL = "https://issuer.example"
JWT = {"issuer": URL, "jwks_url": f"{URL}/jwks", "audience": ["a"]}
HASH = "ab" * 32


def problems(upstream: dict[str, Any], **settings: Any) -> list[str]:
    one = {"url": "http://h/mcp", **upstream}
    checked = Settings.model_validate({"upstreams": {"a": one}, **settings})
    return [problem.path.removeprefix("upstreams.a.") for problem in check(checked)]


@pytest.mark.parametrize(
    ("auth", "where"),
    [
        ({"mode": "jwt"}, ["auth.jwt.issuer"]),
        ({"mode": "jwt", "jwt": {"issuer": URL, "audience": ["a"]}}, ["auth.jwt.jwks_url"]),
        ({"mode": "jwt", "jwt": {**JWT, "jwks_file": "f"}}, ["auth.jwt.jwks_url"]),
        ({"mode": "jwt", "jwt": {**JWT, "audience": []}}, ["auth.jwt.audience"]),
        ({"mode": "jwt", "jwt": {**JWT, "algorithms": []}}, ["auth.jwt.algorithms"]),
        ({"mode": "jwt", "jwt": {**JWT, "ca_file": "/no/such"}}, ["auth.jwt.ca_file"]),
        (
            {"mode": "jwt", "jwt": {"issuer": URL, "audience": ["a"], "jwks_file": "/no/such"}},
            ["auth.jwt.jwks_file"],
        ),
        ({"mode": "passthrough", "jwt": {"jwks_url": URL}}, ["auth.jwt.issuer"]),
        ({"mode": "passthrough", "scopes": ["a"]}, ["auth.scopes"]),
        ({"mode": "jwt", "jwt": JWT, "scope_includes": {"a": ["b"]}}, ["auth.scope_includes"]),
        ({"mode": "jwt", "jwt": JWT, "scopes": ["b"], "scope_includes": {"a": ["b"]}}, []),
        ({"mode": "none", "jwt": JWT}, ["auth.jwt"]),
        ({"mode": "api_key"}, ["auth.api_keys"]),
        ({"mode": "api_key", "api_keys": {"a": HASH, "b": HASH.upper()}}, ["auth.api_keys"]),
        ({"mode": "api_key", "api_keys": {"a": HASH}, "api_key_headers": []}, ["auth.api_key_headers"]),
        ({"api_keys": {"a": HASH}}, ["auth.api_keys"]),
        ({"mode": "header"}, ["auth.trusted_peers"]),
        ({"mode": "header", "trusted_peers": ["0.0.0.0/0"]}, ["auth.trusted_peers"]),
        ({"trusted_peers": ["::1"]}, ["auth.trusted_peers"]),
        ({"upstream": "headers"}, ["auth.upstream_headers"]),
        ({"upstream": "forward"}, ["auth.upstream"]),
        ({"upstream": "none", "upstream_headers": {"X-Token": "t"}}, ["auth.upstream_headers"]),
        ({"mode": "passthrough", "upstream": "none"}, ["auth.upstream"]),
        ({"mode": "passthrough", "upstream_headers": {"X-Token": "t"}}, ["auth.upstream"]),
        ({"mode": "jwt", "jwt": JWT, "scopes": ["a"], "upstream_headers": {"X-Token": "t"}}, []),
        ({"mode": "passthrough", "jwt": JWT}, []),
        ({"mode": "api_key", "api_keys": {"a": HASH}}, []),
        ({"mode": "header", "trusted_peers": ["10.0.0.0/8"]}, []),
        ({"upstream_headers": {"Authorization": "Bearer t"}}, []),
    ],
)
def test_what_does_not_go_together_is_told_with_its_place(auth: dict[str, Any], where: list[str]) -> None:
    """Issue: default empty trusted peers is an error, and so is every door that lets in nobody or everybody."""
    assert problems({"auth": auth}) == where


def test_the_audience_may_be_our_own_address() -> None:
    """Ours: where that is known."""
    auth = {"mode": "jwt", "jwt": {**JWT, "audience": []}}
    assert problems({"auth": auth}, public_url="https://mcp.example.com") == []


def test_a_command_gets_no_headers() -> None:
    """Ours: what it needs is passed in `env`."""
    wrong = {"auth": {"upstream_headers": {"X-Token": "t"}}, "url": None, "command": ["server"]}
    assert problems(wrong) == ["auth.upstream"]


@pytest.mark.parametrize("mode", ["jwt", "api_key", "header"])
def test_nothing_is_public_where_callers_are_told_apart(mode: str) -> None:
    """Design: no cache entry crosses principals."""
    auth = {"mode": mode, "jwt": JWT if mode == "jwt" else {}, "trusted_peers": ["::1"] * (mode == "header")}
    auth["api_keys"] = {"a": HASH} if mode == "api_key" else {}
    assert problems({"auth": auth, "cache": {"lists": "public"}}) == ["cache.lists"]


@pytest.mark.parametrize(
    "auth",
    [
        {"jwt": {"algorithms": ["HS256"]}},
        {"jwt": {"algorithms": ["none"]}},
        {"jwt": {"jwks_url": "http://issuer.example/jwks"}},
        {"jwt": {"issuer": "ftp://x"}},
        {"api_keys": {"a": "hunter2-in-plain-text"}},
        {"api_keys": {"a b": HASH}},
        {"api_key_headers": ["X Key"]},
        {"identity_header": "Host"},
        {"trusted_peers": ["example.com"]},
        {"trusted_peers": ["10.0.0.1/8"]},
        {"scopes": ["a b"]},
        {"scopes": ['a"b']},
        {"upstream_headers": {"Mcp-Session-Id": "x"}},
        {"upstream_headers": {"X-Token": "hunter2\r\nX-Evil: 1"}},
        {"upstream_headers": {"X-Token": ""}},
    ],
)
def test_values_that_nobody_can_mean_are_refused_without_being_shown(auth: dict[str, Any]) -> None:
    """Issue: algorithms pinned, never none, never HS*; no header is injected."""
    with pytest.raises(ValueError, match="validation error") as refusal:
        Auth.model_validate(auth)
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/jwks", "http://localhost/jwks", "http://[::1]/jwks"])
def test_on_loopback_keys_may_come_without_tls(url: str) -> None:
    """Issue: https or loopback http."""
    assert Auth.model_validate({"jwt": {"jwks_url": url}}).jwt.jwks_url == url


def test_no_secret_is_shown() -> None:
    """House rule: SecretStr."""
    auth = Auth.model_validate({"upstream_headers": {"Authorization": "Bearer hunter2"}})
    assert "hunter2" not in repr(auth)


def test_listener_settings_are_held_against_each_other(tmp_path: Path) -> None:
    """Ours: TLS files that fit, an admin token that cannot be guessed and has something to guard."""
    pair = Authority(tmp_path).host()
    good = {"cert_file": str(pair.cert), "key_file": str(pair.key)}
    assert problems({}, tls=good, admin="127.0.0.1:9", admin_token="t" * 16) == []
    assert problems({}, tls={"key_file": str(pair.key)}) == ["tls.cert_file"]
    assert problems({}, tls={"cert_file": str(tmp_path / "no")}) == ["tls.cert_file"]
    assert problems({}, admin_token="t" * 16) == ["admin_token"]
    assert problems({}, admin="127.0.0.1:9", admin_token="short") == ["admin_token"]
    assert problems({}, public_url="https://h/?a=b") == ["public_url"]


def test_upstream_tls_is_for_https(tmp_path: Path) -> None:
    """Ours: a client certificate that is never shown is a mistake."""
    authority = Authority(tmp_path)
    pair = authority.client()
    mine = {"ca_file": str(authority.file), "cert_file": str(pair.cert), "key_file": str(pair.key)}
    assert problems({"tls": mine}) == ["tls"]
    assert problems({"tls": mine, "url": "https://h/mcp"}) == []
    assert problems({"tls": {"key_file": str(pair.key)}, "url": "https://h"}) == ["tls.cert_file"]
    assert problems({"tls": {"ca_file": str(pair.key)}, "url": "https://h"}) == ["tls.ca_file"]


def test_each_file_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    """Ours: a second one came to light only when the first was mended."""
    none = {"cert_file": str(tmp_path / "a"), "key_file": str(tmp_path / "b")}
    assert problems({}, tls=none) == ["tls.cert_file", "tls.key_file"]
    no_ca = {"url": "https://h", "tls": {**none, "ca_file": str(tmp_path / "c")}}
    assert problems(no_ca) == ["tls.ca_file", "tls.cert_file", "tls.key_file"]
    pair, other = Authority(tmp_path).host(name="one"), Authority(tmp_path).host(name="other")
    assert problems({}, tls={"cert_file": str(pair.cert), "key_file": str(other.key)}) == ["tls.key_file"]


def test_files_are_found_beside_the_configuration(tmp_path: Path) -> None:
    """Ours: it does not matter where the process was started."""
    authority = Authority(tmp_path)
    authority.host(name="tls")
    (tmp_path / "jwks.json").write_text("{}")
    file = tmp_path / "holdfast.yaml"
    file.write_text(
        "tls: {cert_file: tls.crt, key_file: tls.key}\n"
        "upstreams:\n  a:\n    url: https://h/mcp\n    tls: {ca_file: ca.pem}\n"
        "    auth: {mode: jwt, jwt: {issuer: https://i.example, audience: [a], jwks_file: jwks.json}}\n"
    )
    loaded = load(file, environ={})
    assert loaded.tls.cert_file == tmp_path / "tls.crt"
    assert loaded.upstreams["a"].tls.ca_file == tmp_path / "ca.pem"
    assert loaded.upstreams["a"].auth.jwt.jwks_file == tmp_path / "jwks.json"


def test_the_environment_sets_them_as_well(tmp_path: Path) -> None:
    """Ours: the existing scheme, one level further down; a secret from a variable is not repeated when wrong."""
    file = tmp_path / "holdfast.yaml"
    file.write_text(
        "upstreams: {a: {url: http://h/mcp, auth: {mode: jwt, jwt: {jwks_url: https://i/jwks}}}}\n"
    )
    environ = {
        "HOLDFAST_UPSTREAMS__A__AUTH__JWT__ISSUER": "https://i.example",
        "HOLDFAST_UPSTREAMS__A__AUTH__JWT__AUDIENCE": "a,b",
    }
    assert load(file, environ=environ).upstreams["a"].auth.jwt.audience == ("a", "b")
    bad = {**environ, "HOLDFAST_UPSTREAMS__A__AUTH__API_KEYS": "{ci: hunter2}"}
    with pytest.raises(ConfigInvalid) as invalid:
        load(file, environ=bad)
    assert "hunter2" not in str(invalid.value)
