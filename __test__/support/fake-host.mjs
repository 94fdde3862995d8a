/**
 * The parts of Pi that `index.js` uses, in this process: for situations that are hard to produce in the real one, such as a missing addon,
 * a repeated event, or a context that goes stale in a handler.
 */
import path from "node:path";
import { History } from "./history.mjs";

/**
 * @typedef {object} FakeOptions
 * @property {string} cwd
 * @property {History} [history] the session's tree; it may grow
 * @property {string} [sessionFile] without one the session is not kept on disk
 * @property {(context: any, options: any) => Promise<any>} [answer] the model's reply to a summarizer call
 */

/** What Pi's events have in any case. @type {Record<string, object>} */
const USUAL = { turn_end: { message: { role: "assistant", content: [], stopReason: "stop" }, toolResults: [], entries: [] } };

export class FakeHost {
  /** @type {{ message: string, type: string }[]} */
  notifications = [];
  /** The texts of the footer, in order. @type {string[]} */
  statuses = [];
  /** @type {Map<string, any>} */
  tools = new Map();
  /** @type {Map<string, any>} */
  commands = new Map();
  /** Whether every use of a context throws, as Pi's contexts do after their session. */
  stale = false;
  /** @type {Map<string, ((event: any, ctx: any) => any)[]>} */
  #handlers = new Map();

  /** @param {FakeOptions} options */
  constructor({ cwd, history = new History({ cwd }), sessionFile, answer }) {
    this.history = history;
    const sessionManager = {
      getSessionId: () => this.history.id,
      getSessionFile: () => sessionFile,
      getSessionDir: () => (sessionFile ? path.dirname(sessionFile) : ""),
      getHeader: () => this.history.header,
      getCwd: () => this.history.header.cwd,
      getLeafId: () => this.history.leaf,
      getEntry: (/** @type {string} */ id) => this.history.entries.find((entry) => entry.id === id),
      getEntries: () => [...this.history.entries],
    };
    const ui = {
      notify: (/** @type {string} */ message, type = "info") => this.notifications.push({ message, type }),
      theme: { fg: (/** @type {string} */ _color, /** @type {string} */ text) => text, bold: (/** @type {string} */ text) => text },
      setStatus: (/** @type {string} */ _key, /** @type {string} */ text) => this.statuses.push(text),
    };
    const model = { provider: "fake", id: "fake-model", api: "fake-messages", contextWindow: 200_000, maxTokens: 8192 };
    /** @type {(model: any, context: any, options: any) => any} */
    const streamSimple = (_model, context, how) => ({ result: async () => answer?.(context, how) });
    const modelRegistry = {
      streamSimple,
      find: (/** @type {string} */ provider, /** @type {string} */ id) => (`${provider}/${id}` === "fake/fake-model" ? model : undefined),
      getAll: () => [model],
      hasConfiguredAuth: () => true,
      getApiKeyAndHeaders: async () => ({ ok: true, apiKey: "a-key" }),
    };
    /** A context's fields. @type {Record<string, any>} */
    this.plain = { waitForIdle: async () => {}, isProjectTrusted: () => true, getContextUsage: () => undefined, cwd, mode: "rpc", hasUI: true, sessionManager, ui, model, modelRegistry };
    this.ctx = new Proxy(this.plain, {
      get: (target, name, receiver) => {
        if (this.stale) throw new Error("This extension ctx is stale after session replacement or reload.");
        return Reflect.get(target, name, receiver);
      },
    });
    /** The API for a factory; cast to the real type, of which it has a small part. */
    this.pi = /** @type {import("@earendil-works/pi-coding-agent").ExtensionAPI} */ (
      /** @type {unknown} */ ({
        on: (/** @type {string} */ name, /** @type {any} */ handler) => this.#handlers.set(name, [...(this.#handlers.get(name) ?? []), handler]),
        registerTool: (/** @type {any} */ tool) => this.tools.set(tool.name, tool),
        getAllTools: () => [...this.tools.values()],
        getActiveTools: () => [...this.tools.keys()],
        registerCommand: (/** @type {string} */ name, /** @type {any} */ command) => this.commands.set(name, command),
      })
    );
  }

  /** The events with listeners. */
  get events() {
    return [...this.#handlers.keys()];
  }

  /**
   * @param {string} type
   * @param {object} [fields]
   * @returns {Promise<any[]>} what the handlers returned; one that throws makes this throw
   */
  async emit(type, fields = {}) {
    const results = [];
    for (const handler of this.#handlers.get(type) ?? []) results.push(await handler({ type, ...USUAL[type], ...fields }, this.ctx));
    return results;
  }

  /**
   * @param {string} name
   * @param {object} parameters
   * @param {AbortSignal} [signal]
   */
  callTool(name, parameters, signal) {
    return this.tools.get(name).execute("call_1", parameters, signal, undefined, this.ctx);
  }

  /**
   * Pi's event to compact all but the last `kept` entries.
   * @param {number} kept
   */
  compaction(kept, signal = new AbortController().signal) {
    const firstKeptEntryId = this.history.entries.at(-kept)?.id;
    const preparation = { firstKeptEntryId, tokensBefore: 12_345, settings: { enabled: true, reserveTokens: 16_384, keepRecentTokens: 200 } };
    return { preparation, branchEntries: this.history.entries, signal, reason: "manual", willRetry: false };
  }
}

/**
 * A reply in the format of Pi's model calls.
 * @param {string} text
 */
export function reply(text) {
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
  const usage = { input: 100, output: 10, cacheRead: 0, cacheWrite: 0, totalTokens: 110, cost };
  return { role: "assistant", content: [{ type: "text", text }], provider: "fake", model: "fake-model", usage, stopReason: "stop", timestamp: 0 };
}
