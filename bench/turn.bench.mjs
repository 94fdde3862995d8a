/**
 * What a message of one growing session costs, with its share of all events of its run: Pi waits for its own thread, and the others share the
 * cores with it. Both must take the same at any length.
 *
 * One session is only stored: with `context: full`, each turn is recorded and decided. The other is folded too: every message is summarized
 * by a model that answers at once, and folds come at the usual pace. The handlers are called in Pi's order.
 */
import { setImmediate as nextTick } from "node:timers/promises";
import { entries } from "./corpus.mjs";
import { Host } from "./host.mjs";
import { median, pause, quantile, time } from "./measure.mjs";

/** @typedef {import("./measure.mjs").Context} Context */
/** @typedef {import("./measure.mjs").Figure} Figure */
/** @typedef {import("../index.d.ts").Engine} Engine */

const SIZES = [10_000, 100_000, 1_000_000];
/** From so many messages on, a session is handed over in bulk up to the next size. */
const IN_FULL = 100_000;
const BULK = 2_000;
/** Messages of a run: the prompt, an answer that calls a tool, its result, the last answer. */
const EXCHANGE = 4;
/** Runs from which a figure comes. */
const LOOKED_AT = 1_000;
/** Processor time for each message, of Pi's thread and of the others. */
const [THREAD_MS, OTHERS_MS] = [0.1, 0.5];
/** The time for the first 100,000 messages. */
const WHOLE_MS = 120_000;
/** The limit for flat, from the shortest to each longer session. */
const FLAT = 1.3;
/** Tokens of system prompt and tools. */
const PROMPT = 8_000;

const KINDS = [
  { name: "stored", most: Infinity, settings: { LCM_CONTEXT: "full", LCM_BACKGROUND: "false" } },
  // By default, what a model may be asked lasts for some 20,000 messages an hour.
  { name: "folded", most: 100_000, settings: { LCM_CONTEXT: "lean", LCM_BACKGROUND: "true", LCM_MODEL_TOKENS_PER_HOUR: "0", LCM_MODEL_TOKENS_PER_SESSION: "0" } },
];

/** @typedef {typeof KINDS[number]} Kind */
/** Processor time in ms. @typedef {{ thread: number, others: number }} Cost */

export const title = "each message of one growing session, with its share of a run";

/** @param {Context} context @returns {Promise<Figure[]>} */
export async function run(context) {
  const figures = [];
  for (const kind of KINDS) {
    const before = Object.fromEntries(Object.keys(kind.settings).map((name) => [name, process.env[name]]));
    Object.assign(process.env, kind.settings);
    figures.push(...(await grown(context, kind)));
    for (const [name, value] of Object.entries(before)) if (value === undefined) delete process.env[name]; else process.env[name] = value;
  }
  return figures;
}

/** @param {Context} context @param {Kind} kind @returns {Promise<Figure[]>} */
async function grown(context, { name, most }) {
  const sizes = SIZES.filter((size) => size <= Math.min(context.messages, most));
  const session = new Growing(new Host(context.folder(name), 0));
  await session.start();
  const isStored = name === "stored";
  const figures = [];
  /** @type {Cost[]} */
  const costs = [];
  const messages = entries(0, sizes[sizes.length - 1]);
  const next = () => messages.next().value?.message;
  let [wall, count] = [0, 0];
  for (const size of sizes) {
    for (; size > IN_FULL && count < size - 2 * LOOKED_AT * EXCHANGE; count += BULK) {
      await session.add(Array.from({ length: BULK }, next));
      context.say(`a ${name} session of ${count} messages …`);
    }
    /** @type {Cost[]} */
    let lately = [];
    const folds = session.folds;
    for (; count < size; count += EXCHANGE) {
      const exchange = Array.from({ length: EXCHANGE }, next);
      const began = performance.now();
      lately.push(await session.run(exchange));
      wall += performance.now() - began;
      if (lately.length > LOOKED_AT) lately.shift();
      if (count % 1000 === 0) context.say(`a ${name} session of ${count} messages …`);
    }
    const what = `${name}, ${size} messages:`;
    const cost = { thread: 0, others: 0 };
    for (const [which, words, limit] of /** @type {const} */ ([["thread", "Pi's thread", THREAD_MS], ["others", "other threads", OTHERS_MS]])) {
      const all = lately.map((one) => one[which]);
      cost[which] = all.reduce((sum, one) => sum + one, 0) / all.length;
      const measured = `${time(cost[which])} (median ${time(median(all))}, p99 ${time(quantile(all, 0.99))})`;
      figures.push({ what: `${what} ${words}`, measured, floor: "", ratio: "", asked: isStored ? `≤ ${time(limit)}` : "", ...(isStored && { reached: cost[which] <= limit }) });
    }
    costs.push(cost);
    if (size > IN_FULL) continue;
    const isAsked = isStored && size === IN_FULL;
    const measured = `${time(wall)}${isStored ? "" : `, ${session.folds - folds} folds`}`;
    figures.push({ what: `${what} all, with pauses`, measured, floor: "", ratio: "", asked: isAsked ? `≤ ${time(WHOLE_MS)}` : "", ...(isAsked && { reached: wall <= WHOLE_MS }) });
  }
  await session.host.stop();
  for (const which of /** @type {const} */ (["thread", "others"])) {
    const growth = Math.max(1, ...costs.slice(1).map((cost) => cost[which] / costs[0][which]));
    const what = `${name}, each longer one to the shortest: ${which === "thread" ? "Pi's thread" : "other threads"}`;
    figures.push({ what, measured: `≤ ${growth.toFixed(2)} ×`, floor: "", ratio: "", asked: `flat, ≤ ${FLAT} ×`, reached: growth <= FLAT });
  }
  return figures;
}

/** A session to which runs are added as Pi does. */
class Growing {
  folds = 0;
  /** @type {Engine} */
  #engine = /** @type {any} */ (undefined);
  /** Tokens of the context, and of what its provider has cached. */
  #context = PROMPT;
  #cached = 0;

  /** @param {Host} host */
  constructor(host) {
    this.host = host;
  }

  async start() {
    this.#engine = await this.host.start();
  }

  /**
   * Adds a run of two turns.
   *
   * @param {any[]} messages the prompt, an answer that calls a tool, its result, the last answer
   * @returns {Promise<Cost>} for each message
   */
  async run([prompt, call, result, answer]) {
    const { host } = this;
    const [all, own] = [process.cpuUsage(), process.threadCpuUsage()];
    await host.emit("before_agent_start", { systemPrompt: "" });
    await this.#say(prompt);
    await this.#ask(prompt, call);
    await this.#say(call);
    await this.#say(result);
    await this.#end(call, [result]);
    await this.#ask(prompt, answer);
    await this.#say(answer);
    await this.#end(answer, []);
    await host.emit("agent_before_settle", { outcome: "complete", entries: [] });
    await host.emit("agent_end");
    await host.emit("agent_settled");
    await this.#engine.flush();
    // What an event leaves for the next tick.
    await pause(0);
    const [allSince, ownSince] = [process.cpuUsage(all), process.threadCpuUsage(own)];
    const thread = (ownSince.user + ownSince.system) / 1000;
    return { thread: thread / EXCHANGE, others: ((allSince.user + allSince.system) / 1000 - thread) / EXCHANGE };
  }

  /** Adds messages as if events of theirs were lost: the next event finds them. @param {any[]} messages */
  async add(messages) {
    for (const message of messages) this.host.manager.appendMessage(message);
    await this.host.emit("agent_settled");
    await nextTick();
    await this.#engine.flush();
    this.#letGo(this.host.manager.getLeafEntry());
  }

  /** @param {any} message */
  async #say(message) {
    const handled = this.host.emit("message_end", { message });
    this.host.manager.appendMessage(message);
    this.#context += tokensOf(message);
    await handled;
    await nextTick();
  }

  /** @param {any} prompt @param {any} answer whose usage is that of the request */
  async #ask(prompt, answer) {
    await this.host.emit("turn_start");
    await this.host.emit("context", { messages: [prompt] });
    await this.host.emit("before_provider_request", { payload: { tools: [{}], messages: [] } });
    answer.usage = { input: 0, cacheRead: this.#cached, cacheWrite: this.#context - this.#cached, output: tokensOf(answer) };
    this.#cached = this.#context;
  }

  /** @param {any} message @param {any[]} toolResults */
  async #end(message, toolResults) {
    const { entries } = (await this.host.emit("turn_end", { message, toolResults, entries: [] })) ?? {};
    const fold = entries?.find((/** @type {any} */ { type }) => type === "compaction");
    if (fold) this.#fold(fold);
  }

  /**
   * Appends a fold as Pi does, without the time that Pi takes to build the context.
   *
   * @param {any} fold
   */
  #fold(fold) {
    const { manager } = this.host;
    this.folds += 1;
    const parentId = manager.getLeafId();
    manager._appendEntry({ ...fold, id: `f${this.folds}`, parentId, timestamp: new Date().toISOString(), tokensBefore: this.#context });
    this.#context = PROMPT + tokensOf(fold.summary);
    this.#cached = PROMPT;
    let kept = manager.getEntry(parentId);
    for (; kept && kept.id !== fold.firstKeptEntryId; kept = manager.getEntry(kept.parentId)) if (kept.message) this.#context += tokensOf(kept.message);
    this.#letGo(manager.getEntry(kept?.parentId));
  }

  /** Pi's own memory is not part of the extension: what came before an entry is let go. @param {any} entry */
  #letGo(entry) {
    const { manager } = this.host;
    for (let old = manager.getEntry(entry?.parentId); old && !old.isLetGo; old = manager.getEntry(old.parentId)) {
      old.isLetGo = true;
      if (old.message) old.message = { ...old.message, content: [] };
      if (old.type === "compaction") Object.assign(old, { summary: "", details: undefined });
    }
  }
}

/** @param {unknown} value */
const tokensOf = (value) => Math.ceil(JSON.stringify(value).length / 4);
