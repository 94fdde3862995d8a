/**
 * A project in a temporary folder with everything a test on the real Pi needs: Pi's agent folder, sessions, a store, and a
 * model server that plays the test's script. What was started is stopped after the test, and must have been silent: nothing
 * on stderr, nothing on stdout but Pi's own JSON.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { startModelServer, writeAgentDir } from "../../demo/model-server.mjs";
import { runPi, startPi } from "../../demo/rpc.mjs";
import { extension } from "../../scripts/paths.mjs";
import { History } from "./history.mjs";
import { SessionFile } from "./session-file.mjs";
import { Store } from "./store.mjs";

/** @typedef {import("node:test").TestContext} TestContext */
/** @typedef {import("../../demo/model-server.mjs").Reply} Reply */
/** @typedef {import("../../demo/model-server.mjs").Received} Received */
/** @typedef {import("../../demo/rpc.mjs").Pi} Pi */

/**
 * What the model says. Turns are answered in order, and with a constant text once there are no more; summaries as a short
 * text unless the test says otherwise.
 * @typedef {object} Script
 * @property {(Reply | ((request: Received) => Reply | Promise<Reply>))[]} [turns]
 * @property {(request: Received) => Reply | Promise<Reply>} [summary]
 */

/**
 * @typedef {object} ProjectOptions
 * @property {Script} [script]
 * @property {number} [contextWindow]
 * @property {number} [keepRecentTokens] how much Pi keeps raw
 * @property {Record<string, unknown>} [settings] more of Pi's settings
 */

/** A fresh temporary folder, deleted after the test. @param {TestContext} t */
export function temporaryFolder(t) {
  const { folder, remove } = makeFolder();
  t.after(remove);
  return folder;
}

function makeFolder() {
  // Real: the store goes by the project's real path, and a system's temporary folder may be a link.
  const folder = realpathSync(mkdtempSync(path.join(os.tmpdir(), "lcm-test-")));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }) };
}

/**
 * @param {TestContext} t
 * @param {ProjectOptions} [options]
 */
export async function aProject(t, { script = {}, contextWindow, keepRecentTokens = 200, settings = {} } = {}) {
  const { folder, remove } = makeFolder();
  const server = await startModelServer({ reply: playing(script) });
  const project = new Project(folder, server, script);
  t.after(async () => {
    try {
      await project.stopAll();
    } finally {
      await server.close();
      remove();
    }
  });
  const own = { compaction: { keepRecentTokens }, retry: { enabled: false } };
  writeAgentDir(project.agentDir, { url: server.url, contextWindow, settings: { ...own, ...settings } });
  for (const dir of [project.cwd, project.sessionDir]) mkdirSync(dir);
  return project;
}

class Project {
  /** @type {Pi[]} */
  #started = [];

  /**
   * @param {string} root
   * @param {import("../../demo/model-server.mjs").ModelServer} server
   * @param {Script} script may be changed as the test goes on
   */
  constructor(root, server, script) {
    this.server = server;
    this.script = script;
    this.agentDir = path.join(root, "agent");
    this.cwd = path.join(root, "project");
    this.sessionDir = path.join(root, "sessions");
    this.storeDir = path.join(root, "store");
  }

  /** Requests of the agent, in order. */
  get turns() {
    return this.server.requests.filter(({ kind }) => kind === "turn");
  }

  /** Requests of the summariser, in order. */
  get summaryCalls() {
    return this.server.requests.filter(({ kind }) => kind === "summary");
  }

  /** The agent's last request. */
  get lastTurn() {
    const last = this.turns.at(-1);
    assert.ok(last, "the agent has asked the model");
    return last;
  }

  /**
   * Starts Pi in rpc mode.
   * @param {string[]} [args]
   * @param {string | null} [loading] another extension than ours, or none
   */
  startPi(args = [], loading = extension) {
    const pi = startPi({ ...this.#surroundings, args: [...(loading ? ["-e", loading] : []), ...args] });
    this.#started.push(pi);
    return pi;
  }

  /** Stops every Pi that was started, and looks whether they were silent. */
  async stopAll() {
    await Promise.all(this.#started.map((pi) => pi.stop()));
    for (const pi of this.#started) {
      assert.equal(pi.stderr, "", "Pi's stderr must stay empty");
      assert.deepEqual(pi.nonJson, [], "Pi's stdout must be JSON only");
    }
  }

  /**
   * Runs Pi to its end, as `pi -p` does.
   * @param {string[]} args
   */
  async runPi(args) {
    const ended = await runPi(args, { ...this.#surroundings, args: ["-e", extension] });
    assert.equal(ended.stderr, "", "Pi's stderr must stay empty");
    return ended;
  }

  /** A history to prepare a session file with. @param {string} [id] */
  history(id) {
    return new History({ cwd: this.cwd, id });
  }

  /**
   * The session file that Pi has open, or the only one there is.
   * @param {Pi} [pi]
   */
  async session(pi) {
    if (pi) return new SessionFile((await pi.request("get_state")).sessionFile);
    const files = readdirSync(this.sessionDir);
    assert.equal(files.length, 1, `one session file is expected, there are: ${files.join(", ")}`);
    return new SessionFile(path.join(this.sessionDir, files[0]));
  }

  /**
   * Asks the store something.
   * @template T
   * @param {(store: Store) => T} question
   * @returns {T}
   */
  inStore(question) {
    const store = new Store(this.storeDir);
    try {
      return question(store);
    } finally {
      store.close();
    }
  }

  get #surroundings() {
    const { agentDir, cwd, sessionDir, storeDir } = this;
    return { agentDir, cwd, sessionDir, env: { LCM_DB_DIR: storeDir } };
  }
}

/**
 * @param {Script} script
 * @returns {(request: Received) => Reply | Promise<Reply>}
 */
function playing(script) {
  return (request) => {
    if (request.kind === "summary") return script.summary?.(request) ?? { text: `Summary ${request.index}\nWhat happened was summarised.` };
    const next = script.turns?.shift() ?? { text: "Understood." };
    return typeof next === "function" ? next(request) : next;
  };
}

/**
 * Waits until a check no longer throws: what was handed over is written on another thread, a moment later.
 * @template T
 * @param {() => T | Promise<T>} check
 * @param {number} [timeoutMs] after which the check's own failure is the test's
 * @returns {Promise<T>}
 */
export async function eventually(check, timeoutMs = 15_000) {
  for (const end = Date.now() + timeoutMs; ; ) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
