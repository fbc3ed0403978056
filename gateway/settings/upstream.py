"""The settings of one upstream, as types. Knows nothing of the process around it."""

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
    """Its name, for people."""


class Sessions(Section):
    """Sessions with the legacy server."""

    mode: Literal["auto", "pooled", "fresh", "affinity"] = "auto"
    """`pooled` reuses sessions, `fresh` opens a new one per call, `affinity` keeps one per caller, one call at a time.
    `auto` is `pooled` for an authenticated caller or a server without session ids, otherwise `fresh`."""
    max: PositiveCount = 256
    """Most sessions, idle or at work; those of held calls count against `holds.max` instead."""
    idle: PositiveDuration = 300.0
    """An unused session is closed after this time."""
    warm: Count = 2
    """Spare sessions for each caller under `fresh`, so that a call does not wait for a handshake. For a `command`:
    spare processes, for all callers together."""
    wait: Duration = 10.0
    """How long a call waits for a session when all are in use."""
    end: Literal["auto", "delete", "leave"] = "auto"
    """Whether a session that is no longer used is ended with DELETE, or left to the server, which may keep it forever.
    `auto` is `delete`, except for servers on Python SDKs before 1.10: they answer 500 to everything after the first
    DELETE."""


class Holds(Section):
    """Calls that are held while their client gathers answers."""

    ttl: PositiveDuration = 600.0
    """How long a call is held before it is cancelled at the server."""
    max: PositiveCount = 10_000
    """How many calls can be held at once; beyond that, new calls are refused with 503."""
    per_principal: PositiveCount = 1000
    """How many of these one authenticated caller can have. Without authentication only `max` counts."""
    bytes: Size = 256 * 1024**2
    """Memory for what held calls sent and received, all together: arguments, questions, answers."""
    grace: Duration = 60.0
    """How long an outcome that nobody fetched is kept."""


class Breaker(Section):
    """When a server that cannot be reached is left alone for a while. Held calls are not affected."""

    failures: Count = 5
    """After how many failures in a row (to connect, or to get a handshake answered in time) calls are refused with 503.
    0: never."""
    open: PositiveDuration = 10.0
    """How long they are refused. Then one call is let through to try."""


class Asks(Section):
    """What becomes of the questions of the legacy server."""

    elicitation: Literal["relay", "decline"] = "relay"
    """Questions to the user: put to the client, or declined at once."""
    sampling: Literal["relay", "decline"] = "relay"
    """Requests for the client's model: put to the client, or declined at once."""
    roots: Literal["relay", "decline", "static"] = "relay"
    """Questions for the client's folders: put to the client, declined at once, or answered with `static_roots`."""
    static_roots: Listed[Root] = ()
    """The answer to every `roots/list` under `roots: static`."""
    roots_ttl: Duration = 3600.0
    """How long a caller's answer to `roots/list` is remembered for its later sessions."""
    invalid: Literal["reask", "forward", "error"] = "reask"
    """An answer that does not fit the question's schema: asked for again, passed on unchanged, or refused."""


class Rate(Section):
    """How often callers may call; beyond that: 429 with `Retry-After`. `server/discover` of known callers is free."""

    per_principal: Frequency | None = None
    """Requests of one caller (`50/s`, `600/m`). Callers without a credential are told apart by address."""
    burst: PositiveCount | None = None
    """How many of these at once, after a pause. Default: as many as in two seconds."""
    total: Frequency | None = None
    """Requests of all callers together."""
    total_burst: PositiveCount | None = None
    """The same as `burst`, for all callers together."""


class Keeping(Section):
    """How long clients may cache results of one kind; what is not set here is as in `caching`."""

    ttl: Duration | None = None
    """How long a client may cache a result of this kind."""
    scope: Literal["private", "public"] | None = None
    """`private` or `public`, as in `caching`."""


class Caching(Section):
    """How long clients may cache lists and reads (`ttlMs`, `cacheScope`)."""

    ttl: Duration = 0.0
    """How long a client may cache a result; 0: not at all."""
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
    """Lists that the gateway caches itself. A list is dropped as soon as the server says that it has changed."""

    lists: Literal["none", "private", "public"] = "none"
    """`private` keeps one copy per caller, `public` one for all callers."""
    ttl: PositiveDuration = 60.0
    """How long a list is cached. Changes are heard only on open sessions, so use no more than `sessions.idle`."""
    size: Size = 16 * 1024**2
    """Memory for the lists of this upstream; the least recently used go first."""


class Subscriptions(Section):
    """Clients that listen for changes (`subscriptions/listen`)."""

    max: PositiveCount = 1000
    """Most streams at once; beyond that, more are refused with 503."""
    per_principal: PositiveCount = 100
    """How many of these one authenticated caller can have."""
    resources: PositiveCount = 256
    """Most resources that one stream can name."""
    idle: Duration = 30.0
    """How long the session for these streams stays open after the last listener has left."""
    lifetime: Duration = 0.0
    """After this time a stream is ended properly, and the client opens another. 0: never."""


class Upstream(Section):
    """One legacy server: `url` for one that listens, `command` for one that is started per session (stdio)."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["url"]}, {"required": ["command"]}]})

    url: HttpUrl | None = None
    """Its endpoint: Streamable HTTP, or the GET stream of HTTP+SSE."""
    command: Listed[Annotated[str, Field(min_length=1)]] = ()
    """The program and its arguments, instead of `url`. No shell is involved."""
    env: Named[VariableName, SecretStr] = {}  # noqa: RUF012 - the section is frozen
    """Environment variables of the command, beside the few that it inherits (PATH, HOME, LANG and the like)."""
    cwd: Path | None = None
    """Where the command runs; relative to the configuration file."""
    transport: Literal["auto", "streamable-http", "sse", "stdio"] = "auto"
    """`auto` is `stdio` for a command. For a URL the transport is detected, and again when the server changes."""
    era: Literal["auto", "legacy", "modern"] = "auto"
    """`auto` detects the era, and again when the server changes. A modern server is proxied unchanged; one that speaks
    both eras counts as modern. If its tools still ask in the old way, set `legacy`."""
    legacy_clients: Literal["pass", "refuse"] = "pass"
    """Whether clients that speak a legacy revision are passed through to the server, or refused."""
    path: EndpointPath | None = None
    """The path of this server at the gateway. Default: /<name>/mcp, or /mcp if it is the only upstream."""
    sessions: Sessions = Sessions()
    holds: Holds = Holds()
    settle: Duration = 0.05
    """After a first question, how long to wait for others that go to the client in the same round."""
    call_timeout: PositiveDuration = 60.0
    """How long the server may work on a call. The clock stops while the call is held, and starts anew whenever the
    server tells of its progress, up to ten times this long."""
    slice: Duration = 0.0
    """For long calls over short connections: a round that still runs after this time ends with a `requestState` and no
    question, and the client comes back for the rest. Clients give up after ten rounds, so no round is cut short after
    the eighth. 0: never."""
    connect_timeout: PositiveDuration = 5.0
    """How long connecting to the server may take."""
    breaker: Breaker = Breaker()
    asks: Asks = Asks()
    replay: Replay = "idempotent"
    """Whether a call that was lost may be run again, with the answers given so far. `idempotent`: tools that declare
    themselves so (`readOnlyHint`, `idempotentHint`), prompts and resources. `always` is for servers of which you know
    that a second run does no harm."""
    replay_tools: Named[str, Replay] = {}  # noqa: RUF012 - the section is frozen
    """The same for single tools, whatever they declare themselves."""
    input_keys: Named[str, Listed[str]] = {}  # noqa: RUF012 - the section is frozen
    """Names for the questions of a tool in `inputRequests`, in the order of asking."""
    key_hint: Annotated[str, Field(min_length=1)] = "dev.holdfast/inputKey"
    """The `_meta` member by which a server can name a question itself."""
    auth: Auth = Auth()
    tls: UpstreamTls = UpstreamTls()
    rate: Rate = Rate()
    caching: Caching = Caching()
    cache: Cache = Cache()
    subscriptions: Subscriptions = Subscriptions()
