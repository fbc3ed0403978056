// What the TypeScript legacy fixture's tools do. Knows nothing of HTTP, and takes the SDK's parts from its caller:
// the same tools run on releases that differ in what they can ask.

import { appendFileSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

export const CATALOG = JSON.parse(readFileSync(new URL("./catalog.json", import.meta.url), "utf8"));

// In order; in a file too if there is one, for processes that cannot be asked.
class Events extends Array {
  file;

  push(event) {
    if (this.file) appendFileSync(this.file, `${event}\n`);
    return super.push(event);
  }
}

// What happened in this process since it started, whoever asked for it.
export class Seen {
  events = new Events();
  counters = new Map();
  visited = new Set();

  constructor(file) {
    this.events.file = file;
  }

  count(name) {
    const now = (this.counters.get(name) ?? 0) + 1;
    this.counters.set(name, now);
    return now;
  }
}

export function refuse(types, code, message, data) {
  const error = new types.McpError(code, message, data);
  error.message = message; // the SDK writes its own prefix into the text
  error.refused = true; // past the place that turns failures into isError results
  return error;
}

// One request being served: how it asks, and on which stream.
export class Call {
  constructor(parts) {
    Object.assign(this, parts);
  }

  options(related, more = {}) {
    return related ? { ...more, relatedRequestId: this.extra.requestId } : more;
  }

  async form(question, { tag = "", related = true, id = "", meta, timeout } = {}) {
    const asked = CATALOG.questions[question];
    const message = asked.message.replace("{id}", String(id)) + (tag ? ` [${tag}]` : "");
    const params = { message, requestedSchema: asked.requestedSchema, ...(meta ? { _meta: meta } : {}) };
    const answer = await this.elicit(params, this.options(related, timeout ? { timeout } : {}));
    this.seen.events.push(`answer:${question}:${answer.action}`);
    return answer;
  }

  // 1.12 knows no elicitation: a server of that time that wanted one had to send the request itself.
  elicit(params, options) {
    if (this.server.elicitInput) return this.server.elicitInput(params, options);
    return this.server.request({ method: "elicitation/create", params }, this.types.ResultSchema, options);
  }

  async value(question, key, options) {
    const answer = await this.form(question, options);
    return answer.action === "accept" ? String(answer.content[key]) : said(answer);
  }

  async sampled(params, related = true) {
    const answer = await this.server.createMessage(params, this.options(related));
    return answer.content.text;
  }

  async roots(related = false) {
    const answer = await this.server.listRoots(undefined, this.options(related));
    return answer.roots.map((root) => root.uri);
  }

  async progress(steps) {
    const progressToken = this.extra._meta?.progressToken;
    if (progressToken === undefined) return;
    for (let step = 1; step <= steps; step++) {
      const params = { progressToken, progress: step, total: steps, message: `step ${step}` };
      await this.extra.sendNotification({ method: "notifications/progress", params });
    }
  }
}

export const said = (answer) => ({ accept: "accepted", decline: "declined", cancel: "cancelled" })[answer.action];

export function hello(answer, tag = "") {
  if (answer.action !== "accept") return said(answer);
  return `Hello ${answer.content.name}${tag ? ` from ${tag}` : ""}`;
}

const sampling = ({ prompt: text = "Say something" }) => ({
  messages: [{ role: "user", content: { type: "text", text } }],
  maxTokens: 50,
});

const CHAIN_SCHEMA = { type: "object", properties: { answer: { type: "string" } }, required: ["answer"] };

async function chain(call, { id, questions, atOnce = false }) {
  const note = (event) => call.seen.events.push(`chain:${event}`);
  const ask = async (number) => {
    const params = { message: `${id} question ${number}`, requestedSchema: CHAIN_SCHEMA };
    const answer = await call.elicit(params, call.options(true));
    const value = answer.action === "accept" ? answer.content.answer : said(answer);
    note(`answer:${id}:${number}:${value}`);
    return value;
  };
  note(`start:${id}`);
  const numbers = Array.from({ length: questions }, (_, at) => at + 1);
  const answers = atOnce ? await Promise.all(numbers.map(ask)) : [];
  if (!atOnce) for (const number of numbers) answers.push(await ask(number));
  note(`done:${id}`);
  return JSON.stringify({ id, answers });
}

const TOOLS = {
  ask_chain: chain,
  ask_chain_again: chain,
  add: (_, { a, b }) => ({ content: [{ type: "text", text: String(a + b) }], structuredContent: { result: a + b } }),
  echo: (_, { text }) => text,
  big: (_, { characters }) => "x".repeat(characters),
  slow,
  async progress(call, { steps, ...more }) {
    await call.progress(steps);
    return more.seconds === undefined ? `${steps} steps` : slow(call, more);
  },
  logs,
  async logs_get({ server }, { levels }) {
    for (const level of levels) await server.sendLoggingMessage({ level, logger: "fixture", data: `at ${level}` });
    return `${levels.length} messages`;
  },
  fail() {
    throw new Error("this tool always fails");
  },
  protocol_error({ types }) {
    throw refuse(types, -32050, "refused by the tool", { why: "always" });
  },
  crash_process: () => process.exit(3),
  count: ({ seen }) => String(seen.count("count")),
  whoami: ({ http, server }) =>
    JSON.stringify({
      authorization: http?.headers.authorization ?? null,
      session: http?.headers["mcp-session-id"] ?? null,
      version: http?.headers["mcp-protocol-version"] ?? null,
      capabilities: server.getClientCapabilities() ?? null,
      client: server.getClientVersion() ?? null,
    }),
  remember({ memory }, { value }) {
    memory.value = value;
    return "remembered";
  },
  recall: ({ memory }) => memory.value ?? "nothing",
  async ping_client({ server }) {
    await server.ping();
    return "pong";
  },
  async unknown_ask(call) {
    await call.server.request({ method: "fixture/unknown", params: {} }, call.types.ResultSchema, call.options(true));
    return "answered";
  },
  ask_name: async (call, { tag }) => hello(await call.form("name", { tag }), tag),
  ask_name_get: async (call, { tag }) => hello(await call.form("name", { tag, related: false }), tag),
  async hang_up_then_ask(call) {
    // Only where the SDK has it, with an event store, for clients of 2025-11-25.
    const hangUp = () => {
      if (call.extra.closeSSEStream) call.seen.events.push("hung up");
      call.extra.closeSSEStream?.();
    };
    hangUp();
    const answer = await call.form("name");
    hangUp();
    return hello(answer);
  },
  ask_keyed: async (call, { key }) => hello(await call.form("name", { meta: { "dev.holdfast/inputKey": key } })),
  async ask_profile(call) {
    const answer = await call.form("profile");
    if (answer.action !== "accept") return said(answer);
    return JSON.stringify(answer.content, Object.keys(answer.content).sort());
  },
  async ask_two_parallel(call, { tag }) {
    return (await Promise.all([call.value("first", "first", { tag }), call.value("last", "last", { tag })])).join(" ");
  },
  async ask_two_serial(call, { tag }) {
    const first = await call.value("first", "first", { tag });
    return `${first} ${await call.value("last", "last", { tag })}`;
  },
  async ask_many(call, { questions }) {
    const given = [];
    for (let n = 1; n <= questions; n++) given.push(await call.value("name", "name", { tag: String(n) }));
    return given.join(" ");
  },
  async ask_while_held(call, { delayMs = 150 }) {
    const later = pause(delayMs).then(() => call.value("last", "last"));
    return (await Promise.all([call.value("first", "first"), later])).join(" ");
  },
  ask_impatient: async (call, { timeoutMs = 300 }) => hello(await call.form("name", { timeout: timeoutMs })),
  async ask_again_after_timeout(call, { timeoutMs = 300 }) {
    try {
      return `in time: ${hello(await call.form("name", { timeout: timeoutMs }))}`;
    } catch {
      return `too late: ${await call.value("last", "last")}`;
    }
  },
  async ask_then_progress(call, { steps, levels = [], ...more }) {
    const answer = await call.form("name");
    await call.progress(steps);
    await logs(call, { levels });
    return more.seconds === undefined ? hello(answer) : slow(call, more);
  },
  async mixed_three(call) {
    const [name, sampled, roots] = await Promise.all([
      call.value("name", "name"),
      call.sampled(sampling({})),
      call.roots(true),
    ]);
    return JSON.stringify({ name, sampled, roots });
  },
  async two_kinds(call) {
    const both = await Promise.all([call.value("github", "name"), call.sampled(CATALOG.sampling.capital)]);
    return both.join(": ");
  },
  sample: (call, given) => call.sampled(sampling(given)),
  sample_get: (call, given) => call.sampled(sampling(given), false),
  roots: async (call) => (await call.roots()).join(" "),
  async ask_url(call) {
    const answer = await call.elicit({ mode: "url", ...CATALOG.url }, call.options(true));
    if (answer.action !== "accept") return said(answer);
    const { elicitationId } = CATALOG.url;
    await call.extra.sendNotification({ method: "notifications/elicitation/complete", params: { elicitationId } });
    return "opened";
  },
  url_required({ seen, types }, { key }) {
    if (seen.visited.has(key)) return `visited ${key}`;
    seen.visited.add(key);
    const elicitations = [{ mode: "url", ...CATALOG.url, elicitationId: `sign-in-${key}` }];
    throw refuse(types, -32042, "URL elicitation required", { elicitations });
  },
  async side_effect_then_ask(call, { id }) {
    call.seen.count(`effect:${id}`);
    const answer = await call.form("name");
    return `${hello(answer)}, effect ${call.seen.counters.get(`effect:${id}`)}`;
  },
  async get_weather(call, { location }) {
    const answer = await call.form("github");
    if (answer.action !== "accept") return "No weather without a GitHub username";
    return `Current weather in ${location}:\nTemperature: 72°F\nConditions: Partly cloudy`;
  },
  async update_work_item(call, { workItemId, fields }) {
    if (fields["System.State"] !== "Resolved") return `Bug #${workItemId} updated.`;
    const resolution = await call.value("resolution", "resolution", { id: workItemId });
    if (resolution !== "Duplicate") return `Bug #${workItemId} resolved as ${resolution}. State set to Resolved.`;
    const original = await call.value("duplicate", "duplicateOfId");
    return `Bug #${workItemId} resolved as Duplicate of Bug #${original}. State set to Resolved and duplicate link created.`;
  },
};

export async function callTool(call, name, given) {
  const tool = Object.hasOwn(TOOLS, name) ? TOOLS[name] : undefined;
  if (!tool) throw refuse(call.types, -32602, `Unknown tool: ${name}`);
  call.seen.events.push(`call:${name}`);
  try {
    const outcome = await tool(call, given);
    call.seen.events.push(`done:${name}`);
    return typeof outcome === "string" ? { content: [{ type: "text", text: outcome }] } : outcome;
  } catch (problem) {
    if (problem.refused) throw problem;
    call.seen.events.push(`failed:${name}`);
    return { content: [{ type: "text", text: String(problem.message ?? problem) }], isError: true };
  }
}

async function slow({ seen, extra }, { seconds, tag = "" }) {
  seen.events.push(`slow:started:${tag}`);
  try {
    await pause(seconds * 1000, undefined, { signal: extra.signal });
  } catch (problem) {
    seen.events.push(`slow:cancelled:${tag}`);
    throw problem;
  }
  seen.events.push(`slow:finished:${tag}`);
  return "slept";
}

async function logs({ extra }, { levels }) {
  for (const level of levels) {
    const params = { level, logger: "fixture", data: `at ${level}` };
    await extra.sendNotification({ method: "notifications/message", params });
  }
  return `${levels.length} messages`;
}
