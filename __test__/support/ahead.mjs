/** Waits for the end of work ahead of a compaction. */
import assert from "node:assert/strict";
import { eventually } from "./project.mjs";

/** Nothing may happen for this long, in ms: a new round of summaries starts right after the one before. */
const QUIET_MS = 300;

/**
 * Waits until no summary is in progress, all requested ones are stored, and this stays so for a moment.
 * @param {import("./project.mjs").Project} project
 * @returns {Promise<number>} the number of requested summaries
 */
export async function settled(project) {
  const state = () => {
    const answered = project.summaryCalls.length;
    const [claims, stored] = project.inStore((store) => [store.count("claims"), store.count("summaries")]);
    return { answered, claims, stored };
  };
  return eventually(async () => {
    const before = state();
    assert.equal(before.claims, 0);
    await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
    assert.deepEqual(state(), before);
    return before.answered;
  });
}
