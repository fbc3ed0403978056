"""A call that is held while its legacy server is replaced by a modern one: found again by the ladder, or refused."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.gateways import Gateways
from tests.support.peers import MODERN_KIND, start_legacy, stdio_command
from tests.support.wire import Answer, Wire, accept

Json = dict[str, Any]
TOOL = "ask_two_serial"


@asynccontextmanager
async def replaced(old: Any, *arguments: str) -> AsyncIterator[Any]:
    """The legacy server is gone, and a modern one is at its address."""
    await asyncio.to_thread(old.kill)
    async with start_legacy(MODERN_KIND, port=old.port, arguments=list(arguments)) as new:
        yield new


def keyed(asked: Answer, **content: str) -> Json:
    """The answer to the one question of a round."""
    (key,) = asked.asked
    return {key: accept(**content)}


@pytest.mark.parametrize("only", [[], ["--modern-only"]], ids=["of both eras", "modern only"])
async def test_the_answers_so_far_are_given_to_the_new_server_and_only_what_is_new_is_asked(
    gateway: Gateways, only: list[str]
) -> None:
    """Issue: legacy to modern behind a running gateway, no client error; the user is asked nothing twice."""
    async with start_legacy("py-1.30") as old:
        served = await gateway(old.url)
        async with Wire(served.url) as wire:
            first = await wire.tool(TOOL)
            async with replaced(old, *only):
                second = await wire.retry(first, keyed(first, first="Ada"))
                done = await wire.retry(second, keyed(second, last="Lovelace"))

    assert [ask["params"]["message"] for ask in second.asked.values()] == ["What is your last name?"]
    assert second.state.startswith("v1."), "from here on it is the new server's own round"
    assert done.text == "Ada Lovelace, says the modern one"


@pytest.mark.parametrize("kind", ["py-1.30", "ts-1.32"])
async def test_a_call_with_all_its_answers_ends_in_the_same_round(gateway: Gateways, kind: str) -> None:
    """Issue: holds that were open against the old version are resolved by the ladder."""
    async with start_legacy(kind) as old:
        served = await gateway(old.url)
        async with Wire(served.url) as wire:
            first = await wire.tool(TOOL)
            second = await wire.retry(first, keyed(first, first="Ada"))
            async with replaced(old):
                done = await wire.retry(second, keyed(second, last="Lovelace"))

    assert done.text == "Ada Lovelace, says the modern one"


async def test_a_gateway_that_was_restarted_as_well_does_the_same(gateway: Gateways) -> None:
    """Ours: all that is needed is in the ticket."""
    keys = {"sealing": {"keys": [secrets.token_urlsafe(32)]}}
    async with start_legacy("py-1.30") as old:
        served = await gateway(old.url, settings=keys)
        async with Wire(served.url) as wire:
            first = await wire.tool(TOOL)
            second = await wire.retry(first, keyed(first, first="Ada"))
        await gateway.stop()
        async with replaced(old) as new:
            served = await gateway(new.url, settings=keys)
            async with Wire(served.url) as wire:
                done = await wire.retry(second, keyed(second, last="Lovelace"))

    assert done.text == "Ada Lovelace, says the modern one"


@pytest.mark.parametrize(
    ("tool", "upstream"),
    [(TOOL, {"replay": "never"}), (TOOL, {"replay_tools": {TOOL: "never"}}), ("side_effect_then_ask", {})],
    ids=["never", "not this tool", "not said to be harmless"],
)
async def test_what_may_not_run_twice_is_refused_precisely(
    gateway: Gateways, tool: str, upstream: Json
) -> None:
    """Issue: the last rung; it may have had side effects, start it again."""
    async with start_legacy("py-1.30") as old:
        served = await gateway(old.url, **upstream)
        async with Wire(served.url) as wire:
            held = await wire.tool(tool, {"id": "one"})
            async with replaced(old):
                lost = await wire.retry(held, {key: {"action": "decline"} for key in held.asked})

    assert (lost.status, lost.error["code"]) == (200, -31001)
    assert lost.told == {"reason": "hold_lost", "sideEffectsPossible": True, "canStartAgain": True}


async def test_a_session_that_still_lives_gets_its_answer(gateway: Gateways, tmp_path: Path) -> None:
    """Issue: live first. The command is another program by now, but the old process still waits."""
    program = tmp_path / "server"
    _link(program, stdio_command("py-1.30"))
    upstream = {"command": [str(program)], "sessions": {"mode": "fresh", "warm": 0}}
    served = await gateway.start({"listen": "127.0.0.1:0", "upstreams": {"x": upstream}})

    async with Wire(served.url) as wire:
        first = await wire.tool(TOOL)
        _link(program, stdio_command(MODERN_KIND))
        second = await wire.retry(first, keyed(first, first="Ada"))
        done = await wire.retry(second, keyed(second, last="Lovelace"))

    assert done.text == "Ada Lovelace"


def _link(program: Path, command: list[str]) -> None:
    words = " ".join(f"'{word}'" for word in command)
    other = program.with_suffix(".new")
    other.write_text(f"#!/bin/sh\nexec {words}\n", "utf-8")
    other.chmod(0o755)
    other.rename(program)
