/**
 * The time that a session's end waits: the queue has to be stored, and little more.
 *
 * The floor is a flush of the same queue on a store that stays open: the rest is truncating the log and closing.
 */
import { entries } from "./corpus.mjs";
import { median, number, ratio, time, timed } from "./measure.mjs";
import { SESSION, copyOf, openEngine } from "./stores.mjs";

/** @typedef {import("./measure.mjs").Context} Context */
/** @typedef {import("./measure.mjs").Figure} Figure */

const QUEUED = [0, 1, 100, 1000];
const ROUNDS = 3;
/** Beyond the flush: the log is moved into the database. */
const OWN_MS = 100;

export const title = "a session's end, with so many messages queued";

/** @param {Context} context @returns {Promise<Figure[]>} */
export async function run(context) {
  const folder = await copyOf(context, SESSION);
  const figures = [];
  let session = 10_000;
  for (const queued of QUEUED) {
    context.say(`closing with ${queued} messages queued …`);
    /** @type {number[]} */
    const closings = [];
    /** @type {number[]} */
    const flushes = [];
    for (let round = 0; round < ROUNDS; round++) {
      const flushed = await queue(folder, session++, queued);
      flushes.push((await timed(() => flushed.flush())).ms);
      await flushed.close();
      const closed = await queue(folder, session++, queued);
      closings.push((await timed(() => closed.close())).ms);
    }
    const [close, flush] = [median(closings), median(flushes)];
    figures.push({
      what: `${number(queued)} queued`,
      measured: time(close),
      floor: `${time(flush)} flush`,
      ratio: queued > 0 ? ratio(close, flush) : "",
      asked: `≤ flush + ${time(OWN_MS)}`,
      reached: close - flush <= OWN_MS,
    });
  }
  return figures;
}

/**
 * An engine that got this many messages one by one.
 * @param {string} folder
 * @param {number} session
 * @param {number} count
 */
async function queue(folder, session, count) {
  const engine = await openEngine(folder, session);
  const waiting = [...entries(session, count)].map((entry) => JSON.stringify([entry]));
  for (const json of waiting) engine.handOver(json);
  return engine;
}
