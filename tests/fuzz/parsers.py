"""The real parsers and machines, fed with what no server should say: they may refuse, they may not break."""

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.edge.reply import body_of
from gateway.eras.asks import KeyNaming, ask_of
from gateway.eras.discovery import Introduction, introduction
from gateway.eras.exchange import Exchange
from gateway.eras.policy import AskPolicy, Unfit
from gateway.eras.states import State
from gateway.eras.subscriptions import change_of
from gateway.eras.vocabulary import (
    Abort,
    ClientCalled,
    ClientRetried,
    Command,
    Complete,
    CompleteFailure,
    Event,
    Hold,
    SettleElapsed,
    UpstreamAnswered,
    UpstreamAsked,
    UpstreamFailed,
    UpstreamWithdrew,
)
from gateway.errors import GatewayError
from gateway.relay.replies import completed, ending_reply, input_required
from gateway.relay.request import ClientRequest
from gateway.settings.upstream import Caching
from gateway.wire.jsonrpc import (
    Failure,
    Message,
    Notification,
    NotJson,
    NotJsonRpc,
    Request,
    Result,
    decode,
    encode,
    encode_error,
    encode_result,
    parse_many,
)
from gateway.wire.sse import EventTooLarge, SseParser
from tests.fuzz.upstream_messages import event
from tests.support.asking import EVERYTHING, HINT, accept, raw
from tests.support.requests import ADA, tool_call

_SERVER: Final = Introduction("2025-11-25", {}, {"name": "s", "version": "1"}, None)
_METHODS: Final = (
    *("tools/list", "prompts/list", "resources/list", "resources/templates/list", "completion/complete"),
    *("prompts/get", "resources/read", "tools/call"),
)
_LIMIT: Final = 64 * 1024


@dataclass
class Findings:
    """What became of the events."""

    heard: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.heard.values())


def fuzz(seed: int, number: int) -> Findings:
    """Feed so many events, in chunks of any size, to one conversation after another."""
    rng, findings = random.Random(seed), Findings()
    talk = _Talk(rng)
    for _ in range(number):
        data = event(rng)
        try:
            findings.heard[talk.hear(data)] += 1
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            findings.heard["broke"] += 1
            findings.faults.append(f"{error!r} from {data[:500]!r}")
            talk = _Talk(rng)
        if talk.is_over:
            talk = _Talk(rng)
    return findings


class _Talk:
    """One exchange, its server, and the client who answers now and then."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._parser = SseParser(_LIMIT)
        self._request: ClientRequest = tool_call()
        policy = AskPolicy(unfit=rng.choice(list(Unfit)))
        self._exchange = Exchange(policy, KeyNaming(HINT), may_rerun=rng.random() < 0.2)
        self._asked: dict[str, Any] = {}
        self.is_over = False
        self._feed(ClientCalled(EVERYTHING, {}))

    def hear(self, data: bytes) -> str:
        """What the bytes were taken for."""
        cut = self._rng.randrange(len(data) + 1)
        try:
            events = [*self._parser.feed(data[:cut]), *self._parser.feed(data[cut:])]
        except EventTooLarge:
            self.is_over = True
            return "too large"
        word = "incomplete"
        for one in events:
            try:
                messages = parse_many(one.data) if one.data else []
            except (NotJson, NotJsonRpc) as refusal:
                word = type(refusal).__name__
                continue
            for message in messages:
                word = type(message).__name__
                self._take(message)
        if self._rng.random() < 0.1:
            self._tick()
        return word

    def _take(self, message: Message) -> None:
        try:
            match message:
                case Request():
                    ask = ask_of(message)
                    if ask is None:
                        encode_error(message.id, -32601, "Method not found")
                    else:
                        self._feed(UpstreamAsked(ask))
                case Notification():
                    change_of(message)
                    if message.method == "notifications/cancelled":
                        ask_id = decode(message.params.get("requestId", b"null"))
                        if isinstance(ask_id, int | str):
                            self._feed(UpstreamWithdrew(ask_id))
                case Result():
                    self._translate(message)
                    self._feed(UpstreamAnswered(message.result))
                case Failure():
                    self._feed(UpstreamFailed(message))
        except (GatewayError, NotJson):
            return  # said in our own words

    def _translate(self, result: Result) -> None:
        for method in self._rng.sample(_METHODS, 3):
            request = ClientRequest(1, method, {}, "", ADA, EVERYTHING)
            body_of(completed(result.result, request, _SERVER, Caching()), 1)
        introduction(result.result)

    def _tick(self) -> None:
        if self._exchange.state is State.HELD:
            answers = {
                key: raw(
                    self._rng.choice(({"action": "decline"}, accept(name="aa"), {"roots": []}, {"action": 7}))
                )
                for key in self._asked
            }
            self._feed(ClientRetried(EVERYTHING, answers))
        elif self._exchange.state is not State.DONE:
            self._feed(SettleElapsed())

    def _feed(self, happened: Event) -> None:
        for command in self._exchange.receive(happened):
            self._perform(command)
        self.is_over = self.is_over or self._exchange.state is State.DONE

    def _perform(self, command: Command) -> None:
        match command:
            case Hold(requests):
                self._asked = dict(requests)
                body_of(input_required(requests, "ticket", _SERVER), 1)
            case Complete() | CompleteFailure() | Abort():
                body_of(ending_reply(command, self._request, _SERVER, Caching()), 1)
            case _:
                ask = getattr(command, "ask", None)
                if ask is not None and ask.id is not None:
                    encode_result(ask.id, getattr(command, "result", {}))
                    encode(ask.params)
