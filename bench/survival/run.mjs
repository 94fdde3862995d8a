/**
 * The driver behind `npm run bench:survival`: runs coding sessions on the real Pi with a lossy summarizer, and measures what is left after
 * 1, 5 and 20 compactions: in the block, or after one call of `lcm_grep`.
 *
 * A session continues until it has that many compactions. They happen by themselves: as folds by the extension's policy, or at Pi's
 * threshold. Only if none happens in `PATIENCE` turns, Pi is asked for one, like `/compact`.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { startModelServer, writeAgentDir } from "../../demo/model-server.mjs";
import { startPi } from "../../demo/rpc.mjs";
import { extension } from "../../scripts/paths.mjs";
import { OPTIONS, agreed, endEarly, openModel, relay } from "../model.mjs";
import { markdown, median, number, pause } from "../measure.mjs";
import { KINDS, tells } from "./facts.mjs";
import { SEARCHES, Session } from "./session.mjs";
import { lossySummary } from "./summarizer.mjs";
import { Watch, listedAsModified, listedAsOpen, tokensOf } from "./watch.mjs";

/** @typedef {import("../../demo/model-server.mjs").Received} Received */
/** @typedef {import("../../demo/rpc.mjs").Pi} Pi */
/** @typedef {import("./facts.mjs").Fact} Fact */

/** Turns without a compaction before one is requested. */
const PATIENCE = 12;
/** A real model takes longer for a turn than the cheap one for its summaries: a turn waits until no summary was requested for this long. */
const QUIET_MS = 40;
/** Of a turn, with the summaries that it waits for. */
const TURN_MS = 1_800_000;
/** Sessions to run per number of compactions: short ones have few facts each. @type {Record<string, number>} */
const SESSIONS = { 1: 4, 5: 2, 20: 1 };
/** Prices of a typical model of coding agents, and one that is good enough for summaries. */
const COST = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };
const CHEAP = { id: "demo-small", cost: { input: 1, output: 5, cacheRead: 0.1, cacheWrite: 1.25 } };
/** The newest share of the changed files, which counts as recent. */
const RECENT = 0.2;

/** Each with the extension's settings; without them Pi runs alone. @type {Record<string, { lcm?: Record<string, unknown> }>} */
const WAYS = { "Pi alone": {}, ours: { lcm: {} } };
/** Ways that only run if they are named. @type {typeof WAYS} */
const MORE_WAYS = { "full context": { lcm: { context: "full" } } };

const usage = "npm run bench:survival -- [--compactions 1|5|20 …] [--loss PERCENT …] [--way PART …] [--window TOKENS] [--sessions N] [--lost] [--quick] [--summarizer PROVIDER/ID [--limit DOLLARS] [--yes]]";
const { values } = parseArgs({
  options: {
    compactions: { type: "string", multiple: true },
    loss: { type: "string", multiple: true },
    way: { type: "string", multiple: true },
    window: { type: "string", default: "64000" },
    sessions: { type: "string" },
    lost: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    summarizer: { type: "string" },
    ...OPTIONS,
    help: { type: "boolean", default: false },
  },
});
const counts = values.compactions ?? (values.quick || values.summarizer ? ["5"] : ["1", "5", "20"]);
// A real model's loss is what is measured.
const losses = values.summarizer ? ["0"] : (values.loss ?? (values.quick ? ["15"] : ["15", "30"]));
if (values.help || [...counts, ...losses, values.window, values.sessions ?? "1"].some((value) => !/^\d+$/.test(value))) {
  process.stdout.write(`${usage}\n`);
  process.exit(values.help ? 0 : 2);
}
const window = Number(values.window);
const ways = values.way ? Object.entries({ ...WAYS, ...MORE_WAYS }).filter(([name]) => values.way?.some((part) => name.includes(part))) : Object.entries(WAYS);

/**
 * The results of a session.
 * @typedef {object} Outcome
 * @property {{ fact: Fact, inBlock: boolean, byCall: boolean }[]} facts that are no longer raw in the context
 * @property {number} turns
 * @property {number} compactions
 * @property {number} asked those that were requested from Pi
 * @property {number[]} blocks tokens of each
 * @property {boolean[]} underWay for each compaction within a turn, whether the prompt is still in the context word for word
 * @property {boolean[]} recent for each recently changed file, whether the context mentions it
 * @property {boolean[]} unwritten for each file that was not written, whether the block lists it as modified
 * @property {boolean[]} closed for each closed task, whether the block lists it as open
 */

const sessionsOf = (/** @type {string} */ count) => Number(values.sessions ?? (values.quick || values.summarizer ? 1 : (SESSIONS[count] ?? 1)));
const scratch = mkdtempSync(path.join(os.tmpdir(), "lcm-survival-model-"));
const opened = values.summarizer ? await openModel(values.summarizer, scratch) : undefined;
const folded = counts.reduce((sum, count) => sum + Number(count) * sessionsOf(count), 0) * 0.7 * window * ways.length;
const budget = opened && (await agreed([{ opened, input: folded, output: 0.1 * folded }], values));
const summarize = opened && budget && relay(opened, budget);

const began = performance.now();
const seconds = () => `${number((performance.now() - began) / 1000)} s`;
const rows = [["way", "loss", "compactions", ...KINDS.map((kind) => `${kind}s`), "request under way", "recent files", "failed, listed as modified", "closed, listed as open", "block, most", "block, median"]];
const sizes = [["way", "loss", "compactions", "sessions", "turns", ...KINDS.map((kind) => `${kind}s`)]];
try {
  for (const loss of losses) {
    for (const count of counts) {
      for (const [name, { lcm }] of ways) {
        /** @type {Outcome[]} */
        const outcomes = [];
        for (let seed = 1; seed <= sessionsOf(count); seed++) outcomes.push(await live(lcm, Number(count), Number(loss) / 100, seed));
        report(name, opened?.name ?? `${loss} %`, count, outcomes, lcm !== undefined);
      }
    }
  }
} catch (error) {
  endEarly(error);
}
process.stdout.write(`A window of ${number(window)} tokens; in percent, what is still in the block / what is there or found by one call\n\n${markdown(rows)}\n\n`);
process.stdout.write(`How many facts had left the context\n\n${markdown(sizes)}\n\n${seconds()}${budget ? `, $${budget.spent.toFixed(3)}` : ""}\n`);
rmSync(scratch, { recursive: true, force: true });
process.exit();

/**
 * Adds to the tables.
 * @param {string} name
 * @param {string} loss
 * @param {string} count
 * @param {Outcome[]} outcomes
 * @param {boolean} searches
 */
function report(name, loss, count, outcomes, searches) {
  const facts = outcomes.flatMap((outcome) => outcome.facts);
  if (values.lost) process.stderr.write(facts.map(lostLine).join(""));
  const ofKind = (/** @type {string} */ kind) => facts.filter(({ fact }) => fact.kind === kind);
  const share = (/** @type {unknown[]} */ some, /** @type {unknown[]} */ all) => (all.length === 0 ? "–" : `${Math.round((some.length / all.length) * 100)}`);
  const shares = KINDS.map(ofKind).map((all) => {
    const inBlock = share(all.filter((one) => one.inBlock), all);
    return searches ? `${inBlock} / ${share(all.filter((one) => one.inBlock || one.byCall), all)}` : inBlock;
  });
  const tally = (/** @type {"underWay" | "recent" | "unwritten" | "closed"} */ what) => {
    const all = outcomes.flatMap((outcome) => outcome[what]);
    return `${all.filter(Boolean).length} of ${all.length}`;
  };
  const blocks = outcomes.flatMap((outcome) => outcome.blocks);
  rows.push([name, loss, count, ...shares, tally("underWay"), tally("recent"), tally("unwritten"), tally("closed"), number(Math.max(...blocks)), number(median(blocks))]);
  sizes.push([name, loss, count, number(outcomes.length), number(outcomes.reduce((sum, { turns }) => sum + turns, 0)), ...KINDS.map((kind) => number(ofKind(kind).length))]);
  const [made, asked] = [outcomes.map(({ compactions }) => compactions), outcomes.map((outcome) => outcome.asked)];
  process.stderr.write(`  ${name}, ${loss}: ${made.join(", ")} compactions, of these asked for: ${asked.join(", ")}; ${seconds()}\n`);
}

/** A fact that the block lacks, and whether a call finds it. @param {Outcome["facts"][number]} fact */
function lostLine({ fact: { kind, turn, text }, inBlock, byCall }) {
  return inBlock ? "" : `    ${byCall ? "by a call" : "not found"}: ${kind} of turn ${turn}: ${text}\n`;
}

/**
 * Runs a session until it has that many compactions, and looks for its facts.
 * @param {Record<string, unknown> | undefined} lcm
 * @param {number} wanted
 * @param {number} loss
 * @param {number} seed
 * @returns {Promise<Outcome>}
 */
async function live(lcm, wanted, loss, seed) {
  const scratch = mkdtempSync(path.join(os.tmpdir(), "lcm-survival-"));
  const [agentDir, cwd, sessionDir] = ["agent", "project", "sessions"].map((part) => path.join(scratch, part));
  for (const dir of [cwd, sessionDir]) mkdirSync(dir);
  const session = new Session(seed, cwd);
  const watch = new Watch();
  /** @type {Received | undefined} */
  let before;
  let [lastSummary, writing] = [0, 0];
  const lossy = (/** @type {Received} */ { messages }) => ({ text: lossySummary(messages.at(-1)?.text ?? "", loss, session.facts.all) });
  const summary = async (/** @type {Received} */ request) => {
    writing++;
    try {
      return await (summarize ?? lossy)(request);
    } finally {
      writing--;
      lastSummary = Date.now();
    }
  };
  const turn = async (/** @type {Received} */ request) => {
    await pause(QUIET_MS);
    while (writing > 0 || Date.now() - lastSummary < QUIET_MS) await pause(QUIET_MS);
    watch.see(request, session);
    return session.reply(request, watch.blocks.length >= wanted);
  };
  const server = await startModelServer({
    reply: async (request) => {
      /** @type {import("../../demo/model-server.mjs").Reply} */
      const reply = request.kind === "summary" || request.toolNames.length === 0 ? await summary(request) : await turn(request);
      // The content of hundreds of requests is no longer needed once they are answered.
      if (before) Object.assign(before, { raw: "", messages: [], body: {}, judged: {} });
      before = request;
      return reply;
    },
  });
  const priced = opened && { cost: opened.model.cost, contextWindow: opened.model.contextWindow, maxTokens: opened.model.maxTokens };
  writeAgentDir(agentDir, { url: server.url, api: "anthropic", contextWindow: window, cost: COST, models: [{ ...CHEAP, ...priced }], settings: { ...(lcm && { lcm: { ...(opened && { compactionModels: [`demo/${CHEAP.id}`] }), ...lcm } }), retry: { enabled: false } } });
  const env = { LCM_DB_DIR: path.join(scratch, "store"), npm_config_update_notifier: "false", npm_config_logs_max: "0" };
  const pi = startPi({ agentDir, cwd, sessionDir, args: lcm ? ["--extension", extension] : ["--no-extensions"], env });
  try {
    const { compactions, asked } = await play(pi, session, wanted);
    const found = await lookUp(pi, session, watch, lcm !== undefined);
    return { ...judged(session, watch, found), turns: session.turn + 1, compactions, asked };
  } finally {
    await pi.stop();
    await server.close();
    rmSync(scratch, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** @param {Pi} pi @param {Session} session @param {number} wanted */
async function play(pi, session, wanted) {
  let [compactions, asked, since] = [0, 0, 0];
  while (compactions < wanted) {
    budget?.check();
    await pi.prompt(session.begin(), { timeoutMs: TURN_MS });
    checkResults(pi, session);
    // The events of hundreds of turns are large, and no longer needed.
    pi.events.length = 0;
    const { sessionFile } = await pi.request("get_state");
    const before = compactions;
    compactions = compactionsIn(sessionFile);
    since = compactions > before ? 0 : since + 1;
    if (since < PATIENCE) continue;
    // Pi refuses while it would keep everything.
    if (!(await pi.request("compact", {}, TURN_MS).then(() => true, () => false))) continue;
    [compactions, asked, since] = [compactionsIn(sessionFile), asked + 1, 0];
  }
  return { compactions, asked };
}

/** The script is wrong if a call fails unexpectedly, or succeeds unexpectedly. @param {Pi} pi @param {Session} session */
function checkResults(pi, session) {
  for (const { type, toolCallId, isError, result } of pi.events) {
    if (type === "tool_execution_end" && isError !== session.expected.get(toolCallId)) throw new Error(`${toolCallId} ${isError ? "failed" : "did not fail"}: ${JSON.stringify(result)}`);
  }
}

/** @param {string} file */
function compactionsIn(file) {
  const lines = readFileSync(file, "utf8").split("\n").filter((line) => line.includes('"type":"compaction"'));
  return lines.filter((line) => JSON.parse(line).type === "compaction").length;
}

/**
 * Asks one question per fact, in copies of the session, so that no question helps another.
 * @param {Pi} pi
 * @param {Session} session
 * @param {Watch} watch
 * @param {boolean} searches
 * @returns {Promise<Set<Fact>>} the found facts
 */
async function lookUp(pi, session, watch, searches) {
  const said = session.facts.all.filter(({ turn }) => turn !== undefined);
  /** @type {Set<Fact>} */
  const found = new Set();
  const { sessionFile } = await pi.request("get_state");
  for (let at = 0; at === 0 || (searches && at < said.length); at += SEARCHES) {
    const asked = said.slice(at, at + SEARCHES);
    await pi.request("clone");
    watch.isLooking = at === 0;
    const events = await pi.prompt(session.ask(asked), { timeoutMs: TURN_MS });
    for (const { type, toolCallId, result } of events) {
      const fact = type === "tool_execution_end" ? asked[Number(/^search_(\d+)$/.exec(toolCallId)?.[1])] : undefined;
      if (fact && result.content.some((/** @type {any} */ { text = "" }) => text.includes(fact.needle))) found.add(fact);
    }
    await pi.request("switch_session", { sessionPath: sessionFile });
    pi.events.length = 0;
  }
  return found;
}

/** @param {Session} session @param {Watch} watch @param {Set<Fact>} found */
function judged({ facts: { all }, unwritten }, { block, raw, blocks, underWay }, found) {
  const said = all.filter(({ turn }) => turn !== undefined);
  const files = said.filter(({ kind }) => kind === "file");
  const gone = said.filter(({ needle, closing }) => !raw.includes(needle) && closing === undefined);
  return {
    facts: gone.map((fact) => ({ fact, inBlock: tells(fact, block), byCall: found.has(fact) })),
    blocks: blocks.map(tokensOf),
    underWay,
    recent: files.slice(-Math.ceil(files.length * RECENT)).map((fact) => tells(fact, block) || raw.includes(fact.needle)),
    unwritten: unwritten.map(({ path: file }) => listedAsModified(block, file)),
    closed: said.filter(({ closing }) => closing !== undefined).map(({ needle }) => listedAsOpen(block, needle)),
  };
}
