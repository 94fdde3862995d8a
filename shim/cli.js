/**
 * `pi-lcm`: hands what a shell says to the engine, and writes out what that answers.
 *
 * The engine decides everything else: what the arguments mean, what is opened, how it is worded, how the process ends.
 */

import { isatty } from "node:tty";
import { legible } from "./columns.js";
import { loadEngine, viewerTemplate } from "./loader.js";
import { agentDir, messageOf, unwrap } from "./pi.js";

/** How a process ends that was interrupted, and one that could not do what it was asked. */
const [INTERRUPTED, FAILED] = [130, 2];
/** Milliseconds that are left for ending in good order once that is asked for. */
const GRACE_MS = 500;
/** What is written to. */
const STDOUT = 1;
/** Columns of a terminal that does not say. */
const COLUMNS = 80;
/** What of the environment counts. */
const COUNTS = /^(LCM_.*|PI_.*|NO_COLOR|TERM)$/;

/** Answers the arguments of this process, and sets how it ends. */
export async function main() {
  try {
    process.exitCode = await answer();
  } catch (error) {
    complain(legible(`pi-lcm: ${messageOf(error)}`));
    process.exitCode = FAILED;
  }
}

// Neither stream is touched before there is something to write: Node would no longer let a write to a pipe wait, and `pi-lcm mcp`
// writes to stdout itself.

/** @param {string} sentence */
function complain(sentence) {
  process.stderr.on("error", () => process.exit(FAILED));
  process.stderr.write(`${sentence}\n`);
}

/** @param {string} output */
function write(output) {
  process.stdout.on("error", (/** @type {NodeJS.ErrnoException} */ error) => {
    // Whoever reads may have read enough: `pi-lcm grep … | head`.
    if (error.code === "EPIPE") process.exit();
    complain(`pi-lcm: the answer can't be written: ${error.message}`);
    process.exit(FAILED);
  });
  process.stdout.write(`${output}\n`);
}

/** The folder it is said in, which may be gone. */
function here() {
  try {
    return process.cwd();
  } catch {
    return process.env.PWD || "/";
  }
}

/** @returns {Promise<number>} how the process ends */
async function answer() {
  const { Cli } = loadEngine();
  const cli = Cli.begin();
  let interrupted = false;
  const exit = () => {
    // What still runs on other threads gets no chance to.
    cli.abandon();
    process.exit(INTERRUPTED);
  };
  const stop = () => {
    // Who says it twice does not wait for anything.
    if (interrupted) exit();
    interrupted = true;
    void cli.stop();
    // A lock may be held and a file may have no end: nobody is to wait for those.
    setTimeout(exit, GRACE_MS).unref();
  };
  const signals = /** @type {const} */ (["SIGINT", "SIGTERM"]);
  for (const signal of signals) process.on(signal, stop);
  const request = {
    arguments: process.argv.slice(2),
    cwd: here(),
    agentDir: agentDir(),
    environment: Object.fromEntries(Object.entries(process.env).filter(([name]) => COUNTS.test(name))),
    columns: isatty(STDOUT) ? process.stdout.columns || COLUMNS : undefined,
    viewerTemplate,
  };
  /** @type {{ output: string, complaint: string, code: number }} */
  const { output, complaint, code } = unwrap(await cli.run(JSON.stringify(request)));
  // A signal that came while this thread was busy is only now delivered. The first immediate runs before Node looks for one.
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
  for (const signal of signals) process.off(signal, stop);
  if (interrupted) return INTERRUPTED;
  if (output) write(output);
  if (complaint) complain(complaint);
  return code;
}
