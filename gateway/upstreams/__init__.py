"""The server's side: transports, sessions, the pool. It knows nothing about clients.

`transport` is the seam, and `streamable_http`, `http_sse` and `stdio` are the
three ways behind it; `dialing` finds out which of them a server speaks. `session`
is one initialized session over any of them, `pool` keeps and leases sessions.
`http1` is the HTTP client below, `process` and `guard` are for servers that are
started here.
"""
