/** Ours beside another extension: in which order they are loaded, on which Pi, and what holds whatever the other one does. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { everything, hostsByVersion, hostsFor, MAIN } from "../../scripts/hosts.mjs";
import { extension } from "../../scripts/paths.mjs";
import { blockOf, drillDownIds, statistics } from "../support/block.mjs";
import { filler } from "../support/history.mjs";

/** @typedef {import("node:test").TestContext} TestContext */
/** @typedef {import("../../scripts/hosts.mjs").Host} Host */
/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../support/session-file.mjs").SessionFile} SessionFile */

/** Whether a Pi takes entries from handlers. @param {Host} host */
export const takesEntries = ({ version }) => version !== "0.74.2";

/** Processes are waited for more than they compute. */
const AT_ONCE = 3;

/**
 * @typedef {object} Company
 * @property {Host} host
 * @property {string[]} extensions both, in the order in which they are loaded
 * @property {boolean} oursIsLast
 */

/** The file of an extension of this folder. @param {string} name */
export const theirs = (name) => fileURLToPath(new URL(`./extensions/${name}.mjs`, import.meta.url));

/**
 * A test beside another extension, on several Pis, in both orders of loading; where these should make no difference, only the
 * repository's own Pi is tried with both.
 * @param {string} sentence
 * @param {string} name the other extension's
 * @param {(t: TestContext, company: Company) => Promise<void>} body
 * @param {{ on?: (host: Host) => boolean, orderMatters?: boolean }} [options]
 */
export function beside(sentence, name, body, { on = () => true, orderMatters = false } = {}) {
  test(sentence, { concurrency: AT_ONCE }, async (t) => {
    const companies = hostsFor(hostsByVersion).filter(on).flatMap((host) => {
      const orders = host.version === MAIN || (orderMatters && everything) ? [true, false] : [true];
      return orders.map((oursIsLast) => ({ host, oursIsLast }));
    });
    await Promise.all(
      companies.map(({ host, oursIsLast }) => {
        const extensions = oursIsLast ? [theirs(name), extension] : [extension, theirs(name)];
        return t.test(`${host.name}, ours loaded ${oursIsLast ? "last" : "first"}`, (t) => body(t, { host, extensions, oursIsLast }));
      }),
    );
  });
}

/**
 * The last compaction is ours, and its block stands for each message before the kept ones exactly once, by the edges in the
 * store and by its own words.
 * @param {Project} project
 * @param {SessionFile} session
 * @returns {string} the block
 */
export function assertCovered(project, session) {
  const { summary } = session.lastCompaction;
  const compacted = session.compactedBy();
  assert.ok(compacted.length > 0);
  const covered = project.inStore((store) => {
    // Of a message that was edited, it is the edited one that a summary stands for.
    const edits = store.rows("SELECT message_id, target FROM entries WHERE kind = 2 AND message_id IS NOT NULL");
    const edited = new Map(edits.map(({ message_id, target }) => [`message ${message_id}`, target]));
    return store.entriesUnder(session.id, drillDownIds(summary)).map((entry) => edited.get(entry) ?? entry);
  });
  assert.deepEqual(covered, compacted);
  const { covers, missing } = statistics(summary);
  assert.deepEqual({ covers, missing }, { covers: compacted.length, missing: "none" });
  return summary;
}

/**
 * Says enough for Pi to find something to compact, and compacts.
 * @param {import("../support/project.mjs").Pi} pi
 * @param {string} name of what is said
 */
export async function talkAndCompact(pi, name) {
  await pi.prompt(`${name}0000x ${filler(name, 400)}`);
  await pi.prompt(`${name}0001x ${filler(`${name} too`, 400)}`);
  return pi.request("compact");
}

/** The model sees this block in place of what was compacted. @param {Project} project @param {string} block */
export function assertShown(project, block) {
  assert.equal(blockOf(project.lastTurn), block);
}
