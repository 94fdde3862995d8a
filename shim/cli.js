/**
 * `pi-lcm`: hands what a shell says to the engine, and writes out what that answers.
 *
 * The engine decides everything else: what the arguments mean, what is opened, how it is worded, how the process ends.
 */

import { legible } from "./columns.js";
import { loadEngine, viewerTemplate } from "./loader.js";
import { agentDir, messageOf, unwrap } from "./pi.js";

/** How a process ends that was interrupted, and one that could not do what it was asked. */
const [INTERRUPTED, FAILED] = [130, 2];
/** Milliseconds that are left for ending in good order once that is asked for. */
const GRACE_MS = 500;
/** Columns of a terminal that does not say. */
const COLUMNS = 80;
/** What of the environment counts. */
const COUNTS = /^(LCM_.*|PI_.*|NO_COLOR|TERM)$/;

/** Answers the arguments of this process, and sets how it ends. */
export async function main() {
  process.stderr.on("error", () => process.exit(FAILED));
  process.stdout.on("error", (/** @type {NodeJS.ErrnoException} */ error) => {
    // Whoever reads may have read enough: `pi-lcm grep … | head`.
    if (error.code === "EPIPE") process.exit();
    process.stderr.write(`pi-lcm: the answer can't be written: ${error.message}\n`);
    process.exit(FAILED);
  });
  try {
    process.exitCode = await answer();
  } catch (error) {
    process.stderr.write(legible(`pi-lcm: ${messageOf(error)}\n`));
    process.exitCode = FAILED;
  }
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
  const stop = () => {
    // Who says it twice does not wait for anything.
    if (interrupted) process.exit(INTERRUPTED);
    interrupted = true;
    void cli.stop();
    // A lock may be held and a file may have no end: nobody is to wait for those.
    setTimeout(() => process.exit(INTERRUPTED), GRACE_MS).unref();
  };
  const signals = /** @type {const} */ (["SIGINT", "SIGTERM"]);
  for (const signal of signals) process.on(signal, stop);
  const { isTTY, columns } = process.stdout;
  const request = {
    arguments: process.argv.slice(2),
    cwd: here(),
    agentDir: agentDir(),
    environment: Object.fromEntries(Object.entries(process.env).filter(([name]) => COUNTS.test(name))),
    columns: isTTY ? columns || COLUMNS : undefined,
    viewerTemplate,
  };
  /** @type {{ output: string, complaint: string, code: number }} */
  const { output, complaint, code } = unwrap(await cli.run(JSON.stringify(request)));
  for (const signal of signals) process.off(signal, stop);
  if (interrupted) return INTERRUPTED;
  if (output) process.stdout.write(`${output}\n`);
  if (complaint) process.stderr.write(`${complaint}\n`);
  return code;
}
