/**
 * The cost of starting Pi on a long session beyond Pi alone, and what the start hands over.
 *
 * A start must not wait for the store: the engine opens and finds what it lacks while Pi continues. Pi only waits for loading `index.js`
 * and its handler of `session_start`, which is measured in the real Pi. The whole start is also compared with a Pi without extensions and
 * one with an empty one (the first extension makes Pi load its extension loader), in turns; but Pi alone takes seconds that vary by more
 * than our whole cost.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { writeAgentDir } from "../demo/model-server.mjs";
import { startPi } from "../demo/rpc.mjs";
import { extension } from "../scripts/paths.mjs";
import { entries } from "./corpus.mjs";
import { Host } from "./host.mjs";
import { longest, median, number, pause, time } from "./measure.mjs";
import { SESSION, copyOf, databaseIn, projectFolder, sessionFileOf } from "./stores.mjs";

/** @typedef {import("./measure.mjs").Context} Context */
/** @typedef {import("./measure.mjs").Figure} Figure */

const ROUNDS = 5;
const BEYOND_MS = 30;
/** The longest time that Pi's thread may be blocked at once, beyond Pi's own. */
const BLOCKED_MS = 10;
/** About the time of a start. */
const IDLE_MS = 200;
/** Messages that a crash has lost. */
const LOST = 37;
/** Where the fork leaves its parent, and how long it is. */
const FORK = { shared: 90_000, own: 25 };

export const title = "a start on a session of 100,000 messages, beyond Pi alone, and what it hands over";

/** @param {Context} context @returns {Promise<Figure[]>} */
export async function run(context) {
  return [...(await inPi(context)), ...(await inParts(context))];
}

/** @param {Context} context @returns {Promise<Figure[]>} */
async function inPi(context) {
  const session = await sessionFileOf(context, SESSION);
  const store = await copyOf(context, SESSION);
  const agentDir = context.folder("agent");
  const probed = path.join(agentDir, "probed.json");
  // No model is called.
  writeAgentDir(agentDir, { url: "http://127.0.0.1:9" });
  const start = async (/** @type {string | undefined} */ loaded) => {
    const env = { LCM_DB_DIR: store, LCM_BENCH_PROBED: probed };
    const options = { agentDir, cwd: projectFolder(), sessionDir: path.dirname(session), env };
    const began = performance.now();
    const pi = startPi({ ...options, args: [...(loaded ? ["-e", loaded] : []), "--session", session] });
    await pi.request("get_state");
    const ms = performance.now() - began;
    await pi.stop();
    if (pi.stderr) throw new Error(pi.stderr);
    return ms;
  };
  /** @type {Record<"alone" | "empty" | "ours", number[]>} */
  const times = { alone: [], empty: [], ours: [] };
  const variants = /** @type {const} */ ([["alone", undefined], ["empty", inBench("empty.mjs")], ["ours", extension]]);
  /** @type {{ read: number, wired: number, started: number }[]} */
  const probes = [];
  for (let round = 0; round <= ROUNDS; round++) {
    context.say(`starting Pi, round ${round} of ${ROUNDS} …`);
    // Take turns in being first: the first one fills the caches for the others.
    for (const [name, loaded] of round % 2 === 0 ? variants : variants.toReversed()) {
      const ms = await start(loaded);
      if (round > 0) times[name].push(ms);
    }
    await start(inBench("probe.mjs"));
    if (round > 0) probes.push(JSON.parse(readFileSync(probed, "utf8")));
  }
  const waited = median(probes.map(({ read, wired, started }) => read + wired + started));
  const part = (/** @type {"read" | "started"} */ name) => time(median(probes.map((probe) => probe[name])));
  const floor = `${time(median(times.alone))} Pi alone`;
  return [
    {
      what: "what Pi waits for until it is ready",
      measured: time(waited),
      floor,
      ratio: percent(waited, median(times.alone)),
      asked: `≤ ${time(BEYOND_MS)}`,
      reached: waited <= BEYOND_MS,
    },
    { what: "  of that reading index.js", measured: part("read"), floor: "", ratio: "", asked: "" },
    { what: "  of that session_start, which loads the engine", measured: part("started"), floor: "", ratio: "", asked: "" },
    compared("  Pi's first answer, beyond Pi with an empty extension", times.ours, times.empty),
    compared("  Pi's first answer, beyond Pi without any", times.ours, times.alone),
  ];
}

/**
 * The median difference between two kinds of start, and their spread.
 * @param {string} what
 * @param {number[]} ours
 * @param {number[]} others
 */
function compared(what, ours, others) {
  const differences = ours.map((ms, round) => ms - others[round]);
  const [least, most] = [Math.min(...differences), longest(differences)];
  const measured = `${time(median(differences))} (${least.toFixed(0)} … ${most.toFixed(0)})`;
  return { what, measured, floor: `${time(median(others))} that one`, ratio: percent(median(differences), median(others)), asked: "" };
}

/** @param {number} value @param {number} floor */
const percent = (value, floor) => `${((100 * value) / floor).toFixed(1)} %`;

/** @param {string} name */
const inBench = (name) => path.join(import.meta.dirname, name);

/** @param {Context} context @returns {Promise<Figure[]>} */
async function inParts(context) {
  const all = [...entries(0, SESSION)];
  const more = [...entries(0, SESSION + LOST)];
  const fork = [...all.slice(0, FORK.shared), ...grownFrom(all[FORK.shared - 1], FORK.own)];
  const cases = [
    { what: "an unchanged session", store: SESSION, session: 0, entries: all, lost: 0, messages: 0 },
    { what: `after a crash that lost ${LOST}`, store: SESSION, session: 0, entries: more, lost: LOST, messages: LOST },
    { what: `a fork at ${number(FORK.shared)} that went on by ${FORK.own}`, store: SESSION, session: 77, entries: fork, lost: fork.length, messages: FORK.own },
    { what: "a first start, 5,000 messages", store: 0, session: 0, entries: all.slice(0, 5000), lost: 5000, messages: 5000 },
  ];
  const figures = [];
  for (const { what, store, session, entries, lost, messages } of cases) {
    context.say(`starting: ${what} …`);
    const folder = await copyOf(context, store);
    const before = messagesIn(folder);
    const started = await observed(new Host(folder, session, entries));
    const { handed } = started;
    const stored = messagesIn(folder) - before;
    if (store > 0 && lost === 0) figures.push(...parts(started));
    figures.push({
      what: `${what}: entries handed over, new messages`,
      measured: `${number(handed)}, ${number(stored)}`,
      floor: "",
      ratio: "",
      asked: `${number(lost)}, ${number(messages)}`,
      reached: handed === lost && stored === messages,
    });
  }
  return figures;
}

/** @param {Awaited<ReturnType<typeof observed>>} started @returns {Figure[]} */
function parts({ handler, open, caughtUp, blocked, idle }) {
  const part = (/** @type {string} */ what, /** @type {number} */ ms) => ({ what, measured: time(ms), floor: "", ratio: "", asked: "" });
  return [
    part("  session_start's handler, which Pi awaits", handler),
    part("  until the engine is open, for which the first prompt waits", open),
    part("  until all is handed over", caughtUp),
    {
      ...part("  Pi's thread stands still meanwhile, at most", blocked),
      floor: `${time(idle)} where nothing is done`,
      asked: `≤ ${time(BLOCKED_MS)} beyond`,
      reached: blocked - idle <= BLOCKED_MS,
    },
  ];
}

/**
 * Starts a session and ends it.
 * @param {Host} host
 */
async function observed(host) {
  let handed = 0;
  let opened = 0;
  let flushed = 0;
  // Garbage of the benchmark itself is not part of the start.
  globalThis.gc?.();
  const before = ticking();
  await pause(IDLE_MS);
  const idle = before.stop();
  const meanwhile = ticking();
  const began = performance.now();
  host.onEngine = (engine) => {
    opened = performance.now() - began;
    const { handOver, status } = engine;
    engine.handOver = (json, orphans) => {
      handed += JSON.parse(json).length;
      return handOver.call(engine, json, orphans);
    };
    // The footer asks for the status once everything is handed over.
    engine.status = () => {
      flushed ||= performance.now() - began;
      return status.call(engine);
    };
  };
  const starting = host.start();
  const handler = performance.now() - began;
  await starting;
  const blocked = meanwhile.stop();
  await host.stop();
  return { handed, handler, open: opened, caughtUp: flushed, blocked, idle };
}

/** Measures the longest time that this thread is blocked, until it is stopped. */
function ticking() {
  /** @type {number[]} */
  const gaps = [];
  let last = performance.now();
  const timer = setInterval(() => {
    gaps.push(performance.now() - last - 1);
    last = performance.now();
  }, 1);
  const stop = () => {
    clearInterval(timer);
    return longest(gaps);
  };
  return { stop };
}

/** The number of messages in a store. @param {string} folder */
function messagesIn(folder) {
  const database = databaseIn(folder);
  if (!database) return 0;
  const connection = new DatabaseSync(database, { readOnly: true });
  const { messages } = /** @type {{ messages: number }} */ (connection.prepare("SELECT count(*) AS messages FROM messages").get());
  connection.close();
  return messages;
}

/**
 * @param {any} entry
 * @param {number} count
 */
function grownFrom(entry, count) {
  let parentId = entry.id;
  return [...entries(78, count)].map((own, n) => {
    const id = `fork${n}`;
    const grown = { ...own, id, parentId };
    parentId = id;
    return grown;
  });
}
