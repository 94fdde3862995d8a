/** Gives the engine access to Pi's models. */

import { cheaperModel } from "./cheaper-model.js";
import { shared } from "./shared.js";

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionContext} ExtensionContext */
/** @typedef {import("@earendil-works/pi-ai").Model<any>} Model */
/** @typedef {import("./session.js").Session} Session */

/** The engine's name for the cheapest suitable model of the session's provider. */
const CHEAPEST = "cheapest";

/**
 * Answers the engine's questions about Pi's models: a model's data and key, or a call through Pi.
 *
 * @param {Session} session
 * @param {AbortSignal} abort
 * @returns {(call: string) => Promise<string>}
 */
export function modelsOf(session, abort) {
  // Read now: later the context may be stale.
  const { model: own, modelRegistry: registry } = session.ctx;
  return async (call) => {
    const { kind, model: name, request } = JSON.parse(call);
    const model = name === CHEAPEST ? cheaperModel(own, registry.getAll()) : name ? find(registry, name) : own;
    if (kind === "cached") return JSON.stringify(session.lastRequest.cachedTokens(own, request));
    if (kind === "ask") return JSON.stringify(await askPi(registry, model, request, abort, session.lastRequest));
    if (!model) return JSON.stringify({ error: name === CHEAPEST ? "there is none" : name ? "Pi does not know it" : "no model is chosen" });
    if (name && !registry.hasConfiguredAuth(model)) return JSON.stringify({ error: "it has no key" });
    if (name === CHEAPEST && !session.settings.compactionModels.some((named) => hasKey(registry, find(registry, named)))) reportChoice(session, model);
    const auth = await registry.getApiKeyAndHeaders(model);
    return JSON.stringify({ model, auth, oauth: registry.isUsingOAuth(model), ownStream: registry.getRegisteredProviderIds().includes(model.provider) });
  };
}

/** @param {ExtensionContext["modelRegistry"]} registry @param {string} name `provider/id` */
function find(registry, name) {
  const [, provider = "", id = ""] = name.match(/^([^/]*)\/([^]*)$/) ?? [];
  return registry.find(provider, id);
}

/**
 * The model that writes summaries: the first of `names` that Pi has a key for, else the cheapest suitable one of the session's
 * provider, else the session's own. Without names, the session's own.
 *
 * @param {ExtensionContext} ctx
 * @param {string[]} names of the setting
 * @returns {Model | undefined}
 */
export function summarizerOf({ model: own, modelRegistry: registry }, names) {
  const known = names.map((name) => find(registry, name)).find((model) => hasKey(registry, model));
  return known ?? (names.length > 0 ? cheaperModel(own, registry.getAll()) : undefined) ?? own;
}

/** @param {ExtensionContext["modelRegistry"]} registry @param {Model | undefined} model */
const hasKey = (registry, model) => model !== undefined && registry.hasConfiguredAuth(model);

/** @param {Session} session @param {Model} model */
function reportChoice(session, { provider, id }) {
  const why = "the cheapest suitable model of the session's provider, because Pi has no key for a model in compactionModels";
  session.report(`${provider}/${id} writes the summaries: ${why}. To choose another: /lcm settings compactionModels=PROVIDER/MODEL`, shared.reported, "info");
}

/**
 * The same for one operation. Calls still running when it ends are aborted.
 *
 * @template T
 * @param {Session} session
 * @param {AbortSignal | undefined} abort
 * @param {(models: (call: string) => Promise<string>) => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function withModels(session, abort, work) {
  const ended = new AbortController();
  try {
    return await work(modelsOf(session, abort ? AbortSignal.any([abort, ended.signal]) : ended.signal));
  } finally {
    ended.abort();
  }
}

/**
 * Asks one question and returns one assistant message. A provider's error is such a message too.
 *
 * @param {ExtensionContext["modelRegistry"]} registry
 * @param {Model | undefined} model
 * @param {{ system: string, prompt: string, maxTokens: number, timeoutMs: number, inSession?: { prompt: string } }} request
 * @param {AbortSignal} abort
 * @param {Session["lastRequest"]} lastRequest
 */
async function askPi(registry, model, request, abort, lastRequest) {
  if (!model) throw new Error("no model is chosen");
  /** @type {import("@earendil-works/pi-ai").Context} */
  const context = { systemPrompt: request.system, messages: [{ role: "user", content: [{ type: "text", text: request.prompt }], timestamp: Date.now() }] };
  const signal = AbortSignal.any([abort, AbortSignal.timeout(request.timeoutMs)]);
  // The engine decides about retries.
  const within = request.inSession && lastRequest.askOptions(request.inSession.prompt, request.maxTokens);
  const options = { maxTokens: request.maxTokens, signal, maxRetries: 0, ...(within ?? { cacheRetention: /** @type {const} */ ("none") }) };
  return withoutRedirects((more) => registry.streamSimple(model, context, { ...options, ...more }).result());
}

/**
 * Lets Pi ask without following redirects, which would take the key and the conversation to another address.
 *
 * @param {(more: { fetch?: typeof fetch }) => Promise<any>} ask
 */
async function withoutRedirects(ask) {
  let isSent = false;
  let redirect = 0;
  /** @type {typeof fetch} */
  const staying = async (input, init) => {
    isSent = true;
    const response = await fetch(input, { ...init, redirect: "manual" });
    if (response.status >= 300 && response.status < 400) redirect = response.status;
    return response;
  };
  const answer = await ask({ fetch: staying });
  // Pi's Google adapters take no `fetch` and say so before they send anything. A provider's error may say the same.
  if (!isSent && /custom fetch is not supported/i.test(answer.errorMessage ?? "")) return ask({});
  // The status alone: each adapter words it in its own way, and the engine has words for it.
  return redirect > 0 && answer.stopReason === "error" ? { ...answer, errorMessage: String(redirect) } : answer;
}
