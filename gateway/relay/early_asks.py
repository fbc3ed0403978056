"""Questions that a server asks outside any call: answered by policy, or kept for the session's next call."""

from typing import Any

from gateway.eras.policy import Undeclared, settle_without_client
from gateway.eras.vocabulary import Ask, SendAnswer, SendRefusal
from gateway.relay.place import Place
from gateway.upstreams.flag import Flag
from gateway.upstreams.pool import Caller
from gateway.upstreams.session import Session
from gateway.wire.jsonrpc import decode


def answer_early(place: Place, session: Session, ask: Ask, caller: Caller, answered: Flag) -> None:
    """Say what can be said without the client, and raise the flag if that is an answer."""
    declared: dict[str, Any] = decode(caller.capabilities.encode())
    known_roots = place.roots.recall(caller.principal)
    match settle_without_client(ask, place.policy, declared, known_roots):
        case SendAnswer(Ask(id=ask_id), result) if ask_id is not None:
            answered.set()
            place.background.start(session.answer(ask_id, result), "early-answer")
        case (SendRefusal(Ask(id=ask_id), code, message)) | Undeclared(
            SendRefusal(Ask(id=ask_id), code, message)
        ) if ask_id is not None:
            place.background.start(session.refuse(ask_id, code, message), "early-refusal")
        case _:
            session.early_asks.append(ask)
