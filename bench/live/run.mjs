/**
 * The driver behind `npm run bench:live -- --model provider/id`: a real model works on a small repository for fifty turns, with the
 * extension and with Pi alone, which two of its settings let compact early. It counts the user's rules that are broken, the files that are
 * read again although nobody changed them, and the cost by the provider's usage, summaries included.
 *
 * The model runs commands as it always does in Pi, in a temporary folder.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { writeAgentDir } from "../../demo/model-server.mjs";
import { startPi } from "../../demo/rpc.mjs";
import { hostOf } from "../../scripts/hosts.mjs";
import { extension, root } from "../../scripts/paths.mjs";
import { markdown } from "../measure.mjs";
import { ASKED, OPTIONS, agreed, endEarly, install, openModel, textOf } from "../model.mjs";
import { RULES, filesIn, promptOf, ticketOf, writeProject } from "./project.mjs";

const usage = "npm run bench:live -- --model MODEL [--summarizer MODEL] [--turns N] [--seeds N] [--way ours|tuned …] [--guidance FILE …] [--limit DOLLARS] [--yes]\nMODEL is one of Pi's, provider/id, or `small`, a local one.";
const { values } = parseArgs({
  options: {
    model: { type: "string", default: "" },
    summarizer: { type: "string" },
    turns: { type: "string", default: "50" },
    seeds: { type: "string", default: "3" },
    way: { type: "string", multiple: true },
    guidance: { type: "string", multiple: true, default: [] },
    ...OPTIONS,
  },
});
if (!values.model) {
  process.stdout.write(`${usage}\n`);
  process.exit(2);
}
/** Requests of a turn, the context of one, and what each adds and answers, for the price. */
const [REQUESTS, CONTEXT, ADDED, ANSWER] = [6, 30_000, 1_500, 300];
const [turns, seeds] = [Number(values.turns), Number(values.seeds)];
const scratch = mkdtempSync(path.join(os.tmpdir(), "lcm-live-"));
const opened = await openModel(values.model, scratch);
const summarizer = values.summarizer ? await openModel(values.summarizer, scratch) : undefined;
const window = opened.model.contextWindow;
const compaction = window > 60_000 ? { reserveTokens: window - 40_000, keepRecentTokens: 6_000 } : { reserveTokens: 2_048, keepRecentTokens: 2_000 };
const lcm = summarizer ? { compactionModels: [`${ASKED}1/${summarizer.model.id}`] } : {};
/** A fitting threshold only for the extension too where Pi's defaults leave nothing to compact. */
const ours = { lcm, ...(window <= 60_000 && { compaction }) };
const ways = [
  { name: "tuned", settings: { compaction }, texts: {} },
  { name: "ours", settings: ours, texts: {} },
  ...values.guidance.map((file) => ({ name: `ours, ${path.basename(file)}`, settings: ours, texts: JSON.parse(readFileSync(file, "utf8")) })),
].filter(({ name }) => values.way?.some((part) => name.includes(part)) ?? true);
const requests = turns * REQUESTS * seeds * ways.length;
const budget = await agreed([{ opened, input: requests * ADDED, again: requests * Math.min(CONTEXT, window / 2), output: requests * ANSWER }], values);

const rows = [["way", "sessions", "turns", "rules broken", ...RULES.map((_, at) => `${at + 1}`), "read again", "calls", "failed", "compactions", "$"]];
for (const way of ways) {
  const total = { sessions: 0, turns: 0, kept: RULES.map(() => 0), broken: RULES.map(() => 0), again: 0, calls: 0, failed: 0, compactions: 0, dollars: 0 };
  try {
    for (let seed = 1; seed <= seeds; seed++) await live(way, seed, total);
  } catch (error) {
    endEarly(error);
  }
  const sum = (/** @type {number[]} */ some) => some.reduce((one, other) => one + other, 0);
  const share = (/** @type {number} */ broken, /** @type {number} */ kept) => `${broken} of ${broken + kept}`;
  const { sessions, kept, broken, again, calls, failed, compactions } = total;
  rows.push([way.name, ...[sessions, total.turns].map(String), share(sum(broken), sum(kept)), ...broken.map((count, at) => share(count, kept[at])), ...[again, calls, failed, compactions].map(String), total.dollars.toFixed(3)]);
}
process.stdout.write(`${opened.name}; rules: 1 to ${RULES.length} as in bench/live/project.mjs\n\n${markdown(rows)}\n`);
await Promise.all([opened.close(), summarizer?.close()]);
rmSync(scratch, { recursive: true, force: true, maxRetries: 3 });
process.exit();

/**
 * One session.
 * @param {typeof ways[number]} way
 * @param {number} seed
 * @param {{ sessions: number, turns: number, kept: number[], broken: number[], again: number, calls: number, failed: number, compactions: number, dollars: number }} total to add to
 */
async function live({ name, settings, texts }, seed, total) {
  const folder = mkdtempSync(path.join(scratch, "session-"));
  const [agentDir, cwd, sessionDir] = ["agent", "project", "sessions"].map((part) => path.join(folder, part));
  for (const dir of [cwd, sessionDir]) mkdirSync(dir);
  writeProject(cwd);
  // The scripted model is there, and nobody asks it.
  writeAgentDir(agentDir, { url: "http://127.0.0.1:9", settings: { defaultProvider: `${ASKED}0`, defaultModel: opened.model.id, ...settings } });
  const keys = await install([opened, ...(summarizer ? [summarizer] : [])], agentDir);
  const guidance = path.join(folder, "guidance.json");
  writeFileSync(guidance, JSON.stringify(texts));
  const args = "lcm" in settings ? [path.join(root, "bench", "guidance.mjs"), extension].flatMap((file) => ["--extension", file]) : ["--no-extensions"];
  const pi = startPi({ agentDir, cwd, sessionDir, args, env: { ...keys, LCM_DB_DIR: path.join(folder, "store"), BENCH_GUIDANCE: guidance }, pi: hostOf("1.6.0")?.pi });
  /** Files that the model has read and not changed since. */
  const read = new Set();
  let spent = 0;
  total.sessions++;
  try {
    for (let turn = 0; turn < turns; turn++) {
      budget.check();
      const before = filesIn(cwd);
      const events = await pi.prompt(promptOf(turn, seed), { timeoutMs: 1_800_000 });
      const answers = events.flatMap(({ type, message }) => (type === "message_end" && message.role === "assistant" ? [message] : []));
      const failed = answers.at(-1)?.stopReason === "error";
      if (failed && turn === 0) throw new Error(`The first answer failed: ${answers.at(-1).errorMessage}`);
      const calls = answers.flatMap(({ content }) => content.filter((/** @type {any} */ { type }) => type === "toolCall"));
      for (const { name: tool, arguments: given } of calls) {
        if (tool === "read" && read.has(given.path)) total.again++;
        if (tool === "read") read.add(given.path);
        else read.delete(given.path);
      }
      const changes = [...filesIn(cwd)].flatMap(([file, after]) => (before.get(file) === after ? [] : [{ file, before: before.get(file) ?? "", after }]));
      const commands = calls.flatMap(({ name: tool, arguments: given }) => (tool === "bash" ? [String(given.command)] : []));
      const done = { ticket: ticketOf(turn), changes, commands, answer: failed ? "" : textOf(answers.at(-1) ?? { content: [] }) };
      for (const [at, { isKept }] of failed ? [] : RULES.slice(0, turn).entries()) {
        const kept = isKept(done);
        if (kept !== undefined) total[kept ? "kept" : "broken"][at]++;
      }
      const { cost } = await pi.request("get_session_stats");
      budget.spend(cost - spent);
      total.dollars += cost - spent;
      spent = cost;
      total.turns++;
      total.calls += calls.length;
      total.failed += Number(failed);
      total.compactions += events.filter(({ type }) => type === "compaction_end").length;
      const unheard = pi.ui("notify").find(({ message }) => message.startsWith("guidance: "));
      if (unheard) throw new Error(unheard.message);
      process.stderr.write(`  ${name}, seed ${seed}, turn ${turn + 1}: ${calls.length} calls${failed ? ", failed" : ""}, $${spent.toFixed(3)}\n`);
      pi.events.length = 0;
    }
  } finally {
    await pi.stop();
  }
}
