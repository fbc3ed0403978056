"""What can be said about one upstream, as types. Knows nothing of the process around it."""

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field, SecretStr

from gateway.settings.auth import Auth
from gateway.settings.fields import (
    Count,
    Duration,
    EndpointPath,
    FileUri,
    Frequency,
    HttpUrl,
    Listed,
    Named,
    PositiveCount,
    PositiveDuration,
    Replay,
    Section,
    Size,
    VariableName,
)
from gateway.settings.tls import UpstreamTls


class Root(Section):
    """One folder that a server is told about."""

    uri: FileUri
    """A file:// URI."""
    name: str | None = None
    """What people call it."""


class Sessions(Section):
    """Sessions with the legacy server."""

    mode: Literal["auto", "pooled", "fresh", "affinity"] = "auto"
    """`pooled` reuses them, `fresh` takes a new one per call, `affinity` keeps one per caller, calls in turn.
    `auto` is `pooled` for an authenticated caller or a server without session ids, else `fresh`."""
    max: PositiveCount = 256
    """Sessions idle or at work; those under a hold count against `holds.max`."""
    idle: PositiveDuration = 300.0
    """An unused session is closed after this time."""
    warm: Count = 2
    """Spare sessions kept ready for each caller under `fresh`, so that a call costs no handshake. For a `command`:
    spare processes, for all callers together."""
    wait: Duration = 10.0
    """How long a call queues for a session when all are taken."""
    end: Literal["auto", "delete", "leave"] = "auto"
    """A session that is not used any more is ended with DELETE, or left to the server, which may keep it for ever.
    `auto` leaves those of Python SDKs before 1.10: such a server answers 500 to everything after the first DELETE."""


class Holds(Section):
    """Calls that wait while a client gathers answers."""

    ttl: PositiveDuration = 600.0
    """How long a hold waits before the call is cancelled upstream."""
    max: PositiveCount = 10_000
    """Calls that may be held at once; past it new calls are refused with 503."""
    per_principal: PositiveCount = 1000
    """Of these, calls of one authenticated caller. Callers without credentials cannot be told apart: only `max`."""
    bytes: Size = 256 * 1024**2
    """All that held calls may keep together of what clients and the server sent: arguments, questions, answers."""
    grace: Duration = 60.0
    """How long an outcome that nobody fetched is kept."""


class Breaker(Section):
    """When a server that cannot be reached is left alone. Calls that are held are not affected."""

    failures: Count = 5
    """Failures to connect, or handshakes not answered in time, in a row; then calls are refused with 503. 0: never."""
    open: PositiveDuration = 10.0
    """For how long. Then one call is let through to try."""


class Asks(Section):
    """What is done with the questions of the legacy server."""

    elicitation: Literal["relay", "decline"] = "relay"
    """Questions to the user: put to the client, or declined at once."""
    sampling: Literal["relay", "decline"] = "relay"
    """Requests for the client's model: put to the client, or declined at once."""
    roots: Literal["relay", "decline", "static"] = "relay"
    """Questions for the client's folders: put to the client, declined, or answered with `static_roots`."""
    static_roots: Listed[Root] = ()
    """The answer to every `roots/list` under `roots: static`."""
    roots_ttl: Duration = 3600.0
    """How long a caller's answer to `roots/list` is remembered for its later sessions."""
    invalid: Literal["reask", "forward", "error"] = "reask"
    """An answer that does not fit the question's schema: asked again, passed on as it is, or refused."""


class Rate(Section):
    """How often callers may call; past it: 429, and when to come again. `server/discover` of known callers is free."""

    per_principal: Frequency | None = None
    """Requests of one caller (`50/s`, `600/m`). Callers without a credential are told apart by their address."""
    burst: PositiveCount | None = None
    """How many of these at once, after a pause. Default: those of two seconds."""
    total: Frequency | None = None
    """Requests of all callers together."""
    total_burst: PositiveCount | None = None
    """The same for all together."""


class Keeping(Section):
    """The same for results of one kind; what is not set here is as for all."""

    ttl: Duration | None = None
    """How long a client may keep a result of this kind."""
    scope: Literal["private", "public"] | None = None
    """For whom."""


class Caching(Section):
    """What clients are told about keeping lists and reads (`ttlMs`, `cacheScope`)."""

    ttl: Duration = 0.0
    """How long a client may keep a result; 0: not at all."""
    scope: Literal["private", "public"] = "private"
    """`public` lets shared caches give one caller's result to another."""
    discover: Keeping = Keeping()
    tools: Keeping = Keeping()
    prompts: Keeping = Keeping()
    resources: Keeping = Keeping()
    templates: Keeping = Keeping()
    reads: Keeping = Keeping()

    def hints(self, method: str) -> tuple[int, Literal["private", "public"]]:
        """Milliseconds and scope for the results of a method, the same for all of its pages."""
        if method not in _KINDS:
            return round(self.ttl * 1000), self.scope
        own: Keeping = getattr(self, _KINDS[method])
        return round((self.ttl if own.ttl is None else own.ttl) * 1000), own.scope or self.scope


_KINDS: Final = {
    "server/discover": "discover",
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "templates",
    "resources/read": "reads",
}


class Cache(Section):
    """Lists that the gateway keeps itself. A server that says that a list has changed is asked again at once."""

    lists: Literal["none", "private", "public"] = "none"
    """`private` keeps one copy per caller, `public` one for all callers."""
    ttl: PositiveDuration = 60.0
    """How long a list is kept. Changes are heard on open sessions, so no longer than `sessions.idle` is best."""
    size: Size = 16 * 1024**2
    """Memory for the lists of this upstream; those that were not asked for longest go first."""


class Subscriptions(Section):
    """Clients that listen for changes (`subscriptions/listen`)."""

    max: PositiveCount = 1000
    """Streams at once; past it more are refused with 503."""
    per_principal: PositiveCount = 100
    """Of these, streams of one authenticated caller."""
    resources: PositiveCount = 256
    """Resources that one stream may name."""
    idle: Duration = 30.0
    """How long the session on which the server is heard stays open after the last listener has left."""
    lifetime: Duration = 0.0
    """A stream is ended, properly, after this time; clients that still want it open another. 0: never."""


class Upstream(Section):
    """One legacy server: `url` for one that listens, `command` for one that is started per session (stdio)."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["url"]}, {"required": ["command"]}]})

    url: HttpUrl | None = None
    """Its endpoint: Streamable HTTP, or the GET stream of HTTP+SSE."""
    command: Listed[Annotated[str, Field(min_length=1)]] = ()
    """The program and its arguments, instead of `url`. No shell reads it."""
    env: Named[VariableName, SecretStr] = {}  # noqa: RUF012 - the section is frozen
    """Environment variables of the command, beside the few that it inherits (PATH, HOME, LANG and the like)."""
    cwd: Path | None = None
    """Where the command runs; relative to the configuration file."""
    transport: Literal["auto", "streamable-http", "sse", "stdio"] = "auto"
    """`auto` is `stdio` for a command; for a URL it finds out by itself, and again when that stops being true."""
    era: Literal["auto", "legacy", "modern"] = "auto"
    """`auto` finds out, and again when that stops being true. A modern server is proxied as it is."""
    legacy_clients: Literal["pass", "refuse"] = "pass"
    """Clients of the legacy era are passed through to it, or refused."""
    path: EndpointPath | None = None
    """Where clients find it here. Default: /<name>/mcp, or /mcp when it is the only upstream."""
    sessions: Sessions = Sessions()
    holds: Holds = Holds()
    settle: Duration = 0.05
    """After a first question, how long to wait for more to put to the client in the same round."""
    call_timeout: PositiveDuration = 60.0
    """How long the server may work on a call. The clock stands still while the call is held."""
    slice: Duration = 0.0
    """A round still running after this time ends with a `requestState` and no question, and the client comes back for
    the rest: long calls over short connections. Not after the eighth round, clients give up after ten. 0: never."""
    connect_timeout: PositiveDuration = 5.0
    """How long connecting to the server may take."""
    breaker: Breaker = Breaker()
    asks: Asks = Asks()
    replay: Replay = "idempotent"
    """May a call that was lost while it was held be run again, with the answers given so far? `idempotent`: tools
    that say so of themselves (`readOnlyHint`, `idempotentHint`), prompts and resources. `always` is for servers of
    which you know that a second run does no harm."""
    replay_tools: Named[str, Replay] = {}  # noqa: RUF012 - the section is frozen
    """The same for single tools, whatever they say of themselves."""
    input_keys: Named[str, Listed[str]] = {}  # noqa: RUF012 - the section is frozen
    """Names for the questions of a tool, in order of asking."""
    key_hint: Annotated[str, Field(min_length=1)] = "dev.holdfast/inputKey"
    """The `_meta` member by which a server itself may name a question."""
    auth: Auth = Auth()
    tls: UpstreamTls = UpstreamTls()
    rate: Rate = Rate()
    caching: Caching = Caching()
    cache: Cache = Cache()
    subscriptions: Subscriptions = Subscriptions()
