/**
 * The driver behind `npm run bench:context`: runs long sessions through the real Pi in several ways, and measures the context's size at
 * each request, the cached part, the cost, and what is still known at the end.
 *
 * Logs and plots are written to `target/bench/context`.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { startModelServer, writeAgentDir } from "../../demo/model-server.mjs";
import { startPi } from "../../demo/rpc.mjs";
import { hostOf, MAIN } from "../../scripts/hosts.mjs";
import { extension, root } from "../../scripts/paths.mjs";
import { markdown, median, number } from "../measure.mjs";
import { summarize } from "../strategies/summarize.mjs";
import { CHEAP, Meter, PRICES } from "./meter.mjs";
import { plot } from "./plot.mjs";
import { Session } from "./session.mjs";
import { SHAPES } from "./shapes.mjs";

/** @typedef {import("../../demo/model-server.mjs").Received} Received */

/** Tokens of a real model's summary for Pi. */
const PI_SUMMARY = 2_500;

/** @typedef {{ lcm?: Record<string, unknown>, compaction?: Record<string, unknown>, rival?: "editing" | "micro" }} Way */

/** Each with Pi's settings; without `lcm` Pi runs alone, or with a rival. @type {(window: number) => Record<string, Way>} */
const waysFor = (window) => ({
  "Pi alone": {},
  "Pi tuned": { compaction: { reserveTokens: window - 40_000, keepRecentTokens: 6_000 } },
  "provider-side editing": { rival: "editing" },
  "micro-compaction": { rival: "micro" },
  "ours, lean": { lcm: {} },
  "ours, lean, no cheap model": { lcm: { compactionModels: ["session"] } },
  "ours, full": { lcm: { context: "full" } },
});

const usage = `npm run bench:context -- [--shape bulky|ten|forty|real|small] [--way PART …] [--window TOKENS] [--cold PERCENT] [--prices list|fiftieth|uncached] [--turns N] [--facts N] [--pi VERSION] [--quick] [--plot FILE]`;
const { values } = parseArgs({
  options: {
    shape: { type: "string", default: "bulky" },
    way: { type: "string", multiple: true },
    window: { type: "string", default: "128000" },
    cold: { type: "string", default: "0" },
    prices: { type: "string", default: "list" },
    turns: { type: "string" },
    facts: { type: "string", default: "24" },
    pi: { type: "string", default: MAIN },
    quick: { type: "boolean", default: false },
    plot: { type: "string" },
    help: { type: "boolean", default: false },
  },
});
const [shape, prices, host] = [SHAPES[values.shape], PRICES[values.prices], hostOf(values.pi)];
if (values.help || !shape || !prices || !host) {
  process.stdout.write(`${usage}\n`);
  process.exit(values.help ? 0 : 2);
}
const { pi: script } = host;
const [window, cold] = [Number(values.window), Number(values.cold)];
const turns = Number(values.turns ?? (values.quick ? Math.ceil(100 / (shape.requests / 2)) : shape.turns));
const wanted = values.way ?? (values.quick ? ["Pi alone", "ours, lean"] : [""]);
const folder = path.join(root, "target", "bench", "context");
mkdirSync(folder, { recursive: true });

const rows = [["way", "requests", "tokens a request", "most", "read", "new", "rewritten", "output", "summaries", "cost", "of Pi alone", "Anthropic", "known", "by calls (0 / 1 / 2)"]];
/** @type {import("./plot.mjs").Line[]} */
const lines = [];
/** @type {number | undefined} */
let alone;
for (const [name, way] of Object.entries(waysFor(window))) {
  if (!wanted.some((part) => (part === "ours, lean" ? name === part : name.includes(part)))) continue;
  process.stderr.write(`${name} …\n`);
  const { meter, known, facts } = await live(name, way);
  const requests = meter.readings.filter(({ kind }) => kind === "turn");
  const sizes = requests.map(({ cached, fresh, again }) => cached + fresh + again);
  const { read, fresh, again, output, summaries, dollars, lookback } = meter.total();
  if (name === "Pi alone") alone = dollars;
  const by = [0, 1, 2].map((calls) => known.filter((took) => took === calls).length);
  const count = known.filter((took) => took !== undefined).length;
  const money = [read, fresh, again, output, summaries, dollars].map((cost) => `$${cost.toFixed(2)}`);
  const share = alone === undefined ? "" : (dollars / alone).toFixed(3);
  rows.push([name, number(requests.length), number(median(sizes)), number(Math.max(...sizes)), ...money, share, `$${(dollars + lookback).toFixed(2)}`, facts > 0 ? `${count} of ${facts}` : "", facts > 0 ? by.join(" / ") : ""]);
  lines.push({ name, values: sizes });
  const log = meter.readings.map((reading, index) => `${JSON.stringify({ index, ...reading })}\n`);
  writeFileSync(path.join(folder, `${values.shape}-${window}-${cold}-${values.prices}-${name.replace(/\W+/g, "-")}.jsonl`), log.join(""));
}
writeFileSync(values.plot ?? path.join(folder, `${values.shape}-${window}-${cold}-${values.prices}.svg`), plot(lines, { title: "Tokens of context, request by request", across: "request" }));
process.stdout.write(`${values.shape}: ${turns} turns of ${shape.requests} requests, a window of ${number(window)} tokens, ${cold} % of the prompts cold, prices: ${Object.values(prices).join(" / ")}\n\n${markdown(rows)}\n\n`);
process.exit(0);

/**
 * Runs the session, and asks for its facts, each in a separate copy.
 * @param {string} name
 * @param {Way} way
 */
async function live(name, { lcm, compaction, rival }) {
  const scratch = mkdtempSync(path.join(os.tmpdir(), "lcm-context-"));
  const [agentDir, cwd, sessionDir] = ["agent", "project", "sessions"].map((part) => path.join(scratch, part));
  for (const dir of [cwd, sessionDir]) mkdirSync(dir);
  const session = new Session(shape, turns, Number(values.facts));
  session.write(cwd);
  const meter = new Meter(prices);
  const server = await startModelServer({ reply: (request) => metered(session, meter, request) });
  writeAgentDir(agentDir, { url: server.url, api: "anthropic", contextWindow: window, cost: prices, models: [CHEAP], settings: { ...(lcm && { lcm }), ...(compaction && { compaction }), retry: { enabled: false } } });
  const loaded = lcm ? extension : rival ? path.join(root, "bench", "context", "rivals.mjs") : undefined;
  const clock = pathToFileURL(path.join(root, "bench", "context", "clock.mjs")).href;
  const env = { LCM_DB_DIR: path.join(scratch, "store"), RIVAL: rival, NODE_OPTIONS: `--import=${clock}` };
  const pi = startPi({ agentDir, cwd, sessionDir, args: loaded ? ["--extension", loaded] : ["--no-extensions"], env, pi: script });
  /** The number of calls for each fact; undefined if it is lost. @type {(number | undefined)[]} */
  const known = [];
  try {
    for (let turn = 0; turn < turns; turn++) {
      if (turn > 0 && (turn * 37) % 100 < cold) {
        process.kill(/** @type {number} */ (pi.pid), "SIGUSR2");
        meter.isCold = true;
      }
      await pi.prompt(session.begin(turn), { timeoutMs: 600_000 });
      // The events of hundreds of turns are large, and no longer needed.
      pi.events.length = 0;
    }
    process.stderr.write(`  ${number(meter.readings.length)} requests, $${meter.total().dollars.toFixed(2)}\n`);
    meter.asks = true;
    const { sessionFile } = await pi.request("get_state");
    for (const fact of session.facts) {
      await pi.request("clone");
      known.push(callsFor(fact.needle, await pi.prompt(session.ask(fact))));
      await pi.request("switch_session", { sessionPath: sessionFile });
      pi.events.length = 0;
    }
  } finally {
    await pi.stop();
    await server.close();
    rmSync(scratch, { recursive: true, force: true, maxRetries: 3 });
  }
  return { meter, known, facts: session.facts.length };
}

/** A summary; for Pi's prompts it is as long as a real model's. @param {Received} request */
function summarized({ kind, messages }) {
  const text = summarize(messages.at(-1)?.text ?? "");
  return kind === "summary" ? text : text.padEnd(PI_SUMMARY * 4, " And so on.");
}

/** @param {Session} session @param {Meter} meter @param {Received} request */
function metered(session, meter, request) {
  const isSummary = request.kind === "summary" || request.toolNames.length === 0;
  const reply = isSummary ? { text: summarized(request) } : session.reply(request);
  const { cached, fresh, again, output } = meter.read(request, `${reply.text ?? ""}${reply.toolCalls ? JSON.stringify(reply.toolCalls) : ""}`);
  // The content of hundreds of requests of half a megabyte is no longer needed.
  Object.assign(request, { raw: "", messages: [], body: { ...request.body, messages: [], tools: [] } });
  return { ...reply, usage: { input: fresh + again, output, cacheRead: cached } };
}

/**
 * @param {string} needle
 * @param {import("../../demo/rpc.mjs").PiRecord[]} events of the run that answers
 */
function callsFor(needle, events) {
  const answered = events.some(({ type, message }) => type === "message_end" && message.role === "assistant" && JSON.stringify(message.content).includes(`It is ${needle}.`));
  return answered ? events.filter(({ type }) => type === "tool_execution_end").length : undefined;
}
