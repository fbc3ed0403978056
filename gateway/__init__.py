"""Holdfast: modern MCP clients use legacy MCP servers, and neither side changes a line.

Start reading in `app`: its docstring shows the way of a request on one screen.
The words of the code, each with one meaning:

    modern, legacy  the two eras of the protocol: 2026-07-28, and 2024-11-05 to 2025-11-25
    upstream        one configured server
    session         one initialized session with a legacy upstream
    lease           the exclusive use of a session by one exchange
    exchange        one call as its user sees it, from the first request over all rounds to the result
    round           one HTTP request of the client within an exchange, and the response to it
    ask             one request of the legacy server to the client, in the middle of a call
    hold            an exchange that is kept while its client gathers answers
    journal         the asks and answers of an exchange so far, in order
    ticket          what `requestState` carries, sealed
    the ladder      how a retry finds its exchange again: live, routed, reattached, replayed, refused
    principal       a caller, as far as callers are told apart

Imports go down these stairs and never up (import-linter enforces it):

    cli > demo > app > reload > edge > relay > holds, upstreams
        > eras, sealing, stores > wire, settings, telemetry > errors
"""

__version__ = "0.1.0"
