/**
 * How long Pi is blocked at the end of a turn: new entries are handed over, the engine looks at the whole context and decides, and the
 * answer is parsed. The floor is the JSON of the engine's request and of a message.
 *
 * The engine decides on its own threads. So the rest must be short, and the same however much is stored or shown.
 */
import { performance as nodePerformance } from "node:perf_hooks";
import { entries } from "./corpus.mjs";
import { Host } from "./host.mjs";
import { median, pause, quantile, ratio, time } from "./measure.mjs";
import { SESSION, copyOf } from "./stores.mjs";

/** @typedef {import("./measure.mjs").Context} Context */
/** @typedef {import("./measure.mjs").Figure} Figure */

/** A session that is not in the store. */
const NEW_SESSION = 9_000;
const TURNS = 200;
const SHOWN = [1_000, 10_000];
const MEDIAN_MS = 1;
/** The limit for flat: the medians of a full and an empty store, which only differ by chance. */
const FLAT = 1.5;
const USAGE = { input: 200, output: 100, cacheRead: 90_000, cacheWrite: 2_000 };

export const title = "the JavaScript thread, for each end of a turn";

/** @param {Context} context @returns {Promise<Figure[]>} */
export async function run(context) {
  const figures = [];
  const medians = [];
  for (const stored of new Set([0, SESSION, context.messages])) {
    for (const shown of SHOWN) {
      context.say(`ending turns with ${stored} messages stored, ${shown} shown …`);
      const { active, whole, floor } = await measure(context, stored, shown);
      const found = median(active);
      if (shown === SHOWN.at(-1)) medians.push(found);
      figures.push({
        what: `${stored} stored, ${shown} shown: median`,
        measured: `${time(found)} (p99 ${time(quantile(active, 0.99))}; decided after ${time(median(whole))})`,
        floor: `${time(median(floor))} JSON`,
        ratio: ratio(found, median(floor)),
        asked: `≤ ${time(MEDIAN_MS)}`,
        reached: found <= MEDIAN_MS,
      });
    }
  }
  const steepest = Math.max(...medians.slice(1)) / medians[0];
  figures.push({ what: "the fullest store to the empty one", measured: `${steepest.toFixed(2)} ×`, floor: "", ratio: "", asked: `flat, ≤ ${FLAT} ×`, reached: steepest <= FLAT });
  return figures;
}

/**
 * @param {Context} context
 * @param {number} stored
 * @param {number} shown
 * @returns {Promise<{ active: number[], whole: number[], floor: number[] }>} ms for each turn
 */
async function measure(context, stored, shown) {
  const host = new Host(await copyOf(context, stored), NEW_SESSION, entries(50_000_000, shown));
  host.usage = { tokens: 92_300, contextWindow: 200_000 };
  const engine = await host.start();
  /** @type {number[][]} */
  const [active, whole, floor] = [[], [], []];
  for (const { message } of entries(70_000_000, TURNS)) {
    host.manager.appendMessage(message);
    await pause(2);
    const [before, began] = [nodePerformance.eventLoopUtilization(), performance.now()];
    await host.emit("turn_end", { message: { role: "assistant", stopReason: "toolUse", timestamp: Date.now(), usage: USAGE, content: [] }, entries: [] });
    whole.push(performance.now() - began);
    active.push(nodePerformance.eventLoopUtilization(before).active);
    await engine.flush();
    await pause(2);
    const started = performance.now();
    JSON.parse(JSON.stringify([host.manager.getLeafEntry(), USAGE]));
    floor.push(performance.now() - started);
  }
  await host.stop();
  return { active, whole, floor };
}
