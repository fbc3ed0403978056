"""Bytes to values and back: JSON-RPC, SSE, header codecs, versions. Pure; it knows no meaning."""
