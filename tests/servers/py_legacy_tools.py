"""What the Python legacy fixture's tools, prompts and resources do. Knows nothing of HTTP.

Runs under whichever `mcp` 1.x its interpreter has, so `mcp` is imported by name: the types of the release
that the test venv has are those of another era.
"""

import asyncio
import contextlib
import importlib
import json
import os
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

jsonschema: Any = importlib.import_module("jsonschema")
types: Any = importlib.import_module("mcp.types")
messages: Any = importlib.import_module("mcp.shared.message")
McpError: Any = importlib.import_module("mcp.shared.exceptions").McpError

CATALOG: dict[str, Any] = json.loads((Path(__file__).parent / "catalog.json").read_text("utf-8"))
RELEASE = tuple(int(part) for part in version("mcp").split(".")[:2])

Json = dict[str, Any]

CHAIN_SCHEMA: Json = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}


class Events(deque[str]):
    """In order; in a file too if there is one, for processes that cannot be asked."""

    def __init__(self, file: str | None) -> None:
        super().__init__(maxlen=20_000)
        self._file = file

    def append(self, event: str) -> None:
        super().append(event)
        if self._file is not None:
            with Path(self._file).open("a", encoding="utf-8") as sink:
                sink.write(f"{event}\n")


class Seen:
    """What happened in this process since it started, whoever asked for it."""

    def __init__(self, events_file: str | None = None) -> None:
        self.events = Events(events_file)
        self.counters: Counter[str] = Counter()
        self.visited: set[str] = set()
        self.remembered: dict[str, str] = {}


class Plain:
    """Lets the SDK send a request or a result that its own types do not have."""

    def __init__(self, **members: Any) -> None:
        self.members = members

    def model_dump(self, **_: Any) -> Json:
        return self.members


def refuse(code: int, message: str, data: Any = None) -> Exception:
    error: Exception = McpError(types.ErrorData(code=code, message=message, data=data))
    return error


class Refused(Exception):
    """Carries a JSON-RPC error past the place that turns failures into isError results."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Call:
    """One request being served: how it asks, and on which stream."""

    def __init__(self, context: Any, seen: Seen) -> None:
        self.context = context
        self.session = context.session
        self.seen = seen

    @property
    def headers(self) -> Any:
        """Those of the POST; over stdio there are none."""
        return getattr(self.context.request, "headers", {})

    @property
    def session_id(self) -> str:
        # Only Streamable HTTP names the session in a header.
        return str(self.headers.get("mcp-session-id", id(self.session)))

    async def form(self, question: str, *, tag: str = "", related: bool = True, **fill: Any) -> Any:
        asked = CATALOG["questions"][question]
        message = asked["message"].format(**fill) + (f" [{tag}]" if tag else "")
        answer = await self.session.elicit(
            message=message,
            requestedSchema=asked["requestedSchema"],
            related_request_id=self.context.request_id if related else None,
        )
        self.seen.events.append(f"answer:{question}:{answer.action}")
        if answer.action == "accept":
            jsonschema.validate(answer.content, asked["requestedSchema"])
        return answer

    async def value(self, question: str, key: str, **options: Any) -> str:
        answer = await self.form(question, **options)
        return str(answer.content[key]) if answer.action == "accept" else said(answer)

    async def raw(self, method: str, params: Json, result: Any, timeout_ms: int | None = None) -> Any:
        return await self.session.send_request(
            Plain(method=method, params=params),
            result,
            request_read_timeout_seconds=timedelta(milliseconds=timeout_ms) if timeout_ms else None,
            metadata=messages.ServerMessageMetadata(related_request_id=self.context.request_id),
        )

    async def sampled(self, params: Json, *, related: bool = True) -> str:
        answer = await self.session.create_message(
            messages=[types.SamplingMessage.model_validate(message) for message in params["messages"]],
            max_tokens=params["maxTokens"],
            system_prompt=params.get("systemPrompt"),
            model_preferences=types.ModelPreferences.model_validate(params["modelPreferences"])
            if "modelPreferences" in params
            else None,
            related_request_id=self.context.request_id if related else None,
        )
        return str(answer.content.text)

    async def roots(self) -> list[str]:
        answer = await self.session.list_roots()
        return [str(root.uri) for root in answer.roots]

    async def progress(self, steps: int) -> None:
        token = self.context.meta.progressToken if self.context.meta else None
        if token is None:
            return
        # As the SDK's own Context does: the stream of the call only since 1.30.
        related = str(self.context.request_id) if RELEASE >= (1, 30) else None
        for step in range(1, steps + 1):
            await self.session.send_progress_notification(token, step, steps, f"step {step}", related)


def said(answer: Any) -> str:
    return {"accept": "accepted", "decline": "declined", "cancel": "cancelled"}[answer.action]


def hello(answer: Any, tag: str = "") -> str:
    if answer.action != "accept":
        return said(answer)
    return f"Hello {answer.content['name']}" + (f" from {tag}" if tag else "")


def prompt_params(arguments: Json) -> Json:
    text = arguments.get("prompt", "Say something")
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}], "maxTokens": 50}


async def add(_: Call, a: Json) -> Any:
    total = a["a"] + a["b"]
    return types.CallToolResult(content=[text(f"{total:g}")], structuredContent={"result": total})


async def slow(call: Call, a: Json) -> str:
    tag = a.get("tag", "")
    call.seen.events.append(f"slow:started:{tag}")
    try:
        await asyncio.sleep(a["seconds"])
    except asyncio.CancelledError:
        call.seen.events.append(f"slow:cancelled:{tag}")
        raise
    call.seen.events.append(f"slow:finished:{tag}")
    return "slept"


async def progress(call: Call, a: Json) -> str:
    await call.progress(a["steps"])
    return await slow(call, a) if "seconds" in a else f"{a['steps']} steps"


async def logs(call: Call, a: Json, *, related: bool = True) -> str:
    for level in a["levels"]:
        await call.session.send_log_message(
            level, f"at {level}", "fixture", call.context.request_id if related else None
        )
    return f"{len(a['levels'])} messages"


async def fail(_: Call, __: Json) -> str:
    raise ValueError("this tool always fails")


async def protocol_error(_: Call, __: Json) -> str:
    raise Refused(refuse(-32050, "refused by the tool", {"why": "always"}))


async def crash_process(_: Call, __: Json) -> str:
    os._exit(3)


async def count(call: Call, _: Json) -> str:
    call.seen.counters["count"] += 1
    return str(call.seen.counters["count"])


async def whoami(call: Call, _: Json) -> str:
    headers, declared = call.headers, call.session.client_params
    return json.dumps(
        {
            "authorization": headers.get("authorization"),
            "session": headers.get("mcp-session-id"),
            "version": headers.get("mcp-protocol-version"),
            "capabilities": declared and declared.capabilities.model_dump(mode="json", exclude_none=True),
            "client": declared and declared.clientInfo.model_dump(mode="json", exclude_none=True),
        }
    )


async def remember(call: Call, a: Json) -> str:
    call.seen.remembered[call.session_id] = a["value"]
    return "remembered"


async def recall(call: Call, _: Json) -> str:
    return call.seen.remembered.get(call.session_id, "nothing")


async def ping_client(call: Call, _: Json) -> str:
    await call.session.send_ping()
    return "pong"


async def unknown_ask(call: Call, _: Json) -> str:
    await call.raw("fixture/unknown", {}, types.EmptyResult)
    return "answered"


async def ask_name(call: Call, a: Json) -> str:
    return hello(await call.form("name", tag=a.get("tag", "")), a.get("tag", ""))


async def ask_name_get(call: Call, a: Json) -> str:
    return hello(await call.form("name", tag=a.get("tag", ""), related=False), a.get("tag", ""))


async def hang_up_then_ask(call: Call, _: Json) -> str:
    await hang_up(call)
    answer = await call.form("name")
    await hang_up(call)
    return hello(answer)


async def hang_up(call: Call) -> None:
    # Only where the SDK has it, with an event store, for clients of 2025-11-25.
    close = getattr(call.context, "close_sse_stream", None)
    if close is not None:
        call.seen.events.append("hung up")
        await close()


async def ask_keyed(call: Call, a: Json) -> str:
    params = {**CATALOG["questions"]["name"], "_meta": {"dev.holdfast/inputKey": a["key"]}}
    return hello(await call.raw("elicitation/create", params, types.ElicitResult))


async def ask_profile(call: Call, _: Json) -> str:
    answer = await call.form("profile")
    return json.dumps(answer.content, sort_keys=True) if answer.action == "accept" else said(answer)


async def ask_two_parallel(call: Call, a: Json) -> str:
    tag = a.get("tag", "")
    both = await asyncio.gather(call.value("first", "first", tag=tag), call.value("last", "last", tag=tag))
    return " ".join(both)


async def ask_two_serial(call: Call, a: Json) -> str:
    tag = a.get("tag", "")
    first = await call.value("first", "first", tag=tag)
    return f"{first} {await call.value('last', 'last', tag=tag)}"


async def ask_many(call: Call, a: Json) -> str:
    given = [await call.value("name", "name", tag=str(n)) for n in range(1, a["questions"] + 1)]
    return " ".join(given)


async def ask_while_held(call: Call, a: Json) -> str:
    async def later() -> str:
        await asyncio.sleep(a.get("delayMs", 150) / 1000)
        return await call.value("last", "last")

    return " ".join(await asyncio.gather(call.value("first", "first"), later()))


async def impatient(call: Call, a: Json) -> str:
    # This SDK only stops waiting: it never tells the client that the question is withdrawn.
    params = CATALOG["questions"]["name"]
    return hello(await call.raw("elicitation/create", params, types.ElicitResult, a.get("timeoutMs", 300)))


async def ask_again_after_timeout(call: Call, a: Json) -> str:
    with contextlib.suppress(McpError):
        return f"in time: {await impatient(call, a)}"
    return f"too late: {await call.value('last', 'last')}"


async def ask_then_progress(call: Call, a: Json) -> str:
    answer = await call.form("name")
    await call.progress(a["steps"])
    await logs(call, {"levels": a.get("levels", [])})
    return await slow(call, a) if "seconds" in a else hello(answer)


async def mixed_three(call: Call, _: Json) -> str:
    name, drawn, roots = await asyncio.gather(
        call.value("name", "name"), call.sampled(prompt_params({})), call.roots()
    )
    return json.dumps({"name": name, "sampled": drawn, "roots": roots})


async def two_kinds(call: Call, _: Json) -> str:
    both = await asyncio.gather(call.value("github", "name"), call.sampled(CATALOG["sampling"]["capital"]))
    return f"{both[0]}: {both[1]}"


async def sample(call: Call, a: Json) -> str:
    return await call.sampled(prompt_params(a))


async def sample_get(call: Call, a: Json) -> str:
    return await call.sampled(prompt_params(a), related=False)


async def roots(call: Call, _: Json) -> str:
    return " ".join(await call.roots())


async def ask_url(call: Call, _: Json) -> str:
    address = CATALOG["url"]
    answer = await call.raw("elicitation/create", {"mode": "url", **address}, types.ElicitResult)
    if answer.action != "accept":
        return said(answer)
    await call.session.send_notification(
        Plain(
            method="notifications/elicitation/complete", params={"elicitationId": address["elicitationId"]}
        ),
        related_request_id=call.context.request_id,
    )
    return "opened"


async def url_required(call: Call, a: Json) -> str:
    key = a["key"]
    if key in call.seen.visited:
        return f"visited {key}"
    call.seen.visited.add(key)
    asked = {"mode": "url", **CATALOG["url"], "elicitationId": f"sign-in-{key}"}
    raise Refused(refuse(-32042, "URL elicitation required", {"elicitations": [asked]}))


async def side_effect_then_ask(call: Call, a: Json) -> str:
    call.seen.counters[f"effect:{a['id']}"] += 1
    answer = await call.form("name")
    return f"{hello(answer)}, effect {call.seen.counters['effect:' + a['id']]}"


async def ask_chain(call: Call, a: Json) -> str:
    name, note = a["id"], call.seen.events.append

    async def ask(number: int) -> str:
        answer = await call.session.elicit(
            message=f"{name} question {number}",
            requestedSchema=CHAIN_SCHEMA,
            related_request_id=call.context.request_id,
        )
        value = str(answer.content["answer"]) if answer.action == "accept" else said(answer)
        note(f"chain:answer:{name}:{number}:{value}")
        return value

    note(f"chain:start:{name}")
    numbers = range(1, a["questions"] + 1)
    if a.get("atOnce"):
        given = list(await asyncio.gather(*map(ask, numbers)))
    else:
        given = [await ask(number) for number in numbers]
    note(f"chain:done:{name}")
    return json.dumps({"id": name, "answers": given})


ask_chain_again = ask_chain


async def get_weather(call: Call, a: Json) -> str:
    if (await call.form("github")).action != "accept":
        return "No weather without a GitHub username"
    return f"Current weather in {a['location']}:\nTemperature: 72°F\nConditions: Partly cloudy"


async def update_work_item(call: Call, a: Json) -> str:
    item, state = a["workItemId"], a["fields"].get("System.State")
    if state != "Resolved":
        return f"Bug #{item} updated."
    resolution = await call.value("resolution", "resolution", id=item)
    if resolution != "Duplicate":
        return f"Bug #{item} resolved as {resolution}. State set to Resolved."
    original = float(await call.value("duplicate", "duplicateOfId"))
    return (
        f"Bug #{item} resolved as Duplicate of Bug #{original:g}. "
        "State set to Resolved and duplicate link created."
    )


async def echo(_: Call, a: Json) -> str:
    return str(a["text"])


async def big(_: Call, a: Json) -> str:
    return "x" * int(a["characters"])


async def logs_get(call: Call, a: Json) -> str:
    return await logs(call, a, related=False)


ask_impatient = impatient


def text(words: str) -> Any:
    return types.TextContent(type="text", text=words)


def behaviour(name: str) -> Callable[[Call, Json], Awaitable[Any]] | None:
    known = any(tool["name"] == name for tool in CATALOG["tools"])
    return globals()[name] if known else None


async def call_tool(call: Call, name: str, arguments: Json) -> Any:
    found = behaviour(name)
    if found is None:
        raise refuse(-32602, f"Unknown tool: {name}")
    call.seen.events.append(f"call:{name}")
    try:
        outcome = await found(call, arguments)
    except Refused as refused:
        raise refused.error from None
    except Exception as problem:  # noqa: BLE001  (as the SDK does: whatever a tool raises is its result)
        call.seen.events.append(f"failed:{name}")
        return types.CallToolResult(content=[text(str(problem))], isError=True)
    call.seen.events.append(f"done:{name}")
    return types.CallToolResult(content=[text(outcome)]) if isinstance(outcome, str) else outcome
