"""The tools of the demo's legacy server: functions that stop in mid-call to ask. They know no HTTP."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

Json: TypeAlias = dict[str, Any]


class Refused(Exception):
    """The question was answered with an error, or with something that does not fit it."""


class BackChannel(Protocol):
    """What a tool may do in mid-call: put a question to the client and wait, however long it takes."""

    async def ask(self, method: str, params: Json, *, unrelated: bool = False) -> Json:
        """Ask; `unrelated` goes to the session's standing GET stream, with nothing that names this call."""


Handler: TypeAlias = Callable[[Json, BackChannel], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as `tools/list` shows it, and what it does."""

    name: str
    description: str
    properties: Json
    required: tuple[str, ...]
    run: Handler

    def definition(self) -> Json:
        """What `tools/list` says of it."""
        schema = {"type": "object", "properties": self.properties, "required": list(self.required)}
        return {"name": self.name, "description": self.description, "inputSchema": schema}


async def _choose(channel: BackChannel, message: str, name: str, schema: Json) -> str | None:
    """One form with one field. None when the user declines or dismisses it."""
    requested = {"type": "object", "properties": {name: schema}, "required": [name]}
    answer = await channel.ask("elicitation/create", {"message": message, "requestedSchema": requested})
    if answer.get("action") != "accept":
        return None
    value = (answer.get("content") or {}).get(name)
    # As the SDKs do: an answer that does not fit is an error of the tool; nobody is asked again.
    if not isinstance(value, str) or ("enum" in schema and value not in schema["enum"]):
        raise Refused(f"the answer does not fit the schema of {name!r}")
    return value


async def _echo(arguments: Json, _: BackChannel) -> str:
    return str(arguments["text"])


async def _book_table(arguments: Json, channel: BackChannel) -> str:
    restaurant, guests = arguments["restaurant"], arguments.get("guests", 2)
    message = f"{restaurant} has a table for {guests} at 18:30 and at 20:45. Which one?"
    time = await _choose(channel, message, "time", {"type": "string", "enum": ["18:30", "20:45"]})
    if time is None:
        return "Nothing was booked."
    return f"Booked: {restaurant}, {guests} guests, {time}."


async def _summarize(arguments: Json, channel: BackChannel) -> str:
    # The Python SDK's `create_message` goes to the GET stream unless told otherwise; so does this one.
    answer = await channel.ask(
        "sampling/createMessage",
        {
            "messages": [{"role": "user", "content": {"type": "text", "text": arguments["text"]}}],
            "systemPrompt": "Summarize the user's text in one short sentence.",
            "maxTokens": 100,
        },
        unrelated=True,
    )
    content = answer.get("content")
    if not isinstance(content, dict) or content.get("type") != "text":
        raise Refused("the model did not answer with text")
    return f"Summary by {answer.get('model', 'an unnamed model')}: {content.get('text', '')}"


async def _plan_trip(arguments: Json, channel: BackChannel) -> str:
    days = arguments.get("days", 3)
    destination = await _choose(channel, "Where to?", "destination", {"type": "string", "minLength": 2})
    if destination is None:
        return "No trip, then."
    # The second question needs the first answer, so the two cannot travel in one round.
    months = {"type": "string", "enum": ["May", "September"]}
    month = await _choose(channel, f"When do you want to see {destination}?", "month", months)
    if month is None:
        return f"{destination}, some other year."
    return f"{days} days in {destination} in {month}: one to arrive, the rest to stay."


_TEXT: Json = {"type": "string"}
_COUNT: Json = {"type": "integer", "minimum": 1}

TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("echo", "Returns the text it is given.", {"text": _TEXT}, ("text",), _echo),
        Tool(
            "book_table",
            "Books a table; asks which time suits.",
            {"restaurant": _TEXT, "guests": _COUNT},
            ("restaurant",),
            _book_table,
        ),
        Tool(
            "summarize",
            "Summarizes a text with the client's model.",
            {"text": _TEXT},
            ("text",),
            _summarize,
        ),
        Tool("plan_trip", "Plans a trip; asks where, and then when.", {"days": _COUNT}, (), _plan_trip),
    )
}
