/**
 * Many compactions of one growing session: the cost of a compaction must not depend on the length of the history, and the depth of the DAG
 * must only grow logarithmically.
 *
 * The model answers at once, with the requested length. Processor time of all threads counts: on a shared machine the wall clock mostly
 * measures others. `SOAK=1000` runs more of them, in a few minutes.
 */
import { entries } from "./corpus.mjs";
import { longest, median, number, ratio, time } from "./measure.mjs";
import { openEngine, slices } from "./stores.mjs";

/** @typedef {import("./measure.mjs").Context} Context */
/** @typedef {import("./measure.mjs").Figure} Figure */

const ROUNDS = Number(process.env.SOAK ?? 100);
/** The number of lines of the curve. */
const LINES = 10;
/** New messages between two compactions, and characters of each: about four leaf chunks. */
const [MESSAGES, SIZE] = [40, 1600];
/** Messages that Pi keeps raw. */
const KEPT = 6;
/** The default condensation threshold. */
const THRESHOLD = 6;
/** The limit for flat: the last tenth of the compactions relative to an early one. */
const FLAT = 1.5;
const SESSION = 20_000;

export const title = `${number(ROUNDS)} compactions of one growing session`;

/**
 * A compaction's results; `ms` is processor time.
 *
 * @typedef {{ ms: number, calls: number, messages: number, summaries: number, depth: number, tokens: number }} Round
 */

/** @param {Context} context @returns {Promise<Figure[]>} */
export async function run(context) {
  // More tokens than the default limit per hour.
  const engine = await openEngine(context.folder("soak"), SESSION, { LCM_MODEL_TOKENS_PER_HOUR: "1000000000" });
  const session = new Session(engine);
  /** @type {Round[]} */
  const rounds = [];
  while (rounds.length < ROUNDS) {
    if (rounds.length % 20 === 0) context.say(`compaction ${rounds.length} of ${ROUNDS} …`);
    rounds.push(await session.round());
  }
  await engine.close();
  return [...curve(rounds), ...verdicts(rounds)];
}

/** A session that grows and is compacted as in Pi. */
class Session {
  #engine;
  #messages = entries(SESSION, Infinity, SIZE);
  /** @type {string[]} */
  #ids = [];
  /** The last entry. @type {string | null} */
  #leaf = null;
  #depth = 0;
  #summaries = 0;
  #operation = 0;

  /** @param {import("../index.d.ts").Engine} engine */
  constructor(engine) {
    this.#engine = engine;
  }

  /** Adds some messages and compacts. @returns {Promise<Round>} */
  async round() {
    const fresh = [];
    for (let n = 0; n < MESSAGES; n++) fresh.push(this.#below(this.#messages.next().value));
    this.#ids.push(...fresh.map(({ id }) => id));
    for (const { json } of slices(fresh)) said(this.#engine.handOver(json));
    await this.#engine.flush();
    const kept = this.#ids.length - KEPT;
    const request = { leafId: this.#leaf, firstKeptEntryId: this.#ids[kept], tokensBefore: 100_000, reason: "manual", contextWindow: 200_000, reserveTokens: 16_384 };
    let calls = 0;
    const model = async (/** @type {string} */ call) => {
      const { kind, request } = JSON.parse(call);
      if (kind === "models") return "[null]";
      if (kind === "ask") calls++;
      return JSON.stringify(kind === "ask" ? reply(request, calls) : FACTS);
    };
    const before = process.cpuUsage();
    const answer = await this.#engine.compact(++this.#operation, JSON.stringify(request), model);
    const { user, system } = process.cpuUsage(before);
    const { compaction } = said(answer);
    const { details, summary } = compaction;
    if (details.covered !== kept) throw new Error(`${details.covered} of ${kept} messages are covered`);
    for (const { depth } of details.summaries) this.#depth = Math.max(this.#depth, depth);
    this.#summaries += details.summaries.length;
    const id = `c${this.#operation}`;
    const entry = this.#below({ ...compaction, type: "compaction", id, timestamp: fresh[0].timestamp, fromHook: true });
    said(this.#engine.handOver(JSON.stringify([entry])));
    return { ms: (user + system) / 1000, calls, messages: this.#ids.length, summaries: this.#summaries, depth: this.#depth, tokens: Math.ceil(summary.length / 4) };
  }

  /** @param {any} entry */
  #below(entry) {
    const below = { ...entry, parentId: this.#leaf };
    this.#leaf = entry.id;
    return below;
  }
}

const FACTS = { model: { provider: "bench", id: "prompt", api: "none" }, auth: { ok: true }, oauth: false, ownStream: true };

/**
 * An answer of about the requested length.
 * @param {{ prompt: string }} request
 * @param {number} count
 */
function reply({ prompt }, count) {
  const words = Number(/(\d+) words/.exec(prompt)?.[1] ?? 100);
  const at = (count * 991) % Math.max(1, prompt.length - words * 7);
  const text = `Part ${count}\n${prompt.slice(at, at + words * 5).replace(/<\/?history-\w*>?/g, "")}`;
  return { role: "assistant", provider: "bench", model: "prompt", stopReason: "stop", content: [{ type: "text", text }], usage: { input: 1, output: 1 } };
}

/** @param {string} answer */
function said(answer) {
  const { ok, error } = JSON.parse(answer);
  if (error) throw new Error(error.message);
  return ok;
}

/** @param {Round[]} rounds @returns {Figure[]} */
function curve(rounds) {
  const step = Math.ceil(rounds.length / LINES);
  const lines = [];
  for (let until = step; until <= rounds.length; until += step) {
    const part = rounds.slice(until - step, until);
    const { messages, summaries, depth, tokens } = part[part.length - 1];
    lines.push({
      what: `compactions ${until - step + 1} – ${until}`,
      measured: `${time(median(part.map(({ ms }) => ms)))} own`,
      floor: `${number(messages)} messages, ${number(summaries)} summaries, depth ${depth}`,
      ratio: `${mean(part.map(({ calls }) => calls)).toFixed(1)} calls`,
      asked: `about ${number(tokens)} tokens of block`,
    });
  }
  return lines;
}

/** @param {Round[]} rounds @returns {Figure[]} */
function verdicts(rounds) {
  const tenth = Math.ceil(rounds.length / 10);
  // The first compactions have nothing to condense.
  const [early, late] = [rounds.slice(tenth, 2 * tenth), rounds.slice(-tenth)];
  const own = [early, late].map((part) => median(part.map(({ ms }) => ms)));
  const calls = [early, late].map((part) => mean(part.map(({ calls }) => calls)));
  const { depth, summaries } = rounds[rounds.length - 1];
  const deepest = Math.ceil(Math.log(summaries) / Math.log(2)) + 1;
  const most = longest(rounds.map(({ calls }) => calls));
  const figure = (/** @type {string} */ what, /** @type {string} */ measured, /** @type {string} */ floor, /** @type {string} */ ratio, /** @type {string} */ asked, /** @type {boolean} */ reached) => ({ what, measured, floor, ratio, asked, reached });
  return [
    figure("depth", String(depth), `${number(summaries)} summaries`, "", `≤ log₂ + 1 = ${deepest}`, depth <= deepest),
    figure("calls, the last tenth to the second", calls[1].toFixed(1), calls[0].toFixed(1), ratio(calls[1], calls[0]), `flat, ≤ ${FLAT} ×`, calls[1] <= calls[0] * FLAT),
    figure("most calls of one compaction", String(most), "", "", `≤ ${THRESHOLD * 4}`, most <= THRESHOLD * 4),
    figure("own work, the last tenth to the second", time(own[1]), time(own[0]), ratio(own[1], own[0]), `flat, ≤ ${FLAT} ×`, own[1] <= own[0] * FLAT),
  ];
}

/** @param {number[]} values */
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
