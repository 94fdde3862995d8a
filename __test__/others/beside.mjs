/** The extension together with another one: loading order, versions of Pi, and assertions that hold whatever the other one does. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { hostsFor } from "../../scripts/hosts.mjs";
import { extension } from "../../scripts/paths.mjs";
import { blockOf, drillDownIds, statistics } from "../support/block.mjs";
import { filler } from "../support/history.mjs";
import { OnePi } from "../support/one-pi.mjs";

/** @typedef {import("node:test").TestContext} TestContext */
/** @typedef {import("../../scripts/hosts.mjs").Host} Host */
/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../support/session-file.mjs").SessionFile} SessionFile */
/** @typedef {import("../support/history.mjs").History} History */

/**
 * A Pi and a loading order.
 * @typedef {{ host: Host, oursIsLast: boolean, title: string }} Placing
 */

/** @type {Placing[]} */
export const placings = hostsFor().flatMap((host) => [true, false].map((oursIsLast) => {
  return { host, oursIsLast, title: `${host.name}, ours loaded ${oursIsLast ? "last" : "first"}` };
}));

/** Whether ours is loaded last; for tests that do not depend on the order. @param {Placing} placing */
export const once = ({ oursIsLast }) => oursIsLast;

/** The file of an extension of this folder. @param {string} name */
export const theirs = (name) => fileURLToPath(new URL(`./extensions/${name}.mjs`, import.meta.url));

/** Ours and another of this folder, in loading order. @param {Placing} placing @param {string} name */
export const bothOf = ({ oursIsLast }, name) => (oursIsLast ? [theirs(name), extension] : [extension, theirs(name)]);

/** Without a cache, a summarizer's prompt has everything it gets. */
const COST = { input: 1, output: 4, cacheRead: 0, cacheWrite: 0 };
/** The tests compact themselves: a fold, which comes as soon as its summaries are there, would leave them nothing. */
const FULL = { lcm: { context: "full" } };

/** One Pi for each placing, which runs a file's tests one after the other. @type {Map<Placing, OnePi>} */
const pis = new Map(placings.map((placing) => {
  return [placing, new OnePi({ host: placing.host, extensions: bothOf(placing, "crowd"), contextWindow: 2_000_000, cost: COST, settings: FULL })];
}));

/**
 * Starts a session with `exchanges` exchanges in Pi, in which the other extension is active.
 * @typedef {(exchanges: number, more?: (past: History) => void) => Promise<{ project: Project, pi: import("../support/project.mjs").Pi }>} Begin
 */

/**
 * A test with another extension, on several Pis, in both loading orders.
 * @param {string} sentence
 * @param {string} name the other extension's
 * @param {(t: TestContext, begin: Begin, placing: Placing) => Promise<void>} body
 * @param {{ on?: (placing: Placing) => boolean }} [options]
 */
export function beside(sentence, name, body, { on = () => true } = {}) {
  const here = [...pis].filter(([placing]) => on(placing));
  test(sentence, { concurrency: true, skip: here.length === 0 && "it needs another Pi than TEST_HOSTS names" }, async (t) => {
    await Promise.all(here.map(([placing, one]) => t.test(placing.title, (t) => {
      return body(t, async (exchanges, more) => {
        const past = await one.past(exchanges);
        more?.(past);
        const { project, pi } = await one.sit(past);
        await pi.prompt(`/awake ${name}`);
        return { project, pi };
      }, placing);
    })));
  });
}

/**
 * Asserts that the last compaction is ours, and that its block covers each message before the kept ones exactly once, by the store's edges
 * and by its own words.
 * @param {Project} project
 * @param {SessionFile} session
 * @returns {string} the block
 */
export function assertCovered(project, session) {
  const { summary } = session.lastCompaction;
  const compacted = session.compactedBy();
  assert.ok(compacted.length > 0);
  const covered = project.inStore((store) => {
    // A summary covers the edited form of a message.
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
 * Talks until Pi can compact, and compacts.
 * @param {import("../support/project.mjs").Pi} pi
 * @param {string} name of what is said
 */
export async function talkAndCompact(pi, name) {
  await pi.prompt(`${name}0000x ${filler(name, 400)}`);
  await pi.prompt(`${name}0001x ${filler(`${name} too`, 400)}`);
  return pi.request("compact");
}

/** Asserts that the model sees this block in place of the compacted messages. @param {Project} project @param {string} block */
export function assertShown(project, block) {
  assert.equal(blockOf(project.lastTurn), block);
}
