/**
 * The extension as Pi runs it, in this process: the real `index.js` and Pi's own session tree, with a fake rest of Pi.
 *
 * This measures the JavaScript thread, which the real Pi does not expose.
 */
import { SessionManager } from "@earendil-works/pi-coding-agent";
import losslessContext, { loadEngine } from "../index.js";
import { header } from "./corpus.mjs";
import { projectFolder, sessionFile } from "./stores.mjs";

/** @typedef {import("../index.d.ts").Engine} Engine */

const native = loadEngine();

/** The only model: it has known prices, and answers at once with the end of what it is asked. */
const model = { provider: "made", id: "model", api: "made", contextWindow: 200_000, maxTokens: 8192, cost: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 } };
const SUMMARY = 1_600;
const modelRegistry = {
  find: () => model,
  getAll: () => [model],
  hasConfiguredAuth: () => true,
  getApiKeyAndHeaders: async () => ({ ok: true, apiKey: "none" }),
  streamSimple: (/** @type {unknown} */ _model, /** @type {any} */ { messages }) => {
    const text = `What happened\n${messages[0].content[0].text.slice(-SUMMARY)}`.replaceAll("<", "‹");
    return { result: async () => ({ role: "assistant", provider: model.provider, model: model.id, stopReason: "stop", content: [{ type: "text", text }] }) };
  },
};

export class Host {
  /** @type {Map<string, ((event: any, ctx: any) => any)[]>} */
  #handlers = new Map();
  #ctx;
  /** @type {(text: string | undefined) => void} */
  #shown = () => {};
  /** The session's tree. @type {any} */
  manager;
  /** The context's size as Pi reports it. @type {{ tokens: number, contextWindow: number } | undefined} */
  usage;
  /** Called with the engine when it is open. @type {(engine: Engine) => void} */
  onEngine = () => {};

  /**
   * @param {string} folder of the store
   * @param {number} session
   * @param {Iterable<any>} entries that the session has from before
   */
  constructor(folder, session, entries = []) {
    process.env.LCM_DB_DIR = folder;
    const cwd = projectFolder();
    this.manager = SessionManager.inMemory(cwd, undefined, /** @type {any[]} */ ([header(session, cwd), ...entries]));
    // Pi's own session file is not part of the extension, and writing it would be measured too.
    this.manager.getSessionFile = () => sessionFile(session);
    this.manager.getSessionDir = () => folder;
    const ui = { notify: () => {}, setStatus: (/** @type {string} */ _key, /** @type {string} */ text) => this.#shown(text) };
    this.#ctx = { cwd, mode: "print", hasUI: true, sessionManager: this.manager, ui, isProjectTrusted: () => false, getContextUsage: () => this.usage, model, modelRegistry };
    const on = (/** @type {string} */ name, /** @type {any} */ handler) => this.#handlers.set(name, [...(this.#handlers.get(name) ?? []), handler]);
    const pi = { on, registerTool: () => {}, registerCommand: () => {}, getAllTools: () => [], getActiveTools: () => ["lcm_expand"] };
    losslessContext(/** @type {any} */ (pi));
  }

  /** Starts the session. @returns {Promise<Engine>} once its history is handed over and the footer shows it */
  async start() {
    const { Engine } = native;
    const shown = new Promise((resolve) => (this.#shown = resolve));
    /** @type {Promise<Engine>} */
    const opened = new Promise((resolve, reject) => {
      const open = async (/** @type {string} */ options) => {
        const engine = await Engine.open(options);
        this.onEngine(engine);
        resolve(engine);
        return engine;
      };
      native.Engine = /** @type {any} */ ({ open });
      this.emit("session_start", { reason: "startup" }).catch(reject);
    });
    try {
      const engine = await opened;
      await shown;
      return engine;
    } finally {
      native.Engine = Engine;
    }
  }

  /**
   * @param {string} type
   * @param {object} [fields]
   * @returns {Promise<any>} what the last handler returns
   */
  async emit(type, fields = {}) {
    let result;
    for (const handler of this.#handlers.get(type) ?? []) result = await handler({ type, ...fields }, this.#ctx);
    return result;
  }

  /** Ends the session. */
  stop() {
    return this.emit("session_shutdown", { reason: "quit" });
  }
}
