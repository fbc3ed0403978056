"""The client's side: HTTP in, HTTP out. It knows nothing about upstreams; what it needs of them it asks the relay.

Start in `mcp`, the endpoint of one upstream: it reads from top to bottom. Before
it stands `front` (the listener and its paths); on the way are `classify` (whose
request is this, may it go on), `doors` (who is calling) and `reply` (JSON or
SSE). `passthrough` is for what is not ours to answer, `admin` is a listener of
its own.
"""
