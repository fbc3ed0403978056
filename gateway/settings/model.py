"""The configuration, as types. What is not here cannot be configured. Knows no file and no variable."""

import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    SecretStr,
    WithJsonSchema,
    model_validator,
)

from gateway.settings.keys import decode_key
from gateway.settings.store_url import MEMORY, STORE_PATTERN, StoreUrl, check_store_url
from gateway.settings.units import (
    ADDRESS_PATTERN,
    DURATION_PATTERN,
    SIZE_PATTERN,
    Address,
    parse_address,
    parse_duration,
    parse_http_url,
    parse_size,
)

NAME_PATTERN: Final = r"^[a-z0-9][a-z0-9-]*$"
_PATH: Final = re.compile(r"/|(/[A-Za-z0-9._~-]+)+", re.ASCII)
_ORIGIN: Final = re.compile(r"\*|null|[a-z][a-z0-9+.-]*://[^/?#\s@]+", re.ASCII)
_HOST: Final = re.compile(r"\*|\[[0-9A-Fa-f:.]+\](:\d{1,5})?|[^/?#\s@:]+(:\d{1,5})?", re.ASCII)
_T = TypeVar("_T")


def _more_than_nothing(seconds: float) -> float:
    if seconds <= 0:
        raise ValueError("should be longer than nothing")
    return seconds


def _a_beat(seconds: float) -> float:
    # Shorter, and a busy moment looks like death; longer, and clients wait for the dead.
    if not 0.1 <= seconds <= 30:
        raise ValueError("should be between 100ms and 30s")
    return seconds


def _no_truth_value(value: object) -> object:
    # YAML reads `yes` and `on` as true, and Python counts true as 1.
    if isinstance(value, bool):
        raise ValueError("should be a whole number")  # noqa: TRY004 - pydantic collects ValueErrors only
    return value


def _absent_is_empty(value: object) -> object:
    # `keys:` with nothing behind it is how YAML writes an empty list as well as an absent one.
    return () if value is None else value


def _absent_is_no_names(value: object) -> object:
    return {} if value is None else value


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _endpoint_path(path: str) -> str:
    if not _PATH.fullmatch(path):
        raise ValueError("should start with '/' and have only letters, digits and . _ ~ - between slashes")
    return path


def _origin(value: str) -> str:
    if not _ORIGIN.fullmatch(value):
        raise ValueError("should be an origin such as https://app.example.com (no path), or *")
    return value


def _host(value: str) -> str:
    if not _HOST.fullmatch(value):
        raise ValueError("should be a host name, with or without :port, or *")
    return value


def _variable_name(value: str) -> str:
    if not value or "=" in value or "\0" in value:
        raise ValueError("should be the name of an environment variable")
    return value


def _strong_key(value: SecretStr) -> SecretStr:
    decode_key(value.get_secret_value())
    return value


def _file_uri(value: str) -> str:
    if not value.startswith("file://"):
        raise ValueError("should be a file:// URI")
    return value


REFERENCE_SCHEMA: Final[dict[str, Any]] = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*\}"}
_DURATION_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "number", "minimum": 0},
        {"type": "string", "pattern": DURATION_PATTERN},
        REFERENCE_SCHEMA,
    ]
}
_SIZE_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "integer", "minimum": 1},
        {"type": "string", "pattern": SIZE_PATTERN},
        REFERENCE_SCHEMA,
    ]
}

Duration: TypeAlias = Annotated[float, PlainValidator(parse_duration), WithJsonSchema(_DURATION_SCHEMA)]
"""Seconds. Zero is allowed and means none."""
PositiveDuration: TypeAlias = Annotated[Duration, AfterValidator(_more_than_nothing)]
Size: TypeAlias = Annotated[int, PlainValidator(parse_size), WithJsonSchema(_SIZE_SCHEMA)]
"""Bytes."""
Count: TypeAlias = Annotated[int, Field(ge=0), BeforeValidator(_no_truth_value)]
PositiveCount: TypeAlias = Annotated[int, Field(ge=1), BeforeValidator(_no_truth_value)]
ListenAddress: TypeAlias = Annotated[
    Address,
    PlainValidator(parse_address),
    PlainSerializer(str),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": ADDRESS_PATTERN}, REFERENCE_SCHEMA]}),
]
HttpUrl: TypeAlias = Annotated[
    str, PlainValidator(parse_http_url), WithJsonSchema({"type": "string", "format": "uri"})
]
StoreAddress: TypeAlias = Annotated[
    StoreUrl,
    AfterValidator(check_store_url),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": STORE_PATTERN}, REFERENCE_SCHEMA]}),
]
Name: TypeAlias = Annotated[str, Field(pattern=NAME_PATTERN)]
VariableName: TypeAlias = Annotated[str, AfterValidator(_variable_name)]
Listed: TypeAlias = Annotated[tuple[_T, ...], BeforeValidator(_absent_is_empty)]
Replay: TypeAlias = Literal["never", "idempotent", "always"]


class Section(BaseModel):
    """Immutable, and unforgiving of misspelt keys."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, hide_input_in_errors=True
    )

    @model_validator(mode="before")
    @classmethod
    def _absent_is_default(cls, value: object) -> object:
        # `sealing:` with only comments below it is a section left at its defaults.
        return {} if value is None else value


class Root(Section):
    """One folder that a server is told about."""

    uri: Annotated[str, AfterValidator(_file_uri)]
    """A file:// URI."""
    name: str | None = None
    """What people call it."""


class Sealing(Section):
    """How `requestState` is sealed. Without keys each start makes a random one, which voids all tickets."""

    keys: Listed[Annotated[SecretStr, AfterValidator(_strong_key)]] = ()
    """Key ring, newest first: the first seals, all open. 32 random bytes each: `holdfast keygen`."""
    keys_file: Path | None = None
    """A file with more keys, one per line; relative to the configuration file."""
    ttl: PositiveDuration = 600.0
    """How long a ticket is good for."""


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


class Holds(Section):
    """Calls that wait while a client gathers answers."""

    ttl: PositiveDuration = 600.0
    """How long a hold waits before the call is cancelled upstream."""
    max: PositiveCount = 10_000
    """Calls that may be held at once; past it new calls are refused with 503."""
    grace: Duration = 60.0
    """How long an outcome that nobody fetched is kept."""


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


class Auth(Section):
    """Who may call, and as whom we call upstream."""

    mode: Literal["none", "passthrough"] = "none"
    """`passthrough` sends the client's Authorization header upstream and keeps callers apart by it."""


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
    env: Annotated[dict[VariableName, SecretStr], BeforeValidator(_absent_is_no_names)] = {}
    """Environment variables of the command, beside the few that it inherits (PATH, HOME, LANG and the like)."""
    cwd: Path | None = None
    """Where the command runs; relative to the configuration file."""
    transport: Literal["auto", "streamable-http", "sse", "stdio"] = "auto"
    """`auto` is `stdio` for a command; for a URL it finds out by itself, and again when that stops being true."""
    era: Literal["auto", "legacy", "modern"] = "auto"
    """`auto` finds out, and again when that stops being true. A modern server is proxied as it is."""
    legacy_clients: Literal["pass", "refuse"] = "pass"
    """Clients of the legacy era are passed through to it, or refused."""
    path: Annotated[str, AfterValidator(_endpoint_path)] | None = None
    """Where clients find it here. Default: /<name>/mcp, or /mcp when it is the only upstream."""
    sessions: Sessions = Sessions()
    holds: Holds = Holds()
    settle: Duration = 0.05
    """After a first question, how long to wait for more to put to the client in the same round."""
    call_timeout: PositiveDuration = 60.0
    """How long the server may work on a call. The clock stands still while the call is held."""
    connect_timeout: PositiveDuration = 5.0
    """How long connecting to the server may take."""
    asks: Asks = Asks()
    replay: Replay = "idempotent"
    """May a call that was lost while it was held be run again, with the answers given so far? `idempotent`: tools
    that say so of themselves (`readOnlyHint`, `idempotentHint`), prompts and resources. `always` is for servers of
    which you know that a second run does no harm."""
    replay_tools: Annotated[dict[str, Replay], BeforeValidator(_absent_is_no_names)] = {}
    """The same for single tools, whatever they say of themselves."""
    input_keys: Annotated[dict[str, Listed[str]], BeforeValidator(_absent_is_no_names)] = {}
    """Names for the questions of a tool, in order of asking."""
    key_hint: Annotated[str, Field(min_length=1)] = "dev.holdfast/inputKey"
    """The `_meta` member by which a server itself may name a question."""
    auth: Auth = Auth()
    caching: Caching = Caching()
    cache: Cache = Cache()
    subscriptions: Subscriptions = Subscriptions()


class Limits(Section):
    """What is too much."""

    body: Size = 4 * 1024**2
    """Largest request body of a client."""
    body_timeout: PositiveDuration = 30.0
    """How long a client may take to send it."""
    event: Size = 8 * 1024**2
    """Largest single message of an upstream: one SSE event, or one JSON body."""
    keepalive: PositiveDuration = 15.0
    """A silent response stream gets a comment at this interval."""
    allowed_origins: Listed[Annotated[str, AfterValidator(_origin)]] = ()
    """Browser origins that may call, besides loopback ones on a loopback listener; `*`: all."""
    allowed_hosts: Listed[Annotated[str, AfterValidator(_host)]] = ()
    """Host headers that are accepted; `*`: all. Empty: loopback names on a loopback listener, else all."""


class Log(Section):
    """The log, on standard output."""

    level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = "info"
    """The least serious event that is logged."""
    format: Literal["auto", "json", "console"] = "auto"
    """`auto` is `console` on a terminal, else `json`."""


class Settings(Section):
    """Everything that can be configured."""

    listen: ListenAddress = Address("127.0.0.1", 8080)
    """HOST:PORT for clients."""
    admin: ListenAddress | None = None
    """HOST:PORT for /livez, /readyz and /metrics. Default: no admin listener."""
    sealing: Sealing = Sealing()
    upstreams: dict[Name, Upstream] = Field(min_length=1, json_schema_extra={"additionalProperties": False})
    """The legacy servers, by name: lower-case letters, digits and `-`."""
    store: StoreAddress = StoreUrl(MEMORY)
    """Where replicas find each other's calls: memory:// for one process, redis://HOST:PORT/DB for several."""
    replica_heartbeat: Annotated[PositiveDuration, AfterValidator(_a_beat)] = 1.0
    """How often a replica tells the others that it lives; after three beats missed it counts as dead."""
    limits: Limits = Limits()
    log: Log = Log()
    drain: Duration = 25.0
    """After SIGTERM, how long calls in progress may take to end."""
    lame_duck: Duration = 0.0
    """After SIGTERM, how long new calls are still accepted while /readyz already says no."""

    def path_of(self, name: str) -> str:
        """Where clients find this upstream."""
        return self.upstreams[name].path or ("/mcp" if len(self.upstreams) == 1 else f"/{name}/mcp")
