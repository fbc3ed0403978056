"""Keys turned under a running process: no hold is lost, and what is wrong changes nothing."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from gateway.reload import Renewal
from gateway.sealing.keyring import Keyring
from gateway.settings.certificates import CertificateUnusable
from gateway.settings.load import ConfigInvalid
from gateway.settings.model import Settings
from gateway.settings.problems import Problem
from tests.support.scripted import Scripted, asking
from tests.support.serving import Serving, serving
from tests.support.waiting import until
from tests.support.wire import Answer, Wire, accept

OLD, NEW, SHORT = "ab" * 32, "cd" * 32, "hunter2short"
AUTH = {"auth": {"mode": "passthrough"}}


@pytest.fixture
async def server() -> AsyncIterator[Scripted]:
    async with Scripted() as scripted:
        scripted.on["tools/call"] = asking
        yield scripted


def yes_to(asked: Answer) -> dict[str, Any]:
    return {key: accept(name="Ann") for key in asked.asked}


def events(gateway: Serving, name: str) -> list[dict[str, Any]]:
    lines = map(json.loads, gateway.said().splitlines())
    return [line for line in lines if line["event"] == name]


async def told(gateway: Serving, name: str, number: int) -> None:
    async def look() -> bool:
        return len(events(gateway, name)) >= number

    await until(look, 15)


async def turned(gateway: Serving, file: Path, keys: list[str], number: int) -> None:
    """Write the keys, say so, and wait until the process has them."""
    await asyncio.to_thread(file.write_text, "\n".join(keys))
    gateway.tell(signal.SIGHUP)
    await told(gateway, "keys_turned", number)


async def test_a_call_held_before_a_rotation_is_answered_after_it(tmp_path: Path, server: Scripted) -> None:
    """Issue: rotation without a lost hold, live; [old] -> [old, new] -> [new, old] -> [new]."""
    file = tmp_path / "keys"
    file.write_text(OLD)
    sealing = {"keys_file": str(file), "keys_poll": 0}
    async with (
        serving(tmp_path, {"url": server.url, **AUTH}, sealing=sealing) as gateway,
        Wire(gateway.url, authorization="Bearer ann") as ann,
        Wire(gateway.url, authorization="Bearer bob") as bob,
    ):
        first = await ann.tool("ask")
        too_late = await ann.tool("ask")
        await turned(gateway, file, [OLD, NEW], 1)
        await turned(gateway, file, [NEW, OLD], 2)
        second = await ann.tool("ask")
        stolen = await bob.retry(first, yes_to(first))
        done = await ann.retry(first, yes_to(first))
        await turned(gateway, file, [NEW], 3)
        refused = await ann.retry(too_late, yes_to(too_late))
        also_done = await ann.retry(second, yes_to(second))
        said = gateway.said()

    assert done.result["resultType"] == also_done.result["resultType"] == "complete"
    for answer in (stolen, refused):
        assert answer.error["data"] == {"reason": "invalid_request_state"}
    first_keys = [line["key_ids"][0] for line in events(gateway, "keys_turned")]
    assert first_keys[0] != first_keys[1] == first_keys[2]
    for secret in (OLD, NEW):
        assert secret not in said


async def test_a_mounted_secret_that_changes_is_noticed_without_a_signal(
    tmp_path: Path, server: Scripted
) -> None:
    """Issue: `keys_file` is looked at from time to time; Kubernetes tells nobody."""
    folder = tmp_path / "secret"
    folder.mkdir()
    (folder / "key").write_text(OLD)
    sealing = {"keys_file": str(folder), "keys_poll": 0.05}
    async with (
        serving(tmp_path, {"url": server.url, **AUTH}, sealing=sealing) as gateway,
        Wire(gateway.url, authorization="Bearer ann") as ann,
    ):
        asked = await ann.tool("ask")
        (folder / "key").write_text(f"{NEW}\n{OLD}")
        await told(gateway, "keys_turned", 1)
        done = await ann.retry(asked, yes_to(asked))

    assert done.result["resultType"] == "complete"


async def test_keys_that_cannot_be_used_change_nothing(tmp_path: Path, server: Scripted) -> None:
    """Ours: a rotation that went wrong is told, by the place of the key, and the old ring goes on."""
    file = tmp_path / "keys"
    file.write_text(OLD)
    async with (
        serving(tmp_path, {"url": server.url, **AUTH}, sealing={"keys_file": str(file)}) as gateway,
        Wire(gateway.url, authorization="Bearer ann") as ann,
    ):
        asked = await ann.tool("ask")
        file.write_text(SHORT)
        gateway.tell(signal.SIGHUP)
        await told(gateway, "config_reload_failed", 1)
        file.unlink()
        gateway.tell(signal.SIGHUP)
        await told(gateway, "config_reload_failed", 2)
        done = await ann.retry(asked, yes_to(asked))
        said = gateway.said()

    assert done.result["resultType"] == "complete"
    assert SHORT not in said
    assert "sealing.keys_file" in said


# --- without a process -----------------------------------------------------------------------


def settings(*keys: str) -> Settings:
    return Settings.model_validate({"upstreams": {"a": {"url": "http://h"}}, "sealing": {"keys": keys}})


def test_the_configuration_itself_may_bring_new_keys() -> None:
    """Issue: keys from the environment or the file, read again on SIGHUP."""
    ring = Keyring.from_secrets([OLD])
    old = ring.first
    Renewal(settings(OLD), ring, lambda: settings(NEW, OLD), lambda: None).renew()
    assert len(ring.keys) == 2
    assert ring.keys[1] is old, "what is derived from a key that stays is kept"


def test_a_configuration_that_is_wrong_by_now_changes_nothing() -> None:
    """Ours: and says why, without a value."""
    ring = Keyring.from_secrets([OLD])

    def wrong() -> Settings:
        raise ConfigInvalid([Problem("listen", "should be HOST:PORT")])

    with capture_logs() as lines:
        Renewal(settings(OLD), ring, wrong, lambda: None).renew()
    assert len(ring.keys) == 1
    assert [line["event"] for line in lines] == ["config_reload_failed"]
    assert "listen" in lines[0]["detail"]


def test_keys_are_not_turned_by_a_reload_that_fails_of_a_certificate() -> None:
    """Ours: "everything stays as it was" is meant of all of it; half a reload nobody can reason about."""
    ring = Keyring.from_secrets([OLD])

    def broken() -> None:
        raise CertificateUnusable("key_file", "does not fit the certificate")

    with capture_logs() as lines:
        Renewal(settings(OLD), ring, lambda: settings(NEW, OLD), broken).renew()
    assert len(ring.keys) == 1
    assert [line["event"] for line in lines] == ["config_reload_failed"]


def test_a_ring_of_this_process_s_own_is_left_alone() -> None:
    """Ours: without configured keys there is nothing to read again."""
    ring = Keyring.from_secrets([OLD])
    Renewal(settings(), ring, None, lambda: None).renew()
    assert len(ring.keys) == 1


async def test_nobody_watches_what_is_not_there() -> None:
    """Ours: features that are off cost nothing."""
    async with asyncio.timeout(5):
        await Renewal(settings(OLD), Keyring.from_secrets([OLD]), None, lambda: None).watch()
