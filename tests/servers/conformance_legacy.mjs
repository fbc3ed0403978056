// The twin of conformance_legacy.py on the TypeScript SDK 1.x: what the official conformance suite meets through the
// gateway, for a second opinion on every scenario.
//
//   node conformance_legacy.mjs --sdk DIR [--transport streamable-http|sse|stdio] [--port 0]
//
// DIR holds the node_modules with the SDK to use. Over HTTP it prints `LISTENING <port>` once it accepts, and ends when
// its stdin closes; over stdio it is a plain stdio server.

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const { values: options } = parseArgs({
  options: {
    sdk: { type: "string" },
    transport: { type: "string", default: "streamable-http" },
    host: { type: "string", default: "127.0.0.1" },
    port: { type: "string", default: "0" },
  },
});

const home = resolve(options.sdk, "node_modules/@modelcontextprotocol/sdk/dist/esm");
const load = (path) => import(pathToFileURL(resolve(home, path)).href);
const { Server } = await load("server/index.js");
const types = await load("types.js");

const CATALOG = JSON.parse(readFileSync(new URL("./conformance.json", import.meta.url), "utf8"));
const KEY_HINT = "dev.holdfast/inputKey";
const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

const servers = new Set();
const extras = new Set();

function refuse(code, message, data) {
  const error = new types.McpError(code, message, data);
  error.message = message; // the SDK writes its own prefix into the text
  return error;
}

// --- tools ---------------------------------------------------------------------------------------------------

// One request being served: how it asks, and on which stream.
class Call {
  constructor(server, extra) {
    this.server = server;
    this.extra = extra;
  }

  // What the catalogue has under `key`, and a hint that it be called so.
  asked(key) {
    return { ...CATALOG.asks[key], _meta: { [KEY_HINT]: key } };
  }

  // This SDK's helpers use the standing stream unless they are told which request they belong to.
  place(related) {
    return related ? { relatedRequestId: this.extra.requestId } : undefined;
  }

  async elicit(key, related = true) {
    const answer = await this.server.elicitInput(this.asked(key), this.place(related));
    if (answer.action !== "accept") throw new Error(`The user chose to ${answer.action}`);
    return Object.values(answer.content)[0];
  }

  async sample(key, related = true) {
    return (await this.server.createMessage(this.asked(key), this.place(related))).content.text;
  }

  async roots() {
    const { roots } = await this.server.listRoots(this.asked("client_roots"));
    return roots.map((root) => root.uri).join(" ");
  }

  log(level, data) {
    return this.extra.sendNotification({ method: "notifications/message", params: { level, logger: "fixture", data } });
  }
}

async function change(extra, tell) {
  if (!extras.delete(extra)) extras.add(extra);
  await Promise.allSettled([...servers].map(tell)); // a session that has ended hears nothing
  return "Changed.";
}

const TOOLS = {
  test_error_handling() {
    throw new Error("This tool intentionally returns an error for testing");
  },
  async test_tool_with_progress({ extra }) {
    const progressToken = extra._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined)
        await extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
      await pause(50);
    }
    return "Done.";
  },
  test_missing_capability: (call) => call.sample("capital_question"),
  async test_streaming_elicitation(call) {
    await call.log("info", "about to ask");
    return `Hello, ${await call.elicit("user_name")}!`;
  },
  async test_logging_tool(call) {
    for (const level of LEVELS) await call.log(level, `at ${level}`);
    return "Logged.";
  },
  test_trigger_tool_change: () => change("tools", (server) => server.sendToolListChanged()),
  test_trigger_prompt_change: () => change("prompts", (server) => server.sendPromptListChanged()),
  test_input_required_result_elicitation: async (call) => `Hello, ${await call.elicit("user_name")}!`,
  test_input_required_result_sampling: (call) => call.sample("capital_question", false),
  test_input_required_result_list_roots: (call) => call.roots(),
  test_input_required_result_request_state: async (call) => `state-ok: ${await call.elicit("confirm", false)}`,
  test_input_required_result_tampered_state: async (call) => `state-ok: ${await call.elicit("confirm")}`,
  // All at once, on both streams.
  test_input_required_result_multiple_inputs: async (call) =>
    (await Promise.all([call.elicit("user_name"), call.sample("greeting", false), call.roots()])).join(" "),
  async test_input_required_result_multi_round(call) {
    const name = await call.elicit("step1");
    return `${name} likes ${await call.elicit("step2", false)}`;
  },
  async test_input_required_result_capabilities(call) {
    const can = call.server.getClientCapabilities() ?? {};
    const asks = [can.elicitation && call.elicit("user_name"), can.sampling && call.sample("greeting")];
    return (await Promise.all(asks.filter(Boolean))).join(" ");
  },
};

async function callTool(call, name) {
  if (CATALOG.results[name]) return { content: CATALOG.results[name] };
  if (!Object.hasOwn(TOOLS, name)) throw refuse(-32602, `Unknown tool: ${name}`);
  try {
    return { content: [{ type: "text", text: await TOOLS[name](call) }] };
  } catch (problem) {
    return { content: [{ type: "text", text: String(problem.message ?? problem) }], isError: true };
  }
}

// --- the server ------------------------------------------------------------------------------------------------

async function promptBlocks(call, name, given) {
  if (CATALOG.messages[name]) return CATALOG.messages[name];
  switch (name) {
    case "test_prompt_with_arguments":
      return [{ type: "text", text: `Prompt with arguments: arg1='${given.arg1}', arg2='${given.arg2}'` }];
    case "test_prompt_with_embedded_resource": {
      const text = "Embedded resource content for testing.";
      const resource = { uri: given.resourceUri, mimeType: "text/plain", text };
      return [{ type: "resource", resource }, { type: "text", text: "Please process the embedded resource above." }];
    }
    case "test_input_required_result_prompt":
      return [{ type: "text", text: `In the context of ${await call.elicit("user_context", false)}.` }];
    default:
      throw refuse(-32602, `Unknown prompt: ${name}`);
  }
}

function contentsOf(uri) {
  if (CATALOG.contents[uri]) return CATALOG.contents[uri];
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  if (id === undefined) throw refuse(-32002, "Resource not found", { uri });
  const data = { id, templateTest: true, data: `Data for ID: ${id}` };
  return { uri, mimeType: "application/json", text: JSON.stringify(data) };
}

async function open(transport) {
  const server = new Server(
    { name: "conformance-legacy", version: "1.0.0" },
    {
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: {},
        logging: {},
        completions: {},
      },
      instructions: "A fixture of the tests.",
    },
  );
  const handle = (schema, handler) => server.setRequestHandler(schema, handler);
  const listed = (kind, extra) => [...CATALOG[kind], ...(extras.has(kind) ? [CATALOG[extra]] : [])];
  handle(types.ListToolsRequestSchema, () => ({ tools: listed("tools", "extraTool") }));
  handle(types.CallToolRequestSchema, (request, extra) => callTool(new Call(server, extra), request.params.name));
  handle(types.ListPromptsRequestSchema, () => ({ prompts: listed("prompts", "extraPrompt") }));
  handle(types.GetPromptRequestSchema, async ({ params }, extra) => {
    const blocks = await promptBlocks(new Call(server, extra), params.name, params.arguments ?? {});
    return { messages: blocks.map((content) => ({ role: "user", content })) };
  });
  handle(types.ListResourcesRequestSchema, () => ({ resources: CATALOG.resources }));
  handle(types.ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: CATALOG.resourceTemplates }));
  handle(types.ReadResourceRequestSchema, ({ params }) => ({ contents: [contentsOf(params.uri)] }));
  handle(types.CompleteRequestSchema, ({ params }) => {
    const values = CATALOG.completions.filter((word) => word.startsWith(params.argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
  });
  servers.add(server);
  server.onclose = () => servers.delete(server);
  await server.connect(transport);
  return transport;
}

// --- transports ------------------------------------------------------------------------------------------------

async function read(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return JSON.parse(Buffer.concat(parts).toString("utf8"));
}

const refused = (response, status, message) =>
  response
    .writeHead(status, { "content-type": "application/json" })
    .end(JSON.stringify({ jsonrpc: "2.0", error: { code: -32000, message }, id: null }));

async function streamableHttp() {
  const { StreamableHTTPServerTransport } = await load("server/streamableHttp.js");
  const sessions = new Map();
  return async (request, response, path) => {
    if (path !== "/mcp") return refused(response, 404, "Not found");
    const body = request.method === "POST" ? await read(request) : undefined;
    const id = request.headers["mcp-session-id"];
    let transport = sessions.get(id);
    if (!transport && id === undefined && body?.method === "initialize") {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        onsessioninitialized: (given) => sessions.set(given, transport),
        onsessionclosed: (given) => sessions.delete(given),
      });
      await open(transport);
    }
    if (!transport) return refused(response, id === undefined ? 400 : 404, "No valid session");
    return transport.handleRequest(request, response, body);
  };
}

async function httpSse() {
  const { SSEServerTransport } = await load("server/sse.js");
  const sessions = new Map();
  return async (request, response, path, query) => {
    if (path === "/sse" && request.method === "GET") {
      const transport = new SSEServerTransport("/messages", response);
      sessions.set(transport.sessionId, transport);
      response.on("close", () => sessions.delete(transport.sessionId));
      return open(transport);
    }
    const transport = path === "/messages" ? sessions.get(query.get("sessionId")) : undefined;
    return transport ? transport.handlePostMessage(request, response) : refused(response, 404, "No such session");
  };
}

if (options.transport === "stdio") {
  const { StdioServerTransport } = await load("server/stdio.js");
  await open(new StdioServerTransport());
  process.stdin.on("end", () => process.exit(0));
} else {
  const application = await (options.transport === "sse" ? httpSse() : streamableHttp());
  const http = createServer(async (request, response) => {
    try {
      const { pathname, searchParams } = new URL(request.url, "http://fixture");
      await application(request, response, pathname, searchParams);
    } catch (problem) {
      console.error(problem);
      if (!response.headersSent) refused(response, 400, String(problem));
    }
  });
  http.keepAliveTimeout = 60_000; // node's 5 s closes idle connections under a client that is about to reuse them
  http.requestTimeout = 0;
  http.listen(Number(options.port), options.host, () => console.log(`LISTENING ${http.address().port}`));
  process.stdin.on("end", () => process.exit(0)).resume();
}
