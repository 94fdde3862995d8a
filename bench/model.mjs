/**
 * The models that a benchmark calls through Pi's own registry, with Pi's keys, and what they may cost.
 *
 * A real one is named as in Pi, `provider/id`; `small` is the local one of `scripts/small-model.mjs`, to try a command for free. Without a
 * name it is a scripted one on this machine with a fixed time per call, and nothing leaves the machine.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline/promises";
import { ModelRegistry, ModelRuntime, getAgentDir } from "@earendil-works/pi-coding-agent";
import { startModelServer, writeAgentDir } from "../demo/model-server.mjs";
import { WINDOW, loadSmallModel } from "../scripts/small-model.mjs";
import { LastRequest } from "../shim/last-request.js";
import { modelsOf } from "../shim/models.js";
import { number } from "./measure.mjs";
import { summarize } from "./strategies/summarize.mjs";

/** @typedef {import("../demo/model-server.mjs").Received} Received */
/** @typedef {import("../demo/model-server.mjs").Reply} Reply */
/** @typedef {Awaited<ReturnType<typeof openModel>>} Opened */
/** @typedef {{ input: number, output: number, cacheRead: number, cacheWrite: number, tiers?: (Prices & { inputTokensAbove: number })[] }} Prices */

/** The demo model's time per answer. */
export const LATENCY_MS = 200;
const SMALL = "small";
/** Providers of real models in the Pi of a benchmark, and the variables with their keys, both numbered. */
export const ASKED = "asked";
const KEY = "BENCH_MODEL_KEY";

/**
 * @typedef {object} Asker
 * @property {(system: string, prompt: string, maxTokens: number) => Promise<string>} ask
 * @property {(call: string) => Promise<string>} host for the engine: the same model
 * @property {<T>(value: T) => T} timed notes that the strategy is done
 * @property {{ calls: number, input: number, output: number, ms: number | undefined }} spent
 */

/**
 * @param {string | undefined} name `provider/id`
 * @param {string} folder for the agent files of a model on this machine
 * @param {number} [window] of the scripted model, in tokens
 */
export async function openModel(name, folder, window) {
  const small = name === SMALL ? await loadSmallModel() : undefined;
  const scripted = (/** @type {Received} */ { messages }) => ({ text: summarize(messages.at(-1)?.text ?? ""), delayMs: LATENCY_MS });
  const server = name && !small ? undefined : await startModelServer({ reply: small?.reply ?? scripted });
  const agentDir = server ? path.join(folder, "agent") : getAgentDir();
  mkdirSync(agentDir, { recursive: true });
  // The price is for trying limits.
  if (server) writeAgentDir(agentDir, { url: server.url, contextWindow: small ? WINDOW : window, maxTokens: small ? WINDOW / 4 : 32_000 });
  const runtime = await ModelRuntime.create({ authPath: path.join(agentDir, "auth.json"), modelsPath: path.join(agentDir, "models.json"), modelsStorePath: path.join(agentDir, "models-store.json") });
  const registry = new ModelRegistry(runtime);
  const [, provider, id] = /^([^/]+)\/(.+)$/.exec(server ? "demo/demo-model" : (name ?? "")) ?? [];
  /** @type {any} */
  const model = registry.find(provider, id);
  if (!model) end(`Pi knows no model ${name}; pi --list-models shows those it knows`);
  const close = async () => {
    await server?.close();
    await small?.close();
  };
  return { name: name ?? "demo/demo-model", model, registry, asker: (/** @type {Budget} */ budget = new Budget(Infinity)) => askerOf(registry, model, budget), close };
}

/** @param {any} registry @param {any} model @param {Budget} budget @returns {Asker} */
function askerOf(registry, model, budget) {
  const began = performance.now();
  /** @type {Asker["spent"]} */
  const spent = { calls: 0, input: 0, output: 0, ms: undefined };
  const models = modelsOf(/** @type {any} */ ({ ctx: { model, modelRegistry: registry }, settings: { compactionModels: ["session"] }, lastRequest: new LastRequest(/** @type {any} */ (undefined)) }), new AbortController().signal);
  const host = async (/** @type {string} */ call) => {
    const isQuestion = JSON.parse(call).kind === "ask";
    if (isQuestion) budget.check();
    const answer = await models(call);
    if (isQuestion) {
      const { usage } = JSON.parse(answer);
      budget.spend(dollars(usage, model.cost));
      spent.calls++;
      spent.input += usage.input + (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0);
      spent.output += usage.output;
    }
    return answer;
  };
  const ask = async (/** @type {string} */ system, /** @type {string} */ prompt, /** @type {number} */ maxTokens) => {
    const answer = JSON.parse(await host(JSON.stringify({ kind: "ask", model: null, request: { system, prompt, maxTokens, timeoutMs: 300_000 } })));
    if (answer.stopReason === "error") throw new Error(answer.errorMessage);
    return textOf(answer);
  };
  const timed = (/** @type {any} */ value) => {
    spent.ms ??= performance.now() - began;
    return value;
  };
  return { ask, host, timed, spent };
}

/** The text of an answer. @param {any} message */
export const textOf = ({ content }) => content.filter((/** @type {any} */ { type }) => type === "text").map((/** @type {any} */ { text }) => text).join("\n");

/**
 * Has a model answer requests for summaries that reach the scripted server.
 * @param {Opened} opened
 * @param {Budget} budget
 * @returns {(request: Received) => Promise<Reply>}
 */
export function relay({ model, asker }, budget) {
  const { host } = asker(budget);
  return async ({ system, messages, body }) => {
    const maxTokens = Math.min(body.max_tokens ?? body.max_completion_tokens ?? Infinity, model.maxTokens);
    const request = { system, prompt: messages.map(({ text }) => text).join("\n\n"), maxTokens, timeoutMs: 300_000 };
    const answer = JSON.parse(await host(JSON.stringify({ kind: "ask", model: null, request })));
    const { usage, stopReason, errorMessage = "" } = answer;
    if (stopReason === "error" || stopReason === "aborted") return { status: Number(/^[45]\d\d/.exec(errorMessage)?.[0] ?? 400), errorBody: errorMessage };
    return { text: textOf(answer), thinking: "", usage, stopReason: stopReason === "length" ? "length" : "stop" };
  };
}

/**
 * Makes models known to the Pi of a benchmark, the first as provider `asked0`.
 * @param {Opened[]} all
 * @param {string} agentDir of that Pi
 * @returns {Promise<Record<string, string>>} the environment with their keys
 */
export async function install(all, agentDir) {
  const file = path.join(agentDir, "models.json");
  const config = JSON.parse(readFileSync(file, "utf8"));
  /** @type {Record<string, string>} */
  const keys = {};
  for (const [at, { model, registry }] of all.entries()) {
    const { apiKey = "none", headers } = /** @type {any} */ (await registry.getApiKeyAndHeaders(model));
    config.providers[`${ASKED}${at}`] = { baseUrl: model.baseUrl, api: model.api, apiKey: `$${KEY}${at}`, ...(headers && { headers }), models: [{ ...model, provider: undefined, headers: undefined }] };
    keys[`${KEY}${at}`] = apiKey;
  }
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
  return keys;
}

/** The command-line options of a run with real models. */
export const OPTIONS = /** @type {const} */ ({ limit: { type: "string" }, yes: { type: "boolean", default: false } });

class LimitReached extends Error {}

/** Says why a run ends early; what is finished has been paid for, and is printed. @param {unknown} error */
export function endEarly(error) {
  const isLimit = error instanceof LimitReached;
  process.stdout.write(`${isLimit ? error.message : /** @type {Error} */ (error).stack}\nWhat follows is without the session that was under way.\n\n`);
  if (!isLimit) process.exitCode = 1;
}

/** What a run may cost, in dollars. */
export class Budget {
  spent = 0;

  /** @param {number} limit */
  constructor(limit) {
    this.limit = limit;
  }

  /** @param {number} dollars */
  spend(dollars) {
    this.spent += dollars;
  }

  /** Ends a run that has reached its limit. */
  check() {
    if (this.spent >= this.limit) throw new LimitReached(`The limit of $${this.limit.toFixed(2)} is reached: $${this.spent.toFixed(2)} are spent.`);
  }
}

/**
 * What a model will be sent: tokens that it reads for the first time, those that a provider with a prompt cache has read before, and those
 * that it writes.
 * @typedef {{ opened: Opened | undefined, input: number, again?: number, output: number }} Estimate
 */

/**
 * Says what a run will cost, and asks.
 * @param {Estimate[]} estimates
 * @param {{ limit?: string, yes: boolean }} options
 * @returns {Promise<Budget>}
 */
export async function agreed(estimates, { limit, yes }) {
  let [least, most] = [0, 0];
  for (const { opened, input, again = 0, output } of estimates) {
    if (!opened) continue;
    const { cost } = opened.model;
    const written = { input: 0, output, cacheRead: again, cacheWrite: input };
    const plain = { input: input + again, output };
    const [low, high] = [dollars(cost.cacheRead > 0 ? { ...written, ...(cost.cacheWrite === 0 && { input, cacheWrite: 0 }) } : plain, cost), dollars(plain, cost)].sort((one, other) => one - other);
    process.stderr.write(`${opened.name}: about ${number(input + again)} tokens to read, ${number(again)} of them again, ${number(output)} to write\n`);
    [least, most] = [least + low, most + high];
  }
  const budget = new Budget(limit === undefined ? Math.max(2 * least, 0.01) : Number(limit));
  process.stderr.write(`Price: about $${least.toFixed(2)} if the provider caches prompts, $${most.toFixed(2)} if not. The run ends at $${budget.limit.toFixed(2)} (--limit).\n`);
  if (!yes && !process.stdin.isTTY) end("Add --yes to start.");
  if (!yes) {
    const asking = createInterface({ input: process.stdin, output: process.stderr });
    const answer = await asking.question("Start? [y/N] ");
    asking.close();
    if (!/^y/i.test(answer)) end("Not started.");
  }
  for (const { opened } of estimates) if (opened && !opened.registry.hasConfiguredAuth(opened.model)) end(`Pi has no key for ${opened.name}.`);
  return budget;
}

/** @param {string} message */
function end(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

/** What a request costs. @param {import("../demo/wire.mjs").Usage} usage @param {Prices} prices */
export function dollars({ input, output, cacheRead = 0, cacheWrite = 0 }, prices) {
  const prompt = input + cacheRead + cacheWrite;
  const tier = [...(prices.tiers ?? [])].sort((one, other) => other.inputTokensAbove - one.inputTokensAbove).find(({ inputTokensAbove }) => prompt > inputTokensAbove);
  const price = tier ?? prices;
  return (input * price.input + output * price.output + cacheRead * price.cacheRead + cacheWrite * price.cacheWrite) / 1e6;
}
