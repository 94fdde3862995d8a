/** Sessions that are written as files, and Pi's page of them. */
import assert from "node:assert/strict";
import path from "node:path";
import { inSession } from "../commands/asking.mjs";
import { ask } from "../support/cli.mjs";
import { aProject } from "../support/project.mjs";

/** @typedef {import("node:test").TestContext} TestContext */
/** @typedef {import("../support/history.mjs").History} History */

/**
 * The page of a session.
 * @param {TestContext} t
 * @param {(history: History) => void} write
 * @returns {Promise<{ file: string, session: string }>}
 */
export async function exported(t, write) {
  const { file, sessions } = await exportedAll(t, [write], "export --html");
  return { file, session: sessions[0] };
}

/**
 * The page of a project's sessions, exported from the last of them.
 * @param {TestContext} t
 * @param {((history: History) => void)[]} writes
 * @param {string} [command]
 */
export async function exportedAll(t, writes, command = "export --html --all") {
  const project = await aProject(t, { contextWindow: 50_000_000 });
  const sessions = writes.map((write, at) => {
    const history = project.history(`019a4f00-0000-7000-8000-00000000000${at + 1}`);
    write(history);
    return history.write(project.sessionDir);
  });
  for (const session of sessions.slice(0, -1)) await ask(project, "import", session);
  const said = await inSession(project, /** @type {string} */ (sessions.at(-1)), ["-p", `/lcm ${command} page.html`]);
  assert.match(said, /written to .*page\.html/);
  return { file: path.join(project.cwd, "page.html"), sessions };
}
