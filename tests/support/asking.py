"""Asks, answers and whole exchanges in few words, for tests of what decides about them. No sockets, no clock."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from gateway.eras.asks import KeyNaming
from gateway.eras.exchange import Exchange
from gateway.eras.policy import AskPolicy
from gateway.eras.reruns import Past
from gateway.eras.states import State
from gateway.eras.vocabulary import (
    KIND_OF_METHOD,
    Abort,
    Ask,
    CancelCall,
    ClientCalled,
    ClientRetried,
    Command,
    Complete,
    CompleteFailure,
    Event,
    Hold,
    Reject,
    Release,
    SeekRerun,
    SendAnswer,
    SendCall,
    SendRefusal,
    SettleElapsed,
    StartOver,
    StartSettling,
    UpstreamAnswered,
    UpstreamAsked,
    UpstreamFailed,
)
from gateway.wire.jsonrpc import Failure, Id, Params, Raw, decode, encode

HINT = "dev.holdfast/inputKey"
EVERYTHING: dict[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}
ROOTS: dict[str, Any] = {"roots": [{"uri": "file:///home/ada"}]}
SAMPLE: dict[str, Any] = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"}
DECLINE: dict[str, Any] = {"action": "decline"}
CANCEL: dict[str, Any] = {"action": "cancel"}

Told: TypeAlias = str | tuple[Any, ...]


def raw(members: Mapping[str, Any]) -> Params:
    """An object whose members are still as somebody wrote them."""
    return {name: value if isinstance(value, Raw) else Raw(encode(value)) for name, value in members.items()}


def ask(ask_id: Id | None, method: str, **params: Any) -> Ask:
    """Any ask."""
    return Ask(ask_id, KIND_OF_METHOD[method], method, raw(params))


def form(ask_id: Id, *names: str, **params: Any) -> Ask:
    """A form with a required text field for each name."""
    schema = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": list(names),
    }
    return ask(ask_id, "elicitation/create", **({"message": "?", "requestedSchema": schema} | params))


def page(ask_id: Id | None, url: str = "https://bank.example/login") -> Ask:
    """An elicitation that sends the user to a page."""
    return ask(ask_id, "elicitation/create", mode="url", message="?", url=url, elicitationId="e")


def sampling(ask_id: Id, **params: Any) -> Ask:
    """A question for the client's model."""
    return ask(ask_id, "sampling/createMessage", **({"messages": [], "maxTokens": 9} | params))


def roots(ask_id: Id) -> Ask:
    """A question for the client's roots."""
    return ask(ask_id, "roots/list")


def accept(**content: Any) -> dict[str, Any]:
    """The user filled the form in."""
    return {"action": "accept", "content": content}


def pages_required(*urls: str) -> UpstreamFailed:
    """The call ended with -32042."""
    listed = [{"mode": "url", "message": "?", "url": url, "elicitationId": url} for url in urls]
    return UpstreamFailed(Failure(1, -32042, "URL required", Raw(encode({"elicitations": listed}))))


def failed(code: int = -32603) -> UpstreamFailed:
    """The call ended with an error."""
    return UpstreamFailed(Failure(1, code, "no", None))


def answered(**result: Any) -> UpstreamAnswered:
    """The call ended well."""
    return UpstreamAnswered(Raw(encode(result)))


class Conversation:
    """An exchange that is told what happens and says in short what it wants done."""

    def __init__(
        self,
        policy: AskPolicy | None = None,
        *,
        early: Sequence[Ask] = (),
        names: Sequence[str] = (),
        known_roots: Mapping[str, Any] | None = None,
        can: Mapping[str, Any] = EVERYTHING,
        may_rerun: bool = False,
        past: Past | None = None,
    ) -> None:
        self.can = can
        self.shown: dict[str, Any] = {}
        self.exchange = Exchange(
            policy or AskPolicy(),
            KeyNaming(HINT, names),
            early=early,
            known_roots=known_roots,
            may_rerun=may_rerun,
            past=past,
        )

    def on(self, event: Event) -> list[Told]:
        """What it wants done now that this has happened."""
        commands = self.exchange.receive(event)
        for command in commands:
            if isinstance(command, Hold):
                self.shown = decode(encode(command.requests))
        return [in_short(command) for command in commands]

    def call(self, **answers: Any) -> list[Told]:
        """The first round."""
        return self.on(ClientCalled(self.can, {key: raw(answer) for key, answer in answers.items()}))

    def retry(self, answers: Mapping[str, Any] | None = None, *, can: Any = None) -> list[Told]:
        """A later round."""
        given = {key: raw(answer) for key, answer in (answers or {}).items()}
        return self.on(ClientRetried(self.can if can is None else can, given))

    def asked(self, *asks: Ask) -> list[Told]:
        """The server asked these, one after the other."""
        return [told for one in asks for told in self.on(UpstreamAsked(one))]


def in_short(command: Command) -> Told:
    """A command in few words."""
    match command:
        case SendCall():
            return "call"
        case StartOver():
            return "start over"
        case SeekRerun():
            return "seek rerun"
        case StartSettling():
            return "settle"
        case CancelCall():
            return "cancel"
        case SendAnswer(one, result):
            return ("answer", one.id, decode(encode(result)))
        case SendRefusal(one, code):
            return ("refuse", one.id, code)
        case Hold(requests):
            return ("hold", *requests)
        case Reject(error):
            return ("reject", error.rpc_code)
        case Complete(result):
            return ("complete", decode(result))
        case CompleteFailure(failure):
            return ("failed", failure.code)
        case Abort(error):
            return ("abort", error.reason)
        case Release(reusable, leftover):
            return ("release", "reusable" if reusable else "used up", *(one.id for one in leftover))


REUSABLE: Told = ("release", "reusable")
USED_UP: Told = ("release", "used up")
OK: Told = ("complete", {"ok": True})
DONE = answered(ok=True)


def held(*asks: Ask, **how: Any) -> Conversation:
    """A conversation in which these were asked in mid-call, and the client was sent away with them."""
    talk = Conversation(**how)
    talk.call()
    talk.asked(*asks)
    talk.on(SettleElapsed())
    if talk.exchange.state is not State.HELD:
        raise AssertionError(talk.exchange.state)
    return talk


def needs(talk: Conversation) -> Any:
    """What the last word says that the client lacks."""
    ending = talk.exchange.outcome
    if not isinstance(ending, Abort) or ending.error.data is None:
        raise AssertionError(ending)
    return ending.error.data["requiredCapabilities"]


def lost(talk: Conversation) -> tuple[str, bool]:
    """Why the exchange was lost, and whether the call may have done something."""
    ending = talk.exchange.outcome
    if not isinstance(ending, Abort) or ending.error.data is None:
        raise AssertionError(ending)
    return ending.error.data["reason"], ending.error.data["sideEffectsPossible"]
