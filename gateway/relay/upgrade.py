"""A call that was held by a legacy server when that was replaced by a modern one: run again there, if policy allows.

The modern server asks in its own rounds and under its own `requestState`. What
the journal knows is answered here, at once; with the first question that it
does not know, the round is the client's, and from then on so is the call.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, Final, TypeAlias

from gateway.eras.questions import Entry
from gateway.eras.upgrades import known_answers
from gateway.errors import CallLost, GatewayError, UpstreamLost, UpstreamSpokeNonsense, UpstreamTimedOut
from gateway.relay.ladder import Retry, new_listener, told_so_far
from gateway.relay.listener import Listener, Reply, RpcError
from gateway.relay.passage import Knock, Passage
from gateway.relay.place import Place
from gateway.relay.replays import ReplayPolicy
from gateway.relay.request import ClientRequest
from gateway.telemetry.names import Outcome, Rung
from gateway.wire import headers as names
from gateway.wire.jsonrpc import (
    Failure,
    Message,
    Notification,
    NotJson,
    NotJsonRpc,
    Raw,
    Request,
    Result,
    decode,
    decode_members,
    encode_request,
    parse,
)
from gateway.wire.sse import EventTooLarge, SseParser

Pass: TypeAlias = Callable[[Knock], AbstractAsyncContextManager[Passage]]
"""Hands a request on to the modern server."""

_MOST_ROUNDS: Final = 10
"""As clients have it; a server that always asks something that is known again would be asked for ever."""
_OF_THE_RETRY: Final = frozenset({"requestState", "inputResponses"})
_OF_THE_CALL: Final = ("mcp-method", "mcp-name", "mcp-param-")
_INPUT_REQUIRED: Final = "input_required"


class Upgrade:
    """Runs calls again for one upstream."""

    def __init__(self, place: Place, pass_modern: Pass, *, most_bytes: int) -> None:
        self._place = place
        self._pass = pass_modern
        self._most_bytes = most_bytes

    async def run(self, retry: Retry, knock: Knock) -> Listener:
        """Run the call again from its beginning; the listener hears how it goes.

        Raises:
            CallLost: it is not to be run again.
        """
        past = told_so_far(retry, self._place.policy.unfit)
        first = _request_in(knock)

        async def fetch(asked: ClientRequest) -> Reply:
            body = encode_request(first.id, asked.method, {**asked.params, "_meta": first.params["_meta"]})
            kept = [line for line in knock.headers if not line[0].lower().startswith(_OF_THE_CALL)]
            kept.append((names.METHOD, asked.method))
            return await self._answer(replace(knock, body=body, headers=kept), None)

        if not await ReplayPolicy(self._place.settings, fetch).allows(retry.request):
            raise CallLost("hold_lost", "the server was upgraded, and policy allows no replay")
        listener = new_listener(retry.request, Rung.REPLAYED)
        listener.exchange_id, listener.round = retry.claims.exchange, retry.claims.round
        running = self._place.background.start(
            self._run(knock, first, list(past.journal), listener), "upgraded-call"
        )

        def leave(_: Listener) -> None:
            running.cancel()

        listener.joined(leave)
        return listener

    async def _run(self, knock: Knock, request: Request, journal: list[Entry], listener: Listener) -> None:
        try:
            async with asyncio.timeout(self._place.settings.call_timeout):
                listener.finish(await self._rounds(knock, request, journal, listener))
        except TimeoutError:
            listener.finish(Reply.of(UpstreamTimedOut("run again by the modern server")))
        except GatewayError as error:
            listener.finish(Reply.of(error))

    async def _rounds(
        self, knock: Knock, request: Request, journal: list[Entry], listener: Listener
    ) -> Reply:
        params = {name: value for name, value in request.params.items() if name not in _OF_THE_RETRY}
        more: dict[str, Any] = {}
        for _ in range(_MOST_ROUNDS):
            body = encode_request(request.id, request.method, {**params, **more})
            reply = await self._answer(replace(knock, body=body), listener)
            result = reply.result or {}
            if reply.outcome is not Outcome.INPUT_REQUIRED:
                return reply
            answers, journal = known_answers(result.get("inputRequests"), journal)
            if not answers:
                return reply
            more = {"inputResponses": answers}
            if "requestState" in result:
                more["requestState"] = result["requestState"]
        return reply

    async def _answer(self, knock: Knock, listener: Listener | None) -> Reply:
        async with self._pass(knock) as passage:
            async for message in _messages(passage, self._most_bytes):
                match message:
                    case Result(result=result):
                        return _told(result)
                    case Failure(code=code, message=text, data=data):
                        error = RpcError(code, text, data)
                        return Reply(Outcome.ERROR, error=error, status=passage.status)
                    case Notification() if listener is not None:
                        listener.tell(message)
                    case _:
                        continue
        raise UpstreamLost("the stream ended without an answer")


def _request_in(knock: Knock) -> Request:
    match parse(knock.body):
        case Request() as request:
            return request
        case _:
            raise AssertionError("the edge lets requests through only")


def _told(raw: Raw) -> Reply:
    members = decode_members(raw)
    if members is None:
        raise UpstreamSpokeNonsense("a result that is no object")
    kind = members.get("resultType")
    is_asking = kind is not None and decode(kind) == _INPUT_REQUIRED
    return Reply(Outcome.INPUT_REQUIRED if is_asking else Outcome.COMPLETE, result=members)


async def _messages(passage: Passage, most_bytes: int) -> AsyncIterator[Message]:
    kinds = [names.media_type(value) for name, value in passage.headers if name.lower() == "content-type"]
    try:
        if names.EVENT_STREAM in kinds:
            parser = SseParser(most_bytes)
            async for chunk in passage.chunks:
                for event in parser.feed(chunk):
                    if event.data:
                        yield parse(event.data)
            return
        body = bytearray()
        async for chunk in passage.chunks:
            body += chunk
            if len(body) > most_bytes:
                raise UpstreamSpokeNonsense("an answer that is longer than limits.event")
        yield parse(bytes(body))
    except (NotJson, NotJsonRpc, EventTooLarge) as error:
        raise UpstreamSpokeNonsense(f"no answer: {error}") from None
