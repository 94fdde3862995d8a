/**
 * Starts other programs in two ways: with their output shown, or kept until it is needed.
 *
 * Both resolve with the exit code and never throw for a failing program: the caller decides what a failure means.
 */
import { spawn } from "node:child_process";

/**
 * @typedef {object} Finished
 * @property {number} code 0 when all went well; 127 when the program could not be started; 1 when a signal ended it
 * @property {string} stdout empty when the output was shown
 * @property {string} stderr empty when the output was shown
 */

/**
 * Runs a program whose output belongs on the screen.
 * @param {string} command
 * @param {string[]} args
 * @param {import("node:child_process").SpawnOptions} [options]
 * @returns {Promise<number>} the exit code
 */
export async function show(command, args, options = {}) {
  const child = spawn(command, args, { stdio: "inherit", ...options });
  return ended(child);
}

/**
 * Runs a program and keeps its output.
 *
 * With `revealAfterMs`, a program that takes longer is shown after all: its stderr so far, and then each piece as it comes. So a step with
 * nothing to do stays silent, and a long one does not leave a blank screen. With 0, stderr goes to the screen from the start, for progress
 * bars.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {import("node:child_process").SpawnOptions & { revealAfterMs?: number, title?: string }} [options]
 * @returns {Promise<Finished>}
 */
export async function collect(command, args, { revealAfterMs, title, ...options } = {}) {
  const child = spawn(command, args, { ...options, stdio: ["ignore", "pipe", revealAfterMs === 0 ? "inherit" : "pipe"] });
  let stdout = "";
  let stderr = "";
  let shown = false;
  child.stdout?.setEncoding("utf8").on("data", (text) => (stdout += text));
  child.stderr?.setEncoding("utf8").on("data", (text) => {
    stderr += text;
    if (shown) process.stderr.write(text);
  });
  const reveal = () => {
    shown = true;
    if (title) process.stderr.write(`${title}\n`);
    process.stderr.write(stderr);
  };
  const timer = revealAfterMs ? setTimeout(reveal, revealAfterMs) : undefined;
  const code = await ended(child);
  clearTimeout(timer);
  return { code, stdout, stderr: shown ? "" : stderr };
}

/**
 * @param {import("node:child_process").ChildProcess} child
 * @returns {Promise<number>}
 */
function ended(child) {
  return new Promise((resolve) => {
    child.on("error", () => resolve(127));
    child.on("close", (code) => resolve(code ?? 1));
  });
}
