"""Holdfast as it is deployed: `holdfast serve --config`, with pooled sessions and else the defaults."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import yaml

from tests.bench.messages import Target
from tests.bench.processes import Process, free_port, started, wait_until_ready


@dataclass(frozen=True, slots=True)
class Holdfast:
    """A running gateway."""

    process: Process
    target: Target
    unsettled: Target
    """The same upstream without the settle time: what an ask costs when it is not waited for others."""
    by_address: list[Target]
    """The same upstream at each of its addresses; `target` is the first."""
    seconds_to_ready: float


@dataclass(frozen=True, slots=True)
class Sharing:
    """What gateways have in common that stand beside each other."""

    store: str
    key: str


@contextmanager
def holdfast(
    upstream_url: str,
    folder: Path,
    *,
    holds: int,
    log_level: str,
    log: IO[bytes],
    sharing: Sharing | None = None,
    addresses: int = 1,
) -> Iterator[Holdfast]:
    """Start it before `upstream_url`, which is on 127.0.0.1 up to 127.0.0.N, and wait until it is ready."""
    port, admin = free_port(), free_port()
    upstream = {
        "url": upstream_url,
        "sessions": {"mode": "pooled"},
        # Longer than any run: a hold that expires would be a fault of the bench.
        "holds": {"max": holds + 1000, "ttl": "1h"},
    }
    settings = {
        "listen": f"127.0.0.1:{port}",
        "admin": f"127.0.0.1:{admin}",
        "log": {"level": log_level, "format": "json"},
        "sealing": {"keys": [sharing.key if sharing else secrets.token_urlsafe(32)], "ttl": "1h"},
        **({"store": sharing.store} if sharing else {}),
        "drain": "2s",
        "upstreams": {
            "bench": {**upstream, "path": "/mcp"},
            "unsettled": {**upstream, "path": "/unsettled/mcp", "settle": "0s"},
            **{
                f"bench-{number}": {**upstream, "url": upstream_url.replace("127.0.0.1", f"127.0.0.{number}")}
                for number in range(2, addresses + 1)
            },
        },
    }
    file = folder / f"holdfast-{port}.yaml"
    file.write_text(yaml.safe_dump(settings))
    arguments = ("-m", "gateway", "serve", "--config", str(file))
    with started("holdfast", *arguments, log=log, is_spoken_to=False) as process:
        seconds = wait_until_ready(process, f"http://127.0.0.1:{admin}/readyz")
        yield Holdfast(
            process,
            Target(f"http://127.0.0.1:{port}/mcp", is_modern=True),
            Target(f"http://127.0.0.1:{port}/unsettled/mcp", is_modern=True),
            [
                Target(f"http://127.0.0.1:{port}{path}", is_modern=True)
                for path in ("/mcp", *(f"/bench-{number}/mcp" for number in range(2, addresses + 1)))
            ],
            seconds,
        )
