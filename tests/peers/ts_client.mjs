// Carries out a plan with the modern TypeScript client and reports what it saw. Knows nothing of the gateway.
//
//   node ts_client.mjs DIR < plan.json > report.json          (DIR holds the node_modules with the client)
//
// plan = {
//   url, headers?,                    headers go with every request
//   mode?: "pin" | "auto" | "legacy", default pin = 2026-07-28 and nothing else
//   capabilities?,                    default: forms, addresses, sampling, roots
//   maxRounds?, autoFulfill?,         of the client's own driver
//   concurrent?: true,                all calls at once instead of one after the other
//   listChanged?: true,               have the client listen for changed lists by itself
//   login?: true,                     log in when told to, at whatever moment: everybody is let in without a page
//   answers?: {
//     elicitation?: [{ match?, action?, content?, error?: {code, message}, delayMs?, once? }],
//     sampling?:    [{ match?, text, once? }] | "text",
//     roots?:       [{ uri, name? }],
//   },
//   calls: [{ method, name?, uri?, arguments?, params?, logLevel?, timeoutMs?, abortAfterMs?, during?, hear?, stay? }],
// }
//
// An answer fits when `match` is in the question's text or names one of its properties; without `match` it always
// fits; the first that fits is given. `$tag` in its content stands for what the question has in square brackets.
// A question that no answer fits fails the call. `method` is a protocol method (`tools/call`, `prompts/get`,
// `resources/read`, `tools/list`, …, `completion/complete` and `server/discover`).
//
// `subscriptions/listen` takes the filter in `params`; once it is acknowledged the calls in `during` are made, then it
// waits for as many notifications as `hear` says, and closes the stream, or with `stay` waits until the server does.
// Its result is { honoured, heard: [{ method, params }], during: […], closed }.
//
// report = {
//   era, version, server, capabilities,
//   results: [{ result } | { error: { name, code?, message, data?, status? } }],      in the order of calls
//   rounds: [n],                                               answered `input_required` results, per call
//   asked: [{ method, params }], progress: [{ call, progress, total?, message? }], logs: [{ level, data, logger? }],
//   changed: [{ kind, items, error? }],                                               as `listChanged` was told
//   logins: [{ when, token, scope? }],                     `when`: the request that was refused, or "connect"
//   http: [{ method, id, status, type }],                                             in the order of sending
// }
// A failed connection is a report with `connectError` and no results.

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const home = resolve(process.argv[2], "node_modules/@modelcontextprotocol/client/dist/index.mjs");
const { Client, StreamableHTTPClientTransport, ProtocolError, UnauthorizedError, LOG_LEVEL_META_KEY } = await import(
  pathToFileURL(home).href
);

const plan = JSON.parse(readFileSync(0, "utf8"));
const answers = plan.answers ?? {};
const report = { results: [], rounds: [], asked: [], progress: [], logs: [], changed: [], logins: [], http: [] };
const heard = [];
const capabilities = plan.capabilities ?? { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

function choose(list, words, names = []) {
  const at = list.findIndex(({ match }) => match === undefined || words.includes(match) || names.includes(match));
  if (at < 0) throw new Error(`the plan has no answer to: ${words}`);
  return list[at].once ? list.splice(at, 1)[0] : list[at];
}

function fill(content, words) {
  const tag = /\[(.*)\]/.exec(words)?.[1] ?? "";
  const put = (value) => (typeof value === "string" ? value.replaceAll("$tag", tag) : value);
  return Object.fromEntries(Object.entries(content).map(([name, value]) => [name, put(value)]));
}

async function elicited({ params }) {
  report.asked.push({ method: "elicitation/create", params });
  const names = Object.keys(params.requestedSchema?.properties ?? {});
  const { action = "accept", content, error, delayMs } = choose(answers.elicitation ?? [], params.message, names);
  if (delayMs) await pause(delayMs);
  if (error) throw new ProtocolError(error.code, error.message);
  return content && action === "accept" ? { action, content: fill(content, params.message) } : { action };
}

function sampled({ params }) {
  report.asked.push({ method: "sampling/createMessage", params });
  const list = typeof answers.sampling === "string" ? [{ text: answers.sampling }] : (answers.sampling ?? []);
  const { text } = choose(list, JSON.stringify(params.messages));
  return { role: "assistant", content: { type: "text", text }, model: "test-model", stopReason: "endTurn" };
}

function listed() {
  report.asked.push({ method: "roots/list", params: {} });
  return { roots: answers.roots ?? [] };
}

async function recorded(input, init) {
  let sent = {};
  if (typeof init?.body === "string") sent = JSON.parse(init.body);
  const entry = { method: sent.method ?? init?.method ?? "GET", id: sent.id ?? null };
  report.http.push(entry);
  const response = await fetch(input, init);
  entry.status = response.status;
  entry.type = response.headers.get("content-type");
  return response;
}

const listChanged = Object.fromEntries(
  ["tools", "prompts", "resources"].map((kind) => [
    kind,
    { onChanged: (error, items) => void report.changed.push({ kind, items, ...(error && { error: told(error) }) }) },
  ]),
);

const client = new Client(
  { name: "ts-client", version: "1.0.0" },
  {
    capabilities,
    versionNegotiation: { mode: { pin: { pin: "2026-07-28" }, auto: "auto", legacy: "legacy" }[plan.mode ?? "pin"] },
    inputRequired: { maxRounds: plan.maxRounds ?? 10, autoFulfill: plan.autoFulfill ?? true },
    ...(plan.listChanged ? { listChanged } : {}),
  },
);
if (capabilities.elicitation) client.setRequestHandler("elicitation/create", elicited);
if (capabilities.sampling) client.setRequestHandler("sampling/createMessage", sampled);
if (capabilities.roots) client.setRequestHandler("roots/list", listed);
client.setNotificationHandler("notifications/message", ({ params }) => void report.logs.push(params));

const CHANGES = ["tools/list_changed", "prompts/list_changed", "resources/list_changed", "resources/updated"];
if (!plan.listChanged)
  for (const name of CHANGES)
    client.setNotificationHandler(`notifications/${name}`, ({ method, params }) => void heard.push({ method, params }));

async function until(isTrue, what) {
  for (let waited = 0; !isTrue(); waited += 10) {
    if (waited > 5000) throw new Error(`waited in vain for ${what}; heard ${JSON.stringify(heard)}`);
    await pause(10);
  }
}

async function listen(filter, options, { during = [], hear = 0, stay }) {
  const stream = await client.listen(filter, options);
  const made = [];
  for (const { method, name, arguments: given } of during)
    made.push(await VERBS[method]({ ...(name && { name }), ...(given && { arguments: given }) }, options));
  await until(() => heard.length >= hear, `${hear} notifications`);
  if (!stay) await stream.close();
  return { honoured: stream.honoredFilter, heard, during: made, closed: await stream.closed };
}

const VERBS = {
  "server/discover": (_, options) => client.discover(options),
  "tools/list": (params, options) => client.listTools(params, options),
  "tools/call": (params, options) => client.callTool(params, options),
  "prompts/list": (params, options) => client.listPrompts(params, options),
  "prompts/get": (params, options) => client.getPrompt(params, options),
  "resources/list": (params, options) => client.listResources(params, options),
  "resources/templates/list": (params, options) => client.listResourceTemplates(params, options),
  "resources/read": (params, options) => client.readResource(params, options),
  "completion/complete": (params, options) => client.complete(params, options),
  "subscriptions/listen": listen,
};

const ASKING = new Set(["tools/call", "prompts/get", "resources/read"]);

function told(error) {
  const { name, code, message, data, status } = error;
  return { name, code, message, data, status: status ?? error.cause?.status };
}

// The client's driver tells of each round that it answers as if it were progress.
function stepped(index, step) {
  if (step.message?.startsWith("Fulfilling input required by")) report.rounds[index] += 1;
  else report.progress.push({ call: index, ...step });
}

async function carryOut(call, index) {
  report.rounds[index] = 0;
  const { method, name, uri, arguments: given, logLevel, timeoutMs = 20_000, abortAfterMs } = call;
  const params = {
    ...(name === undefined ? {} : { name }),
    ...(uri === undefined ? {} : { uri }),
    ...(given === undefined ? {} : { arguments: given }),
    ...(logLevel === undefined ? {} : { _meta: { [LOG_LEVEL_META_KEY]: logLevel } }),
    ...call.params,
  };
  const options = {
    timeout: timeoutMs,
    ...(abortAfterMs === undefined ? {} : { signal: AbortSignal.timeout(abortAfterMs) }),
    ...(ASKING.has(method) ? { onprogress: (step) => stepped(index, step) } : {}),
    ...(plan.autoFulfill === false ? { allowInputRequired: true } : {}),
  };
  const listing = method.endsWith("/list") && Object.keys(params).length === 0;
  const made = () => VERBS[method](listing ? undefined : params, options, call);
  try {
    if (!VERBS[method]) throw new Error(`the plan names an unknown method: ${method}`);
    report.results[index] = { result: await admitted(method, made) };
  } catch (error) {
    report.results[index] = { error: told(error) };
  }
}

// What the client keeps, and its browser: a page that sends everybody back at once with a code.
const kept = {};
let landed;
const provider = {
  redirectUrl: "http://localhost:1/callback",
  clientMetadata: {
    client_name: "ts-client",
    redirect_uris: ["http://localhost:1/callback"],
    token_endpoint_auth_method: "none",
  },
  state: () => (kept.state ??= randomUUID()),
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  saveDiscoveryState: (state) => void (kept.discovered = state),
  discoveryState: () => kept.discovered,
  async redirectToAuthorization(url) {
    const page = await fetch(url, { redirect: "manual" });
    landed = new URL(page.headers.get("location")).searchParams;
  },
};

function newTransport() {
  return new StreamableHTTPClientTransport(new URL(plan.url), {
    fetch: recorded,
    requestInit: { headers: plan.headers ?? {} },
    ...(plan.login ? { authProvider: provider } : {}),
  });
}

let transport = newTransport();

async function admitted(when, attempt, renew = () => {}) {
  try {
    return await attempt();
  } catch (error) {
    if (!(plan.login && error instanceof UnauthorizedError)) throw error;
    await transport.finishAuth(landed);
    report.logins.push({ when, token: kept.tokens.access_token, scope: kept.tokens.scope });
    await renew();
    return await attempt();
  }
}

try {
  await admitted(
    "connect",
    () => client.connect(transport, { timeout: 10_000 }),
    () => void (transport = newTransport()),
  );
  report.era = client.getProtocolEra();
  report.version = client.getNegotiatedProtocolVersion();
  report.server = client.getServerVersion();
  report.capabilities = client.getServerCapabilities();
  if (plan.concurrent) await Promise.all(plan.calls.map(carryOut));
  else for (const [index, call] of plan.calls.entries()) await carryOut(call, index);
  if (plan.listChanged) await until(() => report.changed.length > 0, "a changed list");
} catch (error) {
  report.connectError = told(error);
}
await client.close();
process.stdout.write(JSON.stringify(report), () => process.exit(0));
