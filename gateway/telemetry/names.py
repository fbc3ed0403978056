"""Every name that leaves through a log line or a metric label; it knows nothing about how they are written.

Dashboards and alerts are built on these words, so a change here is a change for
users: additions are free, renaming needs a line in the changelog.
"""

from enum import StrEnum


class LogEvent(StrEnum):
    """The `event` member of a log line."""

    ROUND = "round"
    STARTED = "started"
    DRAINING = "draining"
    DRAINED = "drained"
    """The drain is over; the line says how much was handed over, and how much is cancelled now."""
    STOPPED = "stopped"
    LISTENING = "listening"
    EPHEMERAL_KEY = "ephemeral_key"
    UPSTREAM_LOST = "upstream_lost"
    UPSTREAM_SLOW = "upstream_slow"
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
    SESSION_CLOSED = "session_closed"
    SESSION_LOST = "session_lost"
    HANDSHAKE_FAILED = "handshake_failed"
    CIRCUIT_OPENED = "circuit_opened"
    """The upstream could not be reached several times in a row: calls that need a session are refused for a while."""
    CIRCUIT_CLOSED = "circuit_closed"
    HOLD_OPENED = "hold_opened"
    HOLD_ENDED = "hold_ended"
    HOLD_EXPIRED = "hold_expired"
    ASK_REFUSED = "ask_refused"
    ASK_WITHDRAWN = "ask_withdrawn"
    TOOL_DROPPED = "tool_dropped"
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
    TASK_FAILED = "task_failed"
    CONFIG_LOADED = "config_loaded"
    CONFIG_REJECTED = "config_rejected"
    CONFIG_RELOADED = "config_reloaded"
    CONFIG_RELOAD_FAILED = "config_reload_failed"
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
    """Put to the client."""
    REASKED = "reasked"
    """Put to the client once more: the answer was missing or did not fit."""
    ANSWERED = "answered"
    """The client's answer was delivered."""
    PREANSWERED = "preanswered"
    """The client had sent the answer along before the question came."""
    REMEMBERED = "remembered"
    """Answered from the journal or from this principal's earlier roots."""
    STATIC = "static"
    """Answered from the configuration."""
    DECLINED = "declined"
    """Declined by policy."""
    REFUSED = "refused"
    """The client declared no capability for it."""
    WITHDRAWN = "withdrawn"
    """The upstream took it back."""


class HoldEnd(StrEnum):
    """Why a hold ended."""

    ANSWERED = "answered"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    UPSTREAM_LOST = "upstream_lost"
    EVICTED = "evicted"
    DRAINED = "drained"
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
    REFUSED = "refused"
    UNAUTHORIZED = "unauthorized"
    PROTOCOL = "protocol"
    CANCELLED = "cancelled"
