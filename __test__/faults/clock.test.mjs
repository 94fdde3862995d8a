/** The system clock goes back, between two starts and while Pi runs: the stored order follows the tree and not the time. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { assertAgreement } from "../support/agreement.mjs";
import { assertNothingGone, assertSound, assertWholeIn, echo, leave, storedIn, talk, warnings } from "../support/faults.mjs";
import { notPreloaded, preloaded } from "../support/preloaded.mjs";
import { aProject, eventually } from "../support/project.mjs";

const YEAR = 365 * 24 * 60 * 60;

/**
 * A clock for Pi, or the reason why there is none.
 * @param {import("node:test").TestContext} t
 */
function aClock(t) {
  const { folder, env } = preloaded(t, "clock");
  const file = path.join(folder, "shift");
  return { env: { ...env, TEST_CLOCK: file }, shift: (/** @type {number} */ seconds) => writeFileSync(file, String(seconds)) };
}

describe("the clock goes back", { skip: notPreloaded, concurrency: 3 }, () => {
  for (const host of hostsFor()) {
    test(`Pi ${host.version}`, async (t) => {
      const project = await aProject(t, { host, script: { otherwise: echo } });
      const clock = aClock(t);
      project.env = clock.env;

      clock.shift(YEAR);
      const history = project.history();
      history.talk(20);
      const pi = project.startPi(["--session", history.write(project.sessionDir)]);
      await talk(project, pi, "in a year");
      await eventually(() => assertAgreement(project));
      const first = (await project.session(pi)).entries.at(-1);
      assert.ok(Date.parse(first.timestamp) > Date.now() + (YEAR / 2) * 1000, "Pi has this clock");

      clock.shift(-YEAR);
      await talk(project, pi, "a year ago");
      await pi.request("compact");
      await talk(project, pi, "after a compaction");
      await eventually(() => assertAgreement(project));
      assert.ok(project.summaryCalls.length > 0, "the extension compacted");
      const { file } = await project.session(pi);
      await leave(pi);
      assert.deepEqual(warnings(pi), []);
      const before = storedIn(project);

      clock.shift(-2 * YEAR);
      const next = project.startPi(["--session", file]);
      await assertWholeIn(project, next);
      clock.shift(0);
      await next.request("new_session");
      await talk(project, next, "in a new session");
      await eventually(() => assertAgreement(project));
      await leave(next);
      assertSound(project);
      assertNothingGone(before, storedIn(project));
    });
  }
});
