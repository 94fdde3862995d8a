/** Running `pi-lcm` as a shell does. */
import assert from "node:assert/strict";
import path from "node:path";
import { cleanEnvironment } from "../../demo/rpc.mjs";
import { node22, root } from "../../scripts/paths.mjs";
import { collect } from "../../scripts/proc.mjs";

/** @typedef {import("./project.mjs").Project} Project */

/** The program. */
export const program = path.join(root, "bin", "pi-lcm.js");

/**
 * Somebody's shell: a folder, Pi's folder, the folder of databases.
 * @typedef {{ cwd: string, agentDir: string, storeDir?: string, sessionDir?: string, env?: Record<string, string | undefined> }} Shell
 */

/** @param {Shell} shell */
export function environmentOf({ agentDir, storeDir, sessionDir, env }) {
  return cleanEnvironment(agentDir, { LCM_DB_DIR: storeDir, PI_CODING_AGENT_SESSION_DIR: sessionDir, ...env });
}

/**
 * Runs it to its end.
 * @param {Shell} shell
 * @param {...string} args
 */
export function lcm(shell, ...args) {
  return collect(node22, [program, ...args], { cwd: shell.cwd, env: environmentOf(shell) });
}

/**
 * What it answers as data; it must be silent beside that.
 * @param {Shell} shell
 * @param {...string} args
 */
export async function ask(shell, ...args) {
  const { stdout, stderr } = await lcm(shell, "--json", ...args);
  assert.equal(stderr, "");
  return JSON.parse(stdout);
}
