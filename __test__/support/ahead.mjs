/** When work ahead of a compaction is done. */
import assert from "node:assert/strict";
import { eventually } from "./project.mjs";

/** For that long nothing may happen: a new round of summaries begins at once after the one before. */
const QUIET_MS = 300;

/**
 * Waits until nothing is being summarized, everything that was asked for is stored, and it stays so for a moment.
 * @param {import("./project.mjs").Project} project
 * @returns {Promise<number>} how many summaries were asked for
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
