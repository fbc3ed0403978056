"""`requestState` on the wire: for whom it is good, for what, how often, and what every refusal looks like."""

import asyncio
import base64

import pytest

from tests.support.gateways import Gateways
from tests.support.peers import LegacyServers, Running
from tests.support.seen import happened, seen_by, sent_on, session_of, unique
from tests.support.wire import Answer, Wire, abandoned, accept

FROZEN = {
    "code": -32602,
    "message": "Invalid or expired requestState",
    "data": {"reason": "invalid_request_state"},
}
ANN = {"name": accept(name="Ann")}


@pytest.fixture
def server(legacy_servers: LegacyServers) -> Running:
    return legacy_servers.get("py-1.30")


def frozen(answer: Answer) -> bytes:
    """The bytes of a refusal but for its id; fails unless it is the one answer for every cause."""
    assert (answer.status, answer.error) == (400, FROZEN)
    number = str(answer.message["id"]).encode()
    return answer.body.replace(b'"id":' + number, b'"id":0')


def with_bit_flipped(state: str, position: int) -> str:
    raw = bytearray(base64.urlsafe_b64decode(state + "=" * (-len(state) % 4)))
    raw[position] ^= 1
    return base64.urlsafe_b64encode(bytes(raw)).rstrip(b"=").decode()


@pytest.mark.requirement("R36")
async def test_every_bad_ticket_gets_the_same_bytes_and_leaves_the_hold_alone(
    server: Running, gateway: Gateways
) -> None:
    """Design: one frozen answer on the wire; the true reason is in the log only."""
    served = await gateway(server.url, auth={"mode": "passthrough"})
    other_gateway = await gateway(server.url, auth={"mode": "passthrough"})
    tag = unique("ticket")

    async with (
        Wire(served.url, authorization="Bearer ann") as ann,
        Wire(served.url, authorization="Bearer bob") as bob,
        Wire(served.url) as nobody,
        Wire(other_gateway.url, authorization="Bearer ann") as elsewhere,
    ):
        asked = await ann.tool("ask_name", {"tag": tag})
        state = asked.state
        length = len(base64.urlsafe_b64decode(state + "=" * (-len(state) % 4)))
        changed = [with_bit_flipped(state, position) for position in (0, 1, 5, 20, length // 2, length - 1)]
        refusals = {
            *[frozen(await ann.retry(asked, ANN, state=bad)) for bad in changed],
            frozen(await ann.retry(asked, ANN, state=state[:-1])),
            frozen(await ann.retry(asked, ANN, state=state + "A")),
            frozen(await ann.retry(asked, ANN, state=state + "==")),
            frozen(await ann.retry(asked, ANN, state="x")),
            frozen(await ann.retry(asked, ANN, state="é" * 40)),
            frozen(await bob.retry(asked, ANN)),
            frozen(await nobody.retry(asked, ANN)),
            frozen(await elsewhere.retry(asked, ANN)),
            frozen(await ann.retry(asked, ANN, changes={"name": "ask_name_get"})),
            frozen(await ann.retry(asked, ANN, changes={"arguments": {"tag": "other"}})),
            frozen(await ann.retry(asked, ANN, changes={"arguments": {}})),
        }
        done = await ann.retry(asked, ANN)

    assert len(refusals) == 1
    assert done.text == f"Hello Ann from {tag}"
    assert len((await seen_by(server)).calls(tag=tag)) == 1


@pytest.mark.requirement("R36")
async def test_a_ticket_for_a_prompt_is_not_good_for_a_tool_of_that_name(
    server: Running, gateway: Gateways
) -> None:
    """Design: method and target are claims."""
    served = await gateway(server.url)

    async with Wire(served.url) as wire:
        asked = await wire.request("prompts/get", {"name": "ask_prompt"})
        crossed = await wire.request(
            "tools/call", {"name": "ask_prompt"}, {"requestState": asked.state, "inputResponses": ANN}
        )
        done = await wire.retry(asked, ANN)

    frozen(crossed)
    assert done.text == "Hello Ann"


@pytest.mark.requirement("R36")
async def test_arguments_are_the_same_however_they_are_written(server: Running, gateway: Gateways) -> None:
    """Design: a canonical digest; clients may write keys in another order and 1 as 1.0."""
    served = await gateway(server.url)
    fields = {"System.State": "Resolved", "a": 1, "b": {"c": [1, 2.0]}}

    async with Wire(served.url) as wire:
        asked = await wire.tool("update_work_item", {"workItemId": 1, "fields": fields})
        again = {"fields": {"b": {"c": [1.0, 2]}, "a": 1.0, "System.State": "Resolved"}, "workItemId": 1}
        done = await wire.retry(
            asked, {"resolution": accept(resolution="Fixed")}, changes={"arguments": again}
        )

    assert done.text == "Bug #1 resolved as Fixed. State set to Resolved."


@pytest.mark.requirement("R36")
async def test_a_ticket_of_an_earlier_round_is_refused(newest: Running, gateway: Gateways) -> None:
    """Design: a ticket works once; a ticket of an earlier round never delivers an answer twice."""
    served = await gateway(newest.url)
    tag = unique("serial")

    async with Wire(served.url) as wire:
        first = await wire.tool("ask_two_serial", {"tag": tag})
        second = await wire.retry(first, {"first": accept(first="Ada")})
        stale = await wire.retry(first, {"first": accept(first="Eve")})
        done = await wire.retry(second, {"last": accept(last="Lovelace")})
        too_late = await wire.retry(first, {"first": accept(first="Eve")})
        other_answer = await wire.retry(second, {"last": accept(last="Hopper")})

    frozen(stale)
    frozen(too_late)
    frozen(other_answer)
    assert done.text == "Ada Lovelace"
    session = (await seen_by(newest)).calls(tag=tag)[0]["session"]
    assert len((await seen_by(newest)).sent(session, "answer")) == 2


@pytest.mark.requirement("R36", "R38")
async def test_the_same_retry_again_gets_the_kept_outcome(newest: Running, gateway: Gateways) -> None:
    """Design: a client that lost the response sends the same again: same questions, then the same result."""
    served = await gateway(newest.url)
    tag = unique("again")
    answers = {"first": accept(first="Ada")}

    async with Wire(served.url) as wire, Wire(served.url) as other_connection:
        first = await wire.tool("ask_two_serial", {"tag": tag})
        second = await wire.retry(first, answers)
        second_again = await other_connection.retry(first, answers)
        done = await wire.retry(second_again, {"last": accept(last="Lovelace")})
        done_again = await other_connection.retry(second, {"last": accept(last="Lovelace")})

    assert second_again.asked == second.asked
    assert done.text == "Ada Lovelace"
    assert done_again.result == done.result
    session = (await seen_by(newest)).calls(tag=tag)[0]["session"]
    assert len((await seen_by(newest)).sent(session, "answer")) == 2


@pytest.mark.requirement("R36", "R38")
async def test_the_same_retry_joins_the_round_that_is_running(gateway: Gateways, newest: Running) -> None:
    """Design: joins the running round; the answer reaches the server once, both clients hear the end."""
    served = await gateway(newest.url)
    tag = unique("join")
    call = {"id": tag}

    async with Wire(served.url) as wire:
        asked = await wire.tool("side_effect_then_ask", call)
        together = await asyncio.gather(*(wire.retry(asked, ANN) for _ in range(5)))
        later = await wire.retry(asked, ANN)

    assert {answer.text for answer in (*together, later)} == {"Hello Ann, effect 1"}
    seen = await seen_by(newest)
    assert seen.counters[f"effect:{tag}"] == 1
    assert len(seen.sent(seen.calls(**call)[0]["session"], "answer")) == 1


@pytest.mark.requirement("R36")
async def test_of_two_answers_at_once_the_server_is_told_one_and_the_other_is_refused(
    gateway: Gateways, newest: Running
) -> None:
    """Design: answers reach the server at most once. A double click has one outcome."""
    served = await gateway(newest.url)
    tag = unique("two")

    async with Wire(served.url) as wire:
        asked = await wire.tool("ask_name", {"tag": tag})
        answers = await asyncio.gather(
            *(wire.retry(asked, {"name": accept(name=name)}) for name in ("Ann", "Eve"))
        )
        taken, refused = sorted(answers, key=lambda answer: answer.status)

    frozen(refused)
    told = (await seen_by(newest)).sent(await session_of(newest, tag=tag), "answer")
    assert [f"Hello {answer['result']['content']['name']} from {tag}" for answer in told] == [taken.text]


async def test_the_same_retry_twice_at_once_brings_a_lost_call_back_once(
    gateway: Gateways, server: Running
) -> None:
    """Design: a duplicate joins, also where the first has to run the call again before there is a round to join."""
    sealing = {"sealing": {"keys": [base64.urlsafe_b64encode(bytes(32)).decode()]}}
    before = await gateway(server.url, settings=sealing)
    after = await gateway(server.url, settings=sealing, replay="always")
    tag = unique("once")

    async with Wire(before.url) as wire:
        asked = await wire.tool("side_effect_then_ask", {"id": tag})
    async with Wire(after.url) as wire:
        together = await asyncio.gather(*(wire.retry(asked, ANN) for _ in range(5)))

    assert {answer.text for answer in together} == {"Hello Ann, effect 2"}
    assert (await seen_by(server)).counters[f"effect:{tag}"] == 2


async def test_a_client_that_joined_goes_on_when_the_first_one_leaves(
    server: Running, gateway: Gateways
) -> None:
    """Design: only when nobody listens any more is the call cancelled."""
    # The next question settles for a second: time enough to join a round and to leave it.
    served = await gateway(server.url, settle="1s", settings={"limits": {"keepalive": "20ms"}})
    answers = {"first": accept(first="Ada")}
    first_in, second_in = asyncio.Event(), asyncio.Event()

    async with Wire(served.url) as wire:
        asked = await wire.tool("ask_two_serial")
        leaving = asyncio.ensure_future(wire.retry(asked, answers, opened=first_in))
        await asyncio.wait_for(first_in.wait(), 5)
        joining = asyncio.ensure_future(wire.retry(asked, answers, opened=second_in))
        await asyncio.wait_for(second_in.wait(), 5)
        await abandoned(leaving)
        following = await joining
        done = await wire.retry(following, {"last": accept(last="Lovelace")})

    assert done.text == "Ada Lovelace"


@pytest.mark.requirement("R36")
async def test_a_hold_lasts_no_longer_than_its_ticket(server: Running, gateway: Gateways) -> None:
    """Design: expiry is a claim; the hold ends with it, the server is told, and so is a client a little late."""
    served = await gateway(server.url, settings={"sealing": {"ttl": "1s"}})
    tag = unique("old")

    async with Wire(served.url) as wire:
        asked = await wire.tool("ask_name", {"tag": tag})
        session = await session_of(server, tag=tag)
        await sent_on(server, session, "notifications/cancelled")
        late = await wire.retry(asked, ANN)

    assert (late.error["code"], late.told["reason"]) == (-31001, "hold_expired")
    await happened(server, "answer:name:cancel")


async def test_tickets_outlive_a_key_rotation(server: Running, gateway: Gateways) -> None:
    """Design: the first key seals, all open; a ticket under an unknown key is refused."""
    old, new = (base64.urlsafe_b64encode(bytes([n]) * 32).decode() for n in (1, 2))
    served = await gateway(server.url, settings={"sealing": {"keys": [old]}})
    rotated = await gateway(server.url, settings={"sealing": {"keys": [new, old]}})

    async with Wire(served.url) as wire, Wire(rotated.url) as other:
        asked = await wire.tool("ask_name")
        elsewhere = await other.retry(asked, ANN)
        done = await wire.retry(asked, ANN)

    # The ticket opens there, but the call it belongs to runs here: that is said, it is not called forged.
    assert elsewhere.error["code"] == -31001
    assert elsewhere.told == {
        "reason": "hold_lost",
        "sideEffectsPossible": True,
        "canStartAgain": True,
    }
    assert done.text == "Hello Ann"


async def test_a_state_that_is_no_text_is_a_mistake_of_its_own(server: Running, gateway: Gateways) -> None:
    """Spec: requestState is a string."""
    served = await gateway(server.url)

    async with Wire(served.url) as wire:
        wrong = await wire.request("tools/call", {"name": "ask_name"}, {"requestState": 7})

    assert (wrong.status, wrong.error["code"]) == (400, -32602)
