/**
 * How long Pi is blocked to persist a message: the walk through its tree and the hand-over to the engine.
 *
 * The writer hashes, indexes and writes. So the rest must be short, and the same however much is stored. The floor is the unavoidable part
 * of a hand-over: serializing the entry, and waking a thread that works as long as the writer does. With few cores the kernel may give that
 * thread the core of the one that woke it.
 */
import { closeSync, openSync, writeSync } from "node:fs";
import path from "node:path";
import { Worker } from "node:worker_threads";
import { entries } from "./corpus.mjs";
import { Host } from "./host.mjs";
import { median, pause, quantile, ratio, time } from "./measure.mjs";
import { SESSION, copyOf } from "./stores.mjs";

/** @typedef {import("./measure.mjs").Context} Context */
/** @typedef {import("./measure.mjs").Figure} Figure */

const MESSAGES = 1500;
/** About the writer's time for one message. */
const WORK_MS = 0.4;
const MEDIAN_MS = 0.05;
const P99_MS = 1;
/** The limit for flat: the medians of a full and an empty store, which only differ by chance. */
const FLAT = 1.5;

export const title = "the JavaScript thread, for each message of 2 KB that is persisted";

/** @param {Context} context @returns {Promise<Figure[]>} */
export async function run(context) {
  const sizes = [...new Set([0, SESSION, context.messages])];
  const figures = [];
  const medians = [];
  for (const stored of sizes) {
    context.say(`handing over with ${stored} messages stored …`);
    const { handing, writing } = await measure(context, stored);
    const floors = [median(writing), quantile(writing, 0.99)];
    const found = [median(handing), quantile(handing, 0.99)];
    medians.push(found[0]);
    const figure = (/** @type {string} */ name, /** @type {number} */ at, /** @type {number} */ limit) => ({
      what: `${stored} stored, ${name}`,
      measured: time(found[at]),
      floor: `${time(floors[at])} JSON, waking a thread`,
      ratio: ratio(found[at], floors[at]),
      asked: `≤ ${time(limit)}`,
      reached: found[at] <= limit,
    });
    figures.push(figure("median", 0, MEDIAN_MS), figure("p99", 1, P99_MS));
  }
  const [empty, ...full] = medians;
  const steepest = Math.max(...full) / empty;
  figures.push({ what: "the fullest store to the empty one", measured: `${steepest.toFixed(2)} ×`, floor: "", ratio: "", asked: `flat, ≤ ${FLAT} ×`, reached: steepest <= FLAT });
  return figures;
}

/**
 * @param {Context} context
 * @param {number} stored
 * @returns {Promise<{ handing: number[], writing: number[] }>} ms for each message
 */
async function measure(context, stored) {
  const folder = await copyOf(context, stored);
  // Continues the store's long session, all of which is known.
  const host = new Host(folder, 0, stored > 0 ? entries(0, SESSION) : []);
  /** @type {number[]} */
  const handing = [];
  let began = 0;
  const settled = Promise.resolve();
  // The walk starts by reading the leaf; everything until the end of that tick belongs to it.
  const { getLeafId } = host.manager;
  host.manager.getLeafId = () => {
    began = performance.now();
    return getLeafId.call(host.manager);
  };
  host.onEngine = (engine) => {
    const { append } = engine;
    engine.append = (id, entry) => {
      const taken = append.call(engine, id, entry);
      // Not with queueMicrotask: Node records each one, which takes longer than the hand-over itself.
      settled.then(() => handing.push(performance.now() - began));
      return taken;
    };
  };
  const engine = await host.start();
  handing.length = 0;
  const bell = new Int32Array(new SharedArrayBuffer(4));
  const sleeper = new Worker(new URL("./sleeper.mjs", import.meta.url), { workerData: { bell, workMs: WORK_MS } });
  /** @type {number[]} */
  const writing = [];
  const file = openSync(path.join(folder, "written.jsonl"), "w");
  // What Pi does with a new entry in the same tick.
  const write = () => writeSync(file, `${JSON.stringify(host.manager.getLeafEntry())}\n`);
  for (const { message } of entries(1_000_000 + stored, MESSAGES)) {
    // The event comes before the entry, which is handed over one tick later. Then there is a pause, as in reality.
    const told = host.emit("message_end");
    host.manager.appendMessage(message);
    write();
    await told;
    await pause(0);
    await engine.flush();
    write();
    await pause(0);
    const before = performance.now();
    JSON.stringify(host.manager.getLeafEntry());
    Atomics.notify(bell, 0);
    writing.push(performance.now() - before);
    await pause(0);
  }
  closeSync(file);
  await sleeper.terminate();
  // A session's start takes another path.
  if (handing.length < MESSAGES - 1) throw new Error(`${MESSAGES - handing.length} messages went another way`);
  await host.stop();
  return { handing, writing };
}
