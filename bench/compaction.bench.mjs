/**
 * The time of a compaction besides its model calls: from nothing, and with all summaries ready.
 *
 * The model takes the same time for each answer, and the settings limit parallel calls. So the floor of a compaction from nothing is that
 * time per round of calls, depth after depth; with ready summaries it is zero.
 */
import { entries } from "./corpus.mjs";
import { median, ratio, time, timed } from "./measure.mjs";
import { openEngine } from "./stores.mjs";

/** @typedef {import("./measure.mjs").Context} Context */
/** @typedef {import("./measure.mjs").Figure} Figure */
/** @typedef {import("../index.d.ts").Engine} Engine */

const MESSAGES = 400;
const ROUNDS = 5;
const MODEL_MS = 200;
const AT_ONCE = 4;
const WINDOW = 232_000;
const KEPT_TOKENS = 20_000;
const COLD_MS = 150;
const READY_MS = 100;

export const title = `a compaction of ${MESSAGES} messages, about 200,000 tokens, with a model that takes ${MODEL_MS} ms`;

/** @param {Context} context @returns {Promise<Figure[]>} */
export async function run(context) {
  /** @type {{ ms: number, floor: number }[]} */
  const cold = [];
  /** @type {number[]} */
  const ready = [];
  for (let round = 0; round < ROUNDS; round++) {
    context.say(`compacting, round ${round + 1} of ${ROUNDS} …`);
    cold.push(await compacted(context, "cold", false));
    ready.push((await compacted(context, "ready", true)).ms);
  }
  const [own, floor, whole] = [median(cold.map(({ ms, floor }) => ms - floor)), cold[0].floor, median(cold.map(({ ms }) => ms))];
  const quick = median(ready);
  return [
    {
      what: "from nothing",
      measured: time(whole),
      floor: `${time(floor)} the model's rounds`,
      ratio: ratio(whole, floor),
      asked: `≤ floor + ${time(COLD_MS)}`,
      reached: own <= COLD_MS,
    },
    { what: "all written ahead", measured: time(quick), floor: `${time(floor)} from nothing`, ratio: ratio(quick, floor), asked: `≤ ${time(READY_MS)}`, reached: quick <= READY_MS },
  ];
}

/**
 * @param {Context} context
 * @param {string} name
 * @param {boolean} ahead
 */
async function compacted(context, name, ahead) {
  const engine = await openEngine(context.folder(name), 0, { LCM_LEAF_PASS_CONCURRENCY: String(AT_ONCE) });
  const session = [...entries(0, MESSAGES)];
  engine.handOver(JSON.stringify(session));
  // In reality messages are stored as they arrive, and not when they are compacted.
  await engine.flush();
  const leafId = session[MESSAGES - 1].id;
  const contextTokens = 200_000;
  let calls = 0;
  if (ahead) {
    await engine.prepare(JSON.stringify({ leafId, contextTokens, contextWindow: WINDOW }), model());
    // Pi does not wait for work ahead.
    await engine.flush();
  }
  const request = { leafId, firstKeptEntryId: session[firstKept(session)].id, tokensBefore: contextTokens, reason: "threshold", contextWindow: WINDOW, reserveTokens: 16_384 };
  const { ms, value } = await timed(() => engine.compact(1, JSON.stringify(request), model(() => calls++)));
  await engine.close();
  const { ok, error } = JSON.parse(value);
  if (ok?.kind !== "compacted") throw new Error(error?.message ?? `it was ${ok.kind}`);
  if (ahead && calls > 0) throw new Error(`${calls} summaries were not ready`);
  /** @type {number[]} */
  const depths = ok.compaction.details.summaries.map((/** @type {{ depth: number }} */ { depth }) => depth);
  const rounds = [...new Set(depths)].reduce((sum, depth) => sum + Math.ceil(depths.filter((other) => other === depth).length / AT_ONCE), 0);
  return { ms, floor: rounds * MODEL_MS };
}

/** The first message that Pi keeps; Pi estimates a token as four characters. @param {any[]} session */
function firstKept(session) {
  const characters = (/** @type {any} */ { text, thinking, name, arguments: given }) => (text ?? thinking ?? name + JSON.stringify(given)).length;
  const size = (/** @type {any} */ content) => (typeof content === "string" ? content.length : content.reduce((/** @type {number} */ sum, /** @type {any} */ block) => sum + characters(block), 0));
  let kept = 0;
  for (let at = session.length - 1; at > 0; at--) {
    kept += Math.ceil(size(session[at].message.content) / 4);
    if (kept >= KEPT_TOKENS) return session.findIndex(({ message }, place) => place >= at && message.role !== "toolResult");
  }
  throw new Error("Pi would keep everything");
}

/**
 * A model like Pi's, on a timer.
 * @param {() => void} [onCall]
 */
function model(onCall = () => {}) {
  return async (/** @type {string} */ call) => {
    const { kind, request } = JSON.parse(call);
    if (kind === "models") return JSON.stringify(["bench/model"]);
    if (kind === "resolve") {
      const found = { provider: "bench", id: "model", api: "none", contextWindow: 200_000, maxTokens: 8192 };
      return JSON.stringify({ model: found, auth: { ok: true, apiKey: "none" } });
    }
    onCall();
    await new Promise((resolve) => setTimeout(resolve, MODEL_MS));
    const text = `What happened\n${request.prompt.slice(-1600)}`.replaceAll("<", "‹");
    return JSON.stringify({ role: "assistant", provider: "bench", model: "model", stopReason: "stop", content: [{ type: "text", text }] });
  };
}
