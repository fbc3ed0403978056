"""What a legacy server can do in mid-call, as conversations that any client must be able to have."""

from dataclasses import dataclass, field
from typing import Any

from tests.support.seen import unique

Json = dict[str, Any]

ELICIT, SAMPLE, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"


@dataclass(frozen=True, slots=True)
class Feature:
    """One conversation: what is called, what is asked in which number of rounds, what comes of it."""

    id: str
    params: Json
    said: str
    """The text in the end; `$key` stands for this run's own word."""
    asks: tuple[str, ...] = ()
    """The methods of all questions, sorted."""
    rounds: int = 1
    method: str = "tools/call"
    settle: str = "50ms"
    not_on: frozenset[str] = field(default_factory=frozenset)

    def fresh(self) -> "tuple[Json, str]":
        """Parameters and expected text of one run: what a shared server remembers must not be met again."""
        key = unique(self.id)
        arguments = {
            name: value.replace("$key", key) if isinstance(value, str) else value
            for name, value in self.params.get("arguments", {}).items()
        }
        params = {**self.params, **({"arguments": arguments} if "arguments" in self.params else {})}
        return params, self.said.replace("$key", key)


def _tool(name: str, arguments: Json | None = None) -> Json:
    return {"name": name, "arguments": arguments or {}}


FEATURES = (
    Feature("plain", _tool("add", {"a": 1, "b": 2}), "3", rounds=0),
    Feature("unicode", _tool("echo", {"text": "a\u2028b\u0085c é"}), "a\u2028b\u0085c é", rounds=0),
    Feature("ping", _tool("ping_client"), "pong", rounds=0),
    Feature("form", _tool("ask_name", {"tag": "$key"}), "Hello Ann from $key", (ELICIT,)),
    Feature("form-on-get-stream", _tool("ask_name_get"), "Hello Ann", (ELICIT,)),
    Feature("sampling", _tool("sample", {"prompt": "Capital of France?"}), "Paris", (SAMPLE,)),
    Feature("sampling-on-get-stream", _tool("sample_get"), "Paris", (SAMPLE,)),
    Feature("roots", _tool("roots"), "file:///one file:///two", (ROOTS,)),
    # Two cores and many tests: a longer settle time keeps "at once" apart from "one after the other".
    Feature("parallel", _tool("ask_two_parallel"), "Ada Lovelace", (ELICIT, ELICIT), settle="200ms"),
    Feature("serial", _tool("ask_two_serial"), "Ada Lovelace", (ELICIT, ELICIT), rounds=2),
    Feature("many", _tool("ask_many", {"questions": 4}), "Ann Ann Ann Ann", (ELICIT,) * 4, rounds=4),
    Feature(
        "asked-while-held",
        _tool("ask_while_held", {"delayMs": 400}),
        "Ada Lovelace",
        (ELICIT, ELICIT),
        rounds=2,
    ),
    Feature("address", _tool("ask_url"), "opened", (ELICIT,)),
    Feature(
        "address-required",
        _tool("url_required", {"key": "$key"}),
        "visited $key",
        (ELICIT,),
        not_on=frozenset(
            {"ts-1.12"}
        ),  # that release drops the `data` of every error, and with it the address
    ),
    Feature(
        "weather",
        _tool("get_weather", {"location": "New York"}),
        "Current weather in New York:\nTemperature: 72°F\nConditions: Partly cloudy",
        (ELICIT,),
    ),
    Feature(
        "work-item",
        _tool("update_work_item", {"workItemId": 4522, "fields": {"System.State": "Resolved"}}),
        "Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created.",
        (ELICIT, ELICIT),
        rounds=2,
    ),
    Feature("two-kinds", _tool("two_kinds"), "Ann: Paris", (ELICIT, SAMPLE), settle="200ms"),
    Feature("prompt", {"name": "ask_prompt"}, "Hello Ann", (ELICIT,), method="prompts/get"),
    Feature("resource", {"uri": "ask://resource"}, "Hello Ann", (ELICIT,), method="resources/read"),
)
