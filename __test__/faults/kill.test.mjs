/**
 * kill -9 at random moments, with several writers; `npm run kill -- 100` does it more often.
 */
import { test } from "node:test";
import { hostOf } from "../support/faults.mjs";
import { killAtRandom } from "../support/kills.mjs";

for (const [version, seed, kills] of /** @type {const} */ ([["0.74.2", 3, 2], ["0.87.1", 1, 6], ["1.5.2", 2, 2]])) {
  test(`Pi ${version}: what is killed ${kills} times has everything afterwards`, async (t) => {
    await killAtRandom(t, { kills, seed, host: hostOf(version), onKill: (kill, number) => t.diagnostic(`kill ${number}: ${kill.join("; ")}`) });
  });
}
