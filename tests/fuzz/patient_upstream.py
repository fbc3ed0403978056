"""A legacy server that answers 400 to what it cannot read, as real ones do; otherwise the scripted one."""

import asyncio
import json
from dataclasses import dataclass

from tests.support.scripted import Scripted, Turn


async def _unreadable(turn: Turn) -> None:
    error = {"code": -32700, "message": "Parse error"}
    await turn.json({"jsonrpc": "2.0", "id": None, "error": error}, 400)


@dataclass
class PatientUpstream(Scripted):
    """What clients send through the gateway as it is, this server survives."""

    sessions: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.on["POST"] = _unreadable

    async def _read(self, reader: asyncio.StreamReader) -> Turn | None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        verb, path, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        return Turn(self, verb, path, headers, body if _is_readable(body) else b"")


def _is_readable(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except (ValueError, RecursionError):
        return False
