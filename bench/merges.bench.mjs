/**
 * Whether anyone waits while a long history is ingested: the writer for its index, a reader for the writer, Pi for either.
 *
 * The index is a set of sorted segments that are merged as their number grows. A merge all at once stalls its transaction, the longer the
 * larger the index. The floor of each wait is its own median in the same run.
 */
import { fork } from "node:child_process";
import { statSync } from "node:fs";
import path from "node:path";
import { entries } from "./corpus.mjs";
import { longest, median, megabytes, number, quantile, ratio, time, timed } from "./measure.mjs";
import { SESSION, copyOf, databaseIn, openEngine, slices } from "./stores.mjs";

/** @typedef {import("./measure.mjs").Context} Context */
/** @typedef {import("./measure.mjs").Figure} Figure */

const MESSAGES = 20_000;
/** The limit of what a user notices. */
const NOTICED_MS = 250;
const LOG_BYTES = 32e6;
/** How often another session's reader queries. */
const READ_EVERY_MS = 5;

export const title = "the longest wait while messages are taken in";

/** @param {Context} context @returns {Promise<Figure[]>} */
export async function run(context) {
  const folder = await copyOf(context, context.messages);
  const figures = [];
  const bulk = await observed(context, folder, 20_000, slices(entries(20_000, MESSAGES)), "in slices");
  figures.push(...bulk);
  const single = [...entries(20_001, MESSAGES / 4)].map((entry) => ({ json: JSON.stringify([entry]), entries: 1 }));
  figures.push(...(await observed(context, folder, 20_001, single, "one by one")));
  return figures;
}

/**
 * @param {Context} context
 * @param {string} folder
 * @param {number} session
 * @param {Iterable<{ json: string, entries: number }>} pieces
 * @param {string} how
 */
async function observed({ say }, folder, session, pieces, how) {
  const engine = await openEngine(folder, session);
  const database = databaseIn(folder);
  const reader = readerOf(database);
  /** @type {number[]} */
  const writes = [];
  /** @type {number[]} */
  const ticks = [];
  let log = 0;
  let taken = 0;
  let last = performance.now();
  let handing = 0;
  const ticking = setInterval(() => {
    const now = performance.now();
    ticks.push(now - last);
    last = now;
  }, 1);
  for (const { json, entries: count } of pieces) {
    // Making the messages is not part of the product.
    last = performance.now();
    const before = performance.now();
    const { error } = JSON.parse(engine.handOver(json));
    if (error) throw new Error(error.message);
    handing = Math.max(handing, performance.now() - before);
    writes.push((await timed(() => engine.flush())).ms);
    log = Math.max(log, statSync(`${database}-wal`).size);
    taken += count;
    if (taken % 1000 < count) say(`taking in ${how}: ${taken} messages …`);
  }
  clearInterval(ticking);
  const reads = await reader.stop();
  await engine.close();
  const wait = (/** @type {string} */ what, /** @type {number[]} */ times) => ({
    what: `${how}: ${what}, longest`,
    measured: time(longest(times)),
    floor: `${time(median(times))} median, ${time(quantile(times, 0.99))} p99 of ${number(times.length)}`,
    ratio: ratio(longest(times), median(times)),
    asked: `≤ ${time(NOTICED_MS)}`,
    reached: longest(times) <= NOTICED_MS,
  });
  return [
    wait("a write", writes),
    wait("another session's reader", reads),
    wait("Pi's thread between two ticks", ticks),
    { what: `${how}: the log beside the database`, measured: megabytes(log), floor: "", ratio: "", asked: `≤ ${megabytes(LOG_BYTES)}`, reached: log <= LOG_BYTES },
  ];
}

/**
 * A process that reads from the database continuously, as another session would.
 * @param {string} database
 */
function readerOf(database) {
  const reader = fork(path.join(import.meta.dirname, "reader.mjs"), [database, String(READ_EVERY_MS)]);
  return {
    /** @returns {Promise<number[]>} the time of each read, in ms */
    stop: () =>
      new Promise((resolve, reject) => {
        reader.once("message", (times) => resolve(/** @type {number[]} */ (times)));
        reader.once("error", reject);
        reader.send("stop");
      }),
  };
}
