"""Runs the legacy clients of either language as processes of their own, on a plan. Knows nothing of the gateway."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.peers import NODE, ROOT, TOOLS, PeerFailed

Json = dict[str, Any]
LEGACY_CLIENTS = ("py-1.30", "ts-1.32")
_SECONDS = 40.0


def _command(client: str) -> list[str]:
    peers = ROOT / "tests" / "peers"
    if client == "py-1.30":
        return [str(TOOLS / "py-mcp-1.30/bin/python"), str(peers / "py_legacy_client.py")]
    return [str(NODE), str(peers / "ts_legacy_client.mjs"), str(TOOLS / "node/ts-1.32")]


async def legacy_client(
    client: str,
    url: str,
    calls: Sequence[Json],
    *,
    transport: str = "http",
    headers: Mapping[str, str] | None = None,
) -> Json:
    """Carry out the calls; what the client saw, as described in `py_legacy_client.py`."""
    process = await asyncio.create_subprocess_exec(
        *_command(client),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    plan = {"url": url, "transport": transport, "calls": list(calls), "headers": dict(headers or {})}
    try:
        out, err = await asyncio.wait_for(process.communicate(json.dumps(plan).encode()), _SECONDS)
    except TimeoutError:
        raise PeerFailed(f"the legacy client {client} was not done after {_SECONDS} s") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    if process.returncode != 0:
        raise PeerFailed(f"the legacy client {client} failed:\n{err.decode(errors='replace')[-4000:]}")
    report: Json = json.loads(out)
    return report
