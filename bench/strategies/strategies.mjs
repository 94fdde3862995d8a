/**
 * Five ways to replace a history by a text, all with the same model, budget and messages.
 *
 * Four are the usual ones: one call for everything; chunks summarized in parallel and joined; chunk after chunk, with all earlier summaries
 * in each call; chunk after chunk, with one summary that is rewritten each time. The fifth is the engine.
 */
import { openEngine } from "../stores.mjs";

/** @typedef {import("./facts.mjs").Fact} Fact */

/**
 * The input of a strategy.
 * @typedef {object} Task
 * @property {any[]} entries of the branch, all of them
 * @property {number} kept the place of the first that stays raw
 * @property {number} budget tokens of the text in place of the history
 * @property {number} window tokens of the model's window
 * @property {number} chunk tokens of a chunk, for the strategies that cut
 * @property {Fact[]} facts
 * @property {import("../model.mjs").Asker} model
 * @property {() => string} folder
 */

/**
 * The result of a strategy.
 * @typedef {object} Result
 * @property {string} block
 * @property {number} shown messages that a model got
 * @property {number} [covered] messages in expandable spans
 * @property {number} [reachable] facts that one tool call returns
 */

const AT_ONCE = 4;
const SYSTEM = "You summarize the history of a coding session. Write plain text, nothing but the summary, and keep rules, decisions, errors and numbers.";
/** Tokens of a request besides the history: instructions and the answer. */
const ROOM = 16_000;
/** Characters of a tool's output that are included, as in Pi's own compaction. */
const OUTPUT = 2_000;

/** @type {Record<string, (task: Task) => Promise<Result>>} */
export const strategies = { "single-shot": singleShot, "parallel-stitch": parallelStitch, "sequential-accumulated": accumulated, "sequential-rolling": rolling, lcm: ours };

/** What exceeds the window is dropped from the beginning: the newest matters most. @param {Task} task @returns {Promise<Result>} */
async function singleShot({ entries, kept, budget, window, model }) {
  const texts = written(entries.slice(0, kept));
  let from = texts.length;
  for (let sum = ROOM + budget; from > 0 && sum + tokensOf(texts[from - 1]) <= window; from--) sum += tokensOf(texts[from - 1]);
  const block = await ask(model, budget, texts.slice(from).join("\n\n"));
  return { block, shown: texts.length - from };
}

/** @param {Task} task @returns {Promise<Result>} */
async function parallelStitch({ entries, kept, budget, chunk, model }) {
  const chunks = chunksOf(written(entries.slice(0, kept)), chunk);
  /** @type {string[]} */
  const parts = [];
  const next = chunks.entries();
  const work = async () => {
    for (const [at, text] of next) parts[at] = await ask(model, budget / chunks.length, text);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return { block: parts.join("\n\n"), shown: countOf(entries, kept) };
}

/** @param {Task} task @returns {Promise<Result>} */
async function accumulated({ entries, kept, budget, chunk, model }) {
  const chunks = chunksOf(written(entries.slice(0, kept)), chunk);
  /** @type {string[]} */
  const parts = [];
  for (const text of chunks) parts.push(await ask(model, budget / chunks.length, text, `Summaries of what came before, for orientation only:\n${parts.join("\n\n")}`));
  return { block: parts.join("\n\n"), shown: countOf(entries, kept) };
}

/** @param {Task} task @returns {Promise<Result>} */
async function rolling({ entries, kept, budget, chunk, model }) {
  let block = "";
  for (const text of chunksOf(written(entries.slice(0, kept)), chunk)) block = await ask(model, budget, block === "" ? text : `${block}\n\n${text}`, block === "" ? "" : "It begins with your summary so far: carry it on.");
  return { block, shown: countOf(entries, kept) };
}

/** The engine, as Pi's event calls it. @param {Task} task @returns {Promise<Result>} */
async function ours({ entries, kept, budget, window, facts, model, folder }) {
  const engine = await openEngine(folder(), 30_000, { LCM_MAX_SUMMARY_TOKENS: String(budget) });
  try {
    for (let at = 0; at < entries.length; at += 200) said(engine.handOver(JSON.stringify(entries.slice(at, at + 200))));
    said(await engine.flush());
    const leafId = entries[entries.length - 1].id;
    const request = { leafId, firstKeptEntryId: entries[kept].id, tokensBefore: 0, reason: "manual", contextWindow: window, reserveTokens: 16_384 };
    const { compaction } = model.timed(said(await engine.compact(1, JSON.stringify(request), model.host)));
    let reachable = 0;
    for (const { question, needle } of facts) {
      const answer = said(await engine.callTool(2, "lcm_grep", JSON.stringify({ query: question }), leafId));
      if (JSON.stringify(answer).includes(needle)) reachable++;
    }
    return { block: compaction.summary, shown: countOf(entries, kept), covered: compaction.details.covered, reachable };
  } finally {
    await engine.close();
  }
}

/**
 * @param {import("../model.mjs").Asker} model
 * @param {number} tokens
 * @param {string} history
 * @param {string} [more]
 */
function ask(model, tokens, history, more = "") {
  const words = Math.floor(tokens * 0.75);
  return model.ask(SYSTEM, `Summarize this history in at most ${words} words. ${more}\n\n<history-fence>\n${history}\n</history-fence>`, Math.ceil(tokens * 1.5) + 1024);
}

/** @param {any} entry */
const isMessage = (entry) => entry.type === "message" && entry.message.role !== "system" && !entry.message.excludeFromContext;

/** @param {any[]} entries @param {number} kept */
const countOf = (entries, kept) => entries.slice(0, kept).filter((entry) => isMessage(entry) || entry.type === "custom_message" || entry.type === "branch_summary").length;

/** Each message in a summarizer's prompt. @param {any[]} entries */
function written(entries) {
  return entries.filter(isMessage).map(({ message }) => {
    const blocks = typeof message.content === "string" ? [{ type: "text", text: message.content }] : (message.content ?? [{ type: "text", text: `$ ${message.command}\n${message.output}` }]);
    const said = blocks.map((/** @type {any} */ block) => (block.type === "text" ? block.text : block.type === "toolCall" ? `${block.name}(${JSON.stringify(block.arguments)})` : "")).filter(Boolean).join("\n");
    const text = message.role === "toolResult" && said.length > OUTPUT ? `${said.slice(0, OUTPUT)}\n[… ${said.length - OUTPUT} more characters truncated]` : said;
    return `[${message.role}]\n${text}`;
  });
}

/** @param {string[]} texts @param {number} tokens */
function chunksOf(texts, tokens) {
  /** @type {string[][]} */
  const chunks = [[]];
  let sum = 0;
  for (const text of texts) {
    if (sum > 0 && sum + tokensOf(text) > tokens) {
      chunks.push([]);
      sum = 0;
    }
    chunks[chunks.length - 1].push(text);
    sum += tokensOf(text);
  }
  return chunks.map((chunk) => chunk.join("\n\n"));
}

/** @param {string} text */
export const tokensOf = (text) => Math.ceil(text.length / 4);

/** @param {string} answer */
function said(answer) {
  const { ok, error } = JSON.parse(answer);
  if (error) throw new Error(error.message);
  return ok;
}
