"""Writes docs/compatibility.md: really runs every feature against every server, and notes what came of it.

    python -m tests.compatibility                      all of it, into docs/compatibility.md
    python -m tests.compatibility --only py-1.30/sse   one server on one transport, to standard output

Needs the peers that `bash tests/run` installs. It ends with 1 if anything did not work.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import re
import sys
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import structlog

from tests.support.everything import RELEASES, Visitor
from tests.support.features import ELICIT, FEATURES, ROOTS, SAMPLE, Feature
from tests.support.gateways import UPSTREAM, Gateways
from tests.support.matrix import SETTLE, shortcoming
from tests.support.peers import (
    EVERYTHING_KINDS,
    FASTMCP_KINDS,
    FIXTURE_KINDS,
    PYTHON_KINDS,
    ROOT,
    start_legacy,
    stdio_command,
    ts_client,
)
from tests.support.person import Person, plan_answers
from tests.support.python_client import PythonClient, text_of

OUTPUT = ROOT / "docs" / "compatibility.md"
COMMAND = "python -m tests.compatibility"
TRANSPORTS = {"streamable-http": "Streamable HTTP", "sse": "HTTP+SSE", "stdio": "stdio"}
PEERS = ROOT / "tests" / "peers"
AT_ONCE = 3
FEATURE_SECONDS = 20.0
WORKS, ABSENT = "yes", "\u2013"

Json = dict[str, Any]


def _tool(name: str, **arguments: Any) -> Json:
    return {"name": name, "arguments": arguments}


FASTMCP_FEATURES = (
    Feature("plain", _tool("add", a=1, b=2), "3", rounds=0),
    Feature("unicode", _tool("echo", text="a\u2028b\u0085c é"), "a\u2028b\u0085c é", rounds=0),
    Feature("form", _tool("ask_name"), "Hello Ann", (ELICIT,)),
    Feature("serial", _tool("ask_two_serial"), "Ada Lovelace", (ELICIT, ELICIT), rounds=2),
    Feature("sampling", _tool("sample", prompt="Capital of France?"), "Paris", (SAMPLE,)),
    Feature("roots", _tool("roots"), "file:///one file:///two", (ROOTS,)),
)
TS_FEATURES = ("plain", "form", "sampling", "roots", "serial")
"""What the TypeScript client is put through; it starts anew for each server."""


@dataclass(frozen=True, slots=True)
class Row:
    """One server on one transport."""

    kind: str
    transport: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.transport}"


@dataclass(slots=True)
class Found:
    """What came of it: an outcome by client and feature."""

    python: dict[str, str] = field(default_factory=dict)
    typescript: dict[str, str] = field(default_factory=dict)


ROWS = tuple(
    Row(kind, transport)
    for kind in (*FIXTURE_KINDS, *FASTMCP_KINDS, *EVERYTHING_KINDS)
    for transport in TRANSPORTS
)


# --- running ---------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def served(row: Row) -> AsyncIterator[str]:
    """The URL of a gateway in front of this server; nothing tells it what it has there."""
    gateways = Gateways()
    options: Json = {"settle": SETTLE}
    try:
        if row.transport == "stdio":
            upstream = {"command": stdio_command(row.kind), "sessions": {"mode": "pooled"}, **options}
            yield (await gateways.start({"listen": "127.0.0.1:0", "upstreams": {UPSTREAM: upstream}})).url
        else:
            async with start_legacy(row.kind, transport=row.transport) as server:
                yield (await gateways(server.url, **options)).url
                await gateways.stop()
    finally:
        await gateways.stop()


async def tried(row: Row) -> Found:
    """Put both clients through all that this server can do."""
    found = Found()
    async with served(row) as url:
        if row.kind in EVERYTHING_KINDS:
            await _try_everything(row.kind, url, found)
            return found
        features = FASTMCP_FEATURES if row.kind in FASTMCP_KINDS else FEATURES
        async with PythonClient(url) as client:
            for feature in features:
                if row.kind not in feature.not_on:
                    found.python[feature.id] = await _outcome(shortcoming(client, feature))
        await _try_typescript(url, [feature for feature in features if feature.id in TS_FEATURES], found)
    return found


async def _outcome(trial: Any) -> str:
    try:
        async with asyncio.timeout(FEATURE_SECONDS):
            problem = await trial
    except Exception as error:  # noqa: BLE001  (whatever it is, it is what came of it)
        return f"no: {type(error).__name__}: {error}"
    return WORKS if problem is None else f"no: {problem}"


async def _try_typescript(url: str, features: Iterable[Feature], found: Found) -> None:
    runs = [(feature.id, *feature.fresh()) for feature in features]
    calls = [{"method": "tools/call", **params} for _, params, _ in runs]
    report = await ts_client({"url": url, "mode": "auto", "answers": plan_answers(), "calls": calls}, 60)
    entries = report["results"] or [{"error": report.get("connectError")}] * len(runs)
    for (name, _, said), entry in zip(runs, entries, strict=True):
        heard = entry["result"]["content"][0].get("text") if "result" in entry else entry["error"]
        found.typescript[name] = WORKS if heard == said else f"no: {heard!r}"


async def _try_everything(kind: str, url: str, found: Found) -> None:
    (release,) = (release for release in RELEASES if release.kind == kind)
    person: Person = Visitor(release.form)
    trials: dict[str, tuple[str, Json, str]] = {
        "plain": (release.sum, {"a": 1, "b": 2}, "3"),
        "form": (release.elicit, {}, release.told),
        "sampling": (release.sample, {"prompt": "Capital?", "maxTokens": 20}, "Paris"),
        "roots": (release.roots, {}, "file:///one"),
    }
    async with PythonClient(url, person=person) as client:
        for name, (tool, arguments, told) in trials.items():
            found.python[name] = await _outcome(_tells(client, tool, arguments, told))


async def _tells(client: PythonClient, tool: str, arguments: Json, told: str) -> str | None:
    result = await client.tool(tool, arguments)
    words = "\n".join(getattr(block, "text", "") for block in result.content)
    return None if told in words else f"said {text_of(result)!r}"


async def run(rows: Iterable[Row]) -> dict[Row, Found]:
    """All of them, a few at a time."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(row: Row) -> tuple[Row, Found]:
        async with room:
            try:
                found = await tried(row)
            except Exception as error:  # noqa: BLE001
                found = Found({"plain": f"no: {type(error).__name__}: {error}"})
            print(f"{row}: {_tally(found)}", file=sys.stderr, flush=True)
            return row, found

    return dict(await asyncio.gather(*map(one, rows)))


def _tally(found: Found) -> str:
    outcomes = [*found.python.values(), *found.typescript.values()]
    return f"{outcomes.count(WORKS)} of {len(outcomes)}"


# --- writing -----------------------------------------------------------------------------------------


def release_of(kind: str) -> str:
    """The server as a reader knows it, with the release that the lock files name."""
    if kind in PYTHON_KINDS or kind in FASTMCP_KINDS:
        name = "mcp" if kind in PYTHON_KINDS else "fastmcp"
        lock = PEERS / (f"py-mcp-{kind.partition('-')[2]}.lock" if name == "mcp" else f"py-{kind}.lock")
        pinned = dict(re.findall(r"^(fastmcp|mcp)==(\S+)", lock.read_text("utf-8"), re.MULTILINE))
        on = f" on `mcp` {pinned['mcp']}" if name == "fastmcp" else ""
        return f"`{name}` {pinned[name]}{on} (Python)"
    package, wanted = "@modelcontextprotocol/sdk", "TypeScript"
    if kind in EVERYTHING_KINDS:
        package, wanted = "@modelcontextprotocol/server-everything", "as published"
    lock = json.loads((PEERS / "node" / kind / "package-lock.json").read_text("utf-8"))
    return f"`{package}` {lock['packages'][f'node_modules/{package}']['version']} ({wanted})"


def document(results: dict[Row, Found]) -> str:
    """The page."""
    modern = json.loads((PEERS / "node/modern/package-lock.json").read_text("utf-8"))["packages"]
    typescript = modern["node_modules/@modelcontextprotocol/client"]["version"]
    how = (
        f"This page is generated by `{COMMAND}`, which runs every conversation below through a gateway and notes "
        "what came of it. Over HTTP nothing in the gateway's settings names the server's transport or revision; over "
        f"stdio it is given the command, and pools its sessions. `settle` is {SETTLE} throughout."
    )
    words = (
        f"Clients, both in mode `auto` (Python's default; TypeScript's is `legacy`, which is not tried here): "
        f"**Python** is `mcp` {version('mcp')} (`mcp.Client`), **TypeScript** is "
        f"`@modelcontextprotocol/client` {typescript}. A feature is `{WORKS}` if the client heard the right words "
        "after the right questions, for Python also in the right number of rounds; "
        f"`{ABSENT}` if it was not tried: the server has no such tool, or its SDK drops what it needs; and the "
        f'TypeScript client is put through {", ".join(TS_FEATURES)} only, and not through "everything".'
    )
    head = f"# Compatibility\n\n<!-- Generated by `{COMMAND}`. Do not edit: run it again. -->\n\n{how}\n\n{words}\n"
    sections = (
        _section(kind, {row: found for row, found in results.items() if row.kind == kind})
        for kind in dict.fromkeys(row.kind for row in results)
    )
    return "\n".join([head, *sections])


def _section(kind: str, results: dict[Row, Found]) -> str:
    columns: dict[str, dict[str, str]] = {}
    for row, found in results.items():
        columns[f"{TRANSPORTS[row.transport]}, Python"] = found.python
        if found.typescript:
            columns[f"{TRANSPORTS[row.transport]}, TypeScript"] = found.typescript
    known = [feature.id for feature in FEATURES]
    features = sorted({name for column in columns.values() for name in column}, key=known.index)
    lines = [
        f"## {release_of(kind)}\n",
        f"| feature | {' | '.join(columns)} |",
        f"| --- |{' --- |' * len(columns)}",
        *(
            f"| {name} | {' | '.join(_cell(column.get(name, ABSENT)) for column in columns.values())} |"
            for name in features
        ),
        "",
    ]
    return "\n".join(lines)


def _cell(outcome: str) -> str:
    return outcome.replace("|", "\\|").replace("\n", " ")[:200]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog=COMMAND, description="Write docs/compatibility.md by running it all."
    )
    parser.add_argument("--only", metavar="SERVER/TRANSPORT", help="one row, to standard output")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    rows = [row for row in ROWS if options.only in (None, str(row))]
    if not rows:
        parser.error(f"no such row; there are {', '.join(map(str, ROWS))}")
    # The gateway's log is not what this is about.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    results = asyncio.run(run(rows))
    page = document(results)
    if options.only is None:
        options.output.parent.mkdir(exist_ok=True)
        options.output.write_text(page, "utf-8")
    else:
        print(page)
    failed = [str(row) for row, found in results.items() if not _is_whole(found)]
    if failed:
        print(f"not everything works: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _is_whole(found: Found) -> bool:
    return all(outcome == WORKS for outcome in (*found.python.values(), *found.typescript.values()))


if __name__ == "__main__":
    sys.exit(main())
