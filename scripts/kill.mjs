/**
 * `npm run kill -- [100] [seed]`: kills Pi that many times at random moments while several write to one project, and checks each time that
 * nothing is lost. Prints the number of kills, the activities they hit, and the outcome.
 */
import { killAtRandom } from "../__test__/support/kills.mjs";

const kills = Number(process.argv[2] ?? 100);
const seed = Number(process.argv[3] ?? Date.now() % 100_000);
if (!Number.isInteger(kills) || kills < 1 || !Number.isInteger(seed)) {
  process.stderr.write("usage: npm run kill -- [how often] [seed]\n");
  process.exit(1);
}

/** The number of kills by activity. @type {Map<string, number>} */
const moments = new Map();
/** @type {(() => unknown)[]} */
const cleaning = [];
let done = 0;
process.stdout.write(`${kills} kills, seed ${seed}\n`);
try {
  await killAtRandom({ after: (clean) => cleaning.push(clean) }, {
    kills,
    seed,
    onKill: (kill, number) => {
      done = number;
      process.stdout.write(`${String(number).padStart(4)}  ${kill.join("; ")}\n`);
      for (const moment of kill) moments.set(moment, (moments.get(moment) ?? 0) + 1);
    },
  });
  for (const clean of cleaning.splice(0)) await clean();
  verdict("After each of them everything was there.");
} catch (error) {
  verdict(`FAILED after kill ${done} (seed ${seed}): ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
} finally {
  for (const clean of cleaning) await clean();
}

/** @param {string} words */
function verdict(words) {
  const rows = [...moments].sort(([, one], [, other]) => other - one);
  const table = rows.map(([moment, count]) => `${String(count).padStart(6)}  ${moment}\n`).join("");
  process.stdout.write(`\n${done} kills; processes that died, and in what:\n${table}\n${words}\n`);
}
