/**
 * The time of a search, by kind of question, in small and large histories; and its use of memory and of Pi's thread.
 *
 * The questions come from the stores, the same each time. The floor of a word search is the bare index: which passages contain one of the
 * words; the floor of a regular expression is reading all rows without unpacking them.
 */
import { fork } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { PerformanceObserver } from "node:perf_hooks";
import { Dice, entries, sessionId } from "./corpus.mjs";
import { collectGarbage, longest, median, megabytes, number, quantile, ratio, time, timed } from "./measure.mjs";
import { textOf } from "./questions.mjs";
import { SESSION, copyOf, databaseIn, openEngine } from "./stores.mjs";

/** @typedef {import("./measure.mjs").Context} Context */
/** @typedef {import("./measure.mjs").Figure} Figure */
/** @typedef {{ kind: string, queries: string[], asked?: (result: { ms: number, cpu: number, bytes: number }) => { what: string, reached: boolean } }} Patterns */

export const title = "how long a search takes";

/** Questions per kind. */
const EACH = 40;
/** The number of questions to measure the floor with. */
const FLOORS = 6;
/** Repetitions of each regular expression. */
const REPEATED = 3;
/** Messages at the beginning of each session that the questions come from. */
const ASKED_ABOUT = 400;
const SEARCH_MS = 100;
const BLOCKED_MS = 2;
/** Repetitions of a search that seems to block Pi's thread too long. */
const AGAIN = 2;
const MEMORY_BYTES = 150e6;
const DENSE_MS = 300;
const SELECTIVE_MS = 500;
const BYTES_PER_S = 200e6;

/** @param {Context} context @returns {Promise<Figure[]>} */
export async function run(context) {
  const sizes = [SESSION / 10, SESSION, context.messages].filter((size, at, all) => all.indexOf(size) === at);
  /** @type {Figure[]} */
  const figures = [];
  for (const size of sizes) figures.push(...(await searched(context, size)));
  return figures;
}

/** Searches in a store of that size. @param {Context} context @param {number} size @returns {Promise<Figure[]>} */
export async function searched(context, size) {
  const folder = await copyOf(context, size);
  const sessions = Math.max(1, size / SESSION);
  const last = await openEngine(folder, sessions - 1);
  const floor = floorOf(databaseIn(folder));
  const ask = asking(last);
  const { kinds, regexes } = asked(sessions);
  collectGarbage();
  /** @type {Figure[]} */
  const figures = [];
  // The first search opens what all of them need.
  const { blocked: first } = await ask({ query: "nothing" });
  const idle = memory();
  /** @type {number[]} */
  const all = [];
  const blocked = [];
  for (const { kind, queries } of kinds.filter(wanted)) {
    context.say(`${number(size)} messages: ${kind} …`);
    const took = [];
    const cpus = [];
    for (const [n, query] of queries.entries()) {
      // Half of them in one session, half in all.
      const answer = await ask({ query, session: n % 2 ? "project" : sessionId(n % sessions) });
      took.push(answer.ms);
      cpus.push(answer.cpu);
      blocked.push(answer.blocked);
    }
    const floors = [];
    for (const query of queries.slice(0, FLOORS)) floors.push(await floor.ask({ words: query.match(/[\p{L}\p{N}]+/gu) ?? [] }));
    all.push(...took);
    figures.push({
      what: `${number(size)}: ${kind}`,
      measured: `${time(median(took))}, p99 ${time(quantile(took, 0.99))}, longest ${time(longest(took))}; processor ${time(median(cpus))}, longest ${time(longest(cpus))}`,
      floor: `${time(median(floors))} the bare index`,
      ratio: ratio(median(took), median(floors)),
      asked: "",
    });
  }
  const p99 = quantile(all, 0.99);
  if (all.length > 0) figures.push({ what: `${number(size)}: all of ${all.length}, p99`, measured: time(p99), floor: `${time(median(all))} median`, ratio: ratio(p99, median(all)), asked: `≤ ${time(SEARCH_MS)}`, reached: p99 <= SEARCH_MS });
  figures.push(...(await matched(context, size, ask, floor, regexes, blocked)));
  figures.push({ what: `${number(size)}: Pi's thread in one search, longest`, measured: time(longest(blocked)), floor: `${time(median(blocked))} median, ${time(first)} the first`, ratio: ratio(longest(blocked), median(blocked)), asked: `≤ ${time(BLOCKED_MS)}`, reached: longest(blocked) <= BLOCKED_MS });
  if (idle) {
    const above = (memory()?.highest ?? 0) - idle.now;
    figures.push({ what: `${number(size)}: memory above idle, at most`, measured: megabytes(above), floor: `${megabytes(idle.now)} idle`, ratio: "", asked: `≤ ${megabytes(MEMORY_BYTES)}`, reached: above <= MEMORY_BYTES });
  }
  await floor.end();
  await last.close();
  return figures;
}

/**
 * @param {Context} context
 * @param {number} size
 * @param {ReturnType<typeof asking>} ask
 * @param {ReturnType<typeof floorOf>} floor
 * @param {Patterns[]} regexes
 * @param {number[]} blocked
 * @returns {Promise<Figure[]>}
 */
async function matched({ say }, size, ask, floor, regexes, blocked) {
  const gigabytes = (size * 2025) / 1e9;
  const read = median([await floor.ask({}), await floor.ask({}), await floor.ask({})]);
  const figures = [];
  for (const { kind, queries, asked } of regexes.filter(wanted)) {
    say(`${number(size)} messages: ${kind} …`);
    const took = [];
    const cpus = [];
    for (const query of queries) {
      for (let time = 0; time < REPEATED; time++) {
        const answer = await ask({ query, mode: "regex", session: "project" });
        took.push(answer.ms);
        cpus.push(answer.cpu);
        blocked.push(answer.blocked);
      }
    }
    const [ms, cpu] = [median(took), median(cpus)];
    const goal = asked?.({ ms, cpu, bytes: gigabytes * 1e9 });
    figures.push({
      what: `${number(size)}: regex, ${kind}`,
      measured: `${time(ms)}, longest ${time(longest(took))}; ${number((gigabytes * 1e6) / ms)} MB/s, ${number((gigabytes * 1e6) / cpu)} a core`,
      floor: `${time(read)} to read ${gigabytes.toFixed(2)} GB`,
      ratio: ratio(ms, read),
      asked: goal?.what ?? "",
      // A small history can't be slow; the goals are for a gigabyte.
      ...(goal && gigabytes >= 1 ? { reached: goal.reached } : {}),
    });
  }
  return figures;
}

/** The questions for a store with this many sessions. @param {number} sessions */
export function asked(sessions) {
  const texts = Array.from({ length: sessions }, (_, session) => [...entries(session, ASKED_ABOUT)].map(({ message }) => textOf(message))).flat();
  const [kinds, regexes] = [questions(texts), patterns(texts)];
  // Copies, since a substring keeps the whole text alive.
  for (const made of [...kinds, ...regexes]) made.queries = structuredClone(made.queries);
  return { kinds, regexes };
}

/** Only these kinds, if `LCM_BENCH_KINDS` names any. @param {{ kind: string }} of */
const wanted = ({ kind }) => (process.env.LCM_BENCH_KINDS ?? "").split(":").some((part) => kind.includes(part));

/** @param {string[]} texts */
function questions(texts) {
  const dice = new Dice(4711);
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const word of texts.join("\n").match(/[a-z]{3,}/gi) ?? []) counts.set(word, (counts.get(word) ?? 0) + 1);
  const common = [...counts].sort(([, one], [, other]) => other - one).slice(0, 100).map(([word]) => word);
  const all = [...counts.keys()];
  const one = (/** @type {ArrayLike<string>} */ list) => list[dice.below(list.length)];
  const some = (/** @type {ArrayLike<string>} */ list, /** @type {number} */ many) => Array.from({ length: many }, () => one(list)).join(" ");
  /** @param {RegExp} pattern */
  const found = (pattern) => {
    for (;;) {
      const matches = one(texts).match(pattern);
      if (matches?.length) return one(matches);
    }
  };
  /** @param {string} word */
  const misspelt = (word) => {
    const at = 1 + dice.below(word.length - 2);
    return word.slice(0, at) + word[at + 1] + word[at] + word.slice(at + 2);
  };
  const many = (/** @type {(n: number) => string} */ make) => Array.from({ length: EACH }, (_, n) => make(n));
  return [
    { kind: "common words", queries: many(() => some(common, 2)) },
    { kind: "one common word", queries: many(() => one(common)) },
    { kind: "words by chance", queries: many(() => some(all, 3)) },
    { kind: "questions", queries: many(() => `why did we ${some(common, 2)} the ${some(all, 2)} and ${one(common)}?`) },
    { kind: "identifiers", queries: many(() => found(/\b[a-z]+_[a-z]+\b|\b[a-z]+[A-Z][a-z]+\b/g)) },
    { kind: "paths", queries: many(() => found(/src\/[\w/]+\.rs/g)) },
    { kind: "paths of common words", queries: many(() => `src/${one(common)}/${one(common)}.rs`) },
    { kind: "phrases", queries: many(() => `"${found(/[a-z]+ [a-z]+ [a-z]+ [a-z]+/g)}"`) },
    { kind: "phrases of common words", queries: many(() => `"${some(common, 3)}"`) },
    { kind: "error lines", queries: many(() => found(/^(?:test .*ms\)|[0-9a-f]{8} .*)$/gm)) },
    { kind: "hashes", queries: many(() => found(/\b(?=[0-9a-f]*[a-f])[0-9a-f]{8}\b/g)) },
    { kind: "Chinese", queries: many((n) => [..."构建失败重试数据库迁移缓存"].slice(n % 8, (n % 8) + 4).join("")) },
    { kind: "pieces of words", queries: many(() => found(/\b[a-z]{10,}\b/g).slice(2, -1)) },
    { kind: "misspelt words", queries: many(() => misspelt(found(/\b[a-z]{8,}\b/g))) },
    { kind: "nothing to find", queries: many((n) => `zqx${n}vw kyyq${n}`) },
    { kind: "advice", queries: many(() => `how should I ${some(common, 2)} the ${some(all, 2)}?`) },
  ];
}

/** @param {string[]} texts @returns {Patterns[]} */
function patterns(texts) {
  const name = texts.join("\n").match(/\b[a-z]{8,}_[a-z]{8,}\b/)?.[0] ?? "";
  const selective = (/** @type {{ ms: number, bytes: number }} */ { ms, bytes }) => ({ what: `≤ ${time(SELECTIVE_MS)} a GB`, reached: ms <= SELECTIVE_MS * (bytes / 1e9) });
  const dense = (/** @type {{ ms: number }} */ { ms }) => ({ what: `≤ ${time(DENSE_MS)}`, reached: ms <= DENSE_MS });
  // Measured by the time of all cores, whatever else they do and however many there are.
  const plain = (/** @type {{ cpu: number, bytes: number }} */ { cpu, bytes }) => ({ what: `≥ ${number(BYTES_PER_S / 1e6)} MB/s a core`, reached: bytes / (cpu / 1000) >= BYTES_PER_S });
  return [
    { kind: "dense hits", queries: [String.raw`\d{3}`, "the|and", String.raw`src/\w+`], asked: dense },
    { kind: "a literal that is there", queries: [name, String.raw`let ${name} = \w+`], asked: selective },
    { kind: "a literal that is not", queries: ["EADDRINUSE", String.raw`panicked at \S+:\d+`, "zqxv"], asked: selective },
    { kind: "one of several, in any case", queries: ["(?i)segfault|core dump|stack overflow"], asked: selective },
    { kind: "no literal, nothing to find", queries: [String.raw`\b[A-Z]{3}\d{7}\b`, String.raw`^\s{9}\d+$`], asked: plain },
  ];
}

/**
 * Searches, and measures the time of the answer and how long Pi's thread was blocked. Garbage collections in this process are not part of
 * the search, which leaves a few kilobytes.
 * @param {import("../index.d.ts").Engine} engine
 */
function asking(engine) {
  let call = 0;
  let collecting = 0;
  const collections = new PerformanceObserver((list) => list.getEntries().forEach(({ duration }) => (collecting += duration)));
  collections.observe({ entryTypes: ["gc"] });
  // Garbage collections are reported a moment later.
  const told = () => new Promise((resolve) => setTimeout(resolve, 2));
  // Linux reports a thread's time as of its last switch, unless the process's time was read right before.
  const clocks = () => ({ cpu: process.cpuUsage(), own: process.threadCpuUsage() });
  const once = async (/** @type {string} */ parameters) => {
    await told();
    collecting = 0;
    const before = clocks();
    const { ms, value } = await timed(() => engine.callTool(call++, "lcm_grep", parameters));
    const after = clocks();
    const { error } = JSON.parse(value);
    if (error) throw new Error(`${parameters}: ${error.message}`);
    await told();
    const spent = (/** @type {"cpu" | "own"} */ of) => (after[of].user - before[of].user + after[of].system - before[of].system) / 1000;
    return { ms, blocked: Math.max(0, spent("own") - collecting), cpu: spent("cpu") };
  };
  return async (/** @type {object} */ parameters) => {
    const json = JSON.stringify(parameters);
    const answer = await once(json);
    // An idle thread is sometimes charged a few milliseconds, for unreported incremental collections or another machine on the same
    // processor. A search's own time is the same each time.
    for (let again = 0; again < AGAIN && answer.blocked > BLOCKED_MS; again++) {
      answer.blocked = Math.min(answer.blocked, (await once(json)).blocked);
    }
    return answer;
  };
}

/** A process that measures floors. @param {string} database */
function floorOf(database) {
  const matcher = fork(path.join(import.meta.dirname, "matcher.mjs"), [database]);
  const next = (/** @type {string} */ event) => new Promise((resolve) => matcher.once(event, resolve));
  return {
    /** @param {{ words?: string[] }} what @returns {Promise<number>} ms */
    ask: async (what) => {
      const answer = next("message");
      matcher.send(what);
      return answer;
    },
    end: async () => {
      const gone = next("exit");
      matcher.disconnect();
      await gone;
    },
  };
}

/** This process's memory, and its peak since the last call; undefined if the system does not report it. */
function memory() {
  try {
    const status = readFileSync("/proc/self/status", "utf8");
    const bytes = (/** @type {string} */ key) => Number(new RegExp(`${key}:\\s+(\\d+)`).exec(status)?.[1]) * 1024;
    const now = { now: bytes("VmRSS"), highest: bytes("VmHWM") };
    writeFileSync("/proc/self/clear_refs", "5");
    return now;
  } catch {
    return undefined;
  }
}
