"""The scripted legacy server, speaking HTTP+SSE: one stream per session, POSTs beside it."""

from dataclasses import dataclass, field

from tests.support.scripted import Json, Script, Scripted, Turn, introduction, text_result


@dataclass
class ScriptedSse(Scripted):
    """`on` as in `Scripted`, for POSTs; `on["GET"]` for the stream. `say` says something on it."""

    sessions: bool = False
    endpoint: str = "/messages?sessionId={session}"
    """What the first event says."""
    stream_headers: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/sse"

    def _script_for(self, turn: Turn) -> Script:
        if turn.path == "/sse":
            return (self.on.get("GET") or open_stream) if turn.verb == "GET" else _not_here
        return self.on.get(turn.method) or serve

    def stream_of(self, turn: Turn) -> Turn | None:
        """The stream of the session to which a message was posted."""
        return self.standing.get(turn.path.rpartition("=")[2])


async def open_stream(turn: Turn) -> None:
    """Open a session: the endpoint first, then whatever is said."""
    server = turn.server
    assert isinstance(server, ScriptedSse)
    session = f"s-{server.number('session')}"
    headers = {"Content-Type": "text/event-stream; charset=utf-8", **server.stream_headers}
    await turn.stream(headers, newline="\r\n")
    await turn.event(server.endpoint.format(session=session, port=server.port), event="endpoint")
    server.standing[session] = turn
    await server.changed()
    await turn.until_left()
    server.standing.pop(session, None)


async def serve(turn: Turn) -> None:
    """Take a message; a request is answered on the stream."""
    await accept(turn)
    if turn.method != "answer" and turn.id is not None:
        await respond(turn, _result(turn))


async def accept(turn: Turn) -> None:
    """202, as servers say it; the connection is not for the next request, which the script would not read."""
    await turn.reply(202, "Accepted", {"Connection": "close"})


async def respond(turn: Turn, result: Json) -> None:
    """Say on the stream what the result of this request is."""
    assert isinstance(turn.server, ScriptedSse)
    stream = turn.server.stream_of(turn)
    assert stream is not None, "a POST to a session that has no stream"
    await stream.event(turn.answer(result))


def _result(turn: Turn) -> Json:
    match turn.method:
        case "initialize":
            return introduction(turn.server)
        case "tools/call":
            return text_result("done")
        case _:
            return {}


async def _not_here(turn: Turn) -> None:
    await turn.reply(405, "Method Not Allowed")
