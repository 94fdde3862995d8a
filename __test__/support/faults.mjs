/** Assertions for every fault: that Pi works, what its user was told, and that the history is complete again afterwards. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { assertAgreement } from "./agreement.mjs";
import { eventually } from "./project.mjs";
import { heard, saidBy } from "./seats.mjs";
import { DatabaseSync, Store } from "./store.mjs";

/** @typedef {import("./project.mjs").Project} Project */
/** @typedef {import("./project.mjs").Pi} Pi */
/** @typedef {import("../../demo/model-server.mjs").Received} Received */

/** The model repeats the user's message. @param {Received} request */
export const echo = ({ messages }) => ({ text: heard(messages.findLast(({ role }) => role === "user")?.text ?? "") });

/** The name of the project's database. @param {{ cwd: string }} project @param {string} [ending] of those next to it */
export function databaseOf(project, ending = "") {
  return `${createHash("sha256").update(project.cwd).digest("hex").slice(0, 16)}${ending}.db`;
}

/** The path of the database. @param {{ cwd: string, storeDir: string }} project @param {string} [ending] */
export const databaseFile = (project, ending) => path.join(project.storeDir, databaseOf(project, ending));

/**
 * Sends a message and checks the answer.
 * @param {Project} project whose model answers with `echo`
 * @param {Pi} pi
 * @param {string} text
 */
export async function talk(project, pi, text) {
  await pi.prompt(text);
  const { entries } = await project.session(pi);
  assert.equal(saidBy(entries.findLast(({ message }) => message?.role === "assistant"), "assistant"), heard(text));
}

/**
 * The warnings to the user.
 * @param {Pi} pi
 * @param {number} [from] how many events to skip
 * @returns {string[]}
 */
export function warnings(pi, from = 0) {
  const shown = pi.events.slice(from).filter(({ method, notifyType }) => method === "notify" && notifyType !== "info");
  return shown.map(({ message }) => message);
}

/**
 * Asserts that the user got exactly one warning.
 * @param {Pi} pi
 * @param {RegExp} sentence
 * @param {number} [from]
 */
export function assertWarnedOnce(pi, sentence, from) {
  const shown = warnings(pi, from);
  assert.equal(shown.length, 1, `one sentence is expected:\n${shown.join("\n")}`);
  assert.match(shown[0], sentence);
}

/** Waits until the user got a warning. @param {Pi} pi @param {number} [from] */
export const waitForWarning = (pi, from) => pi.waitFor(() => warnings(pi, from).length > 0);

/**
 * Ends the session and opens it again with the extension disabled: the store is closed, as if Pi had ended.
 * @param {Project} project
 * @param {Pi} pi
 */
export async function pause(project, pi) {
  const file = path.join(project.agentDir, "settings.json");
  const settings = readFileSync(file, "utf8");
  const { lcm, ...others } = JSON.parse(settings);
  writeFileSync(file, JSON.stringify({ ...others, lcm: { ...lcm, enabled: false } }));
  await reopen(project, pi);
  writeFileSync(file, settings);
  const logs = () => readdirSync(project.storeDir).filter((name) => name.endsWith("-wal"));
  await eventually(() => assert.deepEqual(logs(), [], "the log is removed"));
}

/**
 * Ends the session and starts it again, as when Pi starts.
 * @param {Project} project
 * @param {Pi} pi
 * @returns {Promise<number>} the number of events before
 */
export async function reopen(project, pi) {
  const from = pi.events.length;
  await pi.request("switch_session", { sessionPath: (await project.session(pi)).file });
  return from;
}

/**
 * Saves the store and the sessions.
 * @param {Project} project
 * @returns {() => void} restores them
 */
export function keep({ agentDir, storeDir, sessionDir }) {
  const kept = mkdtempSync(path.join(agentDir, "kept-"));
  const folders = [storeDir, sessionDir].map((dir) => ({ dir, copy: path.join(kept, path.basename(dir)) }));
  for (const { dir, copy } of folders) cpSync(dir, copy, { recursive: true });
  return () => {
    for (const { dir, copy } of folders) {
      rmSync(dir, { recursive: true });
      cpSync(copy, dir, { recursive: true });
    }
  };
}

/** Ends Pi normally. @param {Pi} pi */
export async function leave(pi) {
  assert.deepEqual(await pi.stop(), { code: 0, signal: null });
  assert.deepEqual(pi.events.filter(({ type }) => type === "extension_error"), []);
}

/**
 * Asserts that an undisturbed start shows no warning, and that then everything is stored correctly.
 * @param {Project} project
 * @param {Whole & { args?: string[] }} [options] `args`: Pi's
 */
export async function assertWhole(project, { args = ["--continue"], ...whole } = {}) {
  const pi = project.startPi(args);
  await assertWholeIn(project, pi, whole);
  await leave(pi);
  assertSound(project, whole.name);
}

/**
 * @typedef {object} Whole
 * @property {string} [name] of the database
 * @property {RegExp} [warning] an expected warning
 * @property {number} [from] the number of earlier events
 */

/**
 * The same for a Pi whose session has just started.
 * @param {Project} project
 * @param {Pi} pi
 * @param {Whole} [whole]
 */
export async function assertWholeIn(project, pi, { name, warning, from } = {}) {
  await talk(project, pi, "and afterwards");
  await eventually(() => assertAgreement(project, undefined, name));
  const apart = warning?.source.includes("new messages go to");
  assert.match(await doctor(pi), apart ? /^Database +WRONG .*\n {2}this check did not finish: .* joins both\n(?:\w[\w ]+ ok .*\n)+\n/ : /\n\nEverything is in order\.$/);
  if (warning) assertWarnedOnce(pi, warning, from);
  else assert.deepEqual(warnings(pi, from), []);
}

/** Asserts that after the fault everything is stored with the next message, including that one. @param {Project} project @param {Pi} pi */
export async function storedAgain(project, pi) {
  await talk(project, pi, "and now?");
  // The writer has its own thread.
  await eventually(() => assertAgreement(project), 20_000);
}

/** Asserts that SQLite finds no error. @param {Project} project @param {string} [name] of the database */
export function assertSound(project, name) {
  project.inStore((store) => assert.equal(store.rows("PRAGMA integrity_check")[0].integrity_check, "ok"), name);
}

/** The report of `/lcm doctor`. @param {Pi} pi @returns {Promise<string>} */
export async function doctor(pi) {
  const from = pi.events.length;
  await pi.prompt("/lcm doctor");
  const said = () => pi.events.slice(from).findLast(({ method, message }) => method === "notify" && message.startsWith("Database "));
  return (await pi.waitFor(said)).message;
}

/**
 * Everything that is stored, to check later that nothing is gone.
 * @param {Project} project
 * @param {string} [name] of the database
 * @param {string} [folder] if not the project's
 */
export function storedIn({ storeDir }, name, folder = storeDir) {
  const store = new Store(folder, name);
  try {
    const messages = store.rows("SELECT hex(lineage) AS id FROM messages").map(({ id }) => `message ${id}`);
    const entries = store.rows("SELECT session_id, entry_id FROM entries e JOIN conversations c ON c.id = e.conversation_id");
    const summaries = store.rows("SELECT hex(hash) AS id FROM summaries").map(({ id }) => `summary ${id}`);
    return new Set([...messages, ...summaries, ...entries.map(({ session_id, entry_id }) => `entry ${entry_id} of ${session_id}`)]);
  } finally {
    store.close();
  }
}

/** Removes the log and its index, which a reader leaves behind. @param {Project} project */
export function removeLogs(project) {
  const database = new DatabaseSync(databaseFile(project));
  database.exec("SELECT 1 FROM messages");
  database.close();
}

/**
 * @param {Set<string>} before
 * @param {Set<string>} after
 */
export function assertNothingGone(before, after) {
  assert.deepEqual([...before].filter((thing) => !after.has(thing)), [], "nothing stored is gone");
}
