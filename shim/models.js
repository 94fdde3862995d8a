/** Pi's models, for the engine to ask: every version of Pi has its own way to them. */

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionContext} ExtensionContext */
/** @typedef {import("@earendil-works/pi-ai").Model<any>} Model */

/**
 * Pi's models, as the engine asks for them: what is known of one, with its key, and Pi's own call of it.
 *
 * @param {ExtensionContext} ctx
 * @param {AbortSignal} abort
 * @returns {(call: string) => Promise<string>}
 */
export function modelsOf(ctx, abort) {
  // Taken at once: later the context may be stale.
  const { model: own, modelRegistry: registry } = ctx;
  return async (call) => {
    const { kind, model: name, request } = JSON.parse(call);
    const [, provider = "", id = ""] = name?.match(/^([^/]*)\/([^]*)$/) ?? [];
    const model = name ? registry.find(provider, id) : own;
    if (kind === "ask") return JSON.stringify(await askPi(registry, model, request, abort));
    if (!model) return JSON.stringify({ error: name ? "Pi does not know it" : "no model is chosen" });
    if (name && !registry.hasConfiguredAuth(model)) return JSON.stringify({ error: "it has no key" });
    const auth = await registry.getApiKeyAndHeaders(model);
    return JSON.stringify({ model, auth, oauth: registry.isUsingOAuth(model), ownStream: isExtensions(registry, model) });
  };
}

/**
 * The same for one piece of work. When that has ended, whatever it ended by, nobody waits for what is still being asked.
 *
 * @template T
 * @param {ExtensionContext} ctx
 * @param {AbortSignal | undefined} abort
 * @param {(models: (call: string) => Promise<string>) => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function withModels(ctx, abort, work) {
  const ended = new AbortController();
  try {
    return await work(modelsOf(ctx, abort ? AbortSignal.any([abort, ended.signal]) : ended.signal));
  } finally {
    ended.abort();
  }
}

/**
 * Does another extension bring this model's provider, or the way its wire format is spoken?
 *
 * @param {any} registry whose shape differs between versions of Pi
 * @param {Model} model
 */
function isExtensions(registry, model) {
  if (registry.getRegisteredProviderIds) return registry.getRegisteredProviderIds().includes(model.provider);
  // Before 0.86 a provider with a call of its own took over its wire format for all others too.
  /** @type {Map<string, any>} */
  const theirs = registry.registeredProviders ?? new Map();
  return theirs.has(model.provider) || [...theirs.values()].some(({ api, streamSimple }) => streamSimple && api === model.api);
}

/**
 * One question, one assistant message; provider errors are messages too.
 *
 * @param {any} registry whose shape differs between versions of Pi
 * @param {Model | undefined} model
 * @param {{ system: string, prompt: string, maxTokens: number, timeoutMs: number }} request
 * @param {AbortSignal} abort
 */
async function askPi(registry, model, request, abort) {
  if (!model) throw new Error("no model is chosen");
  const content = [{ type: "text", text: request.prompt }];
  const context = { systemPrompt: request.system, messages: [{ role: "user", content, timestamp: Date.now() }] };
  const signal = AbortSignal.any([abort, AbortSignal.timeout(request.timeoutMs)]);
  // What to try again, and when, the engine decides.
  const options = { maxTokens: request.maxTokens, signal, cacheRetention: "none", maxRetries: 0 };
  if (registry.streamSimple) return registry.streamSimple(model, context, options).result();
  // Before 0.86 the registry only knew the keys.
  const auth = await registry.getApiKeyAndHeaders(model);
  if (!auth.ok) throw new Error(auth.error);
  const { completeSimple } = await hostAi();
  return completeSimple(model, context, { ...options, apiKey: auth.apiKey, headers: auth.headers });
}

/** Pi's model library, under the name that this Pi gives it. @returns {Promise<any>} */
async function hostAi() {
  const names = ["@earendil-works/pi-ai", "@mariozechner/pi-ai"];
  return import(names[0]).catch(() => import(names[1]));
}
