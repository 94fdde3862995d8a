/**
 * Syncs of a history of 100,000 messages with a folder: the first, one with nothing new, and one on a fresh machine; the size of packs; the
 * memory for the histories of five such machines at once; and the requests to a bucket with nothing new.
 *
 * Each sync is `pi-lcm sync` in a separate process, as in a shell, so its times and memory include Node's own. Nothing new is measured
 * beyond Node's start.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync } from "node:fs";
import path from "node:path";
import { Bucket } from "../__test__/support/bucket.mjs";
import { node22, root } from "../scripts/paths.mjs";
import { historyOf } from "./asking.mjs";
import { entries } from "./corpus.mjs";
import { median, megabytes, number, ratio, time } from "./measure.mjs";
import { SESSION, copyOf, filledWith, projectFolder } from "./stores.mjs";
import { worklogs } from "./worklog.mjs";

/** @typedef {import("./measure.mjs").Context} Context */
/** @typedef {import("./measure.mjs").Figure} Figure */

const MACHINES = 5;
const ROUNDS = 9;
const program = path.join(root, "bin", "pi-lcm.js");
const PROJECT = "https://example.org/bench/shop";

/** What is asked. */
const FIRST_MS = 30_000;
const NOTHING_MS = 200;
const SHARE = 0.25;
const MEMORY = 200e6;
const REQUESTS = 3;

export const title = `syncing ${number(SESSION)} messages`;

/** Writes the process's largest memory to the file descriptor 3 when it ends. */
const measuring = `data:text/javascript,${encodeURIComponent(`
import { readFileSync, writeSync } from "node:fs";
process.on("exit", () => writeSync(3, /VmHWM:\\s*(\\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "0"));
`)}`;

/** @param {Context} context @returns {Promise<Figure[]>} */
export async function run(context) {
  const agent = context.folder("agent");
  /**
   * A sync of the machine with these databases; without a target, Node alone.
   * @param {string} store
   * @param {string} [target]
   * @param {Record<string, string>} [env]
   */
  const sync = async (store, target, env = {}) => {
    const args = target === undefined ? ["-e", "0"] : [program, "--json", "sync", target, "--project", PROJECT];
    const began = performance.now();
    const child = spawn(node22, process.platform === "linux" ? ["--import", measuring, ...args] : args, {
      cwd: projectFolder(),
      env: { ...process.env, LCM_DB_DIR: store, PI_CODING_AGENT_DIR: agent, ...env },
      stdio: ["ignore", "pipe", "pipe", "pipe"],
    });
    const [stdout, stderr, memory] = [1, 2, 3].map((at) => textOf(/** @type {import("node:stream").Readable} */ (child.stdio[at])));
    const [code] = await once(child, "close");
    const ms = performance.now() - began;
    if (code !== 0) throw new Error(`pi-lcm ${args.join(" ")}: ${await stderr}`);
    return { ms, memory: Number(await memory) * 1024, report: (await stdout) ? JSON.parse(await stdout) : undefined };
  };

  const first = await copyOf(context, SESSION);
  const target = context.folder("target");
  context.say("sending …");
  const sent = await sync(first, target);
  context.say("with nothing new …");
  /** @type {number[]} */
  const beyond = [];
  /** @type {number[]} */
  const floors = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const floor = (await sync(first)).ms;
    const { ms } = await sync(first, target);
    if (round === 0) continue;
    floors.push(floor);
    beyond.push(ms - floor);
  }
  context.say("receiving …");
  const received = await sync(context.folder("fresh"), target);

  // The others send to folders of their own: each would first receive what the others have.
  for (let machine = 1; machine < MACHINES; machine++) {
    const own = context.folder(`target-${machine}`);
    await sync(await filledWith(context, machine), own);
    cpSync(own, target, { recursive: true });
  }
  context.say(`receiving ${number(MACHINES * SESSION)} messages …`);
  const all = await sync(context.folder("fresh"), target);
  if (all.report.received.messages !== MACHINES * SESSION) throw new Error(`${all.report.received.messages} messages were received`);

  const requests = await requestsWithNothingNew(context, sync);
  context.say("packing made-up work …");
  const real = await packed(context, sync);
  const random = { bytes: sent.report.sent.bytes, lines: [...entries(0, SESSION)].reduce(adding, 0) };
  const rate = (/** @type {{ ms: number }} */ { ms }) => `${number(SESSION / (ms / 1000))}/s`;
  return [
    { what: "the first sync, sending", measured: `${time(sent.ms)}, ${rate(sent)}`, floor: "", ratio: "", asked: `≤ ${time(FIRST_MS)}`, reached: sent.ms <= FIRST_MS },
    { what: "with nothing new, beyond Node's start", measured: time(median(beyond)), floor: `${time(median(floors))} node -e 0`, ratio: "", asked: `≤ ${time(NOTHING_MS)}`, reached: median(beyond) <= NOTHING_MS },
    { what: "a fresh machine, receiving", measured: `${time(received.ms)}, ${rate(received)}`, floor: `${time(sent.ms)} sending`, ratio: ratio(received.ms, sent.ms), asked: "" },
    { what: "packs of sessions like those of agents", measured: megabytes(real.bytes), floor: `${megabytes(real.lines)} session files`, ratio: ratio(real.bytes, real.lines), asked: `≤ ${SHARE} ×`, reached: real.bytes <= SHARE * real.lines },
    { what: "packs of random words", measured: megabytes(random.bytes), floor: `${megabytes(random.lines)} session file`, ratio: ratio(random.bytes, random.lines), asked: "" },
    { what: `receiving ${number(MACHINES * SESSION)} messages of ${MACHINES} machines, memory`, measured: megabytes(all.memory), floor: `${time(all.ms)}`, ratio: "", asked: `≤ ${megabytes(MEMORY)}`, reached: all.memory <= MEMORY },
    { what: `a bucket with nothing new, ${MACHINES} machines`, measured: `${requests} requests`, floor: `${MACHINES - 1} other machines`, ratio: ratio(requests, MACHINES - 1), asked: `≤ ${REQUESTS} ×`, reached: requests <= REQUESTS * (MACHINES - 1) },
  ];
}

/**
 * @param {Context} context
 * @param {(store: string, target: string, env: Record<string, string>) => Promise<unknown>} sync
 */
async function requestsWithNothingNew(context, sync) {
  const bucket = new Bucket();
  await bucket.begin();
  try {
    const stores = await Promise.all(Array.from({ length: MACHINES }, (_, machine) => filledWith(context, 100 + machine, 20)));
    for (const store of [...stores, ...stores]) await sync(store, bucket.target(), bucket.env);
    const before = bucket.requests.length;
    await sync(stores[0], bucket.target(), bucket.env);
    return bucket.requests.length - before;
  } finally {
    await bucket.end();
  }
}

/**
 * The packs of made-up work, and the lines of its session files.
 * @param {Context} context
 * @param {(store: string, target: string) => Promise<{ report: any }>} sync
 */
async function packed(context, sync) {
  const store = context.folder("work");
  let lines = 0;
  for (const [at, { messages }] of worklogs("reported").entries()) {
    const history = await historyOf(store, 200 + at, messages);
    await history.close();
    lines += messages.map((message, at) => ({ type: "message", id: String(at), parentId: String(at - 1), timestamp: "2026-05-04T00:00:00.000Z", message })).reduce(adding, 0);
  }
  const { report } = await sync(store, context.folder("target-of-work"));
  return { bytes: report.sent.bytes, lines };
}

/** Adds an entry's line in a session file. @param {number} sum @param {object} entry */
const adding = (sum, entry) => sum + Buffer.byteLength(JSON.stringify(entry)) + 1;

/** @param {import("node:stream").Readable} stream */
async function textOf(stream) {
  let text = "";
  for await (const part of stream.setEncoding("utf8")) text += part;
  return text;
}
