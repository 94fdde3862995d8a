/**
 * The time of a compaction when every model call fails: extracts of all messages, and the block over them.
 *
 * The calls fail at once, so only the engine's own time is measured. The floor is the unavoidable part: reading the same messages from the
 * database, unpacking and parsing them, once, on one thread.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { zstdDecompressSync } from "node:zlib";
import { root } from "../scripts/paths.mjs";
import { collectGarbage, median, megabytes, number, ratio, time, timed } from "./measure.mjs";
import { copyOf, databaseIn, openEngine } from "./stores.mjs";

/** @typedef {import("./measure.mjs").Context} Context */
/** @typedef {import("./measure.mjs").Figure} Figure */

const MESSAGES = 10_000;
const ROUNDS = 3;
const OWN_MS = 100;

export const title = `a compaction of ${number(MESSAGES)} messages while no model answers`;

/** @param {Context} context @returns {Promise<Figure[]>} */
export async function run(context) {
  /** @type {number[]} */
  const times = [];
  /** @type {number[]} */
  const floors = [];
  /** Processor time of the compaction, and of the floor. @type {[number[], number[]]} */
  const [worked, floorWorked] = [[], []];
  let calls = 0;
  let block = 0;
  let bytes = 0;
  for (let round = 0; round < ROUNDS; round++) {
    context.say(`compacting without a model, round ${round + 1} of ${ROUNDS} …`);
    // A new store each time: summaries made once would be reused.
    const folder = await copyOf(context, MESSAGES);
    const read = await timed(() => spent(floorWorked, () => readAll(databaseIn(folder))));
    floors.push(read.ms);
    bytes = read.value;
    const engine = await openEngine(folder, 0);
    calls = 0;
    const refuse = async (/** @type {string} */ call) => {
      const { kind } = JSON.parse(call);
      if (kind === "models") return "[null]";
      if (kind === "resolve") return JSON.stringify({ model: { provider: "p", id: "m", api: "none" }, auth: { ok: true } });
      calls++;
      throw new Error("401 no");
    };
    const last = (0x10000000 + MESSAGES - 1).toString(16);
    const request = { leafId: last, firstKeptEntryId: last, tokensBefore: 0, contextWindow: 200_000, reason: "manual" };
    collectGarbage();
    const { ms, value } = await timed(() => spent(worked, () => engine.compact(round, JSON.stringify(request), refuse)));
    const { ok, error } = JSON.parse(value);
    if (ok?.kind !== "compacted" || ok.compaction.details.covered !== MESSAGES - 1) throw new Error(error?.message ?? value.slice(0, 500));
    times.push(ms);
    block = ok.compaction.summary.length;
    await engine.close();
  }
  const [own, floor] = [median(times), median(floors)];
  return [
    {
      what: `${number(MESSAGES)} messages, ${megabytes(bytes)}`,
      measured: time(own),
      floor: `${time(floor)} to read them`,
      ratio: ratio(own, floor),
      asked: `≤ ${time(OWN_MS)}`,
      reached: own <= OWN_MS,
    },
    {
      what: "the same in time of the processor, all threads",
      measured: time(median(worked)),
      floor: `${time(median(floorWorked))} to read them`,
      ratio: ratio(median(worked), median(floorWorked)),
      asked: "",
      reached: undefined,
    },
    { what: "the block", measured: `${number(block)} characters`, floor: "", ratio: "", asked: "", reached: undefined },
    { what: "calls until the models are given up", measured: number(calls), floor: "", ratio: "", asked: "≤ 30", reached: calls <= 30 },
  ];
}

/**
 * Returns the result of `work` and records its processor time in ms: on a shared machine the wall clock mostly measures others.
 * @template T
 * @param {number[]} times
 * @param {() => T | Promise<T>} work
 */
async function spent(times, work) {
  const before = process.cpuUsage();
  const value = await work();
  const { user, system } = process.cpuUsage(before);
  times.push((user + system) / 1000);
  return value;
}

/**
 * @param {string} file
 * @returns {number} bytes of JSON that were parsed
 */
function readAll(file) {
  const dictionary = readFileSync(path.join(root, "crates", "store", "src", "messages", "messages.dictionary"));
  const database = new DatabaseSync(file, { readOnly: true });
  let bytes = 0;
  for (const { json, codec } of database.prepare("SELECT json, codec FROM messages").iterate()) {
    const stored = Buffer.from(/** @type {any} */ (json));
    const text = codec === 0 ? stored : zstdDecompressSync(stored, /** @type {any} */ ({ dictionary }));
    bytes += text.length;
    JSON.parse(text.toString("utf8"));
  }
  database.close();
  return bytes;
}
