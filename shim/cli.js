/**
 * `pi-lcm`: passes the shell's arguments to the engine and prints its answer.
 *
 * The engine decides everything else: the meaning of the arguments, what to open, the wording, and the exit code.
 */

import { spawnSync } from "node:child_process";
import { isatty } from "node:tty";
import { legible } from "./columns.js";
import { loadEngine, viewerTemplate } from "./loader.js";
import { agentDir, messageOf, unwrap } from "./pi.js";

/** Exit codes of an interrupted and of a failed process. */
const [INTERRUPTED, FAILED] = [130, 2];
/** Milliseconds for an orderly exit after an interrupt. */
const GRACE_MS = 500;
/** Interval between updates of the progress, in ms. */
const PROGRESS_MS = 200;
const [STDIN, STDOUT, STDERR] = [0, 1, 2];
/** Columns of a terminal that does not report its width. */
const COLUMNS = 80;
/** The environment variables that matter. */
const COUNTS = /^(LCM_.*|PI_.*|NO_COLOR|TERM)$/;

/** Answers this process's arguments, and sets its exit code. */
export async function main() {
  try {
    process.exitCode = await answer();
  } catch (error) {
    complain(legible(`pi-lcm: ${messageOf(error)}`));
    process.exitCode = FAILED;
  }
}

// No stream is accessed before there is output: once `process.stdout` exists, Node no longer blocks writes to a pipe, and `pi-lcm mcp`
// writes to stdout itself.

/** @param {string} sentence */
function complain(sentence) {
  // Its reader may have gone, as with `pi-lcm grep … 2>&1 | head`.
  process.stderr.on("error", () => process.exit());
  process.stderr.write(`${sentence}\n`);
}

/**
 * Shows an answer that is longer than the terminal in the user's pager.
 *
 * @param {string} output
 * @returns {boolean} whether it was shown
 */
function page(output) {
  const { PAGER = "less", LESS = "FRX", TERM } = process.env;
  if (!PAGER || TERM === "dumb" || !isatty(STDIN) || !isatty(STDOUT) || output.split("\n").length < process.stdout.rows) return false;
  const { error, status } = spawnSync(PAGER, { shell: true, input: `${output}\n`, env: { ...process.env, LESS }, stdio: ["pipe", "inherit", "ignore"] });
  // A shell reports a program that is not there.
  return !error && status !== 127;
}

/** @param {string} output */
function write(output) {
  if (page(output)) return;
  process.stdout.on("error", (/** @type {NodeJS.ErrnoException} */ error) => {
    // The reader may close the pipe early: `pi-lcm grep … | head`.
    if (error.code === "EPIPE") process.exit();
    complain(`pi-lcm: the answer can't be written: ${error.message}`);
    process.exit(FAILED);
  });
  process.stdout.write(`${output}\n`);
}

/**
 * Shows the progress of an import in a line of the terminal that disappears.
 *
 * @param {{ importProgress: () => string | null }} cli
 * @returns {() => void} to be called when it has ended
 */
function followImport(cli) {
  if (!isatty(STDERR) || process.env.TERM === "dumb") return () => {};
  let shown = "";
  const timer = setInterval(() => {
    const text = cli.importProgress();
    if (!text || text === shown) return;
    // The terminal may be gone.
    if (!shown) process.stderr.on("error", () => clearInterval(timer));
    shown = text;
    process.stderr.write(`\r${text.slice(0, (process.stderr.columns || COLUMNS) - 1)}\u001b[K`);
  }, PROGRESS_MS);
  return () => {
    clearInterval(timer);
    if (shown) process.stderr.write("\r\u001b[K");
  };
}

/** The current folder, which may no longer exist. */
function here() {
  try {
    return process.cwd();
  } catch {
    return process.env.PWD || "/";
  }
}

/** @returns {Promise<number>} the exit code */
async function answer() {
  const { Cli } = loadEngine();
  const cli = Cli.begin();
  const endProgress = followImport(cli);
  let interrupted = false;
  const exit = () => {
    // What still runs on other threads gets no chance to.
    cli.abandon();
    process.exit(INTERRUPTED);
  };
  const stop = () => {
    // A second interrupt ends the process at once.
    if (interrupted) exit();
    interrupted = true;
    const reached = cli.importProgress();
    if (reached) {
      endProgress();
      // The terminal may be gone.
      process.stderr.on("error", () => {});
      process.stderr.write(`${reached}: stopping; the same command continues\n`);
    }
    void cli.stop();
    // A lock may be held, and a file may have no end: do not wait for those.
    setTimeout(exit, GRACE_MS).unref();
  };
  const signals = /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]);
  for (const signal of signals) process.on(signal, stop);
  const request = {
    arguments: process.argv.slice(2),
    cwd: here(),
    agentDir: agentDir(),
    environment: Object.fromEntries(Object.entries(process.env).filter(([name]) => COUNTS.test(name))),
    columns: isatty(STDOUT) ? process.stdout.columns || COLUMNS : undefined,
    viewerTemplate,
  };
  const answered = await cli.run(JSON.stringify(request)).finally(endProgress);
  /** @type {{ output: string, complaint: string, code: number }} */
  const { output, complaint, code } = unwrap(answered);
  // A signal that came while this thread was busy is only now delivered. The first immediate runs before Node looks for one.
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
  // A second signal is still answered while the process ends.
  if (interrupted) return INTERRUPTED;
  for (const signal of signals) process.off(signal, stop);
  if (output) write(output);
  if (complaint) complain(complaint);
  return code;
}
