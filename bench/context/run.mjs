/**
 * The driver behind `npm run bench:context`: one long session through the real Pi in each of several ways, and how large the context
 * was at each request, what of it a provider's cache had, what that costs, and what is still known at the end.
 *
 * The logs and the plot are written to `target/bench/context`; `--plot FILE` puts the plot elsewhere too.
 */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { startModelServer, writeAgentDir } from "../../demo/model-server.mjs";
import { startPi } from "../../demo/rpc.mjs";
import { extension, root } from "../../scripts/paths.mjs";
import { markdown, median, number } from "../measure.mjs";
import { summarize } from "../strategies/summarize.mjs";
import { CHEAP, Meter, PRICES } from "./meter.mjs";
import { plot } from "./plot.mjs";
import { longSession } from "./session.mjs";

/** @typedef {import("../../demo/model-server.mjs").Received} Received */
/** @typedef {import("./session.mjs").Session} Session */

/** Tokens of a summary as real models write them for Pi. */
const PI_SUMMARY = 2_500;

/** @typedef {{ lcm?: Record<string, unknown>, compaction?: Record<string, unknown> }} Way */

/** Each with Pi's settings; without `lcm` it is Pi alone. @type {(window: number) => Record<string, Way>} */
const ways = (/** @type {number} */ window) => ({
  "Pi alone": {},
  "Pi tuned": { compaction: { reserveTokens: window - 40_000, keepRecentTokens: 6_000 } },
  "ours, lean": { lcm: { compactionModels: [`demo/${CHEAP.id}`] } },
  "ours, lean, no cheap model": { lcm: { compactionModels: [] } },
  "ours, full": { lcm: { compactionModels: [`demo/${CHEAP.id}`], context: "full" } },
});

const options = /** @type {const} */ ({ turns: { type: "string", default: "300" }, facts: { type: "string", default: "24" }, way: { type: "string" }, window: { type: "string", default: "128000" }, plot: { type: "string" } });
const { values } = parseArgs({ options });
const WINDOW = Number(values.window);
const folder = path.join(root, "target", "bench", "context");
mkdirSync(folder, { recursive: true });
const session = longSession(Number(values.turns), Number(values.facts));
const rows = [["way", "requests", "tokens a request", "most", "cached", "not cached", "summaries", "output", "cost", "known", "by calls (0 / 1 / 2)"]];
/** @type {import("./plot.mjs").Line[]} */
const lines = [];
for (const [name, way] of Object.entries(ways(WINDOW))) {
  if (values.way && !name.includes(values.way)) continue;
  process.stderr.write(`${name} …\n`);
  const { meter, known } = await live(name, way);
  const turns = meter.readings.filter(({ kind }) => kind === "turn");
  const sizes = turns.map(({ cached, fresh }) => cached + fresh);
  const summaries = meter.readings.filter(({ kind }) => kind === "summary").reduce((sum, { fresh }) => sum + fresh, 0);
  const { cached, fresh, output, dollars } = meter.total();
  const by = [0, 1, 2].map((calls) => known.filter((took) => took === calls).length);
  const count = known.filter((took) => took !== undefined).length;
  rows.push([name, number(turns.length), number(median(sizes)), number(Math.max(...sizes)), number(cached), number(fresh - summaries), number(summaries), number(output), `$${dollars.toFixed(2)}`, `${count} of ${session.facts.length}`, by.join(" / ")]);
  lines.push({ name, values: sizes });
  const log = meter.readings.map((reading, index) => `${JSON.stringify({ index, ...reading })}\n`);
  writeFileSync(path.join(folder, `${name.replace(/\W+/g, "-")}.jsonl`), log.join(""));
}
const picture = path.join(folder, "context.svg");
writeFileSync(picture, plot(lines, { title: "Tokens of context, request by request", across: "request" }));
if (values.plot) copyFileSync(picture, values.plot);
process.stdout.write(`${values.turns} turns, a window of ${number(WINDOW)} tokens\n\n${markdown(rows)}\n\nlogs and plot: ${path.relative(process.cwd(), folder)}\n`);
process.exit(0);

/**
 * Lives the session through.
 * @param {string} name
 * @param {Way} way
 */
async function live(name, { lcm, compaction }) {
  const scratch = mkdtempSync(path.join(os.tmpdir(), "lcm-context-"));
  const [agentDir, cwd, sessionDir] = ["agent", "project", "sessions"].map((part) => path.join(scratch, part));
  for (const dir of [cwd, sessionDir]) mkdirSync(dir);
  session.write(cwd);
  const meter = new Meter();
  const server = await startModelServer({ reply: (request) => metered(meter, request) });
  writeAgentDir(agentDir, { url: server.url, contextWindow: WINDOW, cost: PRICES, models: [CHEAP], settings: { ...(lcm && { lcm }), ...(compaction && { compaction }), retry: { enabled: false } } });
  const pi = startPi({ agentDir, cwd, sessionDir, args: lcm ? ["--extension", extension] : ["--no-extensions"], env: { LCM_DB_DIR: path.join(scratch, "store") } });
  /** How many calls each fact took; undefined where it is not known any more. @type {(number | undefined)[]} */
  const known = [];
  try {
    for (const [at, prompt] of session.prompts.entries()) {
      const events = await pi.prompt(prompt);
      const fact = session.facts[at - session.prompts.length + session.facts.length];
      if (fact) known.push(callsFor(fact.needle, events));
      // The events of hundreds of turns are large, and nobody looks at them again.
      pi.events.length = 0;
      if (at % 50 === 49) process.stderr.write(`  ${name}: ${at + 1} of ${session.prompts.length} prompts, ${number(meter.readings.length)} requests\n`);
    }
  } finally {
    await pi.stop();
    await server.close();
    rmSync(scratch, { recursive: true, force: true, maxRetries: 3 });
  }
  return { meter, known };
}

/** A summary; what Pi asks for is as long as real models write it. @param {Received} request */
function summarized({ kind, messages }) {
  const text = summarize(messages.at(-1)?.text ?? "");
  return kind === "summary" ? text : text.padEnd(PI_SUMMARY * 4, " And so on.");
}

/** @param {Meter} meter @param {Received} request */
function metered(meter, request) {
  const isSummary = request.toolNames.length === 0;
  const reply = isSummary ? { text: summarized(request) } : session.reply(request);
  const { cached, fresh, output } = meter.read(request, reply.text ?? JSON.stringify(reply.toolCalls));
  // What hundreds of requests of half a megabyte hold is needed no more.
  Object.assign(request, { raw: "", messages: [], body: { ...request.body, messages: [], tools: [] } });
  return { ...reply, usage: { input: fresh, output, cacheRead: cached } };
}

/**
 * @param {string} needle
 * @param {import("../../demo/rpc.mjs").PiRecord[]} events of the run that answers
 */
function callsFor(needle, events) {
  const answered = events.some(({ type, message }) => type === "message_end" && message.role === "assistant" && JSON.stringify(message.content).includes(`It is ${needle}.`));
  return answered ? events.filter(({ type }) => type === "tool_execution_end").length : undefined;
}
