/**
 * Asserts that a project's session files and its store agree: the same sessions, each with the same entries in the same places, each
 * message byte for byte, and no duplicates.
 */
import assert from "node:assert/strict";
import { jsonOf } from "./session-file.mjs";

/** @typedef {import("./project.mjs").Project} Project */
/** @typedef {import("./session-file.mjs").SessionFile} SessionFile */

/**
 * @param {Project} project
 * @param {SessionFile[]} [sessions] all sessions of the store; by default those of the project's session files
 * @param {string} [name] of the database, if there are several
 */
export function assertAgreement(project, sessions = project.sessions(), name) {
  project.inStore((store) => {
    const known = store.rows("SELECT session_id FROM conversations ORDER BY session_id").map(({ session_id }) => session_id);
    assert.deepEqual(known, sessions.map(({ id }) => id).sort(), "the store knows the sessions that have files");
    for (const session of sessions) assertSame(store.entries(session.id), session);
    assert.equal(store.count("messages"), distinctMessages(sessions), "shared messages are stored once, and nothing twice");
  }, name);
}

/**
 * Asserts that the store has a session's entries, in their order and places, and the exact JSON of every message; it may have more.
 * @param {Project} project
 * @param {SessionFile} session
 */
export function assertStored(project, session) {
  assertSame(project.inStore((store) => store.entries(session.id)), session);
}

/**
 * @param {import("./store.mjs").StoredEntry[]} stored
 * @param {SessionFile} session
 */
function assertSame(stored, { id, entries }) {
  // One by one; otherwise a failure would print the whole session.
  for (const [at, entry] of entries.entries()) {
    assert.deepEqual(stored[at], { id: entry.id, parentId: entry.parentId, json: jsonOf(entry) }, `entry ${at} of ${id}`);
  }
  assert.equal(stored.length, entries.length, `the number of entries of ${id}`);
}

/**
 * The number of distinct messages of these sessions: messages with the same predecessors and the same bytes are one.
 * @param {SessionFile[]} sessions
 */
function distinctMessages(sessions) {
  /** @type {Map<string, number>} */
  const numbers = new Map();
  for (const { entries } of sessions) {
    /** The number of an entry's message, or of the last one above it. @type {Map<string | null, number>} */
    const lineages = new Map([[null, 0]]);
    for (const entry of entries) {
      const above = lineages.get(entry.parentId) ?? 0;
      const json = jsonOf(entry);
      const key = `${above} ${json}`;
      if (json !== null && !numbers.has(key)) numbers.set(key, numbers.size + 1);
      lineages.set(entry.id, json === null ? above : (numbers.get(key) ?? 0));
    }
  }
  return numbers.size;
}
