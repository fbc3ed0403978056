"""What 2026-07-28 asks of a server over Streamable HTTP, one entry per requirement; no code of the gateway.

Tests cite the entries that they prove: `@pytest.mark.requirement("R10")`.
`tests/house/test_requirements.py` sees to it that every entry is cited or has
its gap written down, and that no test cites what does not exist.

Beyond what single tests look at, every message that a gateway in the test process
sends to a modern client is held against the official 2026-07-28 models and the
published JSON Schema as it is sent (`tests/support/judged.py`), and the test fails
for one that is not valid. So is what `holdfast serve` sends in a process of its own
(`tests/support/judged_serve.py`), and what the raw client `tests/support/wire.py`
receives, whoever sent it.
"""

from dataclasses import dataclass
from typing import Final, Literal

_SITE: Final = "https://modelcontextprotocol.io"
_SPEC: Final = f"{_SITE}/specification/2026-07-28"
_HTTP: Final = f"{_SPEC}/basic/transports/streamable-http"
_BASIC: Final = f"{_SPEC}/basic"
_MRTR: Final = f"{_SPEC}/basic/patterns/mrtr"
_LISTEN: Final = f"{_SPEC}/basic/patterns/subscriptions"
_TASKS: Final = f"{_SITE}/seps/2663-tasks-extension"

_NO_TASKS: Final = (
    "The tasks extension is not offered yet: it is not advertised, and its methods are 404 -32601."
)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing that a client may rely on."""

    id: str
    url: str
    """Where the specification says so."""
    level: Literal["MUST", "SHOULD"]
    sentence: str
    gap: str | None = None
    """Why it is not met yet; None if it is."""


REQUIREMENTS: Final = (
    # --- HTTP ---------------------------------------------------------------------------------------------
    Requirement("R1", _HTTP, "MUST", "There is one endpoint path, and it supports POST."),
    Requirement(
        "R2",
        f"{_HTTP}#security-%26-endpoint",
        "MUST",
        "A request with a foreign Origin is refused with 403; so is, on loopback, one with a foreign Host.",
    ),
    Requirement(
        "R3",
        f"{_SPEC}/basic/authorization#error-handling",
        "MUST",
        "Missing or bad credentials are answered with 401 or 403 and a challenge, and a token goes nowhere "
        "but to the audience it was issued for.",
    ),
    Requirement(
        "R4",
        f"{_HTTP}#earlier-streamable-http-revisions",
        "SHOULD",
        "GET and DELETE on the endpoint are answered with 405.",
    ),
    Requirement(
        "R5",
        f"{_HTTP}#earlier-streamable-http-revisions",
        "SHOULD",
        "Mcp-Session-Id and Last-Event-ID are ignored, and no session id is ever minted or echoed.",
    ),
    Requirement(
        "R6",
        f"{_HTTP}#sending-messages",
        "MUST",
        "A request must accept both application/json and text/event-stream; otherwise 406.",
    ),
    Requirement(
        "R7",
        f"{_HTTP}#sending-messages",
        "MUST",
        "What is not JSON is 400 -32700; a batch, a posted response or anything else is 400 -32600.",
    ),
    Requirement(
        "R8",
        f"{_BASIC}#requests",
        "MUST",
        "A request id is a string or an integer; a message without id is a notification and gets 202, no body.",
    ),
    Requirement(
        "R9",
        f"{_HTTP}#server-validation",
        "SHOULD",
        "A routing header that appears twice is refused with 400 -32020.",
    ),
    # --- per-request metadata -----------------------------------------------------------------------------
    Requirement(
        "R10",
        f"{_BASIC}#meta",
        "MUST",
        "A request whose _meta lacks the protocol version or the client capabilities is 400 -32602; "
        "client info is optional.",
    ),
    Requirement(
        "R11",
        f"{_HTTP}#protocol-version-header",
        "MUST",
        "MCP-Protocol-Version must be present and equal to the version in _meta; otherwise 400 -32020.",
    ),
    Requirement(
        "R12",
        f"{_HTTP}#standard-request-headers",
        "MUST",
        "Mcp-Method must be present and equal to the method, case-sensitively; otherwise 400 -32020.",
    ),
    Requirement(
        "R13",
        f"{_HTTP}#value-encoding",
        "MUST",
        "Mcp-Name must be present for named methods and, once decoded, equal to the name, URI or task id.",
    ),
    Requirement(
        "R14",
        f"{_SPEC}/basic/versioning#protocol-version-negotiation",
        "MUST",
        "An unsupported version is 400 -32022 with the supported versions and the requested one.",
    ),
    Requirement(
        "R15",
        f"{_HTTP}#protocol-version-header",
        "MUST",
        "A method that is unknown, removed or not implemented is 404 -32601.",
    ),
    Requirement(
        "R16",
        f"{_SPEC}/server/utilities/logging#error-handling",
        "SHOULD",
        "An unrecognised log level is -32602.",
    ),
    Requirement(
        "R17",
        f"{_BASIC}#statelessness",
        "MUST",
        "Nothing is inferred from earlier requests or from the connection.",
    ),
    Requirement(
        "R18",
        f"{_BASIC}#meta",
        "MUST",
        "A call that needs an undeclared client capability is 400 -32021 with requiredCapabilities.",
    ),
    # --- x-mcp-header -------------------------------------------------------------------------------------
    Requirement(
        "R19",
        f"{_HTTP}#server-behavior-for-custom-headers",
        "MUST",
        "Mcp-Param headers must agree with the annotated arguments of the called tool; otherwise 400 -32020.",
    ),
    Requirement(
        "R20",
        f"{_SPEC}/server/tools#x-mcp-header",
        "MUST",
        "Listed x-mcp-header annotations are unique tokens on string, integer or boolean properties that are "
        "reached through properties only.",
    ),
    Requirement(
        "R21",
        f"{_HTTP}#server-behavior-for-custom-headers",
        "MUST",
        "A server that lists annotations knows those of every tool that can be called.",
    ),
    # --- results ------------------------------------------------------------------------------------------
    Requirement(
        "R22", f"{_BASIC}#resulttype", "MUST", "Every result has a resultType that the client knows."
    ),
    Requirement("R23", f"{_BASIC}#meta", "SHOULD", "Every result names the server in its _meta."),
    Requirement(
        "R24",
        f"{_SPEC}/server/utilities/caching#cacheable-results",
        "MUST",
        "Complete results of the six cacheable methods carry ttlMs >= 0 and cacheScope; no other result does.",
    ),
    Requirement(
        "R25",
        f"{_SPEC}/server/discover",
        "MUST",
        "server/discover is implemented, and declares the capabilities that are served.",
    ),
    Requirement(
        "R26",
        f"{_SPEC}/server/utilities/pagination#implementation-guidelines",
        "SHOULD",
        "Lists keep their order, cursors are passed on untouched, and the empty cursor is one.",
    ),
    Requirement(
        "R27",
        f"{_BASIC}#error-codes",
        "MUST",
        "A missing resource is -32602 with its URI, and no code is sent that this revision reserves or retired.",
    ),
    Requirement(
        "R28",
        f"{_SPEC}/server/tools#error-handling",
        "SHOULD",
        "An unknown tool is -32602; a tool's own failure is a result with isError.",
    ),
    # --- streams ------------------------------------------------------------------------------------------
    Requirement(
        "R29",
        f"{_HTTP}#receiving-messages",
        "MUST",
        "A request is answered with one JSON object or one stream that carries notifications about this request, "
        "no requests, and ends with the response.",
    ),
    Requirement(
        "R30",
        f"{_HTTP}#receiving-messages",
        "SHOULD",
        "Streams ask proxies not to buffer, are kept alive with comments, and have no event ids.",
    ),
    Requirement(
        "R31",
        f"{_SPEC}/basic/patterns/progress#behavior-requirements",
        "MUST",
        "Progress is sent only under the token of this request, increases, and stops with the response.",
    ),
    Requirement(
        "R32",
        f"{_SPEC}/server/utilities/logging#per-request-log-level",
        "MUST",
        "Log messages are sent only on the stream of a request that set a level, at or above that level.",
    ),
    Requirement(
        "R33",
        f"{_SPEC}/basic/patterns/cancellation#transport-specific-cancellation",
        "MUST",
        "A client that disconnects has cancelled its request.",
    ),
    # --- multi round-trip requests ------------------------------------------------------------------------
    Requirement(
        "R34",
        f"{_MRTR}#supported-requests",
        "MUST",
        "input_required answers only tools/call, prompts/get and resources/read, and holds input requests of the "
        "three kinds under unique keys, or a requestState, or both.",
    ),
    Requirement(
        "R35",
        f"{_MRTR}#server-requirements-basic-workflow",
        "MUST",
        "A client is asked only what it declared on this request, down to the mode of elicitation.",
    ),
    Requirement(
        "R36",
        f"{_MRTR}#server-requirements-basic-workflow",
        "MUST",
        "A requestState that was changed, is another's, of another call or too old is refused with an error; "
        "it works once.",
    ),
    Requirement(
        "R37",
        f"{_MRTR}#error-handling",
        "SHOULD",
        "Missing answers are asked for again, unknown keys ignored, malformed inputResponses refused with -32602.",
    ),
    Requirement(
        "R38",
        f"{_MRTR}#basic-workflow",
        "MUST",
        "A retry is a request of its own: another id, another connection, another token, other capabilities.",
    ),
    # --- subscriptions ------------------------------------------------------------------------------------
    Requirement(
        "R39",
        f"{_LISTEN}#acknowledgment",
        "MUST",
        "The first message acknowledges what is honoured, and every message names its subscription.",
    ),
    Requirement(
        "R40",
        f"{_LISTEN}#notification-filter",
        "MUST",
        "Nothing is delivered that was not asked for, neither progress nor logs.",
    ),
    Requirement(
        "R41",
        f"{_LISTEN}#graceful-closure",
        "SHOULD",
        "A subscription that the server ends gets its result first.",
    ),
    Requirement(
        "R42",
        f"{_LISTEN}#multiple-concurrent-subscriptions",
        "MUST",
        "Subscriptions may run side by side, and nothing of one outlives its request.",
    ),
    # --- tasks --------------------------------------------------------------------------------------------
    Requirement(
        "R43",
        f"{_TASKS}#capability-negotiation",
        "MUST",
        "Tasks are advertised as an extension and given only to requests that declare it; who must have it "
        "and does not gets -32021.",
        gap=_NO_TASKS,
    ),
    Requirement(
        "R44",
        f"{_TASKS}#task-creation",
        "MUST",
        "A created task is flat and can be polled at once; tasks/get is complete and holds what its status calls for.",
        gap=_NO_TASKS,
    ),
    Requirement(
        "R45",
        f"{_TASKS}#task-update-requests",
        "MUST",
        "tasks/update and tasks/cancel are acknowledged with nothing, and ignore what they do not know.",
        gap=_NO_TASKS,
    ),
    Requirement(
        "R46",
        f"{_TASKS}#task-status-notifications",
        "MUST",
        "Task notifications go only to those who listen for that task, and carry all of it.",
        gap=_NO_TASKS,
    ),
    # --- authorization, as far as it is a resource server's or a proxy's --------------------------------------
    Requirement(
        "R47",
        f"{_SPEC}/basic/authorization#token-handling",
        "MUST",
        "Where tokens are verified here, only those that are valid and issued for this endpoint as their audience "
        "are accepted; all others are answered with 401.",
    ),
    Requirement(
        "R48",
        f"{_SPEC}/basic/authorization/authorization-server-discovery#authorization-server-location",
        "MUST",
        "Protected-resource metadata (RFC 9728) is served, with at least one authorization server in it.",
    ),
    Requirement(
        "R49",
        f"{_SPEC}/basic/authorization/authorization-server-discovery"
        "#protected-resource-metadata-discovery-requirements",
        "MUST",
        "A 401 names the metadata in `WWW-Authenticate` (`resource_metadata`), and the well-known URIs serve it.",
    ),
    Requirement(
        "R50",
        f"{_SPEC}/basic/authorization/security-considerations#access-token-privilege-restriction",
        "MUST",
        "A token that was issued for this endpoint is not passed through to the upstream.",
    ),
    Requirement(
        "R51",
        f"{_SPEC}/basic/authorization#runtime-insufficient-scope-errors",
        "SHOULD",
        "A token without the scopes is answered with 403 and `insufficient_scope`, `scope` and `resource_metadata`.",
    ),
    Requirement(
        "R52",
        f"{_SPEC}/basic/authorization#token-requirements",
        "MUST",
        "A token counts in the Authorization header of each request and nowhere else, never in the query.",
    ),
    Requirement(
        "R53",
        f"{_SPEC}/basic/authorization#error-handling",
        "MUST",
        "Malformed credentials, such as two Authorization headers, are answered with 400.",
    ),
    Requirement(
        "R54",
        f"{_SPEC}/basic/authorization#runtime-insufficient-scope-errors",
        "MUST",
        "A broader scope that implies a narrower one is good enough where the narrower one is asked for.",
    ),
    # --- beyond the first fifty ------------------------------------------------------------------------------
    Requirement(
        "R55",
        f"{_SPEC}/basic/versioning#compatibility-matrix",
        "MUST",
        "A server of both eras tells them apart by how a client opens: modern _meta selects this revision, "
        "`initialize` a legacy one.",
    ),
    Requirement(
        "R56",
        f"{_BASIC}#ref-resolution",
        "MUST",
        "A `$ref` to the network is never followed, whoever wrote the schema.",
    ),
    Requirement(
        "R57",
        f"{_SPEC}/client/elicitation#safe-url-handling",
        "SHOULD",
        "Pages that users are sent to are https, but for those on their own machine.",
    ),
    Requirement(
        "R58",
        f"{_SPEC}/basic/versioning#extension-negotiation",
        "MUST",
        "Only extensions that hold through the gateway are declared, in either direction.",
    ),
    Requirement(
        "R59",
        f"{_SPEC}/server/tools#security-considerations",
        "MUST",
        "Tool calls and completions (server/utilities/completion, Security) are rate limited: to what the operator "
        "sets, for no number is right for every server, and one that nobody set refuses callers who work today.",
    ),
    Requirement(
        "R60",
        f"{_BASIC}#implementation-requirements",
        "MUST",
        "A schema is judged by the dialect that it names, or by 2020-12; one of an unknown dialect is left to its "
        "server, which alone can judge it: nothing is refused that a client without a gateway could say.",
    ),
    Requirement(
        "R61",
        f"{_BASIC}#implementation-requirements",
        "SHOULD",
        "It is documented which dialects are known.",
    ),
)
