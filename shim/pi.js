/** Helpers for Pi, and for the engine's answers. */

import os from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionContext} ExtensionContext */
/** @typedef {import("../index.d.ts").Native} Native */
/** @typedef {import("../index.d.ts").Engine} Engine */
/** @typedef {import("./session.js").Session} Session */
/**
 * The settings that the shim uses.
 *
 * @typedef {{ enabled: boolean, dbDir: string, projectIdentity: string, status: boolean, background: boolean, context: string, compactionModels: string[], notes: boolean, recallOnNew: boolean }} Settings
 */

/** Pi's own estimate. */
export const CHARACTERS_PER_TOKEN = 4;

/** How long a prompt waits for changed files, and the end of a session for its history, in ms. */
const PATIENCE_MS = 2000;

/**
 * The model that answers. A virtual one, which routes each request, names it in its answers.
 *
 * @param {ExtensionContext} ctx
 */
export function physicalModel({ model, modelRegistry, sessionManager }) {
  if (model?.api !== "pi-virtual") return model;
  const last = lastEntry(sessionManager, "assistant")?.message;
  return (last && modelRegistry.find(last.provider, last.model)) ?? model;
}

/** Whether the model can look up what has left its context. @param {import("@earendil-works/pi-coding-agent").ExtensionAPI} pi */
export function canRecall(pi) {
  return pi.getActiveTools().includes("lcm_expand");
}

/** The sources of the settings. @param {ExtensionContext} ctx */
export function sourcesOf(ctx) {
  return {
    agentDir: agentDir(),
    cwd: ctx.cwd,
    projectTrusted: ctx.isProjectTrusted(),
    environment: Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith("LCM_"))),
  };
}

/** @param {Native} native @param {ExtensionContext} ctx @returns {{ settings: Settings, notice: string | null }} */
export function settingsFor(native, ctx) {
  return unwrap(native.loadSettings(JSON.stringify(sourcesOf(ctx))));
}

/**
 * Passes on how Pi compacts now: the user can change it at any time, and no event says so. A Pi that does not show its settings compacts as
 * its files said when the session started.
 *
 * @param {Session} session
 * @param {Engine} engine
 */
export function passCompaction({ pi }, engine) {
  if (pi.getSettings) unwrap(engine.setPiCompaction(JSON.stringify(pi.getSettings().compaction ?? {})));
}

/**
 * Runs a call of the engine that `signal` can stop.
 *
 * @template T
 * @param {Session} session
 * @param {Engine} engine
 * @param {AbortSignal | undefined} signal
 * @param {(operation: number) => Promise<T>} call
 */
export async function cancellable(session, engine, signal, call) {
  const operation = ++session.operations;
  const stop = () => engine.cancel(operation);
  if (signal?.aborted) stop();
  signal?.addEventListener("abort", stop, { once: true });
  try {
    return await call(operation);
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

/**
 * Returns the result of `promise`, or undefined as soon as `signal` aborts.
 *
 * @template T
 * @param {Promise<T>} promise
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<T | undefined>}
 */
export async function unlessAborted(promise, signal) {
  if (!signal) return promise;
  // Its result no longer matters.
  promise.catch(() => {});
  if (signal.aborted) return undefined;
  const settled = new AbortController();
  /** @type {Promise<undefined>} */
  const aborted = new Promise((resolve) => signal.addEventListener("abort", () => resolve(undefined), { signal: settled.signal }));
  return Promise.race([promise, aborted]).finally(() => settled.abort());
}

/** @param {{ provider: string, id: string }} model @returns {string} `provider/id` */
export const nameOf = ({ provider, id }) => `${provider}/${id}`;

/** The session's model, as `provider/id`. @param {ExtensionContext} ctx */
export function modelOf({ model }) {
  return model && nameOf(model);
}

/** The context window in tokens. @param {ExtensionContext} ctx */
export function windowOf(ctx) {
  return tokensOf(physicalModel(ctx)?.contextWindow) || undefined;
}

/** No request uses more tokens: a provider that reports more is in error. The engine has the same limit. */
const MOST_REPORTED = 20_000_000;

/** The kinds of tokens in a report. */
export const COUNTS = ["input", "output", "cacheRead", "cacheWrite"];

/** Whether a provider's report says more than any request can have used. @param {any} usage */
export function isAbsurd(usage) {
  return [...COUNTS, "totalTokens"].some((name) => Number(usage?.[name]) > MOST_REPORTED);
}

/** The tokens in a provider's report, 0 where it says nothing or nonsense. @param {any} usage @returns {Record<string, number>} */
export function countsOf(usage) {
  return Object.fromEntries(COUNTS.map((name) => [name, isAbsurd(usage) ? 0 : tokensOf(usage?.[name])]));
}

/** A number of tokens as the engine takes it, else 0: extensions and providers may give any. @param {unknown} value */
export function tokensOf(value) {
  const tokens = Math.floor(Number(value));
  return tokens > 0 ? Math.min(tokens, Number.MAX_SAFE_INTEGER) : 0;
}

/**
 * Yields the entries of a branch, from its leaf or another entry up to the root.
 *
 * @param {ExtensionContext["sessionManager"]} manager
 * @param {string | null} id
 */
export function* ancestors(manager, id = manager.getLeafId()) {
  for (let entry = id ? manager.getEntry(id) : undefined; entry; entry = entry.parentId ? manager.getEntry(entry.parentId) : undefined) yield entry;
}

/**
 * The last entry on the branch with a message, optionally of one role.
 *
 * @param {ExtensionContext["sessionManager"]} manager
 * @param {string} [role]
 * @returns {any}
 */
export function lastEntry(manager, role) {
  for (const entry of ancestors(manager)) if (entry.type === "message" && entry.message.role === (role ?? entry.message.role)) return entry;
  return undefined;
}

/**
 * The provider's error, if the last request failed and nothing was answered since.
 *
 * @param {ExtensionContext["sessionManager"]} manager
 * @returns {string | undefined}
 */
export function failureOf(manager) {
  // Pi appends that it hides the attempt.
  const last = lastEntry(manager)?.message;
  return last?.role === "assistant" && last.stopReason === "error" ? (last.errorMessage ?? "") : undefined;
}

/**
 * Estimated tokens before the conversation in each request: system prompt and tools.
 *
 * @param {Session} session
 * @returns {{ promptTokens?: number, ownTokens?: number }} all of it, and the share of this extension's tools
 */
export function promptSizes({ pi, ctx }) {
  try {
    const active = new Set(pi.getActiveTools());
    const tools = pi.getAllTools().filter(({ name }) => active.has(name));
    const written = tools.map(({ name, description, parameters }) => ({ name, description, parameters }));
    const tokens = (/** @type {unknown[]} */ some, more = 0) => Math.ceil((JSON.stringify(some).length + more) / CHARACTERS_PER_TOKEN);
    return { promptTokens: tokens(written, ctx.getSystemPrompt().length), ownTokens: tokens(written.filter(({ name }) => name.startsWith("lcm_"))) };
  } catch {
    // The engine estimates them instead.
    return {};
  }
}

/**
 * Our section of the system prompt as the branch has it, so that a resumed session keeps it; undefined if it has none.
 *
 * @param {ExtensionContext["sessionManager"]} manager
 * @returns {string | undefined}
 */
export function recordedSection(manager) {
  for (const entry of ancestors(manager)) {
    /** @type {any} */
    const { message, systemMessage } = entry;
    const state = entry.type === "compaction" ? systemMessage : message?.role === "system" ? message : undefined;
    const section = state?.sections?.lcm;
    // Pi records it in a tag.
    if (section) return section.replace(/^<lcm>\n|\n<\/lcm>$/g, "");
  }
  return undefined;
}

/** Pi's session folders. @param {ExtensionContext["sessionManager"]} manager */
export function sessionFolders(manager) {
  return { sessionDir: manager.getSessionDir(), allSessions: path.join(agentDir(), "sessions") };
}

/** Pi's folder of settings and sessions. */
export function agentDir() {
  const dir = process.env.PI_CODING_AGENT_DIR;
  if (!dir) return path.join(os.homedir(), ".pi", "agent");
  return dir.startsWith("~") ? path.join(os.homedir(), dir.slice(1)) : dir;
}

/** Returns the result in the engine's answer. @param {string} answer @throws {Error} with the engine's sentence, if it failed */
export function unwrap(answer) {
  const { ok, error } = JSON.parse(answer);
  if (error) throw Object.assign(new Error(error.message), { code: error.code });
  return ok;
}

/** @param {unknown} error */
export function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}

/** A timeout that does not keep the process running. @returns {Promise<undefined>} */
export function timeout(ms = PATIENCE_MS) {
  return pause(ms, undefined, { ref: false });
}
