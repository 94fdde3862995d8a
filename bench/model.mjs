/**
 * The model that all strategies call, through Pi's own registry; every call is counted.
 *
 * By default it is a scripted one on this machine with a fixed time per call: nothing leaves the machine.
 */
import { mkdirSync } from "node:fs";
import path from "node:path";
import { ModelRegistry, ModelRuntime, getAgentDir } from "@earendil-works/pi-coding-agent";
import { startModelServer, writeAgentDir } from "../../demo/model-server.mjs";
import { LastRequest } from "../../shim/last-request.js";
import { modelsOf } from "../../shim/models.js";
import { summarize } from "./summarize.mjs";

/** The demo model's time per answer. */
export const LATENCY_MS = 200;

/**
 * @typedef {object} Asker
 * @property {(system: string, prompt: string, maxTokens: number) => Promise<string>} ask
 * @property {(call: string) => Promise<string>} host for the engine: the same model
 * @property {<T>(value: T) => T} timed notes that the strategy is done
 * @property {{ calls: number, input: number, output: number, ms: number | undefined }} spent
 */

/**
 * @param {string | undefined} name `provider/id`
 * @param {string} folder for the demo's agent files
 * @param {number} window of the demo model, in tokens
 * @returns {Promise<{ model: any, asker: () => Asker, close: () => Promise<void> }>}
 */
export async function openModel(name, folder, window) {
  const demo = name ? undefined : await startModelServer({ reply: ({ messages }) => ({ text: summarize(messages.at(-1)?.text ?? ""), delayMs: LATENCY_MS }) });
  const agentDir = demo ? path.join(folder, "agent") : getAgentDir();
  mkdirSync(agentDir, { recursive: true });
  if (demo) writeAgentDir(agentDir, { url: demo.url, contextWindow: window, maxTokens: 32_000 });
  const runtime = await ModelRuntime.create({ authPath: path.join(agentDir, "auth.json"), modelsPath: path.join(agentDir, "models.json"), modelsStorePath: path.join(agentDir, "models-store.json") });
  const registry = new ModelRegistry(runtime);
  const [, provider, id] = /^([^/]+)\/(.+)$/.exec(name ?? "demo/demo-model") ?? [];
  const model = registry.find(provider, id);
  if (!model) throw new Error(`Pi knows no model ${name}; pi --list-models shows those it knows`);
  return { model, asker: () => askerOf(registry, model), close: async () => demo?.close() };
}

/** @param {any} registry @param {any} model @returns {Asker} */
function askerOf(registry, model) {
  const began = performance.now();
  /** @type {Asker["spent"]} */
  const spent = { calls: 0, input: 0, output: 0, ms: undefined };
  const models = modelsOf(/** @type {any} */ ({ ctx: { model, modelRegistry: registry }, settings: { compactionModels: ["session"] }, lastRequest: new LastRequest(/** @type {any} */ (undefined)) }), new AbortController().signal);
  const host = async (/** @type {string} */ call) => {
    const answer = await models(call);
    if (JSON.parse(call).kind === "ask") {
      const { usage } = JSON.parse(answer);
      spent.calls++;
      spent.input += usage.input + (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0);
      spent.output += usage.output;
    }
    return answer;
  };
  const ask = async (/** @type {string} */ system, /** @type {string} */ prompt, /** @type {number} */ maxTokens) => {
    const answer = JSON.parse(await host(JSON.stringify({ kind: "ask", model: null, request: { system, prompt, maxTokens, timeoutMs: 300_000 } })));
    if (answer.stopReason === "error") throw new Error(answer.errorMessage);
    return answer.content.filter((/** @type {any} */ { type }) => type === "text").map((/** @type {any} */ { text }) => text).join("\n");
  };
  const timed = (/** @type {any} */ value) => {
    spent.ms ??= performance.now() - began;
    return value;
  };
  return { ask, host, timed, spent };
}
