/**
 * A model server that plays a script, for the demo and for the tests on the real Pi.
 *
 * It listens on loopback only, speaks the wire formats of `wire.mjs`, keeps every request, and asks the script for the answer. A script
 * can also cause faults: an HTTP error, a delay, silence, a cut connection, a broken reply.
 *
 * Like a real provider it judges each request first (`judge.mjs`); the script is not asked about a refused one.
 */
import { randomBytes } from "node:crypto";
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { questionIn } from "./in-session.mjs";
import { Judge } from "./judge.mjs";
import { PromptCache } from "./prompt-cache.mjs";
import { anthropicContent, wires } from "./wire.mjs";

/** @typedef {import("./wire.mjs").Api} Api */

/** The model's prices, in dollars per million tokens. */
const COST = { input: 1, output: 4, cacheRead: 0.1, cacheWrite: 1.25 };

/** The sentence that identifies a request of the extension's summarizer. */
const SUMMARIZER_MARK = "You are the summarizer of pi-lossless-context.";

/**
 * A request as received, and in the common form of `wire.mjs`.
 * @typedef {object} ReceivedFields
 * @property {number} index counted from 0
 * @property {Api} api
 * @property {"summary" | "turn" | "warming"} kind a call of the summarizer, a turn of the agent, or one that only keeps the prompt cache alive
 * @property {boolean} isInSession a call of the summarizer within the session; `messages` has only the question
 * @property {any} body
 * @property {import("./judge.mjs").Judged} judged what came of it
 * @property {string} raw the body's bytes, as text
 * @property {http.IncomingHttpHeaders} headers
 * @property {number} time when it arrived, in milliseconds
 * @property {boolean} abandoned whether the client disconnected before the reply was complete
 */
/** @typedef {ReceivedFields & import("./wire.mjs").Conversation} Received */

/**
 * A script's answer. Without `status`, `hang`, `reset` or `malformed` it is a successful reply, which `stall` and `breakOff`
 * leave unfinished.
 * @typedef {object} Reply
 * @property {string} [text]
 * @property {string} [thinking] by default a sentence if the request has the model think, and its format seals it
 * @property {number} [thinkTokens] how long the thinking is, by default a quarter of its bytes: at the request's limit it is all there is
 * @property {import("./wire.mjs").ToolCall[]} [toolCalls]
 * @property {import("./wire.mjs").Usage} [usage] by default a quarter of the bytes in each direction, some of them from the prompt cache
 * @property {import("./wire.mjs").Answer["stopReason"]} [stopReason] by default derived from the content
 * @property {string} [refusal] the model refuses with this text, in the way of the format
 * @property {number} [status] an HTTP error, or a redirect to the `location` in `headers`
 * @property {string | object} [errorBody] its body; a text becomes the message of the format's usual error object
 * @property {Record<string, string>} [headers] more headers, such as retry-after
 * @property {number} [delayMs] before the answer
 * @property {boolean} [hang] never answers
 * @property {boolean} [reset] cuts the connection
 * @property {boolean} [malformed] starts a reply that can't be parsed
 * @property {boolean} [stall] sends the first half of the reply, then nothing
 * @property {boolean} [breakOff] sends the first half of the reply, then cuts the connection
 */

/**
 * @typedef {object} ModelServer
 * @property {string} url `http://127.0.0.1:<port>`, without `/v1`
 * @property {number} port
 * @property {Received[]} requests in the order of arrival
 * @property {Received[]} refused those that the judge has refused
 * @property {() => Promise<void>} close
 */

/**
 * @param {object} options
 * @param {(request: Received) => Reply | Promise<Reply>} options.reply
 * @param {string} [options.log] a file that gets each request as one JSON line, at once
 * @param {Partial<import("./judge.mjs").Rules>} [options.rules] where the provider differs from today's
 * @param {{ now?: () => number, lifeMs?: number }} [options.cache] the prompt cache's clock, and how long a prefix lives
 * @returns {Promise<ModelServer>}
 */
export async function startModelServer({ reply, log, rules, cache }) {
  /** @type {Received[]} */
  const requests = [];
  /** @type {Received[]} */
  const refused = [];
  const provider = { judge: new Judge(rules), cache: new PromptCache(cache) };
  /** @type {http.RequestListener} */
  const serve = async (incoming, response) => {
    const api = apiAt(incoming);
    if (!api) return sendJson(response, 404, { error: { message: `no such endpoint: ${incoming.method} ${incoming.url}` } });
    const request = receive({ api, raw: await bodyOf(incoming), headers: incoming.headers, index: requests.length, provider });
    requests.push(request);
    if (request.judged.result !== "ok") refused.push(request);
    if (log) appendFileSync(log, `${JSON.stringify(logged(request))}\n`);
    response.on("close", () => (request.abandoned = !response.writableFinished));
    await answer(request, response, refusalOf(request) ?? (await scripted(reply, request)), provider);
  };
  // A client that dies while sending, or that sends no JSON, must not affect the server.
  const server = http.createServer((incoming, response) => Promise.resolve(serve(incoming, response)).catch(() => response.destroy()));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return { url: `http://127.0.0.1:${port}`, port, requests, refused, close: () => closed(server) };
}

/** How each format is named in Pi, and where Pi's clients expect it. @type {Record<Api, { name: string, at: string }>} */
const IN_PI = {
  openai: { name: "openai-completions", at: "/v1" },
  responses: { name: "openai-responses", at: "/v1" },
  anthropic: { name: "anthropic-messages", at: "" },
};

/**
 * How a model thinks: an effort that it chooses itself, as today's do, or a budget, as older ones. Pi's level is set in its settings.
 * @typedef {"adaptive" | "budget"} Thinking
 */

/**
 * Configures the scripted model in an agent folder of Pi, as provider `demo`, model `demo-model`.
 * @param {string} dir the folder for `PI_CODING_AGENT_DIR`
 * @param {object} options
 * @param {string} options.url the server's
 * @param {Api} [options.api]
 * @param {Thinking} [options.thinking] without it the model does not think
 * @param {number} [options.contextWindow]
 * @param {number} [options.maxTokens]
 * @param {{ input: number, output: number, cacheRead: number, cacheWrite: number }} [options.cost] dollars per million tokens; not
 *   free by default, so that sums of usage show it
 * @param {{ id: string, [key: string]: unknown }[]} [options.models] more models, like the first except for the given fields
 * @param {string[]} [options.catalog] providers of Pi's own catalog whose models this server plays too
 * @param {Record<string, object>} [options.overrides] fields of these models of the catalog, by id
 * @param {Record<string, unknown>} [options.settings] more keys for settings.json
 */
export function writeAgentDir(dir, { url, api = "openai", thinking, contextWindow = 200_000, maxTokens = 8192, cost = COST, models = [], catalog = [], overrides = {}, settings = {} }) {
  const model = {
    id: "demo-model",
    name: thinking === "adaptive" ? "scripted demo model, bound like Claude" : "scripted demo model",
    input: ["text", "image"],
    contextWindow,
    maxTokens,
    cost,
    ...(thinking && { reasoning: true }),
    ...(thinking === "adaptive" && api === "anthropic" && { compat: { forceAdaptiveThinking: true } }),
  };
  const apiKey = "no-key-needed";
  const provider = {
    name: "Scripted demo model",
    baseUrl: `${url}${IN_PI[api].at}`,
    api: IN_PI[api].name,
    apiKey,
    models: [model, ...models.map((other) => ({ ...model, ...other }))],
  };
  const real = Object.fromEntries(catalog.map((name) => [name, { baseUrl: url, apiKey, modelOverrides: overrides }]));
  const own = { defaultProvider: "demo", defaultModel: "demo-model", enableInstallTelemetry: false, ...(thinking && { defaultThinkingLevel: "low" }) };
  mkdirSync(dir, { recursive: true });
  writeJson(path.join(dir, "models.json"), { providers: { demo: provider, ...real } });
  writeJson(path.join(dir, "settings.json"), { ...own, ...settings });
}

/**
 * By the path's end: some clients leave out the version.
 * @param {http.IncomingMessage} incoming
 * @returns {Api | undefined}
 */
function apiAt({ method, url = "" }) {
  if (method !== "POST") return undefined;
  const { pathname } = new URL(url, "http://localhost");
  return /** @type {Api[]} */ (Object.keys(wires)).find((api) => pathname.replace(/^\/v1(?=\/)/, "") === wires[api].path);
}

/** @typedef {{ judge: Judge, cache: PromptCache }} Provider */

/**
 * @param {Pick<Received, "api" | "raw" | "headers" | "index"> & { provider: Provider }} arrived
 * @returns {Received}
 */
function receive({ api, raw, headers, index, provider }) {
  const body = JSON.parse(raw);
  const judged = provider.judge.judge(api, body);
  const conversation = wires[api].read(judged.body);
  const question = questionIn(conversation.messages);
  const isSummary = question || (conversation.system.includes(SUMMARIZER_MARK) && conversation.toolNames.length === 0);
  const kind = limitOf(body) === 1 ? "warming" : isSummary ? "summary" : "turn";
  return { index, api, kind, ...conversation, ...(question && { messages: [question] }), isInSession: question !== undefined, body, judged, raw, headers, time: Date.now(), abandoned: false };
}

/** The most tokens that an answer may have. @param {any} body */
function limitOf({ max_tokens, max_completion_tokens, max_output_tokens }) {
  return max_tokens ?? max_completion_tokens ?? max_output_tokens ?? Infinity;
}

/** @param {Received} request @returns {Reply | undefined} */
function refusalOf({ api, judged: { status, message = "", code } }) {
  return status ? { status, errorBody: wires[api].error(status, message, code) } : undefined;
}

/**
 * A mistake in a script is reported at once, as an error that no client retries.
 * @param {(request: Received) => Reply | Promise<Reply>} reply
 * @param {Received} request
 * @returns {Promise<Reply>}
 */
async function scripted(reply, request) {
  if (request.kind === "warming") return {};
  try {
    return await reply(request);
  } catch (error) {
    return { status: 400, errorBody: `the reply script failed: ${error instanceof Error ? error.stack : error}` };
  }
}

/**
 * @param {Received} request
 * @param {http.ServerResponse} response
 * @param {Reply} reply
 * @param {Provider} provider
 */
async function answer(request, response, reply, provider) {
  if (reply.delayMs) await new Promise((resolve) => setTimeout(resolve, reply.delayMs));
  if (reply.hang || response.destroyed) return;
  if (reply.reset) return void response.socket?.destroy();
  const wire = wires[request.api];
  const headers = reply.headers ?? {};
  if (reply.status && reply.status >= 300) {
    const { errorBody = `scripted error ${reply.status}` } = reply;
    const body = typeof errorBody === "string" ? wire.error(reply.status, errorBody) : errorBody;
    return sendJson(response, reply.status, body, headers);
  }
  if (reply.malformed) return void response.writeHead(200, contentType(request.streaming)).end('data: {"id":"broken","choices":[{"del\n\n');
  const complete = completed(request, reply, provider);
  const pieces = request.streaming ? [...wire.stream(complete, request.body)] : [JSON.stringify(wire.whole(complete, request.body))];
  response.writeHead(200, { ...contentType(request.streaming), ...headers });
  if (reply.stall || reply.breakOff) return half(response, pieces.join(""), reply.breakOff);
  for (const piece of pieces) response.write(piece);
  response.end();
}

/**
 * @param {http.ServerResponse} response
 * @param {string} text
 * @param {boolean} [cut]
 */
function half(response, text, cut) {
  response.write(text.slice(0, text.length / 2), () => cut && response.socket?.destroy());
}

/**
 * Fills in what a script leaves out.
 * @param {Received} request
 * @param {Reply} reply
 * @param {Provider} provider
 * @returns {import("./wire.mjs").Answer}
 */
function completed(request, { text = "", thinking = thoughtOf(request), thinkTokens, toolCalls = [], usage, stopReason, refusal }, { judge, cache }) {
  const { judged, body } = request;
  const calls = toolCalls.map((call) => ({ id: `call_${randomBytes(8).toString("hex")}`, ...call }));
  const reasoning = thinking ? (thinkTokens ?? tokensOf(thinking)) : 0;
  const limit = limitOf(body);
  const isCut = (reasoning > 0 && reasoning >= limit) || request.kind === "warming";
  const written = isCut ? 0 : tokensOf(text + JSON.stringify(calls));
  const answer = {
    id: `demo-${request.index}`,
    model: body.model,
    text: isCut ? "" : text,
    thinking,
    seal: judged.seal,
    transformations: judged.transformations,
    toolCalls: isCut ? [] : calls,
    refusal,
    usage: usage ?? { ...inputOf(request, cache), output: isCut ? limit : reasoning + written, ...(reasoning > 0 && { reasoning }) },
    stopReason: isCut ? "length" : (stopReason ?? (calls.length > 0 ? "toolUse" : "stop")),
  };
  judged.usage = answer.usage;
  judge.answered(judged, answer.id, anthropicContent(answer));
  return answer;
}

/** What a model thinks if the script does not say. @param {Received} request */
function thoughtOf({ messages, judged: { thinks } }) {
  return thinks ? `Thought after ${messages.length} messages: go on from there.` : "";
}

/** What a request costs; reasoning that the model does not see costs nothing. @param {Received} request @param {PromptCache} cache */
function inputOf({ api, raw, judged }, cache) {
  const isCached = api === "responses" || (api === "anthropic" && judged.markers > 0);
  if (!isCached) return { input: tokensOf(judged.thread === "continue" ? JSON.stringify(judged.body) : raw), cacheRead: 0, cacheWrite: 0 };
  const { read, written, rest } = cache.use(judged.body);
  return { input: Math.ceil(rest / 4), cacheRead: Math.floor(read / 4), cacheWrite: Math.floor(written / 4) };
}

/** @param {string} text */
const tokensOf = (text) => Math.ceil(Buffer.byteLength(text) / 4);

/** @param {Received} request */
function logged({ index, api, kind, time, body, judged: { result, message, seen, dropped } }) {
  return { index, api, kind, time: new Date(time).toISOString(), result, message, seen, dropped, body };
}

/**
 * @param {http.IncomingMessage} incoming
 * @returns {Promise<string>}
 */
async function bodyOf(incoming) {
  const chunks = [];
  for await (const chunk of incoming) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

/** @param {boolean} streaming */
const contentType = (streaming) => ({ "content-type": streaming ? "text/event-stream" : "application/json" });

/**
 * @param {http.ServerResponse} response
 * @param {number} status
 * @param {object} body
 * @param {Record<string, string>} [headers]
 */
function sendJson(response, status, body, headers = {}) {
  response.writeHead(status, { ...contentType(false), ...headers }).end(JSON.stringify(body));
}

/**
 * @param {string} file
 * @param {object} value
 */
function writeJson(file, value) {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}

/**
 * Also closes open connections: a hanging request must not keep the process alive.
 * @param {http.Server} server
 * @returns {Promise<void>}
 */
function closed(server) {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
