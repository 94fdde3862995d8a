/**
 * A project in a temporary folder with everything for a test on the real Pi: Pi's agent folder, sessions, a store, and a model server that
 * plays the test's script. Every process is stopped after the test, and must have been silent: nothing on stderr, and only Pi's JSON on
 * stdout. No request may have been one that a provider refuses.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { TODAY } from "../../demo/judge.mjs";
import { startModelServer, writeAgentDir } from "../../demo/model-server.mjs";
import { runPi, startPi } from "../../demo/rpc.mjs";
import { extension, node22, piCli } from "../../scripts/paths.mjs";
import { History } from "./history.mjs";
import { SessionFile } from "./session-file.mjs";
import { Store } from "./store.mjs";
import { openTerminal } from "./terminal.mjs";

/** @typedef {import("node:test").TestContext} TestContext */
/** @typedef {import("../../demo/model-server.mjs").Reply} Reply */
/** @typedef {import("../../demo/model-server.mjs").Received} Received */
/** @typedef {import("../../demo/rpc.mjs").Pi} Pi */
/** @typedef {import("../../scripts/hosts.mjs").Host} Host */
/** @typedef {import("./terminal.mjs").Terminal} Terminal */

/**
 * The model's replies. Turns are answered in order, and with a constant text once there are no more; summaries with a short text by
 * default.
 * @typedef {object} Script
 * @property {(Reply | ((request: Received) => Reply | Promise<Reply>))[]} [turns]
 * @property {(request: Received) => Reply} [otherwise] instead of the constant text
 * @property {(request: Received) => Reply | Promise<Reply>} [summary]
 */

/**
 * How the model thinks, and whether its thinking is bound to what stands before it. `bound`: as today's models behind a gateway, which
 * refuses a request whose thinking does not fit. `free`: as older ones, whose thinking is not checked.
 * @typedef {"none" | "bound" | "free"} Thinking
 */

/** For tests that choose neither the thinking nor a wire format without it. */
const THINKING = /** @type {Thinking} */ (process.env.TEST_THINKING || "none");

/** The scripted models are older ones then; those of Pi's catalog are what they are called. */
const FREE = { binds: (/** @type {string} */ model) => /claude|gpt/.test(model) && TODAY.binds(model) };

/**
 * @typedef {object} ProjectOptions
 * @property {Script} [script]
 * @property {import("../../demo/wire.mjs").Api} [api] the wire format
 * @property {Thinking} [thinking] by default what `TEST_THINKING` says, in Anthropic's format unless the test chooses another
 * @property {string[]} [catalog] providers of Pi's own catalog whose models the server plays too
 * @property {Partial<import("../../demo/judge.mjs").Rules>} [rules] where the provider differs from today's
 * @property {number} [contextWindow]
 * @property {{ input: number, output: number, cacheRead: number, cacheWrite: number }} [cost] what the model costs
 * @property {{ id: string, [key: string]: unknown }[]} [models] more models, like the first but for what is given
 * @property {number} [keepRecentTokens] how much Pi keeps raw
 * @property {Record<string, unknown>} [settings] more of Pi's settings
 * @property {Host} [host] another Pi than the repository's own
 * @property {string[]} [extensions] what is loaded: ours alone, unless the test says otherwise
 * @property {string} [usual] the name of the project's folder, the same each time: Pi translates an extension once for each path
 */

/**
 * A fresh temporary folder, deleted after the test.
 * @param {TestContext} t
 */
export function temporaryFolder(t) {
  const { folder, remove } = makeFolder();
  t.after(remove);
  return folder;
}

/** @param {string} [usual] */
function makeFolder(usual) {
  // The store uses the project's real path, and a system's temporary folder may be a link.
  const temporary = realpathSync(os.tmpdir());
  const folder = usual ? firstFree(path.join(temporary, `lcm-test-${usual}`)) : mkdtempSync(path.join(temporary, "lcm-test-"));
  return { folder, remove: () => rm(folder, { recursive: true, force: true, maxRetries: 3 }) };
}

/** Creates a folder, with a number appended to its name if it exists. @param {string} wanted */
function firstFree(wanted, number = 0) {
  const folder = number === 0 ? wanted : `${wanted}-${number}`;
  try {
    mkdirSync(folder);
    return folder;
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== "EEXIST") throw error;
    return firstFree(wanted, number + 1);
  }
}

/** How the projects of a test end. @type {WeakMap<TestContext, (() => Promise<void>)[]>} */
const ends = new WeakMap();

/**
 * Node runs no further hook after one that fails, and what it would have ended keeps the process alive. So there is one for all projects.
 * @param {TestContext} t
 * @param {() => Promise<void>} end
 */
function atEnd(t, end) {
  const all = ends.get(t) ?? [];
  if (all.push(end) > 1) return;
  ends.set(t, all);
  t.after(async () => {
    const ended = await Promise.allSettled(all.map((end) => end()));
    for (const result of ended) if (result.status === "rejected") throw result.reason;
  });
}

/**
 * @param {TestContext} t
 * @param {ProjectOptions} [options]
 */
export async function aProject(t, { script = {}, api, thinking = api && api !== "anthropic" ? "none" : THINKING, catalog, rules, contextWindow, cost, models, keepRecentTokens = 200, settings = {}, host, extensions = [extension], usual } = {}) {
  const { folder, remove } = makeFolder(usual);
  const server = await startModelServer({ reply: playing(script), rules: { ...(thinking === "free" && FREE), ...rules } });
  const project = new Project({ folder, server, script, host, extensions });
  atEnd(t, async () => {
    try {
      await project.stopAll();
    } finally {
      await server.close();
      await remove();
    }
  });
  const own = { compaction: { keepRecentTokens }, retry: { enabled: false } };
  const thinks = /** @type {const} */ ({ none: {}, bound: { api: "anthropic", thinking: "adaptive" }, free: { api: "anthropic", thinking: "budget" } })[thinking];
  writeAgentDir(project.agentDir, { url: server.url, ...thinks, ...(api && { api }), catalog, contextWindow, cost, models, settings: { ...own, ...settings } });
  for (const dir of [project.cwd, project.sessionDir]) mkdirSync(dir);
  return project;
}

export class Project {
  /** @type {Pi[]} */
  #started = [];
  /** @type {Terminal[]} */
  #terminals = [];
  /** More environment variables for Pi. @type {Record<string, string>} */
  env = {};
  /** Lines that Pi's own libraries may write to stderr. */
  noise = /^$/;
  /** Results of requests that the provider may refuse, as `judged` names them. */
  refusals = /^$/;
  #extensions;

  /**
   * @param {object} made
   * @param {string} made.folder
   * @param {import("../../demo/model-server.mjs").ModelServer} made.server
   * @param {Script} made.script may be changed during the test
   * @param {Host} [made.host]
   * @param {string[]} made.extensions
   */
  constructor({ folder, server, script, host, extensions }) {
    this.server = server;
    this.script = script;
    this.host = host;
    this.#extensions = extensions;
    this.agentDir = path.join(folder, "agent");
    this.cwd = path.join(folder, "project");
    this.sessionDir = path.join(folder, "sessions");
    this.storeDir = path.join(folder, "store");
  }

  /** The agent's requests, in order. */
  get turns() {
    return this.server.requests.filter(({ kind }) => kind === "turn");
  }

  /** The summarizer's requests, in order. */
  get summaryCalls() {
    return this.server.requests.filter(({ kind }) => kind === "summary");
  }

  /** The agent's last request. */
  get lastTurn() {
    const last = this.turns.at(-1);
    assert.ok(last, "the agent has called the model");
    return last;
  }

  /**
   * Starts Pi in rpc mode.
   * @param {string[]} [args]
   * @param {string | null} [loading] another extension than ours, or none
   * @param {import("../../demo/rpc.mjs").OnDialog} [onDialog] answers its questions
   */
  startPi(args = [], loading, onDialog) {
    const pi = startPi({ ...this.#surroundings, ...(onDialog && { onDialog }), args: [...this.#loading(loading), ...args] });
    this.#started.push(pi);
    return pi;
  }

  /**
   * Starts Pi in a terminal.
   * @param {string[]} [args]
   * @param {{ cols: number, rows: number }} [size]
   */
  openTerminal(args = [], size) {
    const { agentDir, cwd, sessionDir, env, node = node22, pi = piCli() } = this.#surroundings;
    const terminal = openTerminal({ agentDir, cwd, env, node, size, args: [pi, "--session-dir", sessionDir, ...this.#loading(), ...args] });
    this.#terminals.push(terminal);
    return terminal;
  }

  /** Stops every started Pi, and asserts that they were silent and sent nothing that a provider refuses. */
  async stopAll() {
    await Promise.all([...this.#started, ...this.#terminals].map((pi) => pi.stop()));
    const ours = (/** @type {string} */ stderr) => stderr.split("\n").filter((line) => !this.noise.test(line)).join("\n");
    for (const { stderr } of [...this.#started, ...this.#terminals]) assert.equal(ours(stderr), "", "Pi's stderr must stay empty");
    const refused = this.server.refused.map(({ index, kind, judged: { result, message } }) => ({ index, kind, result, message }));
    assert.deepEqual(refused.filter(({ result }) => !this.refusals.test(result)), [], "the provider must not refuse a request");
    for (const { nonJson } of this.#started) assert.deepEqual(nonJson, [], "Pi's stdout must be JSON only");
  }

  /**
   * Runs Pi until it ends, as `pi -p` does.
   * @param {string[]} args
   * @param {object} [options]
   * @param {(child: import("node:child_process").ChildProcess) => void} [options.onStart]
   * @param {string} [options.lastWords] that Pi itself may write to stderr
   */
  async runPi(args, { onStart, lastWords = "" } = {}) {
    const ended = await runPi(args, { ...this.#surroundings, args: this.#loading(), onStart });
    if (ended.stderr !== lastWords) assert.equal(ended.stderr, "", "Pi's stderr must stay empty");
    return ended;
  }

  /** @param {string | null} [only] instead of the project's extensions */
  #loading(only) {
    const extensions = only === undefined ? this.#extensions : only === null ? [] : [only];
    return extensions.flatMap((file) => ["-e", file]);
  }

  /** A history for a session file. @param {string} [id] */
  history(id) {
    return new History({ cwd: this.cwd, id });
  }

  /** Changes Pi's settings, for sessions that start or are resumed from now on. @param {Record<string, unknown>} changed */
  configure(changed) {
    const file = path.join(this.agentDir, "settings.json");
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), ...changed }));
  }

  /**
   * Sets the store's folder in our settings, so that each session of one Pi can have its own: for Pis and sessions that start from now on.
   * @param {string} name of a folder next to Pi's settings
   * @param {object} [lcm] our other settings
   */
  storeIn(name, lcm = {}) {
    this.env.LCM_DB_DIR = "";
    this.storeDir = path.join(this.agentDir, name);
    this.configure({ lcm: { ...lcm, dbDir: this.storeDir } });
  }

  /**
   * Makes a running Pi resume a session, which takes a twentieth of a start. Forgets earlier scripts, requests and notifications, so that
   * each session is checked separately.
   * @param {Pi} pi
   * @param {History} history with a unique id
   * @returns {Promise<string>} its file
   */
  async resume(pi, history) {
    const file = history.write(this.sessionDir);
    Object.assign(this.script, { turns: undefined, otherwise: undefined, summary: undefined });
    this.server.requests.length = 0;
    pi.events.length = 0;
    await pi.request("switch_session", { sessionPath: file });
    return file;
  }

  /**
   * The session file that Pi has open, or the only one.
   * @param {Pi} [pi]
   */
  async session(pi) {
    if (pi) return new SessionFile((await pi.request("get_state")).sessionFile);
    const [session, ...others] = this.sessions();
    assert.ok(session && others.length === 0, `one session file is expected, there are ${others.length + (session ? 1 : 0)}`);
    return session;
  }

  /** All session files of the project. */
  sessions() {
    return readdirSync(this.sessionDir).map((name) => new SessionFile(path.join(this.sessionDir, name)));
  }

  /**
   * Reads from the store.
   * @template T
   * @param {(store: Store) => T} question
   * @param {string} [name] of the database, if there are several
   * @returns {T}
   */
  inStore(question, name) {
    const store = new Store(this.storeDir, name);
    try {
      return question(store);
    } finally {
      store.close();
    }
  }

  get #surroundings() {
    const { agentDir, cwd, sessionDir, storeDir, env } = this;
    return { agentDir, cwd, sessionDir, env: { LCM_DB_DIR: storeDir, ...env }, node: this.host?.node, pi: this.host?.pi };
  }
}

const LAST_LINE = "Expand for details about";

/**
 * @param {Script} script
 * @returns {(request: Received) => Reply | Promise<Reply>}
 */
function playing(script) {
  return async (request) => {
    if (request.kind === "summary") {
      const reply = (await script.summary?.(request)) ?? { text: `Summary ${request.index}\nWhat happened was summarized.` };
      // The last line that the prompts ask for.
      return reply.text && !reply.text.includes(LAST_LINE) ? { ...reply, text: `${reply.text}\n${LAST_LINE}: all of it` } : reply;
    }
    const next = script.turns?.shift() ?? script.otherwise?.(request) ?? { text: "Understood." };
    return typeof next === "function" ? next(request) : next;
  };
}

/**
 * Waits until a check no longer throws: another thread writes entries a moment later.
 * @template T
 * @param {() => T | Promise<T>} check
 * @param {number} [timeoutMs] after which the check's own failure is the test's
 * @returns {Promise<T>}
 */
export async function eventually(check, timeoutMs = 120_000) {
  // Checks take processor time from others: often at first, then less.
  for (let end = Date.now() + timeoutMs, rest = 20; ; rest = Math.min(rest * 1.5, 250)) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, rest));
    }
  }
}
