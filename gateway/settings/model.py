"""The configuration, as types. What is not here cannot be configured. Knows no file and no variable."""

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr

from gateway.settings.fields import (
    Beat,
    Duration,
    HostName,
    HttpUrl,
    Level,
    Listed,
    ListenAddress,
    Name,
    Origin,
    PositiveCount,
    PositiveDuration,
    Section,
    Size,
    StoreAddress,
    StrongKey,
)
from gateway.settings.store_url import MEMORY, StoreUrl
from gateway.settings.tls import ListenTls
from gateway.settings.units import Address
from gateway.settings.upstream import Upstream


class Sealing(Section):
    """How `requestState` is sealed. Without keys each start makes its own, which invalidates all earlier tickets."""

    keys: Listed[StrongKey] = ()
    """Key ring, newest first: the first key seals, every key opens. 32 random bytes each: `holdfast keygen`."""
    keys_file: Path | None = None
    """A file with more keys, one per line, or a folder of such files (a mounted secret) in the order of their names;
    relative to the configuration file. A change takes effect within `keys_poll`, and on SIGHUP."""
    keys_poll: Duration = 10.0
    """How often `keys_file` is checked for changes; 0: only on SIGHUP."""
    ttl: PositiveDuration = 600.0
    """How long after a question its answer is accepted."""


class Limits(Section):
    """Bounds on what clients and upstreams can ask of the gateway."""

    body: Size = 4 * 1024**2
    """Largest request body of a client."""
    body_timeout: PositiveDuration = 30.0
    """How long a client may take to send it."""
    event: Size = 8 * 1024**2
    """Largest single message of an upstream: one SSE event, or one JSON body."""
    write_timeout: PositiveDuration = 30.0
    """How long a client may leave a response unread before it is disconnected. Held calls stay held."""
    connections: PositiveCount = 16_384
    """Most client connections at once. At the limit an idle one makes room for the newcomer."""
    idle: PositiveDuration = 75.0
    """How long a connection may go without a request, and how long the headers of a request may take."""
    keepalive: PositiveDuration = 15.0
    """A silent response stream gets a comment at this interval, so that nothing on the way closes it."""
    allowed_origins: Listed[Origin] = ()
    """Origins whose web pages may call and read the answers, besides loopback ones on a loopback listener; `*`: all."""
    allowed_hosts: Listed[HostName] = ()
    """Accepted Host headers; `*`: all. Empty: loopback names on a loopback listener, otherwise all."""


class Log(Section):
    """The log, on standard output."""

    level: Level = "info"
    """The least severe level that is logged."""
    format: Literal["auto", "json", "console"] = "auto"
    """`auto` is `console` on a terminal, otherwise `json`."""


class Settings(Section):
    """Everything that can be configured."""

    listen: ListenAddress = Address("127.0.0.1", 8080)
    """HOST:PORT for clients."""
    admin: ListenAddress | None = None
    """HOST:PORT for /livez, /readyz, /metrics and /version. Default: no admin listener."""
    admin_token: SecretStr | None = None
    """The token that /metrics and /version ask for, as `Authorization: Bearer TOKEN`. Default: none. Probes never
    need it."""
    public_url: HttpUrl | None = None
    """The URL by which clients know this gateway, without the path of an upstream: https://mcp.example.com. Needed for
    logins behind a TLS proxy. Default: the Host that they call, with https if `tls` is set and http otherwise."""
    tls: ListenTls = ListenTls()
    sealing: Sealing = Sealing()
    upstreams: dict[Name, Upstream] = Field(min_length=1, json_schema_extra={"additionalProperties": False})
    """The legacy servers, by name: lower-case letters, digits and `-`."""
    store: StoreAddress = StoreUrl(MEMORY)
    """Where replicas find each other's calls: memory:// for one process, redis://HOST:PORT/DB for several."""
    replica_heartbeat: Beat = 1.0
    """How often a replica tells the others that it is alive; after three missed beats it counts as dead."""
    limits: Limits = Limits()
    log: Log = Log()
    drain: Duration = 25.0
    """After SIGTERM, how long calls in progress and held calls have to end before they are cancelled."""
    lame_duck: Duration = 0.0
    """After SIGTERM, how long new calls are still accepted while /readyz already says no."""

    def path_of(self, name: str) -> str:
        """The path at which clients find this upstream."""
        return self.upstreams[name].path or ("/mcp" if len(self.upstreams) == 1 else f"/{name}/mcp")
