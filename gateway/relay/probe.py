"""What a server is, found out by talking to it: for a person who is about to put the gateway in front of it.

It speaks as the gateway would, calls no tool, and leaves nothing behind but
closed sessions.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gateway import __version__
from gateway.errors import GatewayError, UpstreamRefused, UpstreamSpokeNonsense
from gateway.relay.passthrough import forwarder_to
from gateway.settings.upstream import Upstream
from gateway.upstreams.dialing import Dialer, Greet, Transport
from gateway.upstreams.era_probe import ask_era
from gateway.upstreams.forwarding import Forwarder
from gateway.upstreams.http_sse import HttpSse
from gateway.upstreams.pool import Caller
from gateway.upstreams.session import Session, open_session
from gateway.upstreams.transport import Channel
from gateway.wire import headers as names
from gateway.wire.jsonrpc import (
    Failure,
    Message,
    NotJson,
    NotJsonRpc,
    Result,
    decode,
    encode,
    encode_request,
    parse,
)
from gateway.wire.sse import SseParser
from gateway.wire.versions import (
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_PROTOCOL_VERSION,
    META_SERVER_INFO,
    MODERN,
)

_CAPABILITIES: Final[Mapping[str, Any]] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {},
    "roots": {},
}
"""All of them: some servers show their whole list of tools only to those who can do everything."""
_CLIENT: Final = {"name": "holdfast-probe", "version": __version__}
_SECONDS: Final = 10.0
_PING_SECONDS: Final = 2.0
_ONE_ONLY: Final = frozenset({400, 409})
"""How a second `initialize` is refused by a server of one transport: it has begun already."""
_MOST_BYTES: Final = 8 * 1024**2
_MOST_PAGES: Final = 50


@dataclass(slots=True)
class Findings:
    """What was found out. None: not known."""

    era: str = "legacy"
    transport: str | None = None
    versions: list[str] = field(default_factory=list)
    server: Mapping[str, Any] | None = None
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    has_session_id: bool | None = None
    has_standing_stream: bool | None = None
    is_resumable: bool | None = None
    answers_json: bool | None = None
    serves_many: bool | None = None
    tells_all: bool | None = None
    """Does each client hear what is meant for another?"""
    is_authorized: bool = False
    """Was it shown credentials?"""
    asks_at_start: list[str] = field(default_factory=list)
    tools: list[dict[str, Any]] = field(default_factory=list)
    """As the server lists them."""


async def probe(settings: Upstream, *, authorization: str | None = None) -> Findings:
    """Talk to the server.

    Raises:
        UpstreamFault: it cannot be reached, wants credentials, or speaks nothing that we do.
    """
    findings = await _find_out(settings, authorization)
    findings.is_authorized = authorization is not None
    return findings


async def _find_out(settings: Upstream, authorization: str | None) -> Findings:
    forwarder = forwarder_to(settings)
    dialer = Dialer("probe", settings, version=__version__, max_event_bytes=_MOST_BYTES)
    await dialer.start()
    try:
        if forwarder is not None:
            await forwarder.start()
            era, described = await ask_era(
                forwarder,
                version=__version__,
                authorization=authorization,
                ending=settings.sessions.end,
            )
            if era == "modern":
                return await _modern(forwarder, described, authorization)
        else:
            era, described = await dialer.ask_process()
            if era == "modern":
                return await _modern_process(dialer, described)
        return await _legacy(dialer, forwarder, authorization)
    finally:
        if forwarder is not None:
            await forwarder.close()
        await dialer.close()


# --- modern ----------------------------------------------------------------------------------


async def _modern(forwarder: Forwarder, described: Mapping[str, Any], authorization: str | None) -> Findings:
    findings = _described(described, "streamable-http")
    headers = {names.PROTOCOL_VERSION: MODERN, names.METHOD: "tools/list"}

    async def page(cursor: str | None) -> Mapping[str, Any]:
        result, _ = await _raw(forwarder, "tools/list", _listing(cursor), headers, authorization)
        return result

    if "tools" in findings.capabilities:
        findings.tools = await _all_pages(page)
    return findings


async def _modern_process(dialer: Dialer, described: Mapping[str, Any]) -> Findings:
    findings = _described(described, "stdio")
    numbers = iter(range(1, _MOST_PAGES + 1))
    channel = await dialer.connect(None)

    async def page(cursor: str | None) -> Mapping[str, Any]:
        request_id, answers = f"probe-{next(numbers)}", list[Result | Failure]()

        def deliver(message: Message) -> bool:
            if isinstance(message, Result | Failure):
                answers.append(message)
            return bool(answers)

        async with asyncio.timeout(_SECONDS):
            await channel.request(
                request_id, encode_request(request_id, "tools/list", _listing(cursor)), deliver
            )
        (answer,) = answers
        return _object(decode(answer.result)) if isinstance(answer, Result) else {}

    try:
        if "tools" in findings.capabilities:
            findings.tools = await _all_pages(page)
    except TimeoutError:
        raise UpstreamSpokeNonsense("no list", detail="The server did not answer tools/list") from None
    finally:
        await channel.close()
    return findings


def _described(described: Mapping[str, Any], transport: Transport) -> Findings:
    meta = described.get("_meta")
    return Findings(
        era="modern",
        transport=transport,
        versions=[str(version) for version in described["supportedVersions"]],
        server=meta.get(META_SERVER_INFO) if isinstance(meta, dict) else None,
        capabilities=described.get("capabilities") or {},
        has_session_id=False if transport == "streamable-http" else None,
    )


def _listing(cursor: str | None) -> dict[str, Any]:
    own = {META_PROTOCOL_VERSION: MODERN, META_CLIENT_INFO: _CLIENT, META_CLIENT_CAPABILITIES: _CAPABILITIES}
    return {"_meta": own, **({} if cursor is None else {"cursor": cursor})}


# --- legacy ----------------------------------------------------------------------------------


async def _legacy(dialer: Dialer, forwarder: Forwarder | None, authorization: str | None) -> Findings:
    asked: list[str] = []
    caller = Caller("probe", authorization is not None, encode(_CAPABILITIES).decode(), "{}", authorization)

    async def greet(channel: Channel) -> Session:
        return await open_session(
            channel,
            request_id="probe-0",
            client_info=_CLIENT,
            capabilities=_CAPABILITIES,
            on_early_ask=lambda _, ask: asked.append(ask.method),
            on_end=lambda _: None,
        )

    try:
        async with asyncio.timeout(_SECONDS * 3):
            session = await dialer.dial(caller, greet)
    except TimeoutError:
        raise UpstreamSpokeNonsense("no handshake", detail="The server did not answer initialize") from None
    try:
        findings = Findings(
            transport=dialer.transport,
            versions=[session.server.version],
            server=session.server.server_info,
            capabilities=session.server.capabilities,
            has_session_id=session.id is not None if dialer.transport == "streamable-http" else None,
            has_standing_stream=session.is_standing if dialer.transport == "streamable-http" else None,
            asks_at_start=asked,
        )
        if "tools" in findings.capabilities:
            findings.tools = await _legacy_tools(session)
        if dialer.transport == "streamable-http" and forwarder is not None:
            await _look_at_responses(findings, forwarder, session, authorization)
        if findings.has_session_id:
            findings.asks_at_start = list(asked)  # without those of the second one
            findings.serves_many = await _opens_two(dialer, caller, greet)
        if dialer.transport == "sse":
            findings.serves_many, findings.tells_all = await _serves_two(dialer, session, authorization)
    finally:
        await session.close()
    return findings


async def _legacy_tools(session: Session) -> list[dict[str, Any]]:
    numbers = iter(range(1, _MOST_PAGES + 1))

    async def page(cursor: str | None) -> Mapping[str, Any]:
        params = {} if cursor is None else {"cursor": cursor}
        async with asyncio.timeout(_SECONDS):
            answer = await session.call(f"probe-{next(numbers)}", "tools/list", params)
        return _object(decode(answer.result)) if isinstance(answer, Result) else {}

    return await _all_pages(page)


async def _look_at_responses(
    findings: Findings, forwarder: Forwarder, session: Session, authorization: str | None
) -> None:
    """How an answer comes: as JSON or as events, and whether these have ids to resume from."""
    headers = {names.PROTOCOL_VERSION: session.server.version}
    if session.id is not None:
        headers[names.SESSION_ID] = session.id
    with contextlib.suppress(GatewayError, TimeoutError):
        _, how = await _raw(forwarder, "ping", {}, headers, authorization)
        findings.answers_json = how == "json"
        findings.is_resumable = None if findings.answers_json else how == "events with ids"


async def _opens_two(dialer: Dialer, caller: Caller, greet: Greet) -> bool | None:
    """Is there a second session beside the first? None: that cannot be known now."""
    try:
        async with asyncio.timeout(_SECONDS):
            second = await dialer.dial(caller, greet)
    except UpstreamRefused as refusal:
        return False if refusal.status in _ONE_ONLY else None
    except (GatewayError, TimeoutError):
        return None
    await second.close()
    return True


async def _serves_two(dialer: Dialer, first: Session, authorization: str | None) -> tuple[bool, bool]:
    """Does the first client still get its answers when a second one has come? Does that one hear them, too?"""
    second = await dialer.connect(authorization)
    try:
        async with asyncio.timeout(_PING_SECONDS):
            await first.call("probe-two", "ping", {})
        # What it was told of the first one's answer has come before the answer to a question of its own.
        with contextlib.suppress(GatewayError, TimeoutError):
            async with asyncio.timeout(_PING_SECONDS):
                await second.request("probe-three", encode_request("probe-three", "ping", {}), lambda _: True)
        return True, isinstance(second, HttpSse) and second.has_overheard
    except (GatewayError, TimeoutError):
        return False, False
    finally:
        await second.close()


# --- both ------------------------------------------------------------------------------------


async def _all_pages(page: "Callable[[str | None], Any]") -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        with contextlib.suppress(TimeoutError):
            result = await page(cursor)
            tools += [tool for tool in result.get("tools") or () if isinstance(tool, dict)]
            cursor = result.get("nextCursor")
        if not isinstance(cursor, str):
            break
    return tools


async def _raw(
    forwarder: Forwarder,
    method: str,
    params: Mapping[str, Any],
    headers: Mapping[str, str],
    authorization: str | None,
) -> tuple[Mapping[str, Any], str]:
    """A result, and how it came."""
    lines = [
        ("Content-Type", names.JSON),
        ("Accept", f"{names.JSON}, {names.EVENT_STREAM}"),
        *headers.items(),
        *([] if authorization is None else [("Authorization", authorization)]),
    ]
    body = encode_request("probe-raw", method, params)
    async with asyncio.timeout(_SECONDS), forwarder.sent("POST", lines, body) as response:
        if names.media_type(response.headers.get("Content-Type")) != names.EVENT_STREAM:
            return _result(await response.read(_MOST_BYTES)), "json"
        parser, has_ids = SseParser(_MOST_BYTES), False
        async for chunk in response.iter_any():
            for event in parser.feed(chunk):
                # One that is the session's own leads nowhere: Java's SDK keeps no events.
                has_ids = has_ids or (bool(event.id) and event.id != headers.get(names.SESSION_ID))
                if event.data and (result := _result(event.data)) is not _NOTHING:
                    return result, "events with ids" if has_ids else "events"
    return _NOTHING, "events"


_NOTHING: Final[Mapping[str, Any]] = {}


def _result(data: bytes) -> Mapping[str, Any]:
    try:
        answer = parse(data)
        return _object(decode(answer.result)) if isinstance(answer, Result) else _NOTHING
    except (NotJson, NotJsonRpc):
        return _NOTHING


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else _NOTHING
