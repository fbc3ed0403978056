"""May a lost call be run again? Policy first, then what the tool says of itself."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gateway.errors import UpstreamLost
from gateway.relay.listener import Reply
from gateway.relay.replays import ReplayPolicy
from gateway.relay.request import ClientRequest, Principal
from gateway.settings.upstream import Upstream
from gateway.telemetry.names import Outcome
from gateway.wire.jsonrpc import Raw, encode

NOBODY = Principal("nobody", b"", is_authenticated=False)
PAGES: dict[str | None, dict[str, Any]] = {
    None: {
        "tools": [{"name": "look", "annotations": {"readOnlyHint": True}}, {"name": "pay"}],
        "nextCursor": "2",
    },
    "2": {
        "tools": [
            {"name": "set", "annotations": {"idempotentHint": True}},
            {"name": "odd", "annotations": None},
        ]
    },
}


def asked(target: str, method: str = "tools/call") -> ClientRequest:
    params = {"name": Raw(encode(target))}
    return ClientRequest(id=1, method=method, params=params, target=target, principal=NOBODY, capabilities={})


async def listing(request: ClientRequest) -> Reply:
    raw = request.params.get("cursor")
    return Reply(Outcome.COMPLETE, result=PAGES[None if raw is None else "2"])


async def broken(_: ClientRequest) -> Reply:
    raise UpstreamLost


def policy(fetch: Callable[[ClientRequest], Awaitable[Reply]] = listing, **settings: Any) -> ReplayPolicy:
    return ReplayPolicy(Upstream.model_validate({"url": "http://127.0.0.1:9/mcp", **settings}), fetch)


@pytest.mark.parametrize(
    ("target", "allowed"), [("look", True), ("set", True), ("pay", False), ("odd", False), ("unknown", False)]
)
async def test_by_default_only_tools_that_say_so_are_run_again(target: str, allowed: bool) -> None:  # noqa: FBT001
    """Ours: `idempotent`, on whatever page of the list the tool is."""
    assert await policy().allows(asked(target)) is allowed


@pytest.mark.parametrize("method", ["prompts/get", "resources/read"])
async def test_what_only_reads_may_always_be_read_again(method: str) -> None:
    """Ours: prompts and resources have no side effects to repeat."""
    assert await policy(broken).allows(asked("x", method))


async def test_the_configuration_has_the_first_word() -> None:
    """Ours: per upstream, and per tool whatever it says of itself."""
    assert not await policy(replay="never").allows(asked("look"))
    assert await policy(replay="always").allows(asked("pay"))
    assert not await policy(replay="always", replay_tools={"pay": "never"}).allows(asked("pay"))
    assert await policy(replay="never", replay_tools={"pay": "always"}).allows(asked("pay"))


async def test_a_list_that_cannot_be_had_allows_nothing() -> None:
    """Ours: what nobody says is not so."""
    assert not await policy(broken).allows(asked("look"))


async def test_a_connection_that_breaks_over_the_question_is_no_answer() -> None:
    """Ours: what broke the call may have broken the next connection too; the tool still says what it says."""
    breaks = [UpstreamLost(), UpstreamLost()]

    async def fetch(request: ClientRequest) -> Reply:
        if breaks:
            raise breaks.pop()
        return await listing(request)

    assert await policy(fetch).allows(asked("look"))


async def test_a_list_that_cannot_be_read_allows_nothing() -> None:
    """Ours: a tool with the hint, beside one whose text is no text."""

    async def spoilt(_: ClientRequest) -> Reply:
        tools = Raw(b'[{"name":"look","annotations":{"readOnlyHint":true}},{"name":"\xff"}]')
        return Reply(Outcome.COMPLETE, result={"tools": tools})

    assert not await policy(spoilt).allows(asked("look"))
