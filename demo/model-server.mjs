/**
 * A model server that plays a script, for the demo and for the tests on the real Pi.
 *
 * It listens on loopback only, speaks the two wire formats of `wire.mjs`, keeps every request, and asks the script for the answer. A script
 * can also cause faults: an HTTP error, a delay, silence, a cut connection, a broken reply.
 */
import { randomBytes } from "node:crypto";
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { questionIn } from "./in-session.mjs";
import { wires } from "./wire.mjs";

/** The model's prices, in dollars per million tokens. */
const COST = { input: 1, output: 4, cacheRead: 0.1, cacheWrite: 1.25 };

/** The sentence that identifies a request of the extension's summarizer. */
const SUMMARIZER_MARK = "You are the summarizer of pi-lossless-context.";

/**
 * A request as received, and in the common form of `wire.mjs`.
 * @typedef {object} ReceivedFields
 * @property {number} index counted from 0
 * @property {"openai" | "anthropic"} api
 * @property {"summary" | "turn"} kind a call of the summarizer, or a turn of the agent
 * @property {boolean} isInSession a call of the summarizer within the session; `messages` has only the question
 * @property {any} body
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
 * @property {string} [thinking]
 * @property {import("./wire.mjs").ToolCall[]} [toolCalls]
 * @property {import("./wire.mjs").Usage} [usage] by default a quarter of the bytes in each direction
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
 * @property {() => Promise<void>} close
 */

/**
 * @param {{ reply: (request: Received) => Reply | Promise<Reply>, log?: string }} options `log`: a file that gets each
 *   request as one JSON line, at once
 * @returns {Promise<ModelServer>}
 */
export async function startModelServer({ reply, log }) {
  /** @type {Received[]} */
  const requests = [];
  /** @type {http.RequestListener} */
  const serve = async (incoming, response) => {
    const api = apiAt(incoming);
    if (!api) return sendJson(response, 404, { error: { message: `no such endpoint: ${incoming.method} ${incoming.url}` } });
    const request = receive({ api, raw: await bodyOf(incoming), headers: incoming.headers, index: requests.length });
    requests.push(request);
    if (log) appendFileSync(log, `${JSON.stringify(logged(request))}\n`);
    response.on("close", () => (request.abandoned = !response.writableFinished));
    await answer(request, response, await scripted(reply, request));
  };
  // A client that dies while sending, or that sends no JSON, must not affect the server.
  const server = http.createServer((incoming, response) => Promise.resolve(serve(incoming, response)).catch(() => response.destroy()));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return { url: `http://127.0.0.1:${port}`, port, requests, close: () => closed(server) };
}

/**
 * Configures the scripted model in an agent folder of Pi, as provider `demo`, model `demo-model`.
 * @param {string} dir the folder for `PI_CODING_AGENT_DIR`
 * @param {object} options
 * @param {string} options.url the server's
 * @param {"openai" | "anthropic"} [options.api]
 * @param {number} [options.contextWindow]
 * @param {number} [options.maxTokens]
 * @param {{ input: number, output: number, cacheRead: number, cacheWrite: number }} [options.cost] dollars per million tokens; not
 *   free by default, so that sums of usage show it
 * @param {{ id: string, [key: string]: unknown }[]} [options.models] more models, like the first except for the given fields
 * @param {Record<string, unknown>} [options.settings] more keys for settings.json
 */
export function writeAgentDir(dir, { url, api = "openai", contextWindow = 200_000, maxTokens = 8192, cost = COST, models = [], settings = {} }) {
  const model = {
    id: "demo-model",
    name: "scripted demo model",
    input: ["text", "image"],
    contextWindow,
    maxTokens,
    cost,
  };
  const provider = {
    name: "Scripted demo model",
    baseUrl: api === "openai" ? `${url}/v1` : url,
    api: api === "openai" ? "openai-completions" : "anthropic-messages",
    apiKey: "no-key-needed",
    models: [model, ...models.map((other) => ({ ...model, ...other }))],
  };
  const own = { defaultProvider: "demo", defaultModel: "demo-model", enableInstallTelemetry: false };
  mkdirSync(dir, { recursive: true });
  writeJson(path.join(dir, "models.json"), { providers: { demo: provider } });
  writeJson(path.join(dir, "settings.json"), { ...own, ...settings });
}

/**
 * @param {http.IncomingMessage} incoming
 * @returns {"openai" | "anthropic" | undefined}
 */
function apiAt({ method, url = "" }) {
  if (method !== "POST") return undefined;
  const { pathname } = new URL(url, "http://localhost");
  if (pathname === wires.openai.path) return "openai";
  if (pathname === wires.anthropic.path) return "anthropic";
  return undefined;
}

/**
 * @param {Pick<Received, "api" | "raw" | "headers" | "index">} arrived
 * @returns {Received}
 */
function receive({ api, raw, headers, index }) {
  const body = JSON.parse(raw);
  const conversation = wires[api].read(body);
  const question = questionIn(conversation.messages);
  const kind = question || (conversation.system.includes(SUMMARIZER_MARK) && conversation.toolNames.length === 0) ? "summary" : "turn";
  return { index, api, kind, ...conversation, ...(question && { messages: [question] }), isInSession: question !== undefined, body, raw, headers, time: Date.now(), abandoned: false };
}

/**
 * A mistake in a script is reported at once, as an error that no client retries.
 * @param {(request: Received) => Reply | Promise<Reply>} reply
 * @param {Received} request
 * @returns {Promise<Reply>}
 */
async function scripted(reply, request) {
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
 */
async function answer(request, response, reply) {
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
  const complete = completed(request, reply);
  const pieces = request.streaming ? [...wire.stream(complete, request.body)] : [JSON.stringify(wire.whole(complete))];
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
 * @returns {import("./wire.mjs").Answer}
 */
function completed(request, { text = "", thinking = "", toolCalls = [], usage, stopReason, refusal }) {
  const calls = toolCalls.map((call) => ({ id: `call_${randomBytes(8).toString("hex")}`, ...call }));
  const written = Buffer.byteLength(text + thinking + JSON.stringify(calls));
  return {
    id: `demo-${request.index}`,
    model: request.body.model,
    text,
    thinking,
    toolCalls: calls,
    refusal,
    usage: usage ?? { input: Math.ceil(Buffer.byteLength(request.raw) / 4), output: Math.ceil(written / 4) },
    stopReason: stopReason ?? (calls.length > 0 ? "toolUse" : "stop"),
  };
}

/** @param {Received} request */
function logged({ index, api, kind, time, body }) {
  return { index, api, kind, time: new Date(time).toISOString(), body };
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
