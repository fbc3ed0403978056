"""Bytes to values and back: JSON-RPC, SSE, lines, header codecs, versions. Pure; it knows no meaning."""
