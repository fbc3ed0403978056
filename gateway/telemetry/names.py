"""Every name that leaves through a log line or a metric label; it knows nothing about how they are written.

Dashboards and alerts are built on these words, so a change here is a change for
users: additions are free, renaming needs a line in the changelog.
"""

from enum import StrEnum


class LogEvent(StrEnum):
    """The `event` member of a log line."""

    ROUND = "round"
    DRAINING = "draining"
    DRAINED = "drained"
    """The drain is over; the line says how much was handed over, and how much is cancelled now."""
    STOPPED = "stopped"
    LISTENING = "listening"
    EPHEMERAL_KEY = "ephemeral_key"
    FEW_OPEN_FILES = "few_open_files"
    """The operating system allows fewer connections than the configuration may need."""
    UPSTREAM_PROTOCOL = "upstream_protocol"
    UPSTREAM_STDERR = "upstream_stderr"
    """A line that the server's process wrote to its standard error."""
    UPSTREAM_EXITED = "upstream_exited"
    """The server's process ended by itself; the line has its exit code and its last words."""
    TRANSPORT_FOUND = "transport_found"
    ERA_FOUND = "era_found"
    GUARD_FAILED = "guard_failed"
    """The guard could not be started: servers' processes would survive if this process were killed."""
    SESSION_OPENED = "session_opened"
    SESSION_LOST = "session_lost"
    HANDSHAKE_FAILED = "handshake_failed"
    CIRCUIT_OPENED = "circuit_opened"
    """The upstream could not be reached several times in a row: calls that need a session are refused for a while."""
    CIRCUIT_CLOSED = "circuit_closed"
    STATE_REJECTED = "state_rejected"
    JWKS_FAILED = "jwks_failed"
    """The keys of a token issuer could not be fetched; those that are known stay in use."""
    KEYS_TURNED = "keys_turned"
    """The sealing keys were changed while running; the line has their ids, first the one that seals."""
    STORE_FOUND = "store_found"
    STORE_LOST = "store_lost"
    """The store cannot be reached: exchanges of this process go on, those of other replicas cannot be found."""
    STORE_EMPTIED = "store_emptied"
    """The store has forgotten what was written to it before its time."""
    LETTER_UNREADABLE = "letter_unreadable"
    """A letter came from a replica with other keys or of another version, or from somebody else."""
    REPLICA_LOST = "replica_lost"
    """Another replica died while it took part in a round of ours."""
    FROZEN = "frozen"
    """This process did not run for a while. Others may have taken over, so it asks the store before it delivers."""
    INTERNAL_ERROR = "internal_error"
    CONFIG_RELOADED = "config_reloaded"
    CONFIG_RELOAD_FAILED = "config_reload_failed"
    LOG_LINES_LOST = "log_lines_lost"
    """Nobody read the log for so long that lines were dropped."""
    LIBRARY = "library"
    """A line that a library wrote through `logging` or `warnings`."""


class Outcome(StrEnum):
    """How one round ended for the client."""

    COMPLETE = "complete"
    INPUT_REQUIRED = "input_required"
    ERROR = "error"
    """The upstream itself answered with a JSON-RPC error: passed on, nobody here failed."""
    REFUSED = "refused"
    """The request was at fault (`ClientFault`)."""
    LOST = "lost"
    """The last rung of the ladder (`CallLost`)."""
    UPSTREAM_FAILED = "upstream_failed"
    """`UpstreamFault`."""
    SHED = "shed"
    """`Overloaded`."""
    CANCELLED = "cancelled"
    """The client went away."""
    INTERNAL = "internal"
    """Our bug; the line carries an error id."""


class DoorRefusal(StrEnum):
    """Why a client was turned away before its request belonged to any upstream."""

    BAD_HTTP = "bad_http"
    NO_SUCH_PATH = "no_such_path"
    CONNECTIONS = "connections"
    """There were `limits.connections` already: an idle one was closed, or else the new one."""


class Rung(StrEnum):
    """How a round found its exchange: `first` is a round without a ticket, the rest is the ladder."""

    FIRST = "first"
    LIVE = "live"
    ROUTED = "routed"
    REATTACHED = "reattached"
    REPLAYED = "replayed"
    REFUSED = "refused"


class LetterKind(StrEnum):
    """What one replica writes to another."""

    CARRY = "carry"
    ACCEPTED = "accepted"
    TOLD = "told"
    SAID = "said"
    LEFT = "left"
    UNKNOWN = "unknown"
    PAUSE = "pause"


class AskKind(StrEnum):
    """What the legacy server asked for."""

    ELICITATION = "elicitation"
    SAMPLING = "sampling"
    ROOTS = "roots"


class AskDisposition(StrEnum):
    """What became of an ask."""

    RELAYED = "relayed"
    """Put to the client; counted again each time it is put to it."""
    ANSWERED = "answered"
    """The client's answer was delivered."""
    SETTLED = "settled"
    """Answered without the client: from the configuration, from what is remembered, or declined by policy."""
    REFUSED = "refused"
    """Answered with an error: the client declared no capability for it, or it was turned down."""


class HoldEnd(StrEnum):
    """Why a hold ended."""

    ANSWERED = "answered"
    """Its client came back."""
    EXPIRED = "expired"
    """Its client did not come back within `holds.ttl`."""
    EVICTED = "evicted"
    """Another replica has taken the exchange over."""
    DRAINED = "drained"
    """The gateway stopped, and no other replica could go on with it."""
    HANDED_OVER = "handed_over"
    """To whichever replica its client comes to next."""


class SessionState(StrEnum):
    """Where a legacy session is in its life; one that is closed is counted nowhere."""

    OPENING = "opening"
    IDLE = "idle"
    LEASED = "leased"
    HELD = "held"


class HandshakeOutcome(StrEnum):
    """How an attempt to open a legacy session ended."""

    OK = "ok"
    UNREACHABLE = "unreachable"
    TIMED_OUT = "timed_out"
    UNAUTHORIZED = "unauthorized"
    PROTOCOL = "protocol"
    """The server answered something that is not MCP."""
    LOST = "lost"
    """The connection broke, or the process ended."""
    REFUSED = "refused"
    """Anything else that a server says instead of introducing itself."""
