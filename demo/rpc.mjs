/**
 * The real Pi as a child process: in rpc mode, for a dialog, and in print mode, for output only.
 *
 * Pi starts in an isolated environment (separate home and agent folder, without the caller's keys and proxy, without network access of its
 * own), so that its behavior depends only on the arguments. The protocol is in Pi's docs/rpc.md: one JSON object per line.
 */
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { StringDecoder } from "node:string_decoder";
import { node22, piCli } from "../scripts/paths.mjs";

/**
 * @typedef {object} PiOptions
 * @property {string} agentDir Pi's agent folder, see `writeAgentDir`
 * @property {string} cwd the project folder
 * @property {string} [sessionDir]
 * @property {string[]} [args] more arguments for Pi
 * @property {Record<string, string | undefined>} [env] more environment variables
 * @property {string} [node] another Node
 * @property {string} [pi] another Pi's script
 */

/**
 * Answers dialogs of extensions: a string for select, input and editor, a boolean for confirm, undefined to cancel.
 * @typedef {(dialog: any) => string | boolean | undefined} OnDialog
 */

/**
 * A record of Pi's stdout: an event, or a response.
 * @typedef {any} PiRecord
 */

const REQUEST_MS = 120_000;
const RUN_MS = 120_000;
/** How long Pi may take to exit after its stdin is closed. */
const LEAVE_MS = 60_000;
/** How many events the message of a failure shows. */
const LAST_EVENTS = 8;

/**
 * Starts Pi in rpc mode.
 * @param {PiOptions & { onDialog?: OnDialog }} options
 */
export function startPi({ args = [], onDialog = agreeable, ...options }) {
  return new Pi(spawnPi(["--mode", "rpc", ...args], options, "pipe"), onDialog);
}

/**
 * Runs Pi to its end, as `pi -p …` does.
 * @param {string[]} args
 * @param {PiOptions & { input?: string, timeoutMs?: number, onStart?: (child: import("node:child_process").ChildProcess) => void }} options
 * @returns {Promise<{ code: number | null, signal: NodeJS.Signals | null, stdout: string, stderr: string }>}
 */
export async function runPi(args, { input, timeoutMs = RUN_MS, onStart, ...options }) {
  const child = spawnPi([...args, ...(options.args ?? [])], options, input === undefined ? "ignore" : "pipe");
  onStart?.(child);
  child.stdin?.end(input);
  const stdout = textFrom(child.stdout);
  const stderr = textFrom(child.stderr);
  const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
  const [code, signal] = await exitOf(child);
  clearTimeout(timer);
  return { code, signal, stdout: stdout.text, stderr: stderr.text };
}

/** Pi in rpc mode. */
export class Pi {
  /** @type {PiRecord[]} everything but responses, in order */
  events = [];
  /** @type {string[]} lines on stdout that are not JSON; there should be none */
  nonJson = [];
  /** @type {Map<string, { resolve: (answer: { response: PiRecord, at: number }) => void, reject: (error: Error) => void }>} */
  #pending = new Map();
  /** @type {Set<() => void>} */
  #watchers = new Set();
  #nextId = 1;
  #child;
  #stderr;
  #exit;
  #onDialog;
  #exited = false;

  /**
   * @param {import("node:child_process").ChildProcess} child
   * @param {OnDialog} onDialog
   */
  constructor(child, onDialog) {
    this.#child = child;
    this.#onDialog = onDialog;
    this.#stderr = textFrom(child.stderr);
    // Writing fails once Pi has exited; #left tells everyone who waits.
    child.stdin?.on("error", () => {});
    eachLine(child.stdout, (line) => this.#take(line));
    this.#exit = exitOf(child).then((exit) => this.#left(exit));
  }

  /** Pi's stderr so far. */
  get stderr() {
    return this.#stderr.text;
  }

  /** The process id, for tests that kill Pi. */
  get pid() {
    return this.#child.pid;
  }

  /** Resolves with code and signal once Pi has exited for any reason. */
  get exit() {
    return this.#exit;
  }

  /**
   * The UI requests of extensions: notify, setStatus, setWidget and dialogs, in order.
   * @param {string} [method] only this kind
   * @returns {PiRecord[]}
   */
  ui(method) {
    const requests = this.events.filter((event) => event.type === "extension_ui_request");
    return method ? requests.filter((request) => request.method === method) : requests;
  }

  /**
   * The current footer status of an extension.
   * @param {string} key
   * @returns {string | undefined}
   */
  status(key) {
    return this.ui("setStatus").findLast((request) => request.statusKey === key)?.statusText;
  }

  /**
   * Sends a command and waits for its response.
   * @param {string} type
   * @param {Record<string, unknown>} [fields]
   * @param {number} [timeoutMs]
   * @returns {Promise<any>} the response's `data`; an unsuccessful response is thrown
   */
  async request(type, fields = {}, timeoutMs = REQUEST_MS) {
    const { response } = await this.#send(type, fields, timeoutMs);
    return response.data;
  }

  /**
   * Sends a prompt and waits until Pi is idle again. An extension's slash command starts no run; then this waits for the command.
   * @param {string} text
   * @param {{ timeoutMs?: number, images?: object[], streamingBehavior?: "steer" | "followUp" }} [options]
   * @returns {Promise<PiRecord[]>} the events since the prompt was sent
   */
  async prompt(text, { timeoutMs = RUN_MS, ...fields } = {}) {
    const from = this.events.length;
    const { at } = await this.#send("prompt", { message: text, ...fields }, timeoutMs);
    const settled = () => this.events.slice(at).some((event) => event.type === "agent_settled");
    // The response comes before the run begins, and Pi is marked as busy in between, so its state tells whether there is a run.
    const { isStreaming } = await this.request("get_state", {}, timeoutMs);
    if (isStreaming) await this.waitFor(settled, timeoutMs);
    return this.events.slice(from);
  }

  /**
   * Waits until the predicate holds; it is checked after each record.
   * @template T
   * @param {(pi: Pi) => T} predicate
   * @param {number} [timeoutMs]
   * @returns {Promise<T>} the predicate's result
   */
  waitFor(predicate, timeoutMs = RUN_MS) {
    return new Promise((resolve, reject) => {
      /** @param {() => void} settle */
      const end = (settle) => {
        clearTimeout(timer);
        this.#watchers.delete(look);
        settle();
      };
      const look = () => {
        const value = predicate(this);
        if (value) return end(() => resolve(value));
        if (this.#exited) end(() => reject(this.#failure("Pi ended while something was awaited")));
      };
      const timer = setTimeout(() => end(() => reject(this.#failure(`nothing of what was awaited came in ${timeoutMs} ms`))), timeoutMs);
      this.#watchers.add(look);
      look();
    });
  }

  /**
   * Closes stdin, which asks Pi to exit, and waits; kills a Pi that does not exit.
   * @returns {Promise<{ code: number | null, signal: NodeJS.Signals | null }>}
   */
  async stop() {
    this.#child.stdin?.end();
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), LEAVE_MS);
    const exit = await this.#exit;
    clearTimeout(timer);
    return exit;
  }

  /** Ends Pi with a signal and waits. @param {NodeJS.Signals} [signal] */
  async kill(signal = "SIGKILL") {
    this.#child.kill(signal);
    return this.#exit;
  }

  /**
   * @param {string} type
   * @param {Record<string, unknown>} fields
   * @param {number} timeoutMs
   * @returns {Promise<{ response: PiRecord, at: number }>} `at`: the number of events before the response
   */
  #send(type, fields, timeoutMs) {
    const id = `request-${this.#nextId++}`;
    if (this.#exited) return Promise.reject(this.#failure(`Pi has ended; ${type} was not sent`));
    return new Promise((resolve, reject) => {
      const late = () => this.#settle(id)?.reject(this.#failure(`no response to ${type} in ${timeoutMs} ms`));
      const timer = setTimeout(late, timeoutMs);
      this.#pending.set(id, {
        resolve: (answer) => {
          clearTimeout(timer);
          if (answer.response.success) return resolve(answer);
          reject(this.#failure(`${type} failed: ${answer.response.error}`));
        },
        reject: (error) => {
          clearTimeout(timer);
          reject(error);
        },
      });
      this.#write({ id, type, ...fields });
    });
  }

  /** @param {object} record */
  #write(record) {
    this.#child.stdin?.write(`${JSON.stringify(record)}\n`);
  }

  /** @param {string} line */
  #take(line) {
    const record = parsed(line);
    if (!record) return void this.nonJson.push(line);
    if (record.type === "response") return this.#settle(record.id)?.resolve({ response: record, at: this.events.length });
    this.events.push(record);
    if (record.type === "extension_ui_request") this.#answerDialog(record);
    for (const look of [...this.#watchers]) look();
  }

  /** @param {PiRecord} dialog */
  #answerDialog(dialog) {
    if (!["select", "confirm", "input", "editor"].includes(dialog.method)) return;
    const answer = this.#onDialog(dialog);
    const fields = typeof answer === "boolean" ? { confirmed: answer } : answer === undefined ? { cancelled: true } : { value: answer };
    this.#write({ type: "extension_ui_response", id: dialog.id, ...fields });
  }

  /** @param {string} id */
  #settle(id) {
    const waiting = this.#pending.get(id);
    this.#pending.delete(id);
    return waiting;
  }

  /** @param {[number | null, NodeJS.Signals | null]} exit */
  #left([code, signal]) {
    this.#exited = true;
    const error = this.#failure(`Pi ended with ${signal ?? `exit code ${code}`}`);
    for (const id of [...this.#pending.keys()]) this.#settle(id)?.reject(error);
    for (const look of [...this.#watchers]) look();
    return { code, signal };
  }

  /** @param {string} what */
  #failure(what) {
    const stderr = this.stderr.trim().slice(-2000);
    const last = this.events.slice(-LAST_EVENTS).map((event) => JSON.stringify(event).slice(0, 300));
    return new Error([`${what}; Pi's last events:`, ...last, ...(stderr ? ["Pi's stderr ends:", stderr] : [])].join("\n"));
  }
}

/**
 * The environment for Pi: what any program needs, and nothing that changes Pi's behavior.
 * @param {string} agentDir
 * @param {Record<string, string | undefined>} [more]
 * @returns {Record<string, string | undefined>}
 */
export function cleanEnvironment(agentDir, more = {}) {
  const home = path.join(agentDir, "home");
  mkdirSync(home, { recursive: true });
  const keep = ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TMP", "TEMP", "SHELL", "SystemRoot", "COMSPEC", "PATHEXT"];
  const kept = keep.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]]));
  return {
    ...Object.fromEntries(kept),
    HOME: home,
    USERPROFILE: home,
    // With another home, rustup and cargo would look for their toolchains there.
    RUSTUP_HOME: process.env.RUSTUP_HOME ?? path.join(os.homedir(), ".rustup"),
    CARGO_HOME: process.env.CARGO_HOME ?? path.join(os.homedir(), ".cargo"),
    PI_CODING_AGENT_DIR: agentDir,
    ...offline,
    ...more,
  };
}

/** Restricts Pi's network access to the given model. */
export const offline = { PI_OFFLINE: "1", PI_SKIP_VERSION_CHECK: "1", PI_TELEMETRY: "0" };

/**
 * @param {string[]} args
 * @param {PiOptions} options
 * @param {"pipe" | "ignore"} stdin
 */
function spawnPi(args, { agentDir, cwd, sessionDir, env, node = node22, pi = piCli() }, stdin) {
  const all = [pi, ...(sessionDir ? ["--session-dir", sessionDir] : []), ...args];
  return spawn(node, all, { cwd, env: cleanEnvironment(agentDir, env), stdio: [stdin, "pipe", "pipe"] });
}

/** Says yes, picks the first choice, and cancels requests for text. @type {OnDialog} */
function agreeable(dialog) {
  if (dialog.method === "confirm") return true;
  if (dialog.method === "select") return dialog.options[0];
  return undefined;
}

/**
 * @param {import("node:stream").Readable | null} stream
 * @returns {{ text: string }} grows with the stream
 */
function textFrom(stream) {
  const sink = { text: "" };
  stream?.setEncoding("utf8").on("data", (chunk) => (sink.text += chunk));
  return sink;
}

/**
 * Splits at LF only: `readline` would also split at U+2028, which may occur inside a JSON string.
 * @param {import("node:stream").Readable | null} stream
 * @param {(line: string) => void} take
 */
function eachLine(stream, take) {
  const decoder = new StringDecoder("utf8");
  let rest = "";
  stream?.on("data", (chunk) => {
    const lines = (rest + decoder.write(chunk)).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim() !== "") take(line);
  });
  stream?.on("end", () => rest.trim() !== "" && take(rest));
}

/** @param {string} line */
function parsed(line) {
  try {
    const value = JSON.parse(line);
    return value && typeof value === "object" ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * @param {import("node:child_process").ChildProcess} child
 * @returns {Promise<[number | null, NodeJS.Signals | null]>}
 */
function exitOf(child) {
  return new Promise((resolve) => {
    child.on("error", () => resolve([127, null]));
    child.on("close", (code, signal) => resolve([code, signal]));
  });
}
