"""What each kind of server is put through by each client for the compatibility page; does not write it.

A trial is a conversation through a gateway that ends in words. What came of it is `WORKS`, or what was
heard instead.
"""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.everything import RELEASES, Visitor
from tests.support.features import ELICIT, FEATURES, ROOTS, SAMPLE, Feature
from tests.support.gateways import UPSTREAM, Gateways
from tests.support.legacy_calls import both
from tests.support.matrix import SETTLE, shortcoming
from tests.support.peers import (
    EVERYTHING_KINDS,
    FASTMCP_KINDS,
    FIXTURE_KINDS,
    MODERN_KIND,
    ONE_CLIENT_KIND,
    PUBLISHED_KINDS,
    start_legacy,
    stdio_command,
    ts_client,
)
from tests.support.person import Person, plan_answers
from tests.support.python_client import PythonClient, text_of

WORKS = "yes"
NEITHER = "no, nor without the gateway"
"""A legacy client that is passed through hears the very words that the server says to it directly."""
FEATURE_SECONDS = 20.0
TYPESCRIPT_SECONDS = 90.0
PYTHON, TYPESCRIPT, DEFAULT = "Python", "TypeScript", "TypeScript default"
MODES = {TYPESCRIPT: "auto", DEFAULT: "legacy"}
TS_FEATURES = ("plain", "form", "sampling", "roots", "serial")
"""What the TypeScript client is put through where Python has the whole matrix; it starts anew for each server."""
LEGACY_HOW = {"http": "Streamable HTTP", "sse": "HTTP+SSE"}
"""How a legacy client reaches the gateway."""

Json = dict[str, Any]
Outcomes = dict[str, dict[str, str]]
"""By client, then by feature."""


@dataclass(frozen=True, slots=True)
class Row:
    """One server on one transport."""

    kind: str
    transport: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.transport}"


@dataclass(frozen=True, slots=True)
class Trial:
    """One call, and a word that must be in its result."""

    id: str
    name: str
    arguments: Json
    told: str


@dataclass(slots=True)
class Subject:
    """A server with what it can be tried with."""

    trials: list[Trial]
    settings: Json = field(default_factory=dict)
    person: Person = field(default_factory=Person)
    answers: Json = field(default_factory=plan_answers)
    """Of the same person, for TypeScript."""
    arguments: list[str] = field(default_factory=list)


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
POOLED: Json = {"sessions": {"mode": "pooled"}}
ONE_SESSION: Json = {"sessions": {"mode": "pooled", "max": 1, "warm": 1, "idle": "10m"}}

_THOUGHT = {"nextThoughtNeeded": True, "totalThoughts": 2}


class Landlord(Person):
    """Has one folder to show."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def answer(self, method: str, params: Json) -> Json:
        if method != "roots/list":
            return super().answer(method, params)
        self.asked.append((method, params))
        return {"roots": [{"uri": self.folder.as_uri(), "name": "Mine"}]}


def _everything(kind: str) -> Subject:
    (release,) = (release for release in RELEASES if release.kind == kind)
    trials = [
        Trial("plain", release.sum, {"a": 1, "b": 2}, "3"),
        Trial("form", release.elicit, {}, release.told),
        Trial("sampling", release.sample, {"prompt": "Capital?", "maxTokens": 20}, "Paris"),
        Trial("roots", release.roots, {}, "file:///one"),
    ]
    answers = {**plan_answers(), "elicitation": [{"content": release.form}]}
    return Subject(trials, {}, Visitor(release.form), answers)


def _filesystem(folder: Path) -> Subject:
    folder = folder.resolve()  # it tells of folders as they really are
    (folder / "hello.txt").write_text("Hello from a file", "utf-8")
    trials = [
        Trial("roots", "list_allowed_directories", {}, str(folder)),
        Trial("read in a root", "read_text_file", {"path": str(folder / "hello.txt")}, "Hello from a file"),
        Trial("denied elsewhere", "read_text_file", {"path": "/etc/passwd"}, "Access denied"),
    ]
    answers = {**plan_answers(), "roots": [{"uri": folder.as_uri(), "name": "Mine"}]}
    return Subject(trials, POOLED, Landlord(folder), answers)


def _memory(folder: Path) -> Subject:
    ann = {"name": "Ann", "entityType": "person", "observations": ["likes rain"]}
    trials = [
        Trial("remember", "create_entities", {"entities": [ann]}, ""),
        Trial("recall", "read_graph", {}, "likes rain"),
    ]
    return Subject(trials, {"env": {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}, **POOLED})


def _subject(kind: str, folder: Path) -> Subject:
    if kind in EVERYTHING_KINDS:
        return _everything(kind)
    match kind:
        case "filesystem":
            return _filesystem(folder)
        case "memory":
            return _memory(folder)
        case "sequential-thinking":
            first, second = (
                {"thought": f"Thought {n}", "thoughtNumber": n, **_THOUGHT, "nextThoughtNeeded": n == 1}
                for n in (1, 2)
            )
            return Subject(
                [
                    Trial("first thought", "sequentialthinking", first, '"thoughtHistoryLength": '),
                    Trial("second thought", "sequentialthinking", second, '"thoughtNumber": 2'),
                ],
                POOLED,
            )
        case _ if kind == ONE_CLIENT_KIND:
            sample = {"prompt": "Capital?", "maxTokens": 20}
            return Subject(
                [
                    Trial("plain", "add", {"a": 1, "b": 2}, "3"),
                    Trial("sampling", "sampleLLM", sample, "Paris"),
                ],
                ONE_SESSION,
            )
        case _:
            return Subject(
                [
                    Trial("plain", "add", {"a": 1, "b": 2}, "3 says the modern one"),
                    Trial("form", "ask_name", {}, "Hello Ann, says the modern one"),
                    Trial("serial", "ask_two_serial", {}, "Ada Lovelace, says the modern one"),
                ]
            )


ROWS = (
    *(
        Row(kind, transport)
        for kind in (*FIXTURE_KINDS, *FASTMCP_KINDS, *EVERYTHING_KINDS)
        for transport in ("streamable-http", "sse", "stdio")
    ),
    *(Row(ONE_CLIENT_KIND, transport) for transport in ("sse", "stdio")),
    *(Row(kind, "stdio") for kind in PUBLISHED_KINDS),
    *(Row(MODERN_KIND, transport) for transport in ("streamable-http", "stdio")),
)
LEGACY_ROWS = tuple(
    Row(kind, transport)
    for kind in ("py-1.30", "ts-1.32")
    for transport in ("streamable-http", "sse", "stdio")
)
"""Servers that legacy clients are tried on, directly and through the gateway."""


# --- running ---------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def served(row: Row, **upstream: Any) -> AsyncIterator[str]:
    """The URL of a gateway in front of this server; nothing tells it what it has there."""
    gateways = Gateways()
    options: Json = {"settle": SETTLE, **upstream}
    try:
        if row.transport == "stdio":
            own = {"command": stdio_command(row.kind), **options}
            yield (await gateways.start({"listen": "127.0.0.1:0", "upstreams": {UPSTREAM: own}})).url
        else:
            async with start_legacy(row.kind, transport=row.transport) as server:
                yield (await gateways(server.url, **options)).url
                await gateways.stop()
    finally:
        await gateways.stop()


async def tried(row: Row) -> Outcomes:
    """Put all clients through what this server can do."""
    features = FASTMCP_FEATURES if row.kind in FASTMCP_KINDS else FEATURES
    if row.kind in FIXTURE_KINDS or row.kind in FASTMCP_KINDS:
        return await _tried_features(row, features)
    with tempfile.TemporaryDirectory() as folder:
        return await _tried_subject(row, _subject(row.kind, Path(folder)))


async def _tried_features(row: Row, features: tuple[Feature, ...]) -> Outcomes:
    found: Outcomes = {PYTHON: {}}
    async with served(row, **(POOLED if row.transport == "stdio" else {})) as url:
        async with PythonClient(url) as client:
            for feature in features:
                if row.kind not in feature.not_on:
                    found[PYTHON][feature.id] = await _outcome(shortcoming(client, feature))
        for name, mode in MODES.items():
            runs = [(feature.id, *feature.fresh()) for feature in features if feature.id in TS_FEATURES]
            trials = [Trial(id_, params["name"], params["arguments"], said) for id_, params, said in runs]
            found[name] = await _by_typescript(url, mode, plan_answers(), trials)
    return found


async def _tried_subject(row: Row, subject: Subject) -> Outcomes:
    if row.kind == ONE_CLIENT_KIND:  # and so has to be started anew for each
        found: Outcomes = {}
        for client in (PYTHON, *MODES):
            # A session that is kept ready would be the one client.
            settings = {} if client == DEFAULT else subject.settings
            async with served(row, **settings) as url:
                found[client] = await _by(client, url, subject)
        return found
    async with served(row, **subject.settings) as url:
        outcomes = {client: await _by(client, url, subject) for client in (PYTHON, *MODES)}
    if row.transport == "streamable-http" and set(outcomes[DEFAULT].values()) != {WORKS}:
        outcomes[DEFAULT] = await _beside_direct(row, subject, outcomes[DEFAULT])
    return outcomes


async def _beside_direct(row: Row, subject: Subject, through: dict[str, str]) -> dict[str, str]:
    async with start_legacy(row.kind) as server:
        direct = await _by(DEFAULT, server.url, subject)
    return {
        name: NEITHER if outcome != WORKS and outcome == direct[name] else outcome
        for name, outcome in through.items()
    }


async def _by(client: str, url: str, subject: Subject) -> dict[str, str]:
    if client in MODES:
        return await _by_typescript(url, MODES[client], subject.answers, subject.trials)
    async with PythonClient(url, person=subject.person) as python:
        return {trial.id: await _outcome(_tells(python, trial)) for trial in subject.trials}


async def _tells(client: PythonClient, trial: Trial) -> str | None:
    result = await client.tool(trial.name, trial.arguments)
    words = "\n".join(getattr(block, "text", "") for block in result.content)
    return None if trial.told in words else f"said {text_of(result)!r}"


async def _outcome(trial: Any) -> str:
    try:
        async with asyncio.timeout(FEATURE_SECONDS):
            problem = await trial
    except Exception as error:  # noqa: BLE001  (whatever it is, it is what came of it)
        return f"no: {type(error).__name__}: {error}"
    return WORKS if problem is None else f"no: {problem}"


async def _by_typescript(url: str, mode: str, answers: Json, trials: Iterable[Trial]) -> dict[str, str]:
    trials = list(trials)
    # A look at the tools comes first, as in any real client.
    calls: list[Json] = [{"method": "tools/list"}]
    calls += [{"method": "tools/call", "name": t.name, "arguments": t.arguments} for t in trials]
    plan = {"url": url, "mode": mode, "answers": answers, "calls": calls}
    report = await ts_client(plan, TYPESCRIPT_SECONDS)
    entries = report["results"][1:] or [{"error": report.get("connectError")}] * len(trials)
    return {trial.id: _said(trial, entry) for trial, entry in zip(trials, entries, strict=True)}


def _said(trial: Trial, entry: Json) -> str:
    if "result" not in entry:
        return f"no: {entry['error']!r}"
    words = "\n".join(block.get("text", "") for block in entry["result"]["content"])
    return WORKS if trial.told in words else f"no: {words!r}"


# --- legacy clients --------------------------------------------------------------------------------


async def tried_by_legacy(row: Row, client: str, how: str) -> str:
    """Does this legacy client see the same through the gateway as without it?"""
    # What is not HTTP cannot be reached without a gateway by this client, so its HTTP twin is compared.
    direct = "sse" if row.transport == "sse" else "streamable-http"
    async with start_legacy(row.kind, transport=direct) as server, served(row) as url:
        seen, through = await both(client, server.url, url, ("sse" if direct == "sse" else "http", how))
    return WORKS if seen == through else f"no: {_difference(seen, through)}"


def _difference(seen: Any, through: Any) -> str:
    """The first place where they differ."""
    if isinstance(seen, dict) and isinstance(through, dict):
        for name in {**seen, **through}:
            if seen.get(name) != through.get(name):
                return f"{name}: {_difference(seen.get(name), through.get(name))}"
    if isinstance(seen, list) and isinstance(through, list) and len(seen) == len(through):
        for number, pair in enumerate(zip(seen, through, strict=True)):
            if pair[0] != pair[1]:
                return f"{number}: {_difference(*pair)}"
    return f"{seen!r} became {through!r}"
