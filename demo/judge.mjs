/**
 * Judges requests as today's providers do, before a model sees them: what is refused, and which reasoning the model does not see.
 *
 * **Bound reasoning.** A model's reasoning comes back with each later request. It has a seal: a hash of all that stood before it, which
 * are the tools, the system prompt and every earlier message. If any of that has changed since, the reasoning no longer fits. Anthropic
 * refuses the request then, unless it asks for the block to be dropped; OpenAI always drops it. Both list what was dropped. What is
 * reasoned after a change is bound to the changed conversation, without the dropped parts.
 *
 * **Form.** Each tool call needs a result and each result its call; there are limits on cache markers; some models can't stop thinking, and
 * some servers don't know the role `developer`.
 *
 * **Message threads.** A request may continue an earlier answer and bring only what is new.
 *
 * The rules are pure functions of a request's body. Only threads need memory, which `Judge` has.
 */
import { createHash } from "node:crypto";

/** @typedef {import("./wire.mjs").Api} Api */

/**
 * What a provider's models and accounts are like.
 * @typedef {object} Rules
 * @property {(model: string) => boolean} binds whether a model's reasoning is bound to what stands before it
 * @property {"new" | "old"} account an old one checks only where the request has `block_binding`
 * @property {(model: string) => boolean} alwaysThinks whether a model refuses to answer without reasoning
 * @property {boolean} threads whether there are message threads
 * @property {boolean} developerRole whether chat completions know the role `developer`
 */

/**
 * What came of a request.
 * @typedef {object} Judged
 * @property {string} result `ok`, or the reason for the refusal: `bound`, `unpaired`, `markers`, `thinking`, `role`, or a thread's error code
 * @property {number} [status] of the refusal
 * @property {string} [message] of the refusal
 * @property {string} [code] that a client recognizes the refusal by
 * @property {string} [path] of the reasoning block that did not fit
 * @property {number} seen how many reasoning blocks the model sees
 * @property {number} dropped how many it does not
 * @property {object[]} transformations the dropped ones, in the words of the format
 * @property {number} markers how many cache markers the request has
 * @property {"create" | "continue"} [thread]
 * @property {any} body the request with all that its thread already holds, and without dropped reasoning
 * @property {string} seal for the answer's reasoning
 * @property {boolean} thinks whether the model reasons before it answers
 * @property {import("./wire.mjs").Usage} [usage] of the answer, once there is one
 */

/** Generations before reasoning was bound. */
const UNBOUND = /claude-(3|(opus|sonnet|haiku)-4|(opus|sonnet)-5(?![.-]\d(\D|$)))|gpt-([1-5]|6(?!\.[2-9]))/;
/** Models whose reasoning can't be turned off. */
const ALWAYS_THINKING = /claude-((opus|sonnet)-5[.-]5|fable)|gpt-6\.2|gpt-6-astra/;

/** The rules of today's models and accounts, by the models' names. @type {Rules} */
export const TODAY = {
  binds: (model) => !UNBOUND.test(model),
  account: "new",
  alwaysThinks: (model) => ALWAYS_THINKING.test(model),
  threads: false,
  developerRole: true,
};

const MOST_MARKERS = 4;

/** The reason why a request is refused. */
class Refusal {
  /**
   * @param {string} result
   * @param {string} message
   * @param {{ status?: number, code?: string, path?: string }} [more]
   */
  constructor(result, message, { status = 400, code, path } = {}) {
    Object.assign(this, { result, message, status, code, path });
  }
}

/** One provider: its rules, and the threads it holds. */
export class Judge {
  #rules;
  /** By the answer's id. @type {Map<string, { body: any, settings: string, continued: boolean }>} */
  #threads = new Map();

  /** @param {Partial<Rules>} [rules] where they differ from today's */
  constructor(rules = {}) {
    this.#rules = { ...TODAY, ...rules };
  }

  /**
   * @param {Api} api
   * @param {any} sent a request's body
   * @returns {Judged}
   */
  judge(api, sent) {
    const judged = { result: "ok", seen: 0, dropped: 0, transformations: [], markers: markersIn(sent), thread: sent.thread?.type, body: sent, seal: "", thinks: false };
    try {
      judged.body = this.#whole(sent);
      return Object.assign(judged, formats[api](judged.body, this.#rules, judged.markers));
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      return Object.assign(judged, refusal);
    }
  }

  /**
   * Remembers an answer that may be continued.
   * @param {Judged} judged
   * @param {string} id the answer's
   * @param {any[]} content its blocks
   */
  answered({ thread, body }, id, content) {
    if (thread) this.#threads.set(id, { body: { ...body, messages: [...body.messages, { role: "assistant", content }] }, settings: settingsOf(body), continued: false });
  }

  /** A request with all that its thread already holds. @param {any} sent */
  #whole({ thread, ...sent }) {
    if (!thread) return sent;
    if (!this.#rules.threads) throw new Refusal("thread_unsupported", "thread: Extra inputs are not permitted");
    if (thread.type === "create") return sent;
    const before = this.#threads.get(thread.previous_message_id);
    const refuse = (/** @type {string} */ code, status = 400) => new Refusal(code, `thread: ${code.replaceAll("_", " ")}`, { status, code });
    if (!before) throw refuse("thread_not_found", 404);
    if (before.continued) throw refuse("thread_already_continued");
    if (before.settings !== settingsOf(sent)) throw refuse("thread_fingerprint_mismatch");
    if (sent.system || sent.tools) throw new Refusal("thread_extra_inputs", "thread: system and tools are those of the thread");
    before.continued = true;
    const { system, tools, messages } = before.body;
    return { ...sent, system, tools, messages: [...messages, ...sent.messages] };
  }
}

/** What must stay the same within a thread. @param {any} body */
function settingsOf({ model, thinking, output_config, tool_choice }) {
  return JSON.stringify([model, thinking, output_config, tool_choice]);
}

/**
 * What each format adds to a judgment. It throws a refusal.
 * @type {Record<Api, (body: any, rules: Rules, markers: number) => Partial<Judged>>}
 */
const formats = { anthropic: judgeAnthropic, openai: judgeChat, responses: judgeResponses };

// ── Anthropic messages ───────────────────────────────────────────────────────────────────────────────────────────────

/**
 * @param {any} body
 * @param {Rules} rules
 * @param {number} markers
 */
function judgeAnthropic(body, rules, markers) {
  const { model, thinking } = body;
  const always = rules.alwaysThinks(model);
  if (always && thinking?.type === "disabled") throw new Refusal("thinking", '"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.');
  if (markers > MOST_MARKERS) throw new Refusal("markers", `A maximum of ${MOST_MARKERS} blocks with cache_control may be provided. Found ${markers}.`);
  pair(body.messages.map(anthropicStep), true);
  const checked = rules.binds(model) && (rules.account === "new" || thinking?.block_binding);
  const bound = boundAnthropic(body, checked, thinking?.block_binding?.prefix_mismatch_behavior === "drop_block");
  return { ...bound, body: { ...body, messages: bound.messages }, thinks: always || ["adaptive", "enabled"].includes(thinking?.type) };
}

/** @param {any} message @returns {Step} */
function anthropicStep({ role, content }) {
  const ids = (/** @type {string} */ type, /** @type {string} */ id) => blocksOf(content).filter((block) => block.type === type).map((block) => block[id]);
  return { answers: role === "assistant", calls: ids("tool_use", "id"), results: ids("tool_result", "tool_use_id") };
}

/**
 * @param {any} body
 * @param {boolean} checked whether reasoning must fit
 * @param {boolean} mayDrop whether it is dropped if it does not
 */
function boundAnthropic({ system, tools, messages }, checked, mayDrop) {
  /** @type {object[]} */
  const transformations = [];
  let before = chained("", meaningOf([blocksOf(system), tools]));
  let seen = 0;
  const kept = messages.map((/** @type {any} */ message, /** @type {number} */ i) => {
    const content = blocksOf(message.content).filter((block, j) => {
      if (block.type !== "thinking") return true;
      if (!checked || fits(block.signature, before)) return ++seen;
      const path = `messages.${i}.content.${j}`;
      if (!mayDrop) throw new Refusal("bound", `${path}: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation.`, { path });
      transformations.push({ type: "thinking_dropped", path, reason: "prefix_mismatch" });
      return false;
    });
    before = chained(before, meaningOf({ ...message, content }));
    return { ...message, content };
  });
  return { messages: kept, transformations, dropped: transformations.length, seen, seal: sealOf(before) };
}

/** The cache markers of a request. @param {any} body */
function markersIn({ system, tools, messages }) {
  const blocks = [system, tools, ...[messages].flat().map((message) => message?.content)].flatMap((content) => (Array.isArray(content) ? content : []));
  return blocks.filter((block) => block?.cache_control).length;
}

// ── OpenAI chat completions ──────────────────────────────────────────────────────────────────────────────────────────

/**
 * Its reasoning is not sealed.
 * @param {any} body
 * @param {Rules} rules
 */
function judgeChat({ messages = [] }, { developerRole }) {
  if (!developerRole && messages.some((/** @type {any} */ { role }) => role === "developer")) throw new Refusal("role", "Unexpected message role.");
  pair(messages.map(chatStep), true);
  return {};
}

/** @param {any} message @returns {Step} */
function chatStep({ role, tool_calls, tool_call_id }) {
  return { answers: role === "assistant", calls: (tool_calls ?? []).map((/** @type {any} */ { id }) => id), results: role === "tool" ? [tool_call_id] : [] };
}

// ── OpenAI Responses ─────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * @param {any} body
 * @param {Rules} rules
 */
function judgeResponses(body, rules) {
  const { model, input, reasoning } = body;
  const always = rules.alwaysThinks(model);
  if (always && ["none", "minimal"].includes(reasoning?.effort)) throw new Refusal("thinking", `Unsupported value: 'reasoning.effort' does not support '${reasoning.effort}' with this model.`, { code: "unsupported_value" });
  pair(itemsOf(input).map(responsesStep), false);
  const bound = boundResponses(body, rules.binds(model));
  return { ...bound, body: { ...body, input: bound.input }, thinks: always || Boolean(reasoning && reasoning.effort !== "none") };
}

/** @param {any} item @returns {Step} */
function responsesStep({ type, call_id }) {
  return { answers: false, calls: /_call$/.test(type) && call_id ? [call_id] : [], results: /_call_output$/.test(type) ? [call_id] : [] };
}

/**
 * @param {any} body
 * @param {boolean} checked
 */
function boundResponses({ instructions, tools, input }, checked) {
  /** @type {object[]} */
  const transformations = [];
  let before = chained("", meaningOf([instructions, tools]));
  let seen = 0;
  const kept = itemsOf(input).filter((item) => {
    const { id, status, ...meaning } = item;
    if (item.type === "reasoning" && checked && !fits(item.encrypted_content, before)) {
      transformations.push({ type: "reasoning", id, action: "removed", reason: "prefix_mismatch" });
      return false;
    }
    if (item.type === "reasoning") seen++;
    before = chained(before, meaningOf(item.type === "reasoning" ? item.encrypted_content : meaning));
    return true;
  });
  return { input: kept, transformations, dropped: transformations.length, seen, seal: sealOf(before) };
}

/** @param {any} input items, or the user's text @returns {any[]} */
export const itemsOf = (input) => (typeof input === "string" ? [{ type: "message", role: "user", content: input }] : (input ?? []));

// ── All ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * A message, as far as tool calls are concerned.
 * @typedef {{ answers: boolean, calls: string[], results: string[] }} Step
 */

/**
 * Refuses a request in which a call has no result, or a result no call.
 * @param {Step[]} steps
 * @param {boolean} soon whether results must come before the next answer
 */
function pair(steps, soon) {
  /** @type {Set<string>} */
  const open = new Set();
  for (const { answers, calls, results } of steps) {
    if (soon && answers) answered(open);
    for (const id of results) if (!open.delete(id)) throw new Refusal("unpaired", `unexpected tool result: ${id} has no tool call before it.`);
    for (const id of calls) open.add(id);
  }
  answered(open);
}

/** @param {Set<string>} open calls */
function answered(open) {
  if (open.size > 0) throw new Refusal("unpaired", `tool calls were found without results after them: ${[...open].join(", ")}.`);
}

/** @param {any} content @returns {any[]} */
export const blocksOf = (content) => (typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []));

/** The seal of an answer's reasoning. @param {string} before the hash of all that stands before it */
const sealOf = (before) => Buffer.from(`bound to ${before}`).toString("base64");

/**
 * Whether reasoning fits: it was bound to this, or is not this server's.
 * @param {string | undefined} seal
 * @param {string} before
 */
function fits(seal = "", before) {
  const isOurs = Buffer.from(seal, "base64").toString().startsWith("bound to ");
  return !isOurs || seal === sealOf(before);
}

/**
 * What a part of a request means, whatever marks it: without cache markers, and with a text as one block.
 * @param {unknown} part
 */
export function meaningOf(part) {
  return JSON.stringify(part, (key, value) => {
    if (key === "cache_control") return undefined;
    return key === "content" ? blocksOf(value) : value;
  }) ?? "";
}

/**
 * The hash of a part and of all before it.
 * @param {string} before
 * @param {string} part
 */
export function chained(before, part) {
  return createHash("sha256").update(before).update(part).digest("hex").slice(0, 32);
}
