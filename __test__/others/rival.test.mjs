/**
 * Another extension with its own compaction: whichever Pi takes, the session file and the store agree, no message is lost, and our next
 * compaction covers everything, however often others compacted in between.
 */
import assert from "node:assert/strict";
import { assertAgreement } from "../support/agreement.mjs";
import { blockOf } from "../support/block.mjs";
import { filler } from "../support/history.mjs";
import { eventually } from "../support/project.mjs";
import { assertCovered, assertShown, beside, talkAndCompact } from "./beside.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../support/project.mjs").Pi} Pi */

/**
 * A session with history, and the rival in some mood.
 * @param {import("./beside.mjs").Begin} begin
 * @param {string} mood
 */
async function withRival(begin, mood) {
  const { project, pi } = await begin(40);
  await pi.prompt(`/rival ${mood}`);
  return { project, pi };
}

/** @param {Pi} pi */
const notices = (pi) => pi.ui("notify").map(({ message }) => message);

/**
 * Asserts that without the rival our compaction covers everything, including what the rival's compactions hid.
 * @param {Project} project
 * @param {Pi} pi
 */
async function assertOursCoversAll(project, pi) {
  await pi.prompt("/rival off");
  await talkAndCompact(pi, "later");
  const session = await project.session(pi);
  const block = assertCovered(project, session);
  assert.ok(session.compactedBy().length >= 80, "the whole history is compacted");
  await pi.prompt("and now?");
  assertShown(project, block);
  await eventually(() => assertAgreement(project));
}

beside("of two offered compactions, Pi takes that of the extension loaded last", "rival", async (_t, begin, placing) => {
  const { project, pi } = await withRival(begin, "compact");
  for (const [at, name] of ["first", "second"].entries()) {
    const { summary } = await talkAndCompact(pi, name);
    await pi.prompt("what now?");
    assert.equal(blockOf(project.lastTurn), summary);
    await eventually(() => assertAgreement(project));
    await eventually(() => assert.ok(notices(pi).length > 0));
    if (placing.oursIsLast) {
      assertCovered(project, await project.session(pi));
      await eventually(() => assert.equal(notices(pi).length, at + 1));
      for (const notice of notices(pi)) assert.match(notice, /^LCM: \d+ messages in \d+ summar/);
    } else {
      assert.equal(summary, `The rival's own words, number ${at + 1}.`);
      assert.equal(notices(pi).length, 1, "the replaced one is reported once");
      assert.match(notices(pi)[0], /another extension's compaction replaced this one/);
    }
  }
  await assertOursCoversAll(project, pi);
});

beside("if another extension cancels, nothing is compacted, and our finished summaries are used later", "rival", async (_t, begin, placing) => {
  const { project, pi } = await withRival(begin, "cancel");
  await pi.prompt("before");
  const { entries } = await project.session(pi);
  await assert.rejects(pi.request("compact"), /cancelled/i);
  assert.deepEqual((await project.session(pi)).entries, entries);
  // The first one that cancels decides: later ones are not called.
  const asked = project.summaryCalls.length;
  assert.equal(asked > 0, !placing.oursIsLast);
  assert.deepEqual(notices(pi), []);
  await eventually(() => assertAgreement(project));

  await pi.prompt("/rival off");
  await pi.request("compact");
  assertCovered(project, await project.session(pi));
  if (asked > 0) assert.equal(project.summaryCalls.length, asked);
  assert.match(notices(pi).join(), /^LCM: \d+ messages in \d+ summar/);
});

const boundary = "another extension's compaction at the end of a turn hides everything from the model and nothing from ours";
beside(boundary, "rival", async (_t, begin) => {
  const { project, pi } = await withRival(begin, "boundary");
  await pi.prompt(`said before the boundary ${filler("boundary", 100)}`);
  await pi.prompt("said after it");
  assert.equal(blockOf(project.lastTurn), "The rival's own words, number 1.");
  assert.ok(!project.lastTurn.raw.includes("mark0000x"));
  await eventually(() => assertAgreement(project));
  assert.deepEqual(notices(pi), []);
  await assertOursCoversAll(project, pi);
});
