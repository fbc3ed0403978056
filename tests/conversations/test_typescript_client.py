"""The modern TypeScript client through the gateway: every feature on a Python and on a TypeScript server."""

import json
from typing import Any

import pytest

from tests.support.features import FEATURES
from tests.support.gateways import Gateways
from tests.support.peers import SERVERS, LegacyServers, Running, ts_client
from tests.support.person import plan_answers
from tests.support.seen import unique

Json = dict[str, Any]

CATALOG: Json = json.loads((SERVERS / "catalog.json").read_text("utf-8"))


@pytest.fixture(params=["py-1.30", "ts-1.32"])
def server(request: pytest.FixtureRequest, legacy_servers: LegacyServers) -> Running:
    return legacy_servers.get(request.param)


def tool(name: str, arguments: Json | None = None, **more: Any) -> Json:
    return {"method": "tools/call", "name": name, "arguments": arguments or {}, **more}


def texts(report: Json) -> list[str]:
    """The text of each result, whatever it is the result of."""
    return [_text(entry["result"]) for entry in report["results"]]


def _text(result: Json) -> str:
    if "messages" in result:
        return str(result["messages"][0]["content"]["text"])
    return str(result["content" if "content" in result else "contents"][0]["text"])


@pytest.mark.parametrize("mode", ["pin", "auto"])
@pytest.mark.requirement("R22", "R24", "R34", "R38")
async def test_conversations_go_as_with_a_modern_server(
    server: Running, gateway: Gateways, mode: str
) -> None:
    """Issue: every ask of every kind, on either stream, in as few rounds as the server allows."""
    served = await gateway(server.url, settle="150ms")
    runs = [(feature, *feature.fresh()) for feature in FEATURES]

    report = await ts_client(
        {
            "url": served.url,
            "mode": mode,
            "answers": plan_answers(),
            "calls": [{"method": feature.method, "params": params} for feature, params, _ in runs],
        }
    )

    assert (report["era"], report["version"]) == ("modern", "2026-07-28")
    assert texts(report) == [said for _, _, said in runs]
    assert dict(zip((feature.id for feature in FEATURES), report["rounds"], strict=True)) == {
        feature.id: feature.rounds for feature in FEATURES
    }
    assert sorted(ask["method"] for ask in report["asked"]) == sorted(
        method for feature in FEATURES for method in feature.asks
    )


async def test_three_kinds_of_question_come_in_one_round(server: Running, gateway: Gateways) -> None:
    """Issue: "mixed three"."""
    served = await gateway(server.url, settle="200ms")

    report = await ts_client(
        {"url": served.url, "answers": plan_answers(), "calls": [tool("mixed_three"), tool("two_kinds")]}
    )

    three, two = texts(report)
    assert json.loads(three) == {"name": "Ann", "sampled": "Paris", "roots": ["file:///one", "file:///two"]}
    assert two == "Ann: Paris"
    assert report["rounds"] == [1, 1]


@pytest.mark.requirement("R24", "R25", "R26")
async def test_discovery_lists_and_completion_are_those_of_the_server(
    server: Running, gateway: Gateways
) -> None:
    """MODERN-WIRE 1.1: this client rejects a list without ttlMs and cacheScope."""
    served = await gateway(server.url)
    methods = ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "server/discover")
    reference = {
        "ref": {"type": "ref/prompt", "name": "simple"},
        "argument": {"name": "topic", "value": "ri"},
    }

    report = await ts_client(
        {
            "url": served.url,
            "calls": [
                *({"method": method} for method in methods),
                {"method": "completion/complete", "params": reference},
            ],
        }
    )

    tools, prompts, resources, templates, discovered, completed = [e["result"] for e in report["results"]]
    assert [entry["name"] for entry in tools["tools"]] == [entry["name"] for entry in CATALOG["tools"]]
    assert [entry["name"] for entry in prompts["prompts"]] == ["simple", "ask_prompt"]
    assert [entry["uri"] for entry in resources["resources"]] == ["test://static/hello", "ask://resource"]
    assert [entry["uriTemplate"] for entry in templates["resourceTemplates"]] == ["test://item/{id}"]
    assert discovered["supportedVersions"] == ["2026-07-28"]
    assert completed["completion"]["values"] == ["river"]
    assert report["server"]["name"] == {"py-1.30": "py-legacy", "ts-1.32": "ts-legacy"}[server.kind]


@pytest.mark.parametrize(("action", "said"), [("decline", "declined"), ("cancel", "cancelled")])
async def test_a_no_of_the_user_reaches_the_server(
    server: Running, gateway: Gateways, action: str, said: str
) -> None:
    """Issue: decline and cancel; the call goes on."""
    served = await gateway(server.url)

    report = await ts_client(
        {
            "url": served.url,
            "answers": plan_answers(action),
            "calls": [tool("ask_name"), tool("ask_url"), tool("ask_two_parallel")],
        }
    )

    assert texts(report) == [said, said, f"{said} {said}"]


@pytest.mark.requirement("R31", "R32")
async def test_progress_and_logs_belong_to_their_round(server: Running, gateway: Gateways) -> None:
    """Spec: progress under the round's token (others are dropped by this client), logs at the level asked for."""
    served = await gateway(server.url)
    levels = {"levels": ["debug", "info", "warning", "error"]}

    report = await ts_client(
        {
            "url": served.url,
            "answers": plan_answers(),
            "calls": [
                tool("progress", {"steps": 3}),
                tool("ask_then_progress", {"steps": 3}),
                tool("logs", levels, logLevel="warning"),
                tool("logs", levels),
            ],
        }
    )

    steps = [(step["call"], step["progress"], step["total"]) for step in report["progress"]]
    assert steps == [(0, 1, 3), (0, 2, 3), (0, 3, 3), (1, 1, 3), (1, 2, 3), (1, 3, 3)]
    assert [record["level"] for record in report["logs"]] == ["warning", "error"]
    assert report["rounds"] == [0, 1, 0, 0]


@pytest.mark.requirement("R27", "R28")
async def test_failures_arrive_as_what_they_are(server: Running, gateway: Gateways) -> None:
    """MODERN-WIRE 1.3: this client reads an error only from 200 and 400."""
    served = await gateway(server.url)

    report = await ts_client(
        {
            "url": served.url,
            "calls": [
                tool("fail"),
                tool("protocol_error"),
                tool("nonesuch"),
                {"method": "resources/read", "uri": "test://nowhere"},
            ],
        }
    )

    failed, refused, unknown, missing = report["results"]
    assert failed["result"]["isError"] is True
    assert (refused["error"]["code"], refused["error"]["data"]["upstreamCode"]) == (-32603, -32050)
    assert unknown["error"]["code"] == -32602
    assert (missing["error"]["code"], missing["error"]["data"]["uri"]) == (-32602, "test://nowhere")


@pytest.mark.requirement("R18", "R35")
async def test_a_question_that_the_client_cannot_answer_fails_the_call_for_want_of_it(
    server: Running, gateway: Gateways
) -> None:
    """Spec: -32021 with the capabilities that would have been needed."""
    served = await gateway(server.url)

    report = await ts_client(
        {"url": served.url, "capabilities": {}, "calls": [tool("sample"), tool("roots"), tool("mixed_three")]}
    )

    sampled, rooted, mixed = (entry["error"] for entry in report["results"])
    assert (sampled["code"], rooted["code"], mixed["code"]) == (-32021, -32021, -32021)
    assert sampled["data"]["requiredCapabilities"] == {"sampling": {}}
    assert rooted["data"]["requiredCapabilities"] == {"roots": {}}
    assert "sampling" in mixed["data"]["requiredCapabilities"]


async def test_forty_calls_at_once_get_each_its_own_answer(server: Running, gateway: Gateways) -> None:
    """Issue: two clients at once never see each other's questions; here one client, forty questions."""
    served = await gateway(server.url)
    tags = [unique("many") for _ in range(40)]

    report = await ts_client(
        {
            "url": served.url,
            "concurrent": True,
            "answers": {"elicitation": [{"match": "name", "content": {"name": "N-$tag"}}]},
            "calls": [tool("ask_name_get", {"tag": tag}) for tag in tags],
        }
    )

    assert texts(report) == [f"Hello N-{tag} from {tag}" for tag in tags]
