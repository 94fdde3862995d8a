/**
 * Pi in a real terminal: a pseudo-terminal and a terminal emulator, between which a test types, presses keys and reads the screen like a
 * user.
 *
 * Only stderr goes to a file: on the screen a stray line would look like Pi's output.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { cleanEnvironment } from "../../demo/rpc.mjs";

const require = createRequire(import.meta.url);

/** The codes of keys. */
const KEYS = {
  enter: "\r",
  escape: "\u001b",
  up: "\u001b[A",
  down: "\u001b[B",
  left: "\u001b[D",
  right: "\u001b[C",
  pageUp: "\u001b[5~",
  pageDown: "\u001b[6~",
  "ctrl+c": "\u0003",
  "ctrl+d": "\u0004",
};

/** @typedef {keyof typeof KEYS} Key */

const SIZE = { cols: 110, rows: 40 };
/** Only a failing test waits this long, however busy the machine is. */
const WAIT_MS = 120_000;
/** How long Pi may take to exit after it was told to. */
const LEAVE_MS = 60_000;

/** Why there is no terminal on this platform; undefined if there is one. */
export const noTerminal = reasonAgainst();

function reasonAgainst() {
  if (process.platform === "win32") return "the terminal tests send stderr aside with a POSIX shell";
  try {
    require("@lydell/node-pty");
    return undefined;
  } catch {
    return `@lydell/node-pty has no prebuilt binary for ${process.platform}-${process.arch}`;
  }
}

/**
 * Starts Pi in a terminal.
 * @param {object} options
 * @param {string} options.agentDir
 * @param {string} options.cwd
 * @param {string} options.node
 * @param {string[]} options.args Pi's script and its arguments
 * @param {Record<string, string | undefined>} [options.env]
 * @param {{ cols: number, rows: number }} [options.size]
 */
export function openTerminal({ agentDir, cwd, node, args, env, size = SIZE }) {
  const stderr = path.join(agentDir, `stderr-${process.hrtime.bigint()}`);
  const wanted = { ...cleanEnvironment(agentDir, env), TERM: "xterm-256color", COLORTERM: "truecolor" };
  const given = /** @type {Record<string, string>} */ (Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined)));
  const shell = ["-c", 'log=$1; shift; exec "$@" 2>"$log"', "sh", stderr, node, ...args];
  const child = require("@lydell/node-pty").spawn("/bin/sh", shell, { ...size, name: "xterm-256color", cwd, env: given });
  return new Terminal(child, stderr, size);
}

export class Terminal {
  #child;
  #emulator;
  #stderr;
  #drawn = Promise.resolve();
  /** @type {Set<() => void>} */
  #watchers = new Set();
  #exited = false;
  #exit;
  #written = "";

  /**
   * @param {import("@lydell/node-pty").IPty} child
   * @param {string} stderr the file for it
   * @param {{ cols: number, rows: number }} size
   */
  constructor(child, stderr, size) {
    const { Terminal: Emulator } = require("@xterm/headless");
    this.#child = child;
    this.#stderr = stderr;
    /** @type {import("@xterm/headless").Terminal} */
    this.#emulator = new Emulator({ ...size, scrollback: 5000, allowProposedApi: true });
    // The emulator answers a program's queries about its terminal (size, colors, …).
    this.#emulator.onData((answer) => this.#exited || child.write(answer));
    child.onData((output) => {
      this.#written += output;
      this.#drawn = new Promise((resolve) => this.#emulator.write(output, resolve));
      this.#drawn.then(() => this.#look());
    });
    /** @type {Promise<{ code: number | null, signal: number | null }>} */
    this.#exit = new Promise((resolve) => {
      child.onExit(({ exitCode, signal }) => {
        this.#exited = true;
        this.#look();
        resolve(signal ? { code: null, signal } : { code: exitCode, signal: null });
      });
    });
  }

  /** The process id: Pi has replaced the shell. */
  get pid() {
    return this.#child.pid;
  }

  /** Resolves once Pi has ended for any reason. */
  get exit() {
    return this.#exit;
  }

  get exited() {
    return this.#exited;
  }

  /** Pi's stderr so far. */
  get stderr() {
    return readFileSync(this.#stderr, "utf8");
  }

  /** All bytes that the terminal got. */
  get written() {
    return this.#written;
  }

  /** The visible lines. */
  get screen() {
    const { baseY } = this.#emulator.buffer.active;
    return this.#lines(baseY, baseY + this.#emulator.rows);
  }

  /** The same with the scrollback. */
  get everything() {
    return this.#lines(0, this.#emulator.buffer.active.length);
  }

  /** Types a text, all at once. @param {string} text */
  type(text) {
    this.#child.write(text);
  }

  /** @param {string} text */
  paste(text) {
    this.type(`\u001b[200~${text}\u001b[201~`);
  }

  /** @param {...Key} keys */
  press(...keys) {
    for (const key of keys) this.#child.write(KEYS[key]);
  }

  /** Resizes the window; the program is notified and redraws. @param {number} cols */
  resize(cols) {
    const { rows } = this.#emulator;
    this.#emulator.resize(cols, rows);
    this.#child.resize(cols, rows);
  }

  /**
   * Types a line and sends it once the editor shows it: an earlier Enter may find the editor empty, or a list of suggestions open.
   * @param {string} line
   */
  async send(line) {
    this.type(line);
    await this.waitFor((screen) => screen.includes(line.slice(0, 60)), `the editor shows "${line}"`);
    this.press("enter");
  }

  /**
   * Waits until the screen shows something. Checks after each change.
   * @template T
   * @param {(screen: string) => T} predicate
   * @param {string} what is expected, for the error message
   * @param {number} [timeoutMs]
   * @returns {Promise<T>} the predicate's result
   */
  waitFor(predicate, what, timeoutMs = WAIT_MS) {
    return new Promise((resolve, reject) => {
      /** @param {() => void} settle */
      const end = (settle) => {
        clearTimeout(timer);
        this.#watchers.delete(look);
        settle();
      };
      const fail = (/** @type {string} */ why) => end(() => reject(new Error(`${why}; awaited was: ${what}\n${this.screen}`)));
      const look = () => {
        const value = predicate(this.screen);
        if (value) return end(() => resolve(value));
        if (this.#exited) fail("Pi ended");
      };
      const timer = setTimeout(() => fail(`not in ${timeoutMs} ms`), timeoutMs);
      this.#watchers.add(look);
      look();
    });
  }

  /** Ends Pi with a signal and waits. @param {NodeJS.Signals} signal */
  async kill(signal) {
    if (!this.#exited) process.kill(this.pid, signal);
    return this.#exit;
  }

  /** Ends Pi: by its own key, and by force if needed. */
  async stop() {
    if (this.#exited) return this.#exit;
    // One Ctrl+C clears the editor; a second one in an empty editor exits.
    this.press("ctrl+c", "ctrl+c", "ctrl+d");
    const timer = setTimeout(() => this.kill("SIGKILL"), LEAVE_MS);
    const exit = await this.#exit;
    clearTimeout(timer);
    return exit;
  }

  #look() {
    for (const look of [...this.#watchers]) look();
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  #lines(from, to) {
    const buffer = this.#emulator.buffer.active;
    const lines = Array.from({ length: to - from }, (_, at) => (buffer.getLine(from + at)?.translateToString(true) ?? "").trimEnd());
    return lines.join("\n").replace(/\n+$/, "");
  }
}
