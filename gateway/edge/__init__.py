"""The client's side of the house: HTTP in, HTTP out. It knows nothing about upstreams."""
