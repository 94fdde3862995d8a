/**
 * Recall: how often the answer is among the first results, by kind of question, and the length of the answers.
 *
 * The questions come from the sessions (`questions.mjs`). Sessions for tuning are separate from those for reporting. There are two floors:
 * every word must match, newest message first, like simple searches; and a textbook ranking of whole messages (BM25). `LCM_BENCH_SESSIONS`
 * names other session files, separated by `:`; `LCM_BENCH_HALF=tuned` uses the tuning half; `LCM_BENCH_MISSES=1` prints misses.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { root } from "../scripts/paths.mjs";
import { historyOf } from "./asking.mjs";
import { median, time } from "./measure.mjs";
import { questionsAbout, textOf } from "./questions.mjs";
import { worklogs } from "./worklog.mjs";

/** @typedef {import("./measure.mjs").Context} Context */
/** @typedef {import("./measure.mjs").Figure} Figure */
/** @typedef {import("./questions.mjs").Question} Question */
/** @typedef {{ name: string, messages: any[] }} Log */
/** @typedef {{ kind: string, rank: number, visible: boolean, tokens: number, ms: number, floor: number, textbook: number, log: string, question: Question }} Outcome */

export const title = "how often what was asked for is found, beside every word must match, newest first, and BM25 over whole messages";

/** Questions per kind and session. */
const EACH = 12;

/** @param {Context} context @returns {Promise<Figure[]>} */
export async function run(context) {
  /** @type {Outcome[]} */
  const outcomes = [];
  for (const [n, log] of logs().entries()) outcomes.push(...(await asked(context, log, n)));
  if (process.env.LCM_BENCH_MISSES) for (const miss of outcomes.filter(({ rank, visible }) => rank > 5 || !visible)) complain(miss);
  const kinds = [...new Set(outcomes.map(({ kind }) => kind))];
  const figures = kinds.map((kind) => figure(kind, outcomes.filter((outcome) => outcome.kind === kind)));
  const chinese = outcomes.filter(({ kind }) => kind.startsWith("Chinese"));
  const shown = share(outcomes, ({ visible }) => visible);
  const tokens = mean(outcomes.map((outcome) => outcome.tokens));
  const goals = [
    { what: "all: r@5", value: share(outcomes, ({ rank }) => rank <= 5), asked: 0.97 },
    { what: "all: MRR", value: mean(outcomes.map(({ rank }) => 1 / rank)), asked: 0.92 },
    { what: "all: the answer stands in the first ten snippets", value: shown, asked: 0.97 },
    { what: "Chinese: r@5", value: share(chinese, ({ rank }) => rank <= 5), asked: 1 },
  ];
  return [
    ...figures,
    figure("all", outcomes),
    ...goals.map(({ what, value, asked }) => ({ what: `${what} ± ${spread(value, outcomes.length)}`, measured: value.toFixed(3), floor: "", ratio: "", asked: `≥ ${asked}`, reached: value >= asked })),
    { what: "all: tokens of an answer", measured: tokens.toFixed(0), floor: "", ratio: "", asked: "≤ 500", reached: tokens <= 500 },
    { what: "all: nothing found", measured: String(outcomes.filter((outcome) => outcome.tokens === 0).length), floor: "", ratio: "", asked: "0", reached: outcomes.every((outcome) => outcome.tokens > 0) },
  ];
}

/** @returns {Log[]} */
function logs() {
  const files = process.env.LCM_BENCH_SESSIONS?.split(":").filter(Boolean);
  if (files?.length) return files.map(fromFile);
  if (process.env.LCM_BENCH_HALF === "tuned") return worklogs("tuned");
  return [...worklogs("reported"), fromFile(path.join(root, "demo", "session.jsonl"))];
}

/** @param {string} file @returns {Log} */
function fromFile(file) {
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
  return { name: path.basename(file), messages: lines.filter(({ type }) => type === "message").map(({ message }) => message) };
}

/**
 * @param {Context} context
 * @param {Log} log
 * @param {number} n
 * @returns {Promise<Outcome[]>}
 */
async function asked(context, log, n) {
  const history = await historyOf(context.folder(`recall-${n}`), 30_000 + n, log.messages);
  const searchable = log.messages.map((message) => (message.role === "system" ? "" : textOf(message)));
  const baselines = plain(searchable);
  /** @type {Outcome[]} */
  const outcomes = [];
  for (const question of questionsAbout(log.messages, 7 + n, EACH)) {
    context.say(`${log.name}: ${outcomes.length} questions asked …`);
    const { lines, places, also, tokens, ms } = await history.ask(question.query);
    const rank = places.findIndex((place, at) => [place, ...also[at]].some((one) => question.answers.includes(one))) + 1 || Infinity;
    const squeezed = (/** @type {string} */ text) => text.replace(/[«»\s]+/g, "").toLowerCase();
    const visible = lines.slice(0, 10).some((line) => squeezed(line).includes(squeezed(question.evidence)));
    const order = (/** @type {number[]} */ ranked) => ranked.findIndex((at) => question.answers.includes(at)) + 1 || Infinity;
    outcomes.push({ kind: question.kind, rank, visible, tokens, ms, floor: order(baselines.every(question.query)), textbook: order(baselines.best(question.query)), log: log.name, question });
  }
  await history.close();
  return outcomes;
}

/** Two textbook searches. @param {string[]} texts */
function plain(texts) {
  const wordsOf = (/** @type {string} */ text) => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
  const bags = texts.map((text) => {
    /** @type {Map<string, number>} */
    const bag = new Map();
    for (const word of wordsOf(text)) bag.set(word, (bag.get(word) ?? 0) + 1);
    return bag;
  });
  const lengths = texts.map((text) => wordsOf(text).length);
  const usual = mean(lengths);
  return {
    every: (/** @type {string} */ query) => [...bags.keys()].filter((at) => wordsOf(query).every((word) => bags[at].has(word))).reverse(),
    best: (/** @type {string} */ query) => {
      const scores = bags.map((bag, at) => wordsOf(query).reduce((sum, word) => {
        const count = bag.get(word) ?? 0;
        if (count === 0) return sum;
        const having = bags.filter((other) => other.has(word)).length;
        return sum + (Math.log(1 + (bags.length - having + 0.5) / (having + 0.5)) * count * 2.2) / (count + 1.2 * (0.25 + (0.75 * lengths[at]) / usual));
      }, 0));
      return [...scores.keys()].filter((at) => scores[at] > 0).sort((one, other) => scores[other] - scores[one] || other - one);
    },
  };
}

/** @param {string} kind @param {Outcome[]} outcomes @returns {Figure} */
function figure(kind, outcomes) {
  const line = (/** @type {(outcome: Outcome) => number} */ rank) => `${share(outcomes, (outcome) => rank(outcome) <= 5).toFixed(2)} ${share(outcomes, (outcome) => rank(outcome) <= 10).toFixed(2)} ${mean(outcomes.map((outcome) => 1 / rank(outcome))).toFixed(2)}`;
  const ours = `${line(({ rank }) => rank)} · seen ${share(outcomes, ({ visible }) => visible).toFixed(2)} · ${mean(outcomes.map(({ tokens }) => tokens)).toFixed(0)} tokens · ${time(median(outcomes.map(({ ms }) => ms)))}`;
  return { what: `${kind} (${outcomes.length}): r@5, r@10, MRR`, measured: ours, floor: `${line(({ floor }) => floor)}, BM25 ${line(({ textbook }) => textbook)}`, ratio: "", asked: "" };
}

/** @param {Outcome} outcome */
function complain({ kind, rank, visible, log, question }) {
  process.stdout.write(`${log} · ${kind} · rank ${rank} · ${visible ? "seen" : "unseen"} · ${JSON.stringify(question.query)} → ${JSON.stringify(question.evidence)} ${question.answers}\n`);
}

/** @param {Outcome[]} outcomes @param {(outcome: Outcome) => boolean} fits */
const share = (outcomes, fits) => mean(outcomes.map((outcome) => (fits(outcome) ? 1 : 0)));

/** @param {number[]} values */
const mean = (values) => (values.length > 0 ? values.reduce((sum, value) => sum + value, 0) / values.length : 0);

/** Half the width of the 95 % confidence interval of a share. @param {number} share @param {number} count */
const spread = (share, count) => (1.96 * Math.sqrt((share * (1 - share)) / Math.max(1, count))).toFixed(3);
