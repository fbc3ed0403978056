// Carries out a plan with the legacy TypeScript client (sdk 1.32) and reports what it saw. Knows nothing of the gateway.
//
//   node ts_legacy_client.mjs DIR < plan.json > report.json          (DIR holds the node_modules with the sdk)
//
// plan and report are those of py_legacy_client.py.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const home = resolve(process.argv[2], "node_modules/@modelcontextprotocol/sdk/dist/esm");
const load = (path) => import(pathToFileURL(resolve(home, path)).href);
const { Client } = await load("client/index.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
const { SSEClientTransport } = await load("client/sse.js");
const types = await load("types.js");

const plan = JSON.parse(readFileSync(0, "utf8"));
const report = { results: [], asked: [], progress: [], logs: [] };
const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
const client = new Client({ name: "ts-legacy", version: "1.0.0" }, { capabilities });

const fitting = (name, schema) =>
  schema.enum?.[0] ?? { string: name, integer: 42, number: 4301, boolean: true, array: [] }[schema.type];

client.setRequestHandler(types.ElicitRequestSchema, ({ params }) => {
  report.asked.push({ method: "elicitation/create", params });
  if (params.mode === "url") return { action: "accept" };
  const wanted = Object.entries(params.requestedSchema.properties);
  return { action: "accept", content: Object.fromEntries(wanted.map(([name, kind]) => [name, fitting(name, kind)])) };
});
client.setRequestHandler(types.CreateMessageRequestSchema, ({ params }) => {
  report.asked.push({ method: "sampling/createMessage", params });
  return { role: "assistant", content: { type: "text", text: "Paris" }, model: "m", stopReason: "endTurn" };
});
client.setRequestHandler(types.ListRootsRequestSchema, () => {
  report.asked.push({ method: "roots/list" });
  return { roots: [{ uri: "file:///one" }, { uri: "file:///two" }] };
});
client.setNotificationHandler(types.LoggingMessageNotificationSchema, ({ params }) => void report.logs.push(params));

const options = { onprogress: (step) => void report.progress.push(step), timeout: 15_000 };
const VERBS = {
  "tools/call": (call) => client.callTool({ name: call.name, arguments: call.arguments ?? {} }, undefined, options),
  "tools/list": () => client.listTools(),
  "prompts/list": () => client.listPrompts(),
  "prompts/get": (call) => client.getPrompt({ name: call.name, arguments: call.arguments }),
  "resources/list": () => client.listResources(),
  "resources/read": (call) => client.readResource({ uri: call.uri }),
  "logging/setLevel": (call) => client.setLoggingLevel(call.level),
  ping: () => client.ping(),
};

const Transport = plan.transport === "sse" ? SSEClientTransport : StreamableHTTPClientTransport;
const transport = new Transport(new URL(plan.url), { requestInit: { headers: plan.headers ?? {} } });
await client.connect(transport);
report.server = { info: client.getServerVersion(), capabilities: client.getServerCapabilities() };
await pause(300); // the GET stream opens beside the first calls
for (const call of plan.calls) {
  try {
    report.results.push({ result: await VERBS[call.method](call) });
  } catch ({ code, message, data }) {
    report.results.push({ error: { code, message, data } });
  }
}
await pause(100); // what comes on the GET stream may come after the result
if (transport.terminateSession) await transport.terminateSession();
await client.close();
process.stdout.write(JSON.stringify(report), () => process.exit(0));
