/**
 * The speed of ingesting a long history: handed over in slices, as at a session's first start, and imported from its file.
 *
 * The floor is `bare_loop.rs`: a loop that inserts the same rows and index entries into the same schema, once in the same transactions and
 * once in a single one. The product also reads, hashes, compresses, and looks up whether a message exists.
 */
import { readFileSync } from "node:fs";
import { cargoEnvironment } from "../scripts/build.mjs";
import { root } from "../scripts/paths.mjs";
import { collect } from "../scripts/proc.mjs";
import { entries } from "./corpus.mjs";
import { median, number, ratio, time, timed } from "./measure.mjs";
import { databaseIn, openEngine, sessionFileOf, slices } from "./stores.mjs";

/** @typedef {import("./measure.mjs").Context} Context */
/** @typedef {import("./measure.mjs").Figure} Figure */

const MESSAGES = 8_000;
const ROUNDS = 3;
/** The required share of the loop's rate. */
const SHARE = 0.5;

export const title = `taking in ${number(MESSAGES)} messages at once`;

/** @param {Context} context @returns {Promise<Figure[]>} */
export async function run(context) {
  const file = await sessionFileOf(context, MESSAGES);
  const bare = await bareLoop(context);
  const inSlices = [...slices(entries(0, MESSAGES))];
  const perSlice = Math.round(MESSAGES / inSlices.length);
  /** @type {Record<"handed" | "imported" | "same" | "single", number[]>} */
  const times = { handed: [], imported: [], same: [], single: [] };
  for (let round = 1; round <= ROUNDS; round++) {
    context.say(`taking in ${MESSAGES} messages, round ${round} of ${ROUNDS} …`);
    const folder = context.folder("handed");
    times.handed.push(await handOver(folder, inSlices));
    times.same.push(await bare(databaseIn(folder), file, perSlice));
    times.imported.push(await importFile(context.folder("imported"), file));
    times.single.push(await bare(databaseIn(folder), file, MESSAGES));
  }
  const floor = median(times.same);
  const rate = (/** @type {number} */ ms) => `${number(MESSAGES / (ms / 1000))}/s`;
  const figure = (/** @type {string} */ what, /** @type {number} */ ms, asked = true) => ({
    what,
    measured: `${rate(ms)}, ${time(ms)}`,
    floor: `${rate(floor)} bare loop`,
    ratio: ratio(floor, ms),
    asked: asked ? `≥ ${SHARE} × its rate` : "",
    reached: asked ? floor / ms >= SHARE : undefined,
  });
  return [
    figure("handed over in slices", median(times.handed)),
    figure("imported from the file", median(times.imported)),
    figure("  the bare loop in a single transaction", median(times.single), false),
  ];
}

/**
 * @param {string} folder
 * @param {{ json: string }[]} inSlices
 */
async function handOver(folder, inSlices) {
  const engine = await openEngine(folder, 0);
  const { ms } = await timed(async () => {
    // As at a start: the next slice is handed over while one is written.
    let stored = Promise.resolve("");
    for (const { json } of inSlices) {
      const { error } = JSON.parse(engine.handOver(json));
      if (error) throw new Error(error.message);
      const before = stored;
      stored = engine.flush();
      await before;
    }
    await stored;
  });
  await engine.close();
  return ms;
}

/**
 * @param {string} folder
 * @param {string} file
 */
async function importFile(folder, file) {
  // Puts the file into the system's cache.
  readFileSync(file);
  const engine = await openEngine(folder, 1);
  const { ms, value } = await timed(() => engine.command(JSON.stringify({ line: `import ${file}`, folders: { sessionDir: folder, allSessions: folder } })));
  const { ok, error } = JSON.parse(value);
  if (error || ok.answer.newMessages !== MESSAGES) throw new Error(error?.message ?? ok.text);
  await engine.close();
  return ms;
}

/**
 * @param {Context} context
 * @returns {Promise<(database: string, file: string, perTransaction: number) => Promise<number>>}
 */
async function bareLoop({ say, folder }) {
  say("building the bare loop …");
  const options = { cwd: root, env: cargoEnvironment() };
  const cargo = ["bench", "--locked", "--profile", "dist", "--bench", "bare_loop"];
  const built = await collect("cargo", [...cargo, "--no-run"], options);
  if (built.code !== 0) throw new Error(built.stderr);
  return async (database, file, perTransaction) => {
    const { code, stdout, stderr } = await collect("cargo", [...cargo, "--", database, file, folder("bare"), String(perTransaction)], options);
    if (code !== 0) throw new Error(stderr);
    return Number(stdout);
  };
}
