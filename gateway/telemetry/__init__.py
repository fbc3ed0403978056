"""Logs and metrics. It knows nothing of what is logged or counted.

`names` declares every name that leaves the process, `redact` removes from every
line what must not be seen.
"""
