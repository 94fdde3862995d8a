/**
 * One session on the real Pi, and what the provider counted: the usage of each request, the reasoning that the model no longer sees, and
 * which facts are still known at the end.
 *
 * The server's answers take no time, while a real model's takes seconds. In these, the extension writes summaries in the background. So a
 * request of the agent is answered once no summary has been requested for `QUIET_MS`.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { startModelServer, writeAgentDir } from "../../demo/model-server.mjs";
import { startPi } from "../../demo/rpc.mjs";
import { extension, root } from "../../scripts/paths.mjs";
import { ASKED, install, relay, textOf } from "../model.mjs";
import { pause } from "../measure.mjs";
import { lossySummary } from "../survival/summarizer.mjs";
import { Session } from "./session.mjs";

/** @typedef {import("../../demo/model-server.mjs").Received} Received */
/** @typedef {import("../model.mjs").Prices} Prices */

/**
 * A request that the provider has answered.
 * @typedef {object} Counted
 * @property {Received["kind"]} kind
 * @property {string} model
 * @property {import("../../demo/wire.mjs").Usage} usage
 * @property {number} seen reasoning blocks that the model sees
 * @property {number} dropped reasoning blocks that were sent, and that it does not see
 * @property {number} lost answers in the context whose reasoning the model sees no longer, for the first time
 * @property {number} lostInRun of these, answers of the current run
 * @property {number} block tokens of the summary that the context begins with since this request; 0 for the same as before
 */

/**
 * @typedef {object} Lived
 * @property {Counted[]} requests
 * @property {Record<string, Prices>} prices of the provider's models
 * @property {string} context what `/lcm context` says at the end
 * @property {string} recorded its session file
 * @property {(number | undefined)[]} known the number of calls for each fact; undefined if it is lost
 * @property {Answers[]} answers of the real model, by wording
 */

/**
 * How a real model answered.
 * @typedef {{ wording: string, right: number, wrong: number, askedBack: number, failed: number, calls: number, dollars: number }} Answers
 */

/**
 * Real models, and other words for what steers them.
 * @typedef {object} Real
 * @property {import("../model.mjs").Opened} [summarizer] writes the summaries
 * @property {import("../model.mjs").Opened} [asked] is asked for the facts
 * @property {import("../model.mjs").Budget} budget
 * @property {{ name: string, texts: object }[]} wordings the first is today's
 */

/** Of a request that only keeps the prompt cache alive. */
const NOTHING = { seen: 0, dropped: 0, lost: 0, lostInRun: 0, block: 0 };
const QUIET_MS = 60;
/** Of a turn, with the summaries that it waits for. */
const TURN_MS = 1_800_000;
/** An answer that asks back, or that gives up. */
const ASKS = /\?\s*$|\b(do(n't| not) (know|have|see|recall)|could you|can you|please (tell|share|provide))\b/i;
/** The share of the important sentences that each summary omits. */
const LOSS = 0.15;
/** Pi is away for so many steps of its clock: ten minutes. */
const [AWAY_STEPS, STEP_MS] = [7, 90_000];

/**
 * @param {object} cell
 * @param {{ provider: string, id: string, overrides: Record<string, object> }} cell.model
 * @param {import("./shapes.mjs").Shape} cell.shape
 * @param {number} cell.requests
 * @param {number} cell.facts how many are asked for
 * @param {number} cell.idle the user is away before each prompt of this number; 0 for never
 * @param {string} cell.pi Pi's script
 * @param {{ lcm?: object, compaction?: object }} cell.settings without `lcm`, Pi runs alone
 * @param {Real} [cell.real]
 * @returns {Promise<Lived>}
 */
export async function live({ model, shape, requests, facts, idle, pi: script, settings, real }) {
  const scratch = mkdtempSync(path.join(os.tmpdir(), "lcm-context-"));
  const [agentDir, cwd, sessionDir] = ["agent", "project", "sessions"].map((part) => path.join(scratch, part));
  for (const dir of [cwd, sessionDir]) mkdirSync(dir);
  const session = new Session(shape, requests);
  session.write(cwd);
  const watch = new Watch(session, settings.lcm !== undefined, real?.summarizer && relay(real.summarizer, real.budget));
  let moved = 0;
  const server = await startModelServer({ reply: (request) => watch.reply(request), cache: { now: () => Date.now() + moved } });
  writeAgentDir(agentDir, { url: server.url, catalog: [model.provider], overrides: model.overrides, settings: { defaultProvider: model.provider, defaultModel: model.id, ...settings, retry: { enabled: false } } });
  const clock = pathToFileURL(path.join(root, "bench", "context", "clock.mjs")).href;
  const key = real?.asked && (await install([real.asked], agentDir));
  const guidance = path.join(scratch, "guidance.json");
  writeFileSync(guidance, "{}");
  const env = { LCM_DB_DIR: path.join(scratch, "store"), NODE_OPTIONS: `--import=${clock}`, BENCH_GUIDANCE: guidance, ...key };
  const extensions = [...(real?.asked ? [path.join(root, "bench", "guidance.mjs")] : []), extension].flatMap((file) => ["--extension", file]);
  const pi = startPi({ agentDir, cwd, sessionDir, args: settings.lcm ? extensions : ["--no-extensions"], env, pi: script });
  const away = async () => {
    for (let step = 0; step < AWAY_STEPS; step++, moved += STEP_MS) {
      await pi.request("get_state");
      await pause(QUIET_MS);
      process.kill(/** @type {number} */ (pi.pid), "SIGUSR2");
    }
  };
  try {
    for (let turn = 0; turn < session.turns; turn++) {
      if (idle > 0 && turn % idle === idle - 1) await away();
      real?.budget.check();
      // An answer of one token, all that Pi allows in a full window, comes at once.
      await watch.quiet();
      await pi.prompt(session.begin(turn), { timeoutMs: TURN_MS });
      const failed = pi.events.find(({ type, message }) => type === "message_end" && message.stopReason === "error");
      if (failed) throw new Error(`Pi's answer failed: ${failed.message.errorMessage}`);
      // The events of hundreds of turns are large, and no longer needed.
      pi.events.length = 0;
    }
    await watch.quiet();
    const counted = server.requests.flatMap(({ index, kind, body, judged: { usage } }) => (usage ? [Object.assign({ ...NOTHING, kind, model: body.model, usage }, watch.seen[index])] : []));
    if (settings.lcm) await pi.request("prompt", { message: "/lcm context" });
    const context = pi.ui("notify").at(-1)?.message ?? "";
    const { models } = await pi.request("get_available_models");
    const { sessionFile } = await pi.request("get_state");
    const recorded = readFileSync(sessionFile, "utf8");
    /** @type {Lived["known"]} */
    const known = [];
    for (const fact of real?.asked ? [] : session.facts.slice(0, facts)) {
      await pi.request("clone");
      known.push(callsFor(fact.needle, await pi.prompt(session.ask(fact), { timeoutMs: TURN_MS })));
      await pi.request("switch_session", { sessionPath: sessionFile });
      pi.events.length = 0;
    }
    /** @type {Answers[]} */
    const answers = [];
    for (const { name, texts } of (real?.asked && real.wordings.slice(0, settings.lcm ? undefined : 1)) ?? []) {
      writeFileSync(guidance, JSON.stringify(texts));
      answers.push(await asked(pi, name, session.facts.slice(0, facts), /** @type {Real} */ (real), sessionFile));
    }
    const ofProvider = models.filter((/** @type {any} */ { provider }) => provider === model.provider);
    return { requests: counted, prices: Object.fromEntries(ofProvider.map((/** @type {any} */ { id, cost }) => [id, cost])), known, answers, context, recorded };
  } finally {
    await pi.stop();
    await server.close();
    rmSync(scratch, { recursive: true, force: true, maxRetries: 3 });
  }
}

/**
 * Asks the real model one question per fact, in copies of the session, without a word about tools. Ends early at the limit.
 * @param {import("../../demo/rpc.mjs").Pi} pi
 * @param {string} wording
 * @param {import("./session.mjs").Fact[]} facts
 * @param {Real} real
 * @param {string} sessionPath
 */
async function asked(pi, wording, facts, { asked, budget }, sessionPath) {
  /** @type {Answers} */
  const answers = { wording, right: 0, wrong: 0, askedBack: 0, failed: 0, calls: 0, dollars: 0 };
  for (const { question, needle } of facts) {
    if (budget.spent >= budget.limit) break;
    await pi.request("clone");
    await pi.request("set_model", { provider: `${ASKED}0`, modelId: asked?.model.id });
    const events = await pi.prompt(`${question[0].toUpperCase()}${question.slice(1)}?`, { timeoutMs: TURN_MS });
    const said = events.flatMap(({ type, message }) => (type === "message_end" && message.role === "assistant" ? [message] : []));
    const answer = textOf(said.at(-1) ?? { content: [] });
    const verdict = said.at(-1)?.stopReason === "error" ? "failed" : answer.includes(needle) ? "right" : ASKS.test(answer) ? "askedBack" : "wrong";
    answers[verdict]++;
    process.stderr.write(`  ${wording}: ${question}: ${verdict}: ${(said.at(-1)?.errorMessage ?? answer).replace(/\s+/g, " ").slice(0, 100)}\n`);
    answers.calls += events.filter(({ type }) => type === "tool_execution_end").length;
    const cost = said.reduce((sum, { usage }) => sum + usage.cost.total, 0);
    answers.dollars += cost;
    budget.spend(cost);
    const unheard = pi.ui("notify").find(({ message }) => message.startsWith("guidance: "));
    if (unheard) throw new Error(unheard.message);
    await pi.request("switch_session", { sessionPath });
    pi.events.length = 0;
  }
  return answers;
}

/** Answers the requests, and counts them. */
class Watch {
  /** What was seen of each request, by its index. @type {Omit<Counted, "usage">[]} */
  seen = [];
  /** @type {Received | undefined} */
  #before;
  #session;
  #waits;
  #lastSummary = 0;
  /** Summaries that a real model is writing. */
  #writing = 0;
  #summarize;
  /** Answers whose reasoning the model sees no longer. @type {Set<number>} */
  #lost = new Set();
  #beginning = "";

  /** @param {Session} session @param {boolean} waits for summaries @param {ReturnType<typeof relay>} [summarize] a real model */
  constructor(session, waits, summarize) {
    this.#session = session;
    this.#waits = waits;
    this.#summarize = summarize ?? this.#lossy;
  }

  /** @param {Received} request @returns {Promise<import("../../demo/model-server.mjs").Reply>} */
  async reply(request) {
    const isSummary = request.kind === "summary" || request.toolNames.length === 0;
    this.seen[request.index] = this.#see(request, isSummary);
    if (isSummary) {
      this.#writing++;
      try {
        return await this.#summarize(request);
      } finally {
        this.#writing--;
        this.#lastSummary = Date.now();
      }
    }
    // The content of hundreds of requests of half a megabyte is no longer needed.
    if (this.#before) Object.assign(this.#before, { raw: "", messages: [], body: {}, judged: { usage: this.#before.judged.usage } });
    this.#before = request;
    await this.quiet();
    return this.#session.reply(request);
  }

  /** @param {Received} request @returns {Promise<import("../../demo/model-server.mjs").Reply>} */
  async #lossy({ judged, index, messages }) {
    return { thinking: judged.thinks ? this.#session.thought(index) : "", text: lossySummary(messages.at(-1)?.text ?? "", LOSS, [...this.#session.facts, ...this.#session.needs.values()]) };
  }

  /** Waits until no summary has been requested for a while. */
  async quiet() {
    if (this.#waits) await pause(QUIET_MS);
    while (this.#writing > 0 || Date.now() - this.#lastSummary < QUIET_MS) await pause(QUIET_MS / 2);
  }

  /** @param {Received} request @param {boolean} isSummary @returns {Omit<Counted, "usage">} */
  #see({ kind, body, judged, messages }, isSummary) {
    const counted = { kind: isSummary ? /** @type {const} */ ("summary") : kind, model: body.model, ...NOTHING, seen: judged.seen, dropped: judged.dropped };
    if (isSummary) return counted;
    const thoughts = numbersIn(judged.body, ["thinking", "reasoning"], /Thought (\d+):/);
    const lost = [...numbersIn(body, ["text", "output_text", "message"], /Answer (\d+):/)].filter((n) => !thoughts.has(n) && !this.#lost.has(n));
    for (const n of lost) this.#lost.add(n);
    const beginning = messages[0]?.text ?? "";
    const block = this.#beginning !== "" && beginning !== this.#beginning ? Math.ceil(Buffer.byteLength(beginning) / 4) : 0;
    this.#beginning = beginning;
    return { ...counted, lost: lost.length, lostInRun: lost.filter((n) => n >= this.#session.began).length, block };
  }
}

/** The numbers that parts of the model's answers begin with. @param {any} body @param {string[]} types @param {RegExp} begins */
function numbersIn({ messages, input }, types, begins) {
  const parts = messages ? messages.flatMap((/** @type {any} */ { role, content }) => (role === "assistant" ? content : [])) : input.filter((/** @type {any} */ { type, role }) => type === "reasoning" || role === "assistant");
  const numbers = parts.flatMap((/** @type {any} */ part) => (types.includes(part.type) ? [Number(begins.exec(JSON.stringify(part))?.[1])] : []));
  return new Set(/** @type {number[]} */ (numbers));
}

/**
 * @param {string} needle
 * @param {import("../../demo/rpc.mjs").PiRecord[]} events of the run that answers
 */
function callsFor(needle, events) {
  const answered = events.some(({ type, message }) => type === "message_end" && message.role === "assistant" && JSON.stringify(message.content).includes(`It is ${needle}.`));
  return answered ? events.filter(({ type }) => type === "tool_execution_end").length : undefined;
}
