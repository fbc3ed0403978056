"""Which questions reach the client, under which names, and what becomes of those that the server gives up."""

import asyncio

import pytest

from tests.support.gateways import Gateways
from tests.support.peers import LegacyServers, Running
from tests.support.said import ask, text_result
from tests.support.scripted import Scripted, Turn
from tests.support.seen import happened, seen_by, unique
from tests.support.waiting import until
from tests.support.wire import Wire, abandoned, accept


@pytest.mark.requirement("R18", "R35")
async def test_what_the_client_did_not_declare_is_named_when_the_call_fails_for_it(
    newest: Running, gateway: Gateways
) -> None:
    """Spec: -32021, requiredCapabilities as an object of objects; `elicitation: {}` means forms only."""
    served = await gateway(newest.url)

    async with Wire(served.url) as wire:
        sampling = await wire.tool("sample", capabilities={})
        roots = await wire.tool("roots", capabilities={"elicitation": {}})
        address = await wire.tool(
            "url_required", {"key": unique("key")}, capabilities={"elicitation": {}, "sampling": {}}
        )
        form = await wire.tool("ask_name", capabilities={"elicitation": {}})

    assert (sampling.status, sampling.error["code"]) == (400, -32021)
    assert sampling.told == {"requiredCapabilities": {"sampling": {}}}
    assert roots.told == {"requiredCapabilities": {"roots": {}}}
    assert (address.status, address.error["code"]) == (400, -32021)
    assert address.told == {"requiredCapabilities": {"elicitation": {"url": {}}}}
    assert set(form.asked) == {"name"}


@pytest.mark.requirement("R35", "R38")
async def test_each_round_is_asked_only_what_that_round_declared(newest: Running, gateway: Gateways) -> None:
    """Spec: a retry is a request of its own, perhaps of a client that can do less."""
    served = await gateway(newest.url)

    async with Wire(served.url) as wire:
        asked = await wire.tool("ask_two_serial")
        refused = await wire.retry(asked, {"first": accept(first="Ada")}, capabilities={"sampling": {}})

    assert (refused.status, refused.error["code"]) == (400, -32021)
    assert refused.told == {"requiredCapabilities": {"elicitation": {"form": {}}}}


async def test_an_address_that_the_user_does_not_open_ends_the_call(
    newest: Running, gateway: Gateways
) -> None:
    """Ours: after -32042 the call is only sent again once the user agreed."""
    served = await gateway(newest.url)
    key = unique("key")

    async with Wire(served.url) as wire:
        asked = await wire.tool("url_required", {"key": key})
        declined = await wire.retry(asked, {"elicitation-1": {"action": "decline"}})

    assert asked.asked == {
        "elicitation-1": {
            "method": "elicitation/create",
            "params": {"mode": "url", "message": "Please sign in", "url": "https://example.com/sign-in"},
        }
    }
    assert declined.error["code"] == -32603
    assert len((await seen_by(newest)).calls(key=key)) == 1


async def test_a_server_that_loses_the_address_has_simply_failed(
    legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """Ours: TypeScript 1.12 drops the `data` of -32042; the code itself is not one of this revision."""
    served = await gateway(legacy_servers.get("ts-1.12").url)

    async with Wire(served.url) as wire:
        failed = await wire.tool("url_required", {"key": unique("key")})

    assert failed.error["code"] == -32603
    assert failed.error["data"] == {"upstreamCode": -32042}


@pytest.mark.requirement("R34")
async def test_questions_are_named_by_the_server_or_the_operator(newest: Running, gateway: Gateways) -> None:
    """Design: a hint in `_meta`, else the configured names in order, else the property, else a number."""
    served = await gateway(
        newest.url, settle="200ms", input_keys={"ask_two_serial": ["given_name"], "sample": ["draft"]}
    )

    async with Wire(served.url) as wire:
        hinted = await wire.tool("ask_keyed", {"key": "user_name"})
        configured = await wire.tool("ask_two_serial")
        beyond = await wire.retry(configured, {"given_name": accept(first="Ada")})
        drafted = await wire.tool("sample")
        repeated = await wire.tool("ask_many", {"questions": 2})
        again = await wire.retry(repeated, {"name": accept(name="A")})

    assert set(hinted.asked) == {"user_name"}
    assert "_meta" not in hinted.asked["user_name"]["params"]
    assert set(configured.asked) == {"given_name"}
    assert set(beyond.asked) == {"last"}
    assert set(drafted.asked) == {"draft"}
    assert set(repeated.asked) == {"name"}
    assert set(again.asked) == {"name-2"}


@pytest.mark.parametrize("kind", ["ts-1.12", "ts-1.32"])
async def test_roots_asked_for_in_answer_to_the_handshake_are_the_clients_own(
    legacy_servers: LegacyServers, gateway: Gateways, kind: str
) -> None:
    """Design: such an ask joins the first exchange of the session, never a list."""
    server = legacy_servers.get(kind, arguments=["--roots-on-init"])
    served = await gateway(server.url)
    root = f"file:///{unique('root')}"

    async with Wire(served.url) as wire:
        listed = await wire.request("tools/list")
        asked = await wire.tool("echo", {"text": "after roots"})
        done = await wire.retry(asked, {"roots-1": {"roots": [{"uri": root}]}})
        await happened(server, f"roots:{root}")
        unable = await wire.tool("echo", {"text": "no roots"}, capabilities={})

    assert listed.result["resultType"] == "complete"
    assert set(asked.asked) == {"roots-1"}
    assert done.text == "after roots"
    assert unable.text == "no roots"


async def test_roots_that_the_call_did_not_wait_for_are_the_next_call_s_first_question(
    gateway: Gateways,
) -> None:
    """Design: asks for roots are the session's business; what is still open joins the next exchange on it."""

    async def asks_and_answers(turn: Turn) -> None:
        await turn.stream()
        if len(turn.server.seen("tools/call")) == 1:
            await turn.event(ask(0, "roots/list", {}))
        await turn.event(turn.answer(text_result("done")))
        await turn.finish()

    async with Scripted() as server:
        server.on["tools/call"] = asks_and_answers
        served = await gateway(server.url, settle="30s", sessions={"mode": "pooled"})
        async with Wire(served.url) as wire:
            assert (await wire.tool("echo")).text == "done"
            asked = await wire.tool("echo")
            assert asked.asked["roots-1"]["method"] == "roots/list"
            assert (len(server.seen("tools/call")), server.answers(0)) == (1, []), "it waits for the answer"
            roots = {"roots": [{"uri": "file:///home/ann"}]}
            following = asyncio.ensure_future(wire.retry(asked, {"roots-1": roots}))
            assert (await server.wait_for_answer(0))["result"] == roots
            await abandoned(following)  # the settle time is long


async def test_policy_answers_without_troubling_the_client(newest: Running, gateway: Gateways) -> None:
    """Design: `relay | decline | static`, per upstream and kind."""
    served = await gateway(
        newest.url,
        asks={
            "elicitation": "decline",
            "sampling": "decline",
            "roots": "static",
            "static_roots": [{"uri": "file:///srv", "name": "Shared"}],
        },
    )

    async with Wire(served.url) as wire:
        declined = await wire.tool("ask_name")
        refused = await wire.tool("sample")
        roots = await wire.tool("roots", capabilities={})

    assert declined.text == "declined"
    assert refused.result["isError"] is True
    assert roots.text == "file:///srv"


async def test_declined_roots_are_refused_upstream(newest: Running, gateway: Gateways) -> None:
    """Design: `roots: decline`."""
    served = await gateway(newest.url, asks={"roots": "decline"})

    async with Wire(served.url) as wire:
        roots = await wire.tool("roots")

    assert roots.result["isError"] is True


async def test_a_question_withdrawn_while_the_client_still_waits_is_not_asked(
    newest: Running, gateway: Gateways
) -> None:
    """Design: asks settle before they are put; what the server gave up by then is none."""
    served = await gateway(newest.url, settle="3s")

    async with Wire(served.url) as wire:
        ended = await wire.tool("ask_impatient", {"timeoutMs": 50})

    assert ended.result["isError"] is True


async def test_a_result_that_came_while_the_client_was_away_waits_for_it(
    newest: Running, gateway: Gateways
) -> None:
    """LEGACY-WIRE 3: TypeScript servers give up a question and say so, Python ones only give up."""
    served = await gateway(newest.url)
    before = (await seen_by(newest)).events.count("failed:ask_impatient")

    async def has_ended() -> bool:
        return (await seen_by(newest)).events.count("failed:ask_impatient") > before

    async with Wire(served.url) as wire:
        asked = await wire.tool("ask_impatient", {"timeoutMs": 120})
        await until(has_ended)
        late = await wire.retry(asked, {"name": accept(name="Ann")})
        again = await wire.retry(asked, {"name": accept(name="Ann")})

    assert set(asked.asked) == {"name"}
    assert late.result["isError"] is True
    assert again.result == late.result


async def test_a_question_that_follows_a_withdrawn_one_is_asked_in_the_next_round(
    newest: Running, gateway: Gateways
) -> None:
    """Design: asks that come while held go into the next round; withdrawn ones are not asked again."""
    served = await gateway(newest.url)

    async with Wire(served.url) as wire:
        asked = await wire.tool("ask_again_after_timeout", {"timeoutMs": 120})
        assert set(asked.asked) == {"name"}

        async def next_question() -> bool:
            nonlocal asked
            asked = await wire.retry(asked)
            return "last" in asked.asked

        await until(next_question)
        done = await wire.retry(asked, {"last": accept(last="Lovelace")})

    # This Python release never says that it stopped waiting, so there the first question is still open.
    assert set(asked.asked) == ({"last"} if newest.kind.startswith("ts") else {"name", "last"})
    assert done.text == "too late: Lovelace"
