/**
 * `kill -9` at random moments, with several writers; `npm run kill -- 100` does it more often.
 */
import { test } from "node:test";
import { everything, hostOf, MAIN } from "../../scripts/hosts.mjs";
import { killAtRandom } from "../support/kills.mjs";

/** Each Pi with a seed, and how often it is killed. @type {[string, number, number][]} */
const KILLED = everything ? [["0.87.1", 3, 2], [MAIN, 1, 6], ["1.6.0", 2, 2]] : [[MAIN, 1, 2]];

for (const [version, seed, kills] of KILLED) {
  test(`Pi ${version}: nothing is lost when Pi is killed`, async (t) => {
    await killAtRandom(t, { kills, seed, host: hostOf(version), onKill: (kill, number) => t.diagnostic(`kill ${number}: ${kill.join("; ")}`) });
  });
}
