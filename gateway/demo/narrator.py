"""Tells an exchange as it happens: what each side sent, and who answered. It starts and stops nothing."""

import json
from typing import Any, Final, assert_never

from gateway.demo.legacy_server import Sighting
from gateway.demo.modern_client import Json, Round
from gateway.demo.terminal import Terminal

_TO_GATEWAY: Final = "client → holdfast"
_TO_LEGACY: Final = "holdfast → legacy"
_FROM_LEGACY: Final = "holdfast ← legacy"
_TO_CLIENT: Final = "client ← holdfast"
_CLIENT: Final = "blue"
_LEGACY: Final = "magenta"
_ASK: Final = "yellow"
_ANSWER: Final = "green"

# What the client answers when nobody types, and what Enter stands for when somebody does.
_SUGGESTIONS: Final = {"time": "20:45", "destination": "Lisbon", "month": "May"}
_STAND_IN_MODEL: Final = "stand-in-model"
_STAND_IN_SUMMARY: Final = "A knot that holds best when pulled."


class Narrator:
    """Give it to the legacy server and to the client as witness, and to the client as the one who answers."""

    def __init__(self, terminal: Terminal, *, is_interactive: bool) -> None:
        self._terminal = terminal
        self._is_interactive = is_interactive
        self._sessions: set[str] = set()
        self._asked_upstream = 0
        self.rounds = 0
        self.asks = 0

    # --- the legacy side ----------------------------------------------------

    def heard(self, sighting: Sighting) -> None:
        """Something happened on the legacy server's wire."""
        step, short, message = self._terminal.step, f"session {sighting.session[:6]}…", sighting.message
        match sighting.what:
            case "opened":
                # Spare sessions are opened ahead of need; only the first handshake is news.
                if not self._sessions:
                    step(
                        _TO_LEGACY,
                        f"initialize: sessions of {message['protocolVersion']}, kept by Holdfast",
                        _LEGACY,
                    )
                self._sessions.add(sighting.session)
            case "called":
                step(_TO_LEGACY, f"POST tools/call {message['name']} in {short}", _LEGACY)
            case "asked":
                self._asked_upstream += 1
                step(
                    _FROM_LEGACY,
                    f"asks on the {sighting.stream} stream: {message['method']}, id {message['id']}",
                    _ASK,
                    detail=_question(message["params"]),
                )
            case "answered":
                answer = message.get("result", message.get("error"))
                step(
                    _TO_LEGACY,
                    f"POST the answer to id {message['id']} in {short}",
                    _ANSWER,
                    detail=_compact(answer),
                )
            case "finished":
                step(_FROM_LEGACY, "result, on the stream of the call that was waiting", _LEGACY)
            case "closed":
                pass
            case _:
                assert_never(sighting.what)

    # --- the modern side ----------------------------------------------------

    def saw(self, turn: Round) -> None:
        """A request or a response of the modern client."""
        if turn.method != "tools/call":
            return
        if turn.what == "sent":
            self._tell_request(turn.message["params"])
        elif "result" in turn.message:
            self._tell_result(turn.message["result"])

    def _tell_request(self, params: Json) -> None:
        self.rounds += 1
        self._asked_upstream = 0
        what = f"POST tools/call {params['name']}"
        if "inputResponses" in params:
            self._terminal.step(_TO_GATEWAY, f"{what}, again: + inputResponses + requestState", _CLIENT)
            self._terminal.detail(_compact(params["inputResponses"]))
        else:
            self._terminal.step(_TO_GATEWAY, what, _CLIENT, detail=_compact(params["arguments"]))

    def _tell_result(self, result: Json) -> None:
        if result.get("resultType") != "input_required":
            self._terminal.step(_TO_CLIENT, f"result, {result.get('resultType')}", _CLIENT)
            self._terminal.detail(result_text(result), "bold")
            return
        asks: dict[str, Json] = result.get("inputRequests") or {}
        self.asks += len(asks)
        if asks and not self._asked_upstream:
            self._terminal.step(
                "", "That does not fit the question. Holdfast asks again; the server saw nothing.", _ASK
            )
        self._terminal.step(_TO_CLIENT, "InputRequiredResult: response complete, call held", _CLIENT)
        for key, ask in asks.items():
            self._terminal.detail(f"inputRequests  {key}: {ask['method']}")
        state = result.get("requestState")
        if isinstance(state, str):
            self._terminal.detail(f"requestState   {shorten(state)}  (sealed, {len(state)} bytes)")

    # --- the user -----------------------------------------------------------

    async def answer(self, key: str, ask: Json) -> Json:
        """What the client sends back for one question: typed, or as suggested."""
        params = ask.get("params") or {}
        if ask["method"] == "sampling/createMessage":
            text = await self._one_answer("model", _STAND_IN_SUMMARY)
            return {"role": "assistant", "content": {"type": "text", "text": text}, "model": _STAND_IN_MODEL}
        if ask["method"] != "elicitation/create":
            raise ValueError(f"no way to answer {ask['method']} ({key})")
        fields: dict[str, Json] = (params.get("requestedSchema") or {}).get("properties") or {}
        content = {}
        for name, schema in fields.items():
            choices = [str(choice) for choice in schema.get("enum", ())]
            typed = await self._one_answer(name, _SUGGESTIONS.get(name) or next(iter(choices), ""), choices)
            if typed == "decline":
                return {"action": "decline"}
            content[name] = typed
        return {"action": "accept", "content": content}

    async def _one_answer(self, name: str, suggestion: str, choices: list[str] | None = None) -> str:
        prompt = f"{name} ({' | '.join([*choices, 'decline'])})" if choices else name
        if self._is_interactive:
            return await self._terminal.ask("you", prompt, suggestion, _ANSWER)
        self._terminal.step("answered for you", f"{name}: {suggestion}", _ANSWER)
        return suggestion


def result_text(result: Json) -> str:
    """The text of a tool's result."""
    return " ".join(
        block.get("text", "") for block in result.get("content", ()) if block.get("type") == "text"
    )


def shorten(token: str, keep: int = 8) -> str:
    """Both ends of something long."""
    return token if len(token) <= 2 * keep else f"{token[:keep]}…{token[-keep:]}"


def _question(params: Json) -> str:
    if "message" in params:
        return str(params["message"])
    return " ".join(str(message["content"].get("text", "")) for message in params.get("messages", ()))


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
