"""Where standing sessions come from, and what becomes of a question that is asked on one."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.eras.asks import ask_of
from gateway.eras.policy import AskPolicy, Disposition
from gateway.relay import lines
from gateway.relay.lines import Bystander, OwnLine, SharedLine
from gateway.relay.place import Place, RootsMemory
from gateway.upstreams.background import Background
from gateway.upstreams.pool import Caller
from gateway.upstreams.session import Session
from gateway.wire.jsonrpc import Notification, Raw, Request
from tests.support.pools import Opener, caller, pooling
from tests.support.waiting import turns

ALL = '{"elicitation":{"form":{}},"sampling":{},"roots":{}}'
PARAMS = {
    "elicitation/create": {"message": b'"?"', "requestedSchema": b'{"type":"object","properties":{}}'},
    "sampling/createMessage": {"messages": b"[]", "maxTokens": b"5"},
}
ANN = Caller("ann", is_authenticated=True, capabilities=ALL, client_info="{}", authorization=None)


def place(policy: AskPolicy | None = None) -> Place:
    known = {
        "policy": policy or AskPolicy(),
        "roots": RootsMemory(60, lambda: 0.0),
        "background": Background(),
    }
    return cast("Place", SimpleNamespace(**known))


def ask(session: Session, method: str) -> None:
    """What the server does when it asks."""
    found = ask_of(Request(7, method, {name: Raw(value) for name, value in PARAMS.get(method, {}).items()}))
    assert found is not None
    assert session.listener is not None
    session.listener.hear_ask(found)


async def told(opener: Opener, session: Session) -> dict[str, Any]:
    await turns()
    (answer,) = opener.channels[session].sent
    assert answer["id"] == 7
    return answer


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("elicitation/create", {"result": {"action": "cancel"}}),
        ("sampling/createMessage", {"error": -1}),
        ("roots/list", {"error": -1}),
    ],
)
async def test_no_client_is_asked_on_a_session_that_serves_no_call(
    method: str, answer: dict[str, Any]
) -> None:
    opener = Opener()
    session = await OwnLine(place(), opener).take(ANN)
    ask(session, method)
    given = await told(opener, session)
    assert given.get("result") == answer.get("result")
    assert given.get("error", {}).get("code") == answer.get("error")


async def test_the_policy_answers_where_it_can() -> None:
    policy = AskPolicy(roots=Disposition.STATIC, static_roots=[{"uri": "file:///srv"}])
    opener = Opener()
    session = await OwnLine(place(policy), opener).take(ANN)
    ask(session, "roots/list")
    assert (await told(opener, session))["result"] == {"roots": [{"uri": "file:///srv"}]}


async def test_roots_that_the_principal_told_before_are_told() -> None:
    opener, here = Opener(), place()
    here.roots.remember("ann", {"roots": []})
    session = await OwnLine(here, opener).take(ANN)
    ask(session, "roots/list")
    assert (await told(opener, session))["result"] == {"roots": []}


async def test_what_was_asked_while_the_session_was_opened_is_answered_too() -> None:
    opener = Opener()

    async def opened(who: Caller) -> Session:
        session = await opener(who)
        found = ask_of(Request(7, "roots/list", {}))
        assert found is not None
        session.early_asks.append(found)
        return session

    session = await OwnLine(place(), opened).take(ANN)
    assert session.early_asks == []
    assert "error" in await told(opener, session)


async def test_progress_and_withdrawals_mean_nothing_there() -> None:
    opener = Opener()
    session = await opener(ANN)
    bystander = Bystander(session, ANN, place())
    bystander.hear_notification(Notification("notifications/progress", {}))
    bystander.hear_withdrawal(7)
    await turns()
    assert opener.channels[session].sent == []


async def test_a_listener_who_leaves_while_its_session_is_opened_leaves_none_behind() -> None:
    """Ours: the server has opened it by then, and only we can end it."""
    opener = Opener()
    line = OwnLine(place(), opener)
    opener.gate.clear()
    leaving = asyncio.ensure_future(line.take(ANN))
    await turns()
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    opener.gate.set()
    await line.close()
    (left,) = opener.opened
    assert opener.is_closed(left)


async def test_a_session_of_its_own_is_ended_when_it_is_given_back() -> None:
    opener = Opener()
    line = OwnLine(place(), opener)
    session = await line.take(ANN)
    line.give_back(session)
    await line.close()
    assert opener.is_closed(session)


async def test_a_server_that_comes_back_is_not_overrun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_AT_ONCE", 2)
    opener = Opener()
    opener.gate.clear()
    line = OwnLine(place(), opener)
    taking = [asyncio.ensure_future(line.take(caller(str(number)))) for number in range(5)]
    await turns()
    assert opener.waiting == 2
    opener.gate.set()
    assert len({*await asyncio.gather(*taking)}) == 5


async def test_under_affinity_the_callers_own_session_is_listened_on() -> None:
    opener = Opener()
    async with pooling(opener, mode="affinity") as pool:
        line = SharedLine(pool)
        session = await line.take(ANN)
        assert await pool.lease(ANN) is session
        pool.release(session, reusable=True)
        line.give_back(session)
        await line.close()
        assert not opener.is_closed(session)
