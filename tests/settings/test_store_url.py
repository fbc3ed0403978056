"""The address of a store: its forms, and that nobody sees the password in it."""

from typing import Any

import pytest
from pydantic import ValidationError

from gateway.settings.check import check
from gateway.settings.model import Settings
from gateway.settings.store_url import StoreUrl, check_store_url

KEY = "5f" * 32


def _settings(**top: Any) -> Settings:
    return Settings.model_validate({"upstreams": {"a": {"url": "http://h"}}, **top})


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("memory://", "memory://"),
        ("redis://redis", "redis://redis:6379/0"),
        ("redis://redis/", "redis://redis:6379/0"),
        ("redis://10.0.0.1:7000/3", "redis://10.0.0.1:7000/3"),
        ("redis://[::1]:7000", "redis://[::1]:7000/0"),
        ("rediss://:hunter2@redis.example.com:6380/1", "rediss://redis.example.com:6380/1"),
        ("redis://user:hunter%232@redis/0", "redis://redis:6379/0"),
        ("rediss://h/0?ssl_ca_certs=/run/secrets/hunter2", "rediss://h:6379/0"),
    ],
)
def test_an_address_is_taken_and_shown_without_its_secret(written: str, shown: str) -> None:
    store = _settings(store=written).store
    assert store.get_secret_value() == written
    assert str(store) == shown
    assert (
        "hunter" not in f"{store!r} {_settings(store=written)!r} {_settings(store=written).model_dump_json()}"
    )
    assert store.is_shared == (shown != "memory://")


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "hunter2",
        "memory",
        "memory://hunter2",
        "http://hunter2:6379",
        "redis:///hunter2",
        "redis://",
        "redis://:hunter2@",
        "redis://h:0",
        "redis://h:99999",
        "redis://h:hunter2",
        "redis://h/hunter2",
        "redis://h/0/hunter2",
        "redis://h/0#hunter2",
        "redis://h/0?socket_timeout=hunter2",
        "rediss://h/0?ssl_cert_reqs=none",
        "redis://h/0?ssl_ca_certs=hunter2",
        "rediss://h/0?hunter2",
        "redis://h hunter2",
        "redis://h\nhunter2",
        "unix:///hunter2",
        "redis://[hunter2",
    ],
)
def test_what_is_no_address_is_refused_and_not_repeated(wrong: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        _settings(store=wrong)
    assert "hunter2" not in str(refusal.value)


def test_one_that_cannot_be_read_is_not_shown_at_all() -> None:
    assert str(StoreUrl("redis://[hunter2")) == "**********"
    with pytest.raises(ValueError, match="should be memory") as refusal:
        check_store_url(StoreUrl("redis://[hunter2"))
    assert "hunter2" not in str(refusal.value)


def test_replicas_that_share_a_store_need_the_same_keys() -> None:
    """Ours: each would make a key of its own, and no replica could read what another has sealed."""
    assert [problem.path for problem in check(_settings(store="redis://h"))] == ["sealing.keys"]
    assert check(_settings(store="redis://h", sealing={"keys": [KEY]})) == []
    assert check(_settings(store="memory://")) == []


def test_the_default_is_one_process_and_a_beat_a_second() -> None:
    assert (str(_settings().store), _settings().replica_heartbeat) == ("memory://", 1.0)


@pytest.mark.parametrize("beat", ["0s", "50ms", "31s", "often"])
def test_a_heart_beats_neither_too_fast_nor_too_slow(beat: str) -> None:
    with pytest.raises(ValidationError):
        _settings(replica_heartbeat=beat)
    assert _settings(replica_heartbeat="100ms").replica_heartbeat == 0.1
