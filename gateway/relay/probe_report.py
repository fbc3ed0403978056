"""What a probe found, as words for people and as JSON for programs. It talks to nobody."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from gateway.relay.probe import Findings
from gateway.wire.versions import is_legacy

_NO: Final = "no"


def as_json(findings: Findings, target: str | Sequence[str]) -> str:
    """The findings, for programs."""
    document = {
        "target": target if isinstance(target, str) else list(target),
        "era": findings.era,
        "transport": findings.transport,
        "versions": findings.versions,
        "server": findings.server,
        "sessions": session_style(findings),
        "capabilities": findings.capabilities,
        "resumable": findings.is_resumable,
        "standingStream": findings.has_standing_stream,
        "asksAtStart": findings.asks_at_start,
        "tools": [
            {
                "name": tool.get("name"),
                "annotations": tool.get("annotations") or {},
                "replay": may_replay(tool),
            }
            for tool in findings.tools
        ],
        "warnings": list(warnings(findings)),
        "configuration": configuration(findings, target),
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def as_text(findings: Findings, target: str | Sequence[str]) -> str:
    """The findings, for people."""
    server = findings.server or {}
    rows = [
        ("server", " ".join(str(server[key]) for key in ("name", "version") if server.get(key)) or "unnamed"),
        ("era", findings.era),
        ("transport", findings.transport or "unknown"),
        ("versions", ", ".join(findings.versions)),
        ("sessions", session_style(findings)),
        ("capabilities", ", ".join(sorted(findings.capabilities)) or "none"),
    ]
    if findings.era == "legacy" and findings.transport == "streamable-http":
        rows += [
            ("GET stream", _word(findings.has_standing_stream)),
            ("resumable", _word(findings.is_resumable)),
            ("answers as", "JSON" if findings.answers_json else "event streams"),
        ]
    if findings.asks_at_start:
        rows.append(("asks at start", ", ".join(findings.asks_at_start)))
    lines = [f"{name:<14}{value}" for name, value in rows]
    if findings.tools:
        width = max(len(_name(tool)) for tool in findings.tools)
        lines += [
            "",
            f"{len(findings.tools)} tools (replay: a lost call may be run again under `replay: idempotent`)",
        ]
        lines += [f"  {_name(tool):<{width}}  {_described(tool)}".rstrip() for tool in findings.tools]
    found = list(warnings(findings))
    if found:
        lines += ["", "Warnings", *(f"  - {warning}" for warning in found)]
    return "\n".join([*lines, "", "Configuration", "", configuration(findings, target)])


def session_style(findings: Findings) -> str:
    """How the server tells its clients apart."""
    if findings.era == "modern":
        return "none (every request is complete in itself)"
    match findings.transport:
        case "stdio":
            return "a process each"
        case "sse":
            return "an event stream each"
        case _:
            return "session ids" if findings.has_session_id else "none (stateless)"


def may_replay(tool: dict[str, Any]) -> bool:
    """Would a lost call of this tool be run again under `replay: idempotent`?"""
    annotations = tool.get("annotations")
    if not isinstance(annotations, dict):
        return False
    return annotations.get("readOnlyHint") is True or annotations.get("idempotentHint") is True


def warnings(findings: Findings) -> Iterator[str]:
    """What the operator of the gateway should know about this server."""
    if findings.era == "modern":
        if any(map(is_legacy, findings.versions)):
            yield (
                "It speaks earlier revisions, too. If its tools ask in the middle of a call in the way of those (older "
                "code on a new SDK), no modern client can use them: set `era: legacy`, and the gateway bridges them."
            )
        return
    if findings.transport == "streamable-http":
        yield from _of_streamable_http(findings)
    if findings.transport == "sse":
        yield "Over HTTP+SSE a dropped connection is a lost session: calls in progress are lost with it."
        if findings.serves_many is False:
            yield "It serves one client only: a second one takes over what is meant for the first."
        if findings.tells_all:
            yield "It sends every client what is meant for one, questions included: callers are not kept apart."
    if findings.transport == "stdio":
        yield (
            "Each call may run in a process of its own: if the server keeps something in memory from one call to "
            "the next, set `sessions: {mode: affinity}`."
        )
    if findings.asks_at_start:
        kinds = ", ".join(findings.asks_at_start)
        yield f"It asks as soon as it is initialized ({kinds}): each caller gets the question with its first call."
    if findings.tools and not any(map(may_replay, findings.tools)):
        yield "No tool declares itself read-only or idempotent: under `replay: idempotent` no lost call is run again."


def _of_streamable_http(findings: Findings) -> Iterator[str]:
    if not findings.has_session_id:
        yield "It keeps no sessions: a question that a tool asks in the middle of a call cannot be answered."
    if findings.answers_json:
        yield (
            "It answered in JSON. If it always does (servers on mcp-go do not), questions, progress and logs can come "
            "only on its GET stream."
        )
    if not findings.has_standing_stream:
        yield "It has no GET stream: questions outside a call's own stream are lost, and so are changes of lists."
    if findings.answers_json and not findings.has_standing_stream:
        yield "If it always answers in JSON, it cannot ask anything: it has no GET stream either."
    if findings.is_resumable is False:
        yield "Its streams cannot be resumed: a call is lost with its connection, unless `replay` allows a second run."
    if findings.serves_many is False:
        yield (
            "It has a single session for all clients, and does not begin another when that has ended: restart it "
            "now, and each time you restart the gateway."
        )


def configuration(findings: Findings, target: str | Sequence[str]) -> str:
    """A block to paste below `upstreams:`."""
    lines = ["upstreams:", f"  {_slug(findings)}:"]
    if isinstance(target, str):
        lines.append(f"    url: {json.dumps(target)}")
        lines.append(f"    transport: {findings.transport}")
        if findings.is_authorized:
            lines.append("    auth: {mode: passthrough}")
    else:
        lines.append(f"    command: {json.dumps(list(target), ensure_ascii=False)}")
    if findings.serves_many is False and findings.transport == "streamable-http":
        lines.append("    sessions: {mode: affinity, max: 1, warm: 0, idle: 366d}")
    elif findings.serves_many is False or findings.tells_all:
        lines.append("    sessions: {mode: affinity, max: 1, warm: 0}")
    return "\n".join(lines)


def _slug(findings: Findings) -> str:
    name = str((findings.server or {}).get("name", ""))
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40].strip("-") or "server"


def _name(tool: dict[str, Any]) -> str:
    return str(tool.get("name", "?"))


def _described(tool: dict[str, Any]) -> str:
    annotations = tool.get("annotations")
    hints = (
        [name.removesuffix("Hint") for name, value in annotations.items() if name.endswith("Hint") and value]
        if isinstance(annotations, dict)
        else []
    )
    return ", ".join([*(["replay"] if may_replay(tool) else []), *hints])


def _word(value: bool | None) -> str:  # noqa: FBT001 - a fact to be worded
    return "unknown" if value is None else "yes" if value else _NO
