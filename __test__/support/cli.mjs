/** Runs `pi-lcm` as a shell does, or its engine in this process. */
import assert from "node:assert/strict";
import path from "node:path";
import { cleanEnvironment } from "../../demo/rpc.mjs";
import { node22, root } from "../../scripts/paths.mjs";
import { collect } from "../../scripts/proc.mjs";
import { loadEngine, viewerTemplate } from "../../shim/loader.js";
import { unwrap } from "../../shim/pi.js";

/** @typedef {import("./project.mjs").Project} Project */

/** The program. */
export const program = path.join(root, "bin", "pi-lcm.js");

/**
 * A shell: its current folder, Pi's folder, the folder of databases; for the engine also the width of a terminal.
 * @typedef {{ cwd: string, agentDir: string, storeDir?: string, sessionDir?: string, env?: Record<string, string | undefined>, columns?: number }} Shell
 */

/** @param {Shell} shell */
export function environmentOf({ agentDir, storeDir, sessionDir, env }) {
  return cleanEnvironment(agentDir, { LCM_DB_DIR: storeDir, PI_CODING_AGENT_SESSION_DIR: sessionDir, ...env });
}

/**
 * Runs it until it ends.
 * @param {Shell} shell
 * @param {...string} args
 */
export function lcm(shell, ...args) {
  return collect(node22, [program, ...args], { cwd: shell.cwd, env: environmentOf(shell) });
}

/**
 * The same line, answered by the engine in this process: the text on each stream, and the exit code.
 * @param {Shell} shell
 * @param {...string} args
 * @returns {Promise<{ code: number, stdout: string, stderr: string }>}
 */
export async function answer(shell, ...args) {
  const { cwd, agentDir, columns } = shell;
  const request = { arguments: args, cwd, agentDir, environment: environmentOf(shell), columns, viewerTemplate };
  const { output, complaint, code } = unwrap(await loadEngine().Cli.begin().run(JSON.stringify(request)));
  return { code, stdout: output && `${output}\n`, stderr: complaint && `${complaint}\n` };
}

/**
 * The engine's answer as data; stderr must be empty.
 * @param {Shell} shell
 * @param {...string} args
 */
export async function ask(shell, ...args) {
  const { stdout, stderr } = await answer(shell, "--json", ...args);
  assert.equal(stderr, "");
  return JSON.parse(stdout);
}
