"""Exchanges that are kept while their client is away: which there are, how many there may be, and whose they are.

`ledger` is the book of this process, `directory` the one that all replicas
share, `lease` tells whether this process may rely on its own book. None of them
knows what an exchange is; `relay` does.
"""
