/**
 * The driver behind `npm run bench:strategies -- <session.jsonl> [--model provider/id] [--way lcm]`: compacts that session in each of five ways, and
 * measures the cost and what is kept. The session is read, never written.
 */
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { root } from "../../scripts/paths.mjs";
import { markdown, number, time } from "../measure.mjs";
import { LATENCY_MS, OPTIONS, agreed, openModel } from "../model.mjs";
import { plant } from "./facts.mjs";
import { strategies, tokensOf } from "./strategies.mjs";

const FACTS = 40;
const KEPT = 20;
const [BUDGET, CHUNK] = [8000, 16_000];

const options = /** @type {const} */ ({ model: { type: "string" }, way: { type: "string", multiple: true }, window: { type: "string", default: "200000" }, ...OPTIONS });
const { values, positionals } = parseArgs({ allowPositionals: true, options });
if (positionals.length !== 1) {
  process.stderr.write("usage: npm run bench:strategies -- <session.jsonl> [--model provider/id [--limit dollars] [--yes]] [--way PART …] [--window tokens of the demo model]\n");
  process.exit(1);
}
// A problem with the file or the model's name is one sentence; a stack does not help.
process.on("uncaughtException", ({ message }) => {
  process.stderr.write(`${message}\n`);
  process.exit(1);
});
const branch = branchOf(linesOf(positionals[0]));
const kept = cutOf(branch);
const { entries, facts } = plant(branch, kept, FACTS);
const scratch = path.join(root, "target", "bench", `strategies-${process.pid}`);
mkdirSync(scratch, { recursive: true });
const opened = await openModel(values.model, scratch, Number(values.window));
const { model, asker, close } = opened;
const chosen = Object.entries(strategies).filter(([name]) => values.way?.some((part) => name.includes(part)) ?? true);
const history = tokensOf(JSON.stringify(entries.slice(0, kept)));
// A strategy also sends its own summaries again.
const budget = values.model ? await agreed([{ opened, input: 1.3 * history * chosen.length, output: (2 * BUDGET + 0.05 * history) * chosen.length }], values) : undefined;
try {
  const rows = [["strategy", "calls", "input", "output", "wall time", "block", "shown", "expandable", "facts in the block", "by one lcm_grep"]];
  let all = 0;
  for (const [name, run] of chosen) {
    if (budget && budget.spent >= budget.limit) break;
    const asking = asker(budget);
    const task = { entries, kept, budget: BUDGET, window: model.contextWindow, chunk: CHUNK, facts, model: asking, folder: () => path.join(scratch, "store") };
    const { block, shown, covered = 0, reachable = 0 } = asking.timed(await run(task));
    all ||= entries.slice(0, kept).filter(({ type, message }) => type === "message" && message.role !== "system").length;
    const share = (/** @type {number} */ part) => `${Math.min(100, Math.round((part / all) * 100))} %`;
    const { calls, input, output, ms } = asking.spent;
    const survived = facts.filter(({ needle }) => block.includes(needle)).length;
    rows.push([name, number(calls), number(input), number(output), time(ms ?? 0), number(tokensOf(block)), share(shown), share(covered), `${survived} of ${facts.length}`, `${reachable} of ${facts.length}`]);
  }
  const latency = budget ? `, $${budget.spent.toFixed(3)}` : `, ${LATENCY_MS} ms a call`;
  process.stdout.write(`${number(all)} messages before the kept tail, ${facts.length} facts planted; ${model.provider}/${model.id}${latency}\n\n${markdown(rows)}\n`);
} finally {
  await close();
  rmSync(scratch, { recursive: true, force: true });
}
process.exit(0);

/** @param {string} file @returns {any[]} */
function linesOf(file) {
  const text = readFileSync(file, "utf8");
  try {
    const lines = text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
    if (lines[0]?.type === "session") return lines;
  } catch {
    // Not a line of Pi's.
  }
  throw new Error(`${file} is no session file of Pi's; those lie below ~/.pi/agent/sessions`);
}

/**
 * The last branch of a session file, each entry below the one before; files of the first version have no ids.
 * @param {any[]} lines
 */
function branchOf(lines) {
  const all = lines.filter(({ type }) => type !== "session");
  if (all.some(({ id }) => !id)) return chained(all.map((entry, at) => ({ ...entry, id: at.toString(16).padStart(8, "0") })));
  const byId = new Map(all.map((entry) => [entry.id, entry]));
  const path = [];
  for (let entry = all.at(-1); entry; entry = byId.get(entry.parentId)) path.unshift(entry);
  return chained(path);
}

/** Messages before earlier compactions are ordinary history here. @param {any[]} entries */
function chained(entries) {
  const plain = entries.filter(({ type }) => type !== "compaction");
  return plain.map((entry, at) => ({ ...entry, parentId: plain[at - 1]?.id ?? null }));
}

/** Where the kept tail begins: some messages before the end, not at a tool result. @param {any[]} entries */
function cutOf(entries) {
  const starts = entries.flatMap(({ type, message }, at) => (type === "message" && message.role !== "toolResult" ? [at] : []));
  const cut = starts.at(-KEPT);
  if (!cut) throw new Error("the session is too short to compact");
  return cut;
}
