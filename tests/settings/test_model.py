"""The model by itself: immutable, strict, and careful with what it shows."""

from typing import Any

import pytest
from pydantic import ValidationError

from gateway.settings.check import check
from gateway.settings.model import Settings
from gateway.settings.problems import Problem
from gateway.settings.units import Address
from gateway.settings.upstream import Cache, Caching


def test_settings_do_not_change() -> None:
    settings = Settings.model_validate({"upstreams": {"a": {"url": "http://h"}}})
    with pytest.raises(ValidationError, match="frozen"):
        settings.drain = 1.0  # type: ignore[misc]


def test_the_defaults_are_the_documented_ones() -> None:
    settings = Settings.model_validate({"upstreams": {"a": {"url": "http://h"}}})
    upstream = settings.upstreams["a"]
    assert settings.listen == Address("127.0.0.1", 8080)
    assert (settings.drain, settings.lame_duck, settings.sealing.ttl) == (25.0, 0.0, 600.0)
    assert (upstream.sessions.mode, upstream.sessions.max, upstream.sessions.idle) == ("auto", 256, 300.0)
    assert (upstream.sessions.warm, upstream.sessions.wait) == (2, 10.0)
    assert (upstream.holds.ttl, upstream.holds.max, upstream.holds.grace) == (600.0, 10_000, 60.0)
    assert (upstream.settle, upstream.call_timeout, upstream.connect_timeout) == (0.05, 60.0, 5.0)
    assert (upstream.asks.invalid, upstream.asks.roots_ttl, upstream.auth.mode) == ("reask", 3600.0, "none")
    assert (upstream.key_hint, upstream.caching.ttl) == ("dev.holdfast/inputKey", 0.0)
    assert (upstream.transport, upstream.command, upstream.env, upstream.cwd) == ("auto", (), {}, None)
    assert (settings.limits.body, settings.limits.event, settings.limits.keepalive) == (
        4 << 20,
        8 << 20,
        15.0,
    )


def test_a_refusal_of_the_model_itself_shows_no_input() -> None:
    with pytest.raises(ValidationError) as refusal:
        Settings.model_validate({"upstreams": {"a": {"url": "http://user:hunter2@h"}}})
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize("path", ["/", "/mcp", "/a/b-c/mcp", "/v1.0/~x"])
def test_a_path_is_a_plain_one(path: str) -> None:
    settings = Settings.model_validate({"upstreams": {"a": {"url": "http://h", "path": path}}})
    assert settings.path_of("a") == path


@pytest.mark.parametrize("path", ["", "mcp", "/a//b", "/a/", "/{x}", "/a?b", "/a#b", "/a b", "/%2e"])
def test_a_path_that_a_router_would_read_otherwise_is_refused(path: str) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({"upstreams": {"a": {"url": "http://h", "path": path}}})


@pytest.mark.parametrize(
    "origin", ["*", "null", "https://app.example.com", "http://localhost:3000", "app+x://id"]
)
def test_origins_are_taken(origin: str) -> None:
    Settings.model_validate(
        {"upstreams": {"a": {"url": "http://h"}}, "limits": {"allowed_origins": [origin]}}
    )


@pytest.mark.parametrize("host", ["*", "example.com", "example.com:8080", "[::1]", "[::1]:80"])
def test_hosts_are_taken(host: str) -> None:
    Settings.model_validate({"upstreams": {"a": {"url": "http://h"}}, "limits": {"allowed_hosts": [host]}})


def test_a_command_s_environment_is_not_shown() -> None:
    settings = Settings.model_validate({"upstreams": {"a": {"command": ["x"], "env": {"KEY": "hunter2"}}}})
    assert "hunter2" not in repr(settings)
    assert settings.upstreams["a"].env["KEY"].get_secret_value() == "hunter2"


@pytest.mark.parametrize("name", ["", "A=B", "A\0B"])
def test_what_cannot_name_a_variable_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({"upstreams": {"a": {"command": ["x"], "env": {name: "v"}}}})


def test_each_kind_of_result_may_keep_for_its_own_time() -> None:
    caching = Caching.model_validate(
        {"ttl": "1m", "tools": {"ttl": "5m", "scope": "public"}, "reads": {"ttl": 0}, "prompts": {}}
    )
    assert caching.hints("tools/list") == (300_000, "public")
    assert caching.hints("prompts/list") == (60_000, "private")
    assert caching.hints("resources/read") == (0, "private")
    for method in ("server/discover", "resources/list", "resources/templates/list", "tools/call"):
        assert caching.hints(method) == (60_000, "private")


def test_nobody_is_told_to_keep_anything_by_default() -> None:
    assert Caching().hints("tools/list") == (0, "private")
    assert Cache().lists == "none"


@pytest.mark.parametrize(
    "section",
    [
        {"caching": {"scope": "public"}},
        {"caching": {"tools": {"scope": "public"}}},
        {"cache": {"lists": "public"}},
    ],
)
def test_nothing_is_public_where_callers_are_told_apart(section: dict[str, Any]) -> None:
    def problems(mode: str) -> list[Problem]:
        upstream = {"url": "http://h", "auth": {"mode": mode}, **section}
        return check(Settings.model_validate({"upstreams": {"a": upstream}}))

    assert problems("none") == []
    (problem,) = problems("passthrough")
    assert problem.message == "cannot be public with auth.mode: passthrough"
