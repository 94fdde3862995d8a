/**
 * The driver behind `npm run bench:boards -- FOLDER`: runs the queries of public boards, or of your own, through `lcm_grep`.
 *
 * `--kind PART` only runs those kinds, `--misses N` prints the worst answers, `--save FILE` stores each query's scores, and `--against
 * FILE` compares with stored ones. `--sessions` makes each session of a conversation a session of Pi's and scores sessions.
 */
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { root } from "../../scripts/paths.mjs";
import { historyOf } from "../asking.mjs";
import { markdown } from "../measure.mjs";
import { conversationsIn } from "./formats.mjs";
import { COLUMNS, changed, row, score } from "./score.mjs";

/** @typedef {import("./formats.mjs").Conversation} Conversation */
/** @typedef {import("./score.mjs").Scored} Scored */

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { kind: { type: "string", default: "" }, misses: { type: "string", default: "0" }, save: { type: "string" }, against: { type: "string" }, sessions: { type: "boolean", default: false } },
});
const [folder] = positionals;
if (positionals.length !== 1 || !statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
  process.stderr.write("usage: npm run bench:boards -- FOLDER [--kind PART] [--sessions] [--misses N] [--save FILE] [--against FILE]; FOLDER holds the boards' files, see docs/benchmarks.md\n");
  process.exit(2);
}
const scratch = path.join(root, "target", "bench", `boards-${process.pid}`);
/** @type {Scored[]} */
const all = [];
try {
  let n = 0;
  for (const conversation of conversationsIn(folder)) all.push(...(await asked(conversation, n++)));
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
if (all.length === 0) {
  process.stderr.write(`${folder} has no query of a known format: see docs/benchmarks.md.\n`);
  process.exit(2);
}
for (const [board, scored] of groups(all, ({ board }) => board)) {
  process.stdout.write(`\n${board}\n\n`);
  const kinds = groups(scored, ({ kind }) => kind).map(([kind, some]) => row(kind, some));
  const conversations = groups(scored, ({ conversation }) => conversation).map(([id, some]) => row(`of ${id}`, some));
  process.stdout.write(`${markdown([COLUMNS, ...kinds, ...conversations, row("all", scored)])}\n`);
}
for (const { board, conversation, kind, query, gold, places, ranks, seen } of worst(all).slice(0, Number(values.misses))) {
  process.stdout.write(`${board} ${conversation} · ${kind} · ${JSON.stringify(query)} → ${gold} at ${ranks.join(", ") || "none"}${seen === 0 ? " · unseen" : ""} · instead ${places.slice(0, 5)}\n`);
}
if (values.against) process.stdout.write(`${changed(JSON.parse(readFileSync(values.against, "utf8")), all)}\n`);
if (values.save) writeFileSync(values.save, JSON.stringify(all));

/** @param {Conversation} conversation @param {number} n @returns {Promise<Scored[]>} */
async function asked({ board, id, messages, sessions, queries }, n) {
  const wanted = queries.filter(({ kind }) => kind.includes(values.kind));
  if (wanted.length === 0 || (values.sessions && !sessions)) return [];
  const store = path.join(scratch, String(n));
  mkdirSync(store, { recursive: true });
  const history = await historyOf(store, 40_000, messages, values.sessions ? sessions : undefined);
  const how = values.sessions ? { scope: "sessions" } : {};
  const scored = [];
  for (const query of wanted) scored.push({ board, conversation: id, ...score(query, await history.ask(query.query, how), sessions) });
  await history.close();
  rmSync(store, { recursive: true, force: true });
  return scored;
}

/** @template T @param {T[]} list @param {(item: T) => string} by */
function groups(list, by) {
  /** @type {Map<string, T[]>} */
  const groups = new Map();
  for (const item of list) groups.set(by(item), [...(groups.get(by(item)) ?? []), item]);
  return [...groups].sort(([one], [other]) => one.localeCompare(other));
}

/** The lowest reciprocal ranks first, then answers without a visible needle. @param {Scored[]} scored */
function worst(scored) {
  return scored.filter(({ at5, seen }) => at5 < 1 || seen === 0).sort((one, other) => one.mrr - other.mrr || one.at5 - other.at5);
}
