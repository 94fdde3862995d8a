/**
 * What a start of Pi on a long session costs beyond Pi alone, and what it hands over.
 *
 * The real Pi is started with and without the extension in turns, until it answers its first request; the median of the
 * differences counts, since Pi's own reading of the session takes far longer than all of ours. The parts of ours are
 * measured apart, in a process where one can look at them. A user's start must not wait for the store: the engine opens
 * and looks for what it lacks while Pi goes on.
 */
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { writeAgentDir } from "../demo/model-server.mjs";
import { startPi } from "../demo/rpc.mjs";
import { extension, node22, root } from "../scripts/paths.mjs";
import { collect } from "../scripts/proc.mjs";
import { entries } from "./corpus.mjs";
import { Host } from "./host.mjs";
import { longest, median, number, quantile, time } from "./measure.mjs";
import { SESSION, copyOf, databaseIn, projectFolder, sessionFileOf } from "./stores.mjs";

/** @typedef {import("./measure.mjs").Context} Context */
/** @typedef {import("./measure.mjs").Figure} Figure */

const PAIRS = 9;
const BEYOND_MS = 30;
/** Pi's thread may not stand still for longer than this at once. */
const BLOCKED_MS = 10;
/** Messages that a crash lost. */
const LOST = 37;
/** Where the fork leaves its parent, and how far it went on its own. */
const FORK = { shared: 90_000, own: 25 };

export const title = "a start on a session of 100,000 messages, beyond Pi alone, and what it hands over";

/** @param {Context} context @returns {Promise<Figure[]>} */
export async function run(context) {
  return [...(await inPi(context)), ...(await loading()), ...(await inParts(context))];
}

/** @param {Context} context @returns {Promise<Figure[]>} */
async function inPi(context) {
  const session = await sessionFileOf(context, SESSION);
  const store = await copyOf(context, SESSION);
  const agentDir = context.folder("agent");
  // No model is asked anything.
  writeAgentDir(agentDir, { url: "http://127.0.0.1:9" });
  const start = async (/** @type {string[]} */ args) => {
    const options = { agentDir, cwd: projectFolder(), sessionDir: path.dirname(session), env: { LCM_DB_DIR: store } };
    const began = performance.now();
    const pi = startPi({ ...options, args: [...args, "--session", session] });
    await pi.request("get_state");
    const ms = performance.now() - began;
    await pi.stop();
    if (pi.stderr) throw new Error(pi.stderr);
    return ms;
  };
  /** @type {number[]} */
  const alone = [];
  /** @type {number[]} */
  const differences = [];
  for (let pair = 0; pair <= PAIRS; pair++) {
    context.say(`starting Pi, pair ${pair} of ${PAIRS} …`);
    // In turns who is first: what the first one leaves in the caches serves the second.
    const order = pair % 2 === 0 ? [[], ["-e", extension]] : [["-e", extension], []];
    /** @type {Map<number, number>} */
    const times = new Map();
    for (const args of order) times.set(args.length, await start(args));
    if (pair === 0) continue;
    alone.push(times.get(0) ?? 0);
    differences.push((times.get(2) ?? 0) - (times.get(0) ?? 0));
  }
  const beyond = median(differences);
  const spread = differences.toSorted((one, other) => one - other).map((ms) => ms.toFixed(0));
  return [
    {
      what: `Pi's first answer, beyond Pi alone (${PAIRS} pairs)`,
      measured: time(beyond),
      floor: `${time(median(alone))} Pi alone`,
      ratio: `${((beyond / median(alone)) * 100).toFixed(1)} %`,
      asked: `≤ ${time(BEYOND_MS)}`,
      reached: beyond <= BEYOND_MS,
    },
    { what: "  the differences, sorted", measured: `${spread[0]} … ${spread.at(-1)} ms`, floor: spread.join(" "), ratio: "", asked: "" },
  ];
}

/** @returns {Promise<Figure[]>} */
async function loading() {
  /** @type {{ module: number, engine: number }[]} */
  const loads = [];
  for (let round = 0; round < 9; round++) {
    const { stdout } = await collect(node22, [path.join(root, "bench", "loading.mjs")]);
    loads.push(JSON.parse(stdout));
  }
  const part = (/** @type {string} */ what, /** @type {number} */ ms) => ({ what, measured: time(ms), floor: "", ratio: "", asked: "" });
  return [
    part("  reading index.js in a fresh process", median(loads.map(({ module }) => module))),
    part("  loading the engine", median(loads.map(({ engine }) => engine))),
  ];
}

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
function parts({ handler, open, caughtUp, blocked }) {
  const part = (/** @type {string} */ what, /** @type {number} */ ms) => ({ what, measured: time(ms), floor: "", ratio: "", asked: "" });
  return [
    part("  session_start's handler, which Pi awaits", handler),
    part("  until the engine is open, for which the first prompt waits", open),
    part("  until all is handed over", caughtUp),
    {
      ...part("  Pi's thread stands still meanwhile, at most", blocked),
      asked: `≤ ${time(BLOCKED_MS)}`,
      reached: blocked <= BLOCKED_MS,
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
  /** What Pi's thread did without a pause, in ms. @type {number[]} */
  const turns = [];
  let last = performance.now();
  const ticking = setInterval(() => {
    turns.push(performance.now() - last - 1);
    last = performance.now();
  }, 1);
  const began = performance.now();
  host.onEngine = (engine) => {
    opened = performance.now() - began;
    const { handOver, status } = engine;
    engine.handOver = (json, orphans) => {
      handed += JSON.parse(json).length;
      return handOver.call(engine, json, orphans);
    };
    // The footer is asked for when all is handed over.
    engine.status = () => {
      flushed ||= performance.now() - began;
      return status.call(engine);
    };
  };
  const starting = host.start();
  const handler = performance.now() - began;
  await starting;
  clearInterval(ticking);
  await host.stop();
  return { handed, handler, open: opened, caughtUp: flushed, blocked: longest(turns) };
}

/** How many messages a store has. @param {string} folder */
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
