// A legacy server on the TypeScript SDK 1.x: the transport half. The tools are next door.
//
//   node ts_legacy.mjs --sdk DIR --port 0 [--json-response] [--stateless] [--event-store] [--bad-tools] …
//   node ts_legacy.mjs --sdk DIR --transport sse --port 0 …
//   node ts_legacy.mjs --sdk DIR --transport stdio …
//
// DIR holds the node_modules with the SDK to use. Prints `LISTENING <port>` once it accepts, ends when its stdin
// closes. Beside `/mcp`, or `/sse` and `/messages`: `GET /_observed` tells what the process saw, `POST /_forget`
// drops every session. Over stdio it does neither; there `--events FILE` tells what happened.

import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { CATALOG, Call, Seen, callTool, hello, refuse } from "./ts_legacy_tools.mjs";

const { values: options } = parseArgs({
  options: {
    sdk: { type: "string" },
    host: { type: "string", default: "127.0.0.1" },
    port: { type: "string", default: "0" },
    "json-response": { type: "boolean", default: false },
    stateless: { type: "boolean", default: false },
    "event-store": { type: "boolean", default: false },
    "bad-tools": { type: "boolean", default: false },
    "page-size": { type: "string", default: "0" },
    "retry-ms": { type: "string" },
    "roots-on-init": { type: "boolean", default: false },
    transport: { type: "string", default: "streamable-http" },
    events: { type: "string" },
  },
});

const home = resolve(options.sdk, "node_modules/@modelcontextprotocol/sdk");
const release = JSON.parse(readFileSync(resolve(home, "package.json"), "utf8")).version.split(".").map(Number);
const load = (path) => import(pathToFileURL(resolve(home, "dist/esm", path)).href);
const { Server } = await load("server/index.js");
const { StreamableHTTPServerTransport } = await load("server/streamableHttp.js");
const { SSEServerTransport } = await load("server/sse.js");
const { StdioServerTransport } = await load("server/stdio.js");
const types = await load("types.js");

const seen = new Seen(options.events);
const requests = [];
const sessions = new Map();
const incoming = new AsyncLocalStorage(); // 1.12 does not hand the HTTP request to handlers

class MemoryEvents {
  kept = [];

  async storeEvent(stream, message) {
    this.kept.push([stream, message]);
    return String(this.kept.length);
  }

  async replayEventsAfter(last, { send }) {
    const position = Number(last);
    const stream = this.kept[position - 1]?.[0] ?? "";
    for (let at = position; stream && at < this.kept.length; at++) {
      const [name, message] = this.kept[at];
      if (name === stream && message.jsonrpc) await send(String(at + 1), message);
    }
    return stream;
  }
}

const events = options["event-store"] ? new MemoryEvents() : undefined;

function build() {
  const server = new Server(
    { name: "ts-legacy", version: "1.0.0" },
    {
      capabilities: { tools: {}, prompts: {}, resources: {}, logging: {}, completions: {} },
      instructions: "A fixture of the tests.",
    },
  );
  const memory = {};
  const current = (extra) => new Call({ server, extra, types, release, seen, memory, http: incoming.getStore() });
  const page = (kind, items) => (request) => {
    const start = Number(request.params?.cursor ?? 0);
    const end = start + (Number(options["page-size"]) || items.length);
    return { [kind]: items.slice(start, end), ...(end < items.length ? { nextCursor: String(end) } : {}) };
  };
  const tools = [...CATALOG.tools, ...(options["bad-tools"] ? CATALOG.badTools : [])];
  server.setRequestHandler(types.ListToolsRequestSchema, page("tools", tools));
  server.setRequestHandler(types.ListPromptsRequestSchema, page("prompts", CATALOG.prompts));
  server.setRequestHandler(types.ListResourcesRequestSchema, page("resources", CATALOG.resources));
  server.setRequestHandler(
    types.ListResourceTemplatesRequestSchema,
    page("resourceTemplates", CATALOG.resourceTemplates),
  );
  server.setRequestHandler(types.CallToolRequestSchema, (request, extra) =>
    callTool(current(extra), request.params.name, request.params.arguments ?? {}),
  );
  server.setRequestHandler(types.GetPromptRequestSchema, async (request, extra) => {
    const { name, arguments: given } = request.params;
    let text;
    if (name === "simple") text = `Write about ${given?.topic ?? "nothing"}.`;
    else if (name === "ask_prompt") text = hello(await current(extra).form("name"));
    else throw refuse(types, -32602, `Unknown prompt: ${name}`);
    return { messages: [{ role: "user", content: { type: "text", text } }] };
  });
  server.setRequestHandler(types.ReadResourceRequestSchema, async (request, extra) => {
    const { uri } = request.params;
    let text;
    if (uri === "test://static/hello") text = "Hello from a resource";
    else if (uri.startsWith("test://item/")) text = `Item ${uri.slice("test://item/".length)}`;
    else if (uri === "ask://resource") text = hello(await current(extra).form("name"));
    else throw refuse(types, -32002, "Resource not found", { uri });
    return { contents: [{ uri, mimeType: "text/plain", text }] };
  });
  server.setRequestHandler(types.CompleteRequestSchema, (request) => {
    const values = CATALOG.topics.filter((topic) => topic.startsWith(request.params.argument.value));
    return { completion: { values, total: values.length } };
  });
  if (release[1] < 18) server.setRequestHandler(types.SetLevelRequestSchema, () => ({})); // later ones bring it
  if (options["roots-on-init"]) {
    server.oninitialized = async () => {
      if (!server.getClientCapabilities()?.roots) return;
      try {
        const { roots } = await server.listRoots();
        memory.roots = roots.map((root) => root.uri);
        seen.events.push(`roots:${memory.roots.join(" ")}`);
      } catch (problem) {
        seen.events.push(`roots refused:${problem.message}`);
      }
    };
  }
  return server;
}

async function open() {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: options.stateless ? undefined : () => randomUUID(),
    enableJsonResponse: options["json-response"],
    eventStore: options.stateless ? undefined : events,
    retryInterval: options["retry-ms"] && Number(options["retry-ms"]),
    onsessioninitialized: (id) => sessions.set(id, transport),
  });
  transport.onclose = () => sessions.delete(transport.sessionId);
  await build().connect(transport);
  return transport;
}

function reply(response, status, value) {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

const refusal = (message) => ({ jsonrpc: "2.0", error: { code: -32000, message }, id: null });

async function mcp(request, response, body) {
  const id = request.headers["mcp-session-id"];
  if (options.stateless) {
    if (request.method !== "POST") return reply(response, 405, refusal("Method not allowed."));
    const transport = await open();
    response.on("close", () => transport.close());
    return transport.handleRequest(request, response, body);
  }
  let transport = sessions.get(id);
  if (!transport && id === undefined && request.method === "POST" && body?.method === "initialize") transport = await open();
  if (!transport) return reply(response, 400, refusal("Bad Request: No valid session ID provided"));
  return transport.handleRequest(request, response, body);
}

async function eventStream(request, response, body, address) {
  if (request.method === "GET" && address.pathname === "/sse") {
    const transport = new SSEServerTransport("/messages", response);
    sessions.set(transport.sessionId, transport);
    transport.onclose = () => sessions.delete(transport.sessionId);
    return build().connect(transport);
  }
  if (request.method !== "POST" || address.pathname !== "/messages") return reply(response, 404, {});
  const transport = sessions.get(address.searchParams.get("sessionId"));
  if (!transport) return reply(response, 400, refusal("No transport found for sessionId"));
  return transport.handlePostMessage(request, response, body);
}

async function read(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return JSON.parse(Buffer.concat(parts).toString("utf8"));
}

const http = createServer(async (request, response) => {
  try {
    const address = new URL(request.url, "http://fixture");
    const { pathname } = address;
    if (pathname === "/_observed") {
      const counters = Object.fromEntries(seen.counters);
      const open = [...sessions.keys()];
      return reply(response, 200, { http: requests, events: seen.events, counters, sessions: open.length, open });
    }
    if (pathname === "/_forget") {
      // As a restarted server would: it no longer knows the ids that it gave out.
      sessions.clear();
      return reply(response, 200, {});
    }
    const serves = options.transport === "sse" ? ["/sse", "/messages"] : ["/mcp"];
    if (!serves.includes(pathname)) return reply(response, 404, {});
    const body = request.method === "POST" ? await read(request) : undefined;
    requests.push({
      verb: request.method,
      session: request.headers["mcp-session-id"] ?? null,
      version: request.headers["mcp-protocol-version"] ?? null,
      authorization: request.headers.authorization ?? null,
      lastEventId: request.headers["last-event-id"] ?? null,
      ...(body === undefined ? {} : { body }),
    });
    await incoming.run(request, () =>
      options.transport === "sse" ? eventStream(request, response, body, address) : mcp(request, response, body),
    );
  } catch (problem) {
    console.error(problem);
    if (!response.headersSent) reply(response, 400, { jsonrpc: "2.0", error: { code: -32700, message: String(problem) }, id: null });
  }
});
http.keepAliveTimeout = 60_000; // node's 5 s closes idle connections under a client that is about to reuse them
http.requestTimeout = 0;
if (options.transport === "stdio") {
  await build().connect(new StdioServerTransport());
  process.stdin.on("end", () => process.exit(0));
} else {
  http.listen(Number(options.port), options.host, () => console.log(`LISTENING ${http.address().port}`));
  process.stdin.on("end", () => process.exit(0)).resume();
}
