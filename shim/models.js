/** Gives the engine access to Pi's models, and decides which of them write summaries. */

import { cheaperModel } from "./cheaper-model.js";
import { nameOf, physicalModel } from "./pi.js";
import { shared } from "./shared.js";

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionContext} ExtensionContext */
/** @typedef {ExtensionContext["modelRegistry"]} Registry */
/** @typedef {import("@earendil-works/pi-ai").Model<any>} Model */
/** @typedef {import("./session.js").Session} Session */
/** A model that writes summaries, and its name for the engine: `provider/id`, or null for the session's own. @typedef {{ name: string | null, model: Model }} Summarizer */

/** The word in `compactionModels` for the session's own model. */
const OWN = "session";
/** In a smaller window, the engine has no room for a question. */
const LEAST_WINDOW = 2_000;

/**
 * Answers the engine's questions about Pi's models: which of them write summaries, a model's data and key, or a call through Pi.
 *
 * @param {Session} session
 * @param {AbortSignal} abort
 * @returns {(call: string) => Promise<string>}
 */
export function modelsOf(session, abort) {
  // Read now: later the context may be stale.
  const { modelRegistry: registry } = session.ctx;
  const own = physicalModel(session.ctx);
  return async (call) => {
    const { kind, model: name, request } = JSON.parse(call);
    if (kind === "models") return JSON.stringify(chosen(session, own, registry).map((one) => one.name));
    const model = name ? find(registry, name) : own;
    if (kind === "cached") return JSON.stringify(session.lastRequest.cachedTokens(own, request));
    if (kind === "ask") return JSON.stringify(await askPi(registry, model, request, abort, session.lastRequest));
    if (!model) return JSON.stringify({ error: name ? "Pi does not know it" : "no model is chosen" });
    const auth = await registry.getApiKeyAndHeaders(model);
    return JSON.stringify({ model, auth });
  };
}

/**
 * The models that write summaries, in the order in which they are asked: those of the setting that can be asked, then the smallest
 * capable one of the session's provider, then the session's own. Calls, prices and displays all follow this list.
 *
 * @param {Model | undefined} own the session's model
 * @param {Registry} registry
 * @param {string[]} names the setting `compactionModels`
 * @returns {Summarizer[]}
 */
function choose(own, registry, names) {
  const last = own ? [{ name: null, model: own }] : [];
  const named = names.flatMap((name) => (name === OWN ? last : usable(registry, find(registry, name))));
  const all = names.includes(OWN) ? named : [...named, ...usable(registry, cheaperModel(own, registry.getAll())), ...last];
  return all.filter(({ model }, at) => all.findIndex((one) => nameOf(one.model) === nameOf(model)) === at);
}

/** @param {Registry} registry @param {Model | undefined} model @returns {Summarizer[]} it, if it can be asked */
function usable(registry, model) {
  return model && !obstacle(registry, model) ? [{ name: nameOf(model), model }] : [];
}

/** Why a model can't be asked. @param {Registry} registry @param {Model | undefined} model */
function obstacle(registry, model) {
  if (!model) return "Pi does not know it";
  if (!registry.hasConfiguredAuth(model)) return "it has no key";
  return model.contextWindow > 0 && model.contextWindow < LEAST_WINDOW ? `its window of ${model.contextWindow} tokens is too small` : undefined;
}

/** Why a model can't write summaries, if it can't. @param {ExtensionContext} ctx @param {string} name `provider/id`, or `session` */
export function obstacleOf({ modelRegistry: registry }, name) {
  const why = name === OWN ? undefined : obstacle(registry, find(registry, name));
  return why && `${name} can't write summaries: ${why}`;
}

/** @param {Registry} registry @param {string} name `provider/id` */
function find(registry, name) {
  const [, provider = "", id = ""] = name.match(/^([^/]*)\/([^]*)$/) ?? [];
  return registry.find(provider, id);
}

/**
 * The models that write summaries, in the order in which they are asked.
 *
 * @param {ExtensionContext} ctx
 * @param {string[]} names the setting `compactionModels`
 */
export function summarizersOf(ctx, names) {
  return choose(physicalModel(ctx), ctx.modelRegistry, names).map(({ model }) => model);
}

/**
 * The models for a summary that is about to be written. The user learns once whose choice they are, unless it is the user's own.
 *
 * @param {Session} session
 * @param {Model | undefined} own
 * @param {Registry} registry
 */
function chosen(session, own, registry) {
  const names = session.settings.compactionModels;
  const models = choose(own, registry, names);
  const [first] = models;
  const isNamed = models.some(({ name }) => names.includes(name ?? OWN));
  if (!first || isNamed) return models;
  const writer = `${nameOf(first.model)} writes the summaries`;
  if (names.length > 0) {
    const why = names.map((name) => `${name}: ${obstacle(registry, find(registry, name))}`).join("; ");
    session.report(`no model in compactionModels can be asked (${why}), so ${writer}`, shared.reported);
  } else if (first.name) {
    const change = "To choose another: /lcm settings compactionModels=PROVIDER/MODEL";
    session.report(`${writer}: the smallest capable model of the session's provider. ${change}`, shared.reported, "info");
  }
  return models;
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
 * @param {Registry} registry
 * @param {Model | undefined} model
 * @param {{ system: string, prompt: string, maxTokens: number, reasoning?: import("@earendil-works/pi-ai").ThinkingLevel, timeoutMs: number, inSession?: import("./last-request.js").Question }} request
 * @param {AbortSignal} abort
 * @param {Session["lastRequest"]} lastRequest
 */
async function askPi(registry, model, request, abort, lastRequest) {
  if (!model) throw new Error("no model is chosen");
  /** @type {import("@earendil-works/pi-ai").Context} */
  const context = { systemPrompt: request.system, messages: [{ role: "user", content: [{ type: "text", text: request.prompt }], timestamp: Date.now() }] };
  const signal = AbortSignal.any([abort, AbortSignal.timeout(request.timeoutMs)]);
  // The engine decides about retries.
  const within = request.inSession && lastRequest.askOptions(request.inSession, request.maxTokens);
  const options = { maxTokens: request.maxTokens, reasoning: request.reasoning, signal, maxRetries: 0, ...(within ?? { cacheRetention: /** @type {const} */ ("none") }) };
  // Pi would leave no room for an answer in a small window. The engine has made the question fit, by a smaller margin.
  const asked = within ? model : { ...model, contextWindow: 0 };
  return watched((more) => registry.streamSimple(asked, context, { ...options, ...more }).result());
}

/**
 * Lets Pi ask without following redirects, which would take the key and the conversation to another address, and adds to a failed answer how
 * long the provider asks to wait.
 *
 * @param {(more: { fetch?: typeof fetch }) => Promise<any>} ask
 */
async function watched(ask) {
  let isSent = false;
  let redirect = 0;
  /** @type {number | undefined} */
  let retryAfterMs;
  /** @type {typeof fetch} */
  const staying = async (input, init) => {
    isSent = true;
    const response = await fetch(input, { ...init, redirect: "manual" });
    if (response.status >= 300 && response.status < 400) redirect = response.status;
    retryAfterMs = delayOf(response.headers);
    return response;
  };
  const answer = await ask({ fetch: staying });
  // Pi's Google adapters take no `fetch` and say so before they send anything. A provider's error may say the same.
  if (!isSent && /custom fetch is not supported/i.test(answer.errorMessage ?? "")) return ask({});
  // The status alone: each adapter words it in its own way, and the engine has words for it.
  const errorMessage = redirect > 0 && answer.stopReason === "error" ? String(redirect) : answer.errorMessage;
  return { ...answer, errorMessage, retryAfterMs };
}

/** How long a provider asks to wait, in ms. @param {Headers} headers */
function delayOf(headers) {
  const said = headers.get("retry-after") ?? "";
  const ms = Number(headers.get("retry-after-ms") ?? (Number(said) * 1000 || Date.parse(said) - Date.now()));
  return ms > 0 ? Math.ceil(ms) : undefined;
}
