/**
 * The driver behind `npm run bench:context`: what long sessions cost on the real Pi, alone, with two of its settings tuned, and with the
 * extension at its defaults, by model, window, shape and length.
 *
 * A shorter session is the beginning of a longer one, so each runs once, in the largest of the asked lengths. Without the extension a session
 * does not depend on prices, so models that share a wire format share its run.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { hostOf } from "../../scripts/hosts.mjs";
import { root } from "../../scripts/paths.mjs";
import { markdown, number } from "../measure.mjs";
import { OPTIONS, agreed, dollars, endEarly, openModel } from "../model.mjs";
import { live } from "./live.mjs";
import { SHAPES } from "./shapes.mjs";

/** @typedef {import("./live.mjs").Prices} Prices */
/** @typedef {import("./live.mjs").Counted} Counted */

/**
 * A model of Pi's catalog, the one that writes its summaries, and the windows to measure, the catalog's first. `cost` and `small` are the
 * prices of another pair.
 * @typedef {{ provider: string, id: string, by: string, windows: number[], cost?: Prices, small?: Prices }} Model
 */

const OPUS = { provider: "anthropic", id: "claude-opus-5-5", by: "claude-haiku-5-5" };
/** Gemini's wire format is not scripted, and September's models are not bound to their reasoning: only the prices are theirs. @type {Record<string, Model>} */
const MODELS = {
  opus: { ...OPUS, windows: [1_000_000, 128_000, 64_000] },
  fable: { ...OPUS, id: "claude-fable-5-2", windows: [1_000_000, 128_000] },
  gpt: { provider: "openai", id: "gpt-6.2-sol", by: "gpt-6-luna", windows: [272_000, 128_000] },
  gemini: { ...OPUS, windows: [1_048_576, 128_000], cost: { input: 2, output: 10, cacheRead: 0.1, cacheWrite: 2 }, small: { input: 0.3, output: 2.5, cacheRead: 0.03, cacheWrite: 0.3, tiers: [] } },
  september: { ...OPUS, windows: [1_000_000, 128_000], cost: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 }, small: { input: 1, output: 5, cacheRead: 0.1, cacheWrite: 1.25, tiers: [] } },
};

/** @typedef {{ lcm?: object, compaction?: object }} Settings of Pi; without `lcm`, Pi runs alone */
/** @typedef {Awaited<ReturnType<typeof live>>} Lived */

/** @type {Record<string, (window: number) => Settings>} */
const WAYS = {
  alone: () => ({}),
  tuned: (window) => ({ compaction: { reserveTokens: window - 40_000, keepRecentTokens: 6_000 } }),
  ours: () => ({ lcm: {} }),
};
/** The average tokens of a thought. */
const THOUGHT = 190;
/** For small windows, in which Pi's defaults leave nothing to compact. */
const FITTING = { reserveTokens: 2_048, keepRecentTokens: 2_000 };
/** Ways that only run if they are named; `at30000` is the extension with that fold point. @type {typeof WAYS} */
const MORE_WAYS = {
  own: () => ({ lcm: { compactionModels: ["session"] } }),
  full: () => ({ lcm: { context: "full" } }),
  "alone-fitting": () => ({ compaction: FITTING }),
  "own-fitting": () => ({ lcm: { compactionModels: ["session"] }, compaction: FITTING }),
  "ours-fitting": () => ({ lcm: {}, compaction: FITTING }),
};

const usage = `npm run bench:context -- [--quick] [--only model=…,window=…,shape=…,length=…,way=…] [--facts N] [--idle N] [--pi VERSION]
  [--summarizer MODEL] [--ask MODEL] [--guidance FILE …] [--limit DOLLARS] [--yes]
Several values of a kind are separated by +. --idle: the user is away for ten minutes before each N-th prompt. MODEL is a real one of Pi's,
provider/id, or \`small\`, a local one. --guidance: also ask with other words, {"words as sent today": "other words"}.`;
const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string", default: "" },
    facts: { type: "string" },
    idle: { type: "string", default: "0" },
    pi: { type: "string", default: "1.6.0" },
    summarizer: { type: "string" },
    ask: { type: "string" },
    guidance: { type: "string", multiple: true, default: [] },
    ...OPTIONS,
    help: { type: "boolean", default: false },
  },
});
const isReal = values.summarizer !== undefined || values.ask !== undefined;
const cellsAsked = values.only || (isReal ? "model=opus,window=128000,shape=recorded,length=300,way=tuned+ours" : values.quick ? "model=opus,window=1000000,shape=recorded+bulky,length=300" : "");
const only = Object.fromEntries(cellsAsked.split(",").filter(Boolean).map((part) => [part.split("=")[0], part.split("=")[1]?.split("+")]));
const host = hostOf(values.pi);
if (values.help || !host || Object.keys(only).some((kind) => !["model", "window", "shape", "length", "way"].includes(kind))) {
  process.stdout.write(`${usage}\n`);
  process.exit(values.help ? 0 : 2);
}
const { pi } = host;
const lengths = (only.length ?? ["60", "150", "300", "600"]).map(Number);
const longest = Math.max(...lengths);
const facts = Number(values.facts ?? (values.quick ? 12 : 24));
const folder = path.join(root, "target", "bench", "context");
mkdirSync(folder, { recursive: true });

const began = performance.now();
/** @type {Map<string, Lived>} */
const lives = new Map();
/** @type {{ name: string, ofAlone: number, ofTuned: number }[]} */
const cells = [];
/** @type {[string, (window: number) => Settings][]} */
const ways = (only.way ?? Object.keys(WAYS)).map((way) => [way, WAYS[way] ?? MORE_WAYS[way] ?? (() => ({ lcm: { foldAt: Number(way.slice(2)) } }))]);
const rows = [["model, window, shape, requests", ...ways.map(([way]) => `${way}, $`), "of alone", "of tuned", "known (calls: 0+1+2)", "reasoning lost, within a run", "seen, %", "compactions"]];
/** @type {string[][]} */
const answered = [["model, window, shape", "way", "wording", "right", "wrong", "asked back", "failed", "calls", "$"]];
const picked = Object.entries(MODELS).filter(([name]) => !only.model || only.model.includes(name)).flatMap(([name, model]) => (only.window?.map(Number) ?? model.windows).map((window) => ({ name, model, window })));
const shapes = Object.entries(SHAPES).filter(([shape]) => !only.shape || only.shape.includes(shape));
const real = isReal ? await openReal() : undefined;
try {
  for (const { name, model, window } of picked) {
    for (const [shape] of shapes) {
      /** @type {Record<string, Lived>} */
      const lived = {};
      for (const [way, settingsFor] of ways) lived[way] = await once(way, name, window, shape, settingsFor(window));
      for (const length of lengths) report(`${name}, ${number(window)}, ${shape}, ${length}`, model, lived, length);
    }
  }
} catch (error) {
  endEarly(error);
}
const worst = (/** @type {"ofAlone" | "ofTuned"} */ by) => cells.filter((cell) => cell[by] > 0).sort((one, other) => other[by] - one[by])[0];
const [ofAlone, ofTuned] = [worst("ofAlone"), worst("ofTuned")];
const worstCells = ofAlone && ofTuned ? `Worst: ${ofAlone.ofAlone.toFixed(2)} of Pi alone (${ofAlone.name}), ${ofTuned.ofTuned.toFixed(2)} of Pi tuned (${ofTuned.name}).\n\n` : "";
process.stdout.write(`Pi ${values.pi}; by way: ${ways.map(([way]) => way).join(" / ")}\n\n${markdown(rows)}\n\n${worstCells}${answered.length > 1 ? `${markdown(answered)}\n\n` : ""}${number((performance.now() - began) / 1000)} s\n`);
process.exit();

/** Opens the real models, and says what they will cost. @returns {Promise<import("./live.mjs").Real>} */
async function openReal() {
  const scratch = path.join(folder, "models");
  const summarizer = values.summarizer ? await openModel(values.summarizer, scratch) : undefined;
  const asked = values.ask === values.summarizer ? summarizer : values.ask ? await openModel(values.ask, scratch) : undefined;
  const wordings = [{ name: "today's", texts: {} }, ...values.guidance.map((file) => ({ name: path.basename(file), texts: JSON.parse(readFileSync(file, "utf8")) }))];
  const [runs, questions] = [ways.length * picked.length, facts * (ways.length + (wordings.length - 1) * ways.filter(([, settings]) => settings(1).lcm).length) * picked.length];
  const tokens = shapes.reduce((sum, [, { result, answer }]) => sum + Array.from({ length: longest }, (_, at) => result(at) + answer(at) + THOUGHT).reduce((one, other) => one + other), 0);
  const context = Math.min(40_000, ...picked.map(({ window }) => window));
  const budget = await agreed([
    { opened: summarizer, input: 1.2 * tokens * runs, output: 0.1 * tokens * runs },
    { opened: asked, input: questions * 1_500 * shapes.length + context, again: questions * 3 * context * shapes.length, output: questions * 900 * shapes.length },
  ], values);
  return { summarizer, asked, budget, wordings };
}

/**
 * Runs a session, unless it has run.
 * @param {string} way
 * @param {string} name of the model
 * @param {number} window
 * @param {string} shape
 * @param {Settings} settings
 */
async function once(way, name, window, shape, settings) {
  const { provider, id, by, cost, small } = MODELS[name];
  const key = [settings.lcm ? `${name}-${way}` : `${provider}-${way}`, way === "tuned" ? "" : window, shape].filter(Boolean).join("-");
  const before = lives.get(key);
  if (before) return before;
  process.stderr.write(`${key} …\n`);
  const { summarizer } = real ?? {};
  const { contextWindow, maxTokens, cost: price = small } = summarizer?.model ?? {};
  const overrides = { [id]: { contextWindow: window, ...(cost && { cost }) }, ...(price && { [by]: { contextWindow, maxTokens, cost: price } }) };
  const lcm = settings.lcm && { ...(summarizer && { compactionModels: [`${provider}/${by}`] }), ...settings.lcm };
  const lived = await live({ model: { provider, id, overrides }, shape: SHAPES[shape], requests: longest, facts, idle: Number(values.idle), pi, settings: { ...settings, ...(lcm && { lcm }) }, real });
  for (const { wording, right, wrong, askedBack, failed, calls, dollars: spent } of lived.answers) answered.push([`${name}, ${number(window)}, ${shape}`, way, wording, ...[right, wrong, askedBack, failed, calls].map(String), spent.toFixed(3)]);
  writeFileSync(path.join(folder, `${key}.jsonl`), lived.requests.map((request) => `${JSON.stringify(request)}\n`).join(""));
  lives.set(key, lived);
  return lived;
}

/**
 * Adds a row.
 * @param {string} name
 * @param {Model} model
 * @param {Record<string, Lived>} lived by way
 * @param {number} length
 */
function report(name, model, lived, length) {
  const all = Object.values(lived).map(({ requests, known, prices }) => {
    const first = firstOf(requests, length);
    const sum = (/** @type {(one: Counted) => number} */ of) => first.reduce((total, one) => total + of(one), 0);
    const priceOf = (/** @type {string} */ id) => (id === model.by ? (model.small ?? prices[id]) : (model.cost ?? prices[model.id]));
    return {
      dollars: sum((one) => dollars(one.usage, one.kind === "summary" && real?.summarizer ? real.summarizer.model.cost : priceOf(one.model))),
      known: [0, 1, 2].map((calls) => known.filter((took) => took === calls).length).join("+"),
      lost: `${sum(({ lost }) => lost)}, ${sum(({ lostInRun }) => lostInRun)}`,
      seen: Math.round((100 * sum(({ seen }) => seen)) / sum(({ seen, dropped }) => seen + dropped)),
      compactions: first.filter(({ block }) => block > 0).length,
    };
  });
  const [alone, tuned, ours] = ["alone", "tuned", "ours"].map((way) => all[Object.keys(lived).indexOf(way)]?.dollars);
  cells.push({ name, ofAlone: ours / alone, ofTuned: ours / tuned });
  const by = (/** @type {(one: typeof all[number]) => unknown} */ of) => all.map(of).join(" / ");
  const share = (/** @type {number} */ part) => (Number.isNaN(part) ? "" : part.toFixed(2));
  // Facts are asked for at the end of the longest session.
  rows.push([name, ...all.map((one) => one.dollars.toFixed(2)), share(ours / alone), share(ours / tuned), length === longest ? by(({ known }) => known) : "", by(({ lost }) => lost), by(({ seen }) => seen), by(({ compactions }) => compactions)]);
}

/** A session's requests before the agent's next one after so many. @param {Counted[]} requests @param {number} length */
function firstOf(requests, length) {
  let turns = 0;
  const end = requests.findIndex(({ kind }) => kind === "turn" && ++turns > length);
  return end < 0 ? requests : requests.slice(0, end);
}
