# Carries out a plan with a legacy Python client (mcp 1.30) and reports what it saw. Knows nothing of the gateway.
#
#   python py_legacy_client.py < plan.json > report.json
#
# plan = { url, transport?: "http" | "sse", headers?, calls: [{ method, name?, uri?, arguments?, level? }] }
# report = { server, results: [{ result } | { error }], asked: [...], progress: [...], logs: [...] }

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

from mcp import ClientSession, McpError, types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamablehttp_client

plan = json.load(sys.stdin)
report: dict[str, Any] = {"results": [], "asked": [], "progress": [], "logs": []}


def plain(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def fitting(name: str, schema: Any) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    return {"string": name.title(), "integer": 42, "number": 4301, "boolean": True, "array": []}[
        schema["type"]
    ]


async def elicited(context: Any, params: Any) -> Any:
    asked = plain(params)
    report["asked"].append({"method": "elicitation/create", "params": asked})
    if asked.get("mode") == "url":
        return types.ElicitResult(action="accept")
    wanted = asked["requestedSchema"]["properties"]
    return types.ElicitResult(
        action="accept", content={name: fitting(name, kind) for name, kind in wanted.items()}
    )


async def sampled(context: Any, params: Any) -> Any:
    report["asked"].append({"method": "sampling/createMessage", "params": plain(params)})
    content = types.TextContent(type="text", text="Paris")
    return types.CreateMessageResult(role="assistant", content=content, model="m", stopReason="endTurn")


async def listed(context: Any) -> Any:
    report["asked"].append({"method": "roots/list"})
    return types.ListRootsResult(roots=[types.Root(uri="file:///one"), types.Root(uri="file:///two")])


async def logged(params: Any) -> None:
    report["logs"].append(plain(params))


async def progressed(progress: float, total: float | None, message: str | None) -> None:
    report["progress"].append([progress, total, message])


async def carry_out(session: Any, call: Any) -> Any:
    match call["method"]:
        case "tools/call":
            return await session.call_tool(
                call["name"], call.get("arguments", {}), progress_callback=progressed
            )
        case "tools/list":
            return await session.list_tools()
        case "prompts/list":
            return await session.list_prompts()
        case "prompts/get":
            return await session.get_prompt(call["name"], call.get("arguments"))
        case "resources/list":
            return await session.list_resources()
        case "resources/read":
            return await session.read_resource(call["uri"])
        case "logging/setLevel":
            return await session.set_logging_level(call["level"])
        case "ping":
            return await session.send_ping()
    raise ValueError(call["method"])


async def main() -> None:
    async with AsyncExitStack() as stack:
        headers = plan.get("headers") or {}
        if plan.get("transport") == "sse":
            read, write = await stack.enter_async_context(sse_client(plan["url"], headers=headers))
        else:
            read, write, _ = await stack.enter_async_context(
                streamablehttp_client(plan["url"], headers=headers)
            )
        session = await stack.enter_async_context(
            ClientSession(
                read,
                write,
                read_timeout_seconds=timedelta(seconds=15),
                elicitation_callback=elicited,
                sampling_callback=sampled,
                list_roots_callback=listed,
                logging_callback=logged,
            )
        )
        report["server"] = plain(await session.initialize())
        await asyncio.sleep(0.3)  # the GET stream opens beside the first calls
        for call in plan["calls"]:
            try:
                report["results"].append({"result": plain(await carry_out(session, call))})
            except McpError as error:
                report["results"].append({"error": plain(error.error)})
        await asyncio.sleep(0.1)  # what comes on the GET stream may come after the result


asyncio.run(main())
json.dump(report, sys.stdout)
