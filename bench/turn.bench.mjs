/**
 * How long Pi is blocked at the end of a turn: new entries are handed over, and the engine decides whether to fold. The floor is the JSON of
 * the engine's request and of a message. It must be short, and the same however much is stored or shown.
 *
 * And what all events of a run cost, on Pi's thread and on the others, as one session grows: they must cost the same at any length.
 */
import { performance as nodePerformance } from "node:perf_hooks";
import { setImmediate as nextTick } from "node:timers/promises";
import { entries } from "./corpus.mjs";
import { Host } from "./host.mjs";
import { median, pause, quantile, ratio, time } from "./measure.mjs";
import { SESSION, copyOf } from "./stores.mjs";

/** @typedef {import("./measure.mjs").Context} Context */
/** @typedef {import("./measure.mjs").Figure} Figure */
/** @typedef {import("../index.d.ts").Engine} Engine */

/** A session that is not in the store. */
const NEW_SESSION = 9_000;
const TURNS = 200;
const SHOWN = [1_000, 10_000];
const MEDIAN_MS = 1;
/** The limit for flat: the medians of a full and an empty store, which only differ by chance. */
const FLAT = 1.5;
const USAGE = { input: 200, output: 100, cacheRead: 90_000, cacheWrite: 2_000 };

export const title = "the JavaScript thread, for each end of a turn";

/** Messages of a run: the prompt, an answer that calls a tool, its result, the last answer. */
const EXCHANGE = 4;
/** Messages between two compactions of the long session, and of those that one keeps. */
const [COMPACTED, KEPT] = [400, 8];
/** Runs from which a figure of the long session comes. */
const LOOKED_AT = 500;
/** Processor time for each message of the long session, of Pi's thread and of the others. */
const [THREAD_MS, OTHERS_MS] = [0.1, 0.5];
/** The limit for flat, from the shortest to the longest session. */
const LENGTH = 1.3;

/** Processor time in ms. @typedef {{ thread: number, others: number }} Cost */

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
  figures.push(...(await filled(context)));
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
    await host.emit("turn_end", { message: { role: "assistant", stopReason: "toolUse", timestamp: Date.now(), usage: USAGE, content: [] }, toolResults: [], entries: [] });
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

/**
 * Fills one session through the handlers, in the order in which Pi calls them.
 *
 * @param {Context} context
 * @returns {Promise<Figure[]>}
 */
async function filled(context) {
  const sizes = [10_000, 100_000, 1_000_000].filter((size) => size <= context.messages);
  const host = new Host(context.folder("filled"), NEW_SESSION);
  const engine = await host.start();
  const figures = [];
  /** @type {Cost[]} */
  const costs = [];
  /** @type {Cost[]} */
  let lately = [];
  let wall = 0;
  let messages = 0;
  /** @type {any[]} */
  let exchange = [];
  for (const { message } of entries(90_000_000, sizes.at(-1) ?? 0)) {
    messages += 1;
    exchange.push(message);
    if (exchange.length < EXCHANGE) continue;
    const began = performance.now();
    lately.push(await costOf(host, engine, exchange));
    wall += performance.now() - began;
    exchange = [];
    if (messages % COMPACTED === 0) await compact(host);
    if (messages % 1000 === 0) context.say(`filling a session: ${messages} messages …`);
    if (lately.length > LOOKED_AT) lately.shift();
    if (!sizes.includes(messages)) continue;
    const [thread, others] = [lately.map(({ thread }) => thread), lately.map(({ others }) => others)];
    const mean = others.reduce((sum, one) => sum + one, 0) / others.length;
    costs.push({ thread: median(thread), others: mean });
    const what = `one session of ${messages}: each message`;
    figures.push(
      { what: `${what}, Pi's thread`, measured: `${time(median(thread))} (p99 ${time(quantile(thread, 0.99))})`, floor: "", ratio: "", asked: `≤ ${time(THREAD_MS)}`, reached: median(thread) <= THREAD_MS },
      { what: `${what}, other threads`, measured: time(mean), floor: "", ratio: "", asked: `≤ ${time(OTHERS_MS)}`, reached: mean <= OTHERS_MS },
      { what: `${what}, time`, measured: `${time(wall / messages)} (${time(wall)} in all)`, floor: "", ratio: "", asked: "" },
    );
  }
  await host.stop();
  for (const name of /** @type {const} */ (["thread", "others"])) {
    const growth = costs[costs.length - 1][name] / costs[0][name];
    const what = `the longest session to the shortest, ${name === "thread" ? "Pi's thread" : "other threads"}`;
    figures.push({ what, measured: `${growth.toFixed(2)} ×`, floor: "", ratio: "", asked: `flat, ≤ ${LENGTH} ×`, reached: growth <= LENGTH });
  }
  return figures;
}

/**
 * What a run of two turns costs, in ms of processor time for each message.
 *
 * @param {Host} host
 * @param {Engine} engine
 * @param {any[]} messages the prompt, an answer that calls a tool, its result, the last answer
 * @returns {Promise<Cost>}
 */
async function costOf(host, engine, [prompt, call, result, answer]) {
  const { manager } = host;
  const say = async (/** @type {any} */ message) => {
    const handled = host.emit("message_end", { message });
    manager.appendMessage(message);
    await handled;
    await nextTick();
  };
  const ask = async () => {
    await host.emit("turn_start");
    await host.emit("context", { messages: [prompt] });
    await host.emit("before_provider_request", { payload: { tools: [{}], messages: [] } });
  };
  const [all, own] = [process.cpuUsage(), process.threadCpuUsage()];
  await host.emit("before_agent_start", { systemPrompt: "" });
  await say(prompt);
  await ask();
  await say(call);
  await say(result);
  await host.emit("turn_end", { message: call, toolResults: [result], entries: [] });
  await ask();
  await say(answer);
  await host.emit("turn_end", { message: answer, toolResults: [], entries: [] });
  await host.emit("agent_before_settle", { outcome: "complete", entries: [] });
  await host.emit("agent_end");
  await host.emit("agent_settled");
  await engine.flush();
  // What an event leaves for the next tick.
  await pause(0);
  const [allSince, ownSince] = [process.cpuUsage(all), process.threadCpuUsage(own)];
  const thread = (ownSince.user + ownSince.system) / 1000;
  return { thread: thread / EXCHANGE, others: ((allSince.user + allSince.system) / 1000 - thread) / EXCHANGE };
}

/**
 * Appends a compaction as Pi does, without the time that Pi takes to build the context.
 *
 * @param {Host} host
 */
async function compact(host) {
  const { manager } = host;
  let first = manager.getLeafEntry();
  for (let kept = 1; kept < KEPT; kept++) first = manager.getEntry(first.parentId);
  const entry = { type: "compaction", id: `c${manager.getLeafId()}`, parentId: manager.getLeafId(), timestamp: new Date().toISOString(), summary: "…", firstKeptEntryId: first.id, tokensBefore: 50_000 };
  manager._appendEntry(entry);
  // Pi's own memory is not part of the extension: what it has compacted is let go.
  for (let old = manager.getEntry(first.parentId); old?.message?.content.length > 0; old = manager.getEntry(old.parentId)) old.message = { ...old.message, content: [] };
  await host.emit("session_compact", { compactionEntry: entry });
}
