/** Hosts for the tests of `index.js`: with our extension, with changed engines, with work in progress; and their stores. */
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import losslessContext, { loadEngine } from "../../index.js";
import { addon, root } from "../../scripts/paths.mjs";
import { copyExtension } from "./copies.mjs";
import { FakeHost } from "./fake-host.mjs";
import { eventually, temporaryFolder } from "./project.mjs";
import { copyDatabases, Store } from "./store.mjs";

/** @typedef {import("node:test").TestContext} TestContext */
/** @typedef {import("./history.mjs").History} History */

export const manifest = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));

/**
 * The package in another folder, like a failed installation.
 * @param {TestContext} t
 * @param {{ version?: string, engine?: string }} [wrong] `engine`: the file in place of the addon
 * @returns {Promise<typeof import("../../index.js")>}
 */
export async function installed(t, { version = manifest.version, engine } = {}) {
  const folder = temporaryFolder(t);
  const copy = copyExtension(folder);
  writeFileSync(path.join(folder, "package.json"), JSON.stringify({ ...manifest, version }));
  if (engine) copyFileSync(engine, path.join(folder, path.basename(addon())));
  return import(pathToFileURL(copy).href);
}

/**
 * A host with our extension, and with a new agent folder and store.
 * @param {TestContext} t
 * @param {object} [options]
 * @param {string} [options.cwd]
 * @param {string} [options.storeDir]
 * @param {(context: any, options: any) => Promise<any>} [options.answer]
 * @param {Record<string, unknown>} [options.settings] Pi's, with ours under `lcm`
 */
export function hosted(t, { cwd: given, storeDir: place, answer, settings = {} } = {}) {
  // Registered before the folder's removal, which a running store would prevent.
  t.after(async () => {
    host.stale = false;
    await host.emit("session_shutdown", { reason: "quit" });
    delete process.env.LCM_DB_DIR;
    delete process.env.PI_CODING_AGENT_DIR;
  });
  const cwd = given ?? temporaryFolder(t);
  const storeDir = place ?? path.join(cwd, "store");
  const agentDir = path.join(cwd, "agent");
  mkdirSync(agentDir, { recursive: true });
  writeFileSync(path.join(agentDir, "settings.json"), JSON.stringify(settings));
  // The extension reads them from the environment of its process, which is this one.
  Object.assign(process.env, { LCM_DB_DIR: storeDir, PI_CODING_AGENT_DIR: agentDir });
  const host = new FakeHost({ cwd, sessionFile: path.join(cwd, "session.jsonl"), answer });
  losslessContext(host.pi);
  return { host, storeDir, agentDir };
}

/**
 * Changes the engines that are opened from now on, until the test ends.
 * @param {TestContext} t
 * @param {(engine: import("../../index.d.ts").Engine) => void} change
 */
function withEngines(t, change) {
  const native = loadEngine();
  const { Engine } = native;
  const open = async (/** @type {string} */ options) => {
    const engine = await Engine.open(options);
    change(engine);
    return engine;
  };
  native.Engine = /** @type {any} */ ({ open });
  t.after(() => (native.Engine = Engine));
}

/**
 * Delays the hand-over of the history, as in a long session: it has started once `begun` resolves, and continues at `release`.
 * @param {TestContext} t
 * @param {number} [which] the first hand-over that is delayed
 */
export function heldUp(t, which = 1) {
  let handOvers = 0;
  /** @type {() => void} */
  let release = () => {};
  const held = new Promise((resolve) => (release = () => resolve(undefined)));
  const begun = new Promise((resolve) => {
    withEngines(t, (engine) => {
      const { missing } = engine;
      engine.missing = async (ids) => {
        if (++handOvers < which) return missing.call(engine, ids);
        resolve(undefined);
        await held;
        return missing.call(engine, ids);
      };
    });
  });
  return { begun, release };
}

/**
 * A signal that aborts like the user's Escape: as soon as the engine gets a compaction.
 * @param {TestContext} t
 */
export function escape(t) {
  const abort = new AbortController();
  withEngines(t, (engine) => {
    const { compact } = engine;
    engine.compact = (...asked) => {
      setImmediate(() => abort.abort());
      return compact.apply(engine, asked);
    };
  });
  return abort.signal;
}

/**
 * Reads a copy of the store. The engine has the store open in this process; a second SQLite library would ignore its locks and
 * truncate the WAL index, and the engine would crash with SIGBUS.
 * @param {string} dir
 * @param {(store: Store) => void} check
 */
export function inStore(dir, check) {
  const copy = mkdtempSync(path.join(dir, "copy-"));
  copyDatabases(dir, copy);
  const store = new Store(copy);
  try {
    check(store);
  } finally {
    store.close();
    rmSync(copy, { recursive: true });
  }
}

/**
 * The ids that a start hands over, in order.
 * @param {TestContext} t
 * @param {string} cwd
 * @param {History} history
 */
export async function handedOverAtStart(t, cwd, history) {
  /** @type {string[]} */
  const ids = [];
  withEngines(t, (engine) => {
    const { append, handOver } = engine;
    engine.append = (id, json) => {
      ids.push(id);
      return append.call(engine, id, json);
    };
    engine.handOver = (json, orphans) => {
      ids.push(...JSON.parse(json).map((/** @type {{ id: string }} */ { id }) => id));
      return handOver.call(engine, json, orphans);
    };
  });
  const { host } = hosted(t, { cwd });
  host.history = history;
  await host.emit("session_start", { reason: "startup" });
  await host.commands.get("lcm").handler("stats", host.ctx);
  await host.emit("session_shutdown", { reason: "quit" });
  return ids;
}

/**
 * A host whose session is worth work ahead, by the session's own model.
 * @param {TestContext} t
 * @param {(context: any, options: any) => Promise<any>} answer
 */
export function working(t, answer) {
  const lcm = { compactionModels: ["fake/fake-model"], leafChunkTokens: 500 };
  const { host } = hosted(t, { answer, settings: { lcm, compaction: { keepRecentTokens: 200 } } });
  host.plain.getContextUsage = () => ({ tokens: 190_000, contextWindow: 200_000 });
  host.history.talk(20);
  return host;
}

/**
 * The same with work ahead in progress whose model never answers, and the signals of its calls.
 * @param {TestContext} t
 */
export async function waiting(t) {
  /** @type {AbortSignal[]} */
  const signals = [];
  const host = working(t, (_context, { signal }) => {
    signals.push(signal);
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  });
  await host.emit("session_start", { reason: "startup" });
  await host.emit("turn_end");
  await eventually(() => assert.ok(signals.length > 0));
  return { host, signals };
}
