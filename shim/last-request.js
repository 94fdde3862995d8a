/**
 * Asks the session's own model within its conversation: the last answered request, which its provider most likely has cached, with one more
 * message. The model reads the conversation at the price of cached tokens. The engine decides whether that pays.
 */

import { CHARACTERS_PER_TOKEN, ancestors, countsOf, nameOf } from "./pi.js";

/** @typedef {import("./session.js").Session["manager"]} Manager */
/**
 * A request that was sent: its model, and the first and last entry of its conversation.
 *
 * @typedef {{ payload: any, model: string, from?: string, leafId: string | null }} Sent
 */
/**
 * A question about a range of the conversation, named by its entries. `effort` is the provider's name for the lowest thinking level, if the
 * model can't be asked without thinking.
 *
 * @typedef {{ prompt: string, first: string, last: string, effort?: string }} Question
 */
/** The last answered request, the time, and its tokens. @typedef {Sent & { timestamp: number, tokens?: number, json?: string }} Answered */

/** How long a provider keeps the request in its cache in any case, in ms. */
const FRESH_MS = 5 * 60_000;

/** The wire formats in which messages end with the user's text. */
const FORMATS = ["anthropic-messages", "openai-completions"];

export class LastRequest {
  /** The request that is waiting for its answer. @type {Sent | undefined} */
  #sent;
  /** The last answered one. @type {Answered | undefined} */
  #answered;
  /** The model that would think more about a question within the session than outside. @type {string | undefined} */
  #asksOutside;
  #manager;

  /** @param {Manager} manager @param {Answered} [answered] */
  constructor(manager, answered) {
    this.#manager = manager;
    this.#answered = answered;
  }

  /**
   * Remembers a request of the agent that Pi is about to send. Other requests have no tools, or repeat one to keep it cached: those ask for
   * a single token.
   *
   * @param {any} payload
   * @param {any} model
   * @param {string | undefined} from the first entry after the block
   */
  note(payload, model, from) {
    if (!payload?.tools?.length || payload.max_tokens === 1 || payload.max_completion_tokens === 1 || !isSupported(model)) return;
    this.#sent = { payload, model: nameOf(model), from, leafId: this.#manager.getLeafId() };
  }

  /** Records that it was answered: only then the provider has it cached. @param {any} answer */
  noteAnswer({ stopReason, timestamp = Date.now(), usage }) {
    const { input, cacheRead, cacheWrite } = countsOf(usage);
    const tokens = input + cacheRead + cacheWrite || undefined;
    if (this.#sent && ["stop", "toolUse"].includes(stopReason)) this.#answered = { ...this.#sent, timestamp, tokens };
    this.#sent = undefined;
  }

  /** Whether the model most likely has the request cached, and as far as known may be asked within the session. @param {any} model */
  isCached(model) {
    const answered = this.#answered;
    return isSupported(model) && answered?.model === nameOf(model) && this.#asksOutside !== answered.model && Date.now() - answered.timestamp < FRESH_MS;
  }

  /**
   * The tokens of the request, if it contained a range of the conversation and `model` most likely has it cached.
   *
   * @param {any} model the session's
   * @param {Omit<Question, "prompt">} range
   */
  cachedTokens(model, range) {
    const answered = this.#answered;
    this.#asksOutside = answered && thinksMore(answered.payload, range.effort) ? answered.model : undefined;
    if (!answered || !this.isCached(model)) return null;
    answered.json ??= JSON.stringify(answered.payload);
    if (!contains(answered.json, this.#textsOf(answered, range))) return null;
    return answered.tokens ?? Math.ceil(answered.json.length / CHARACTERS_PER_TOKEN);
  }

  /**
   * The options of Pi's model call to ask within the session; undefined if no request was answered. The agent's next request, not this one,
   * continues the thread that the provider may have of the session.
   *
   * @param {Question} question
   * @param {number} maxTokens of the answer
   */
  askOptions(question, maxTokens) {
    const answered = this.#answered;
    return answered && { sessionId: this.#manager.getSessionId(), disableContinuation: true, onPayload: (/** @type {any} */ asked) => withQuestion(answered.payload, question, maxTokens, asked) };
  }

  /**
   * The texts of user and model in a range, and the ids of calls, in order; undefined if the request did not contain all of the range.
   *
   * @param {Sent} sent
   * @param {Omit<Question, "prompt">} range
   */
  #textsOf({ from, leafId }, { first, last }) {
    /** @type {string[]} */
    const texts = [];
    let isWithin = false;
    for (const entry of ancestors(this.#manager, leafId)) {
      isWithin ||= entry.id === last;
      if (isWithin && entry.type === "message" && ["user", "assistant"].includes(entry.message.role)) texts.unshift(...textsIn(entry.message));
      if (isWithin && entry.id === first) return texts;
      if (entry.id === from) return undefined;
    }
    return undefined;
  }
}

/** @param {any} model */
function isSupported(model) {
  return FORMATS.includes(model?.api) && !model.compat?.requiresAssistantAfterToolResult;
}

/**
 * Whether the model would think more than with `effort`, or at all without one. That would cost more than the cache saves, and other
 * settings would not find the cache. Where each answer's effort is a message, only the question's differs.
 *
 * @param {any} payload
 * @param {string | undefined} effort
 */
function thinksMore(payload, effort) {
  const { thinking, reasoning, reasoning_effort, output_config: output } = payload;
  const efforts = [reasoning_effort, reasoning?.effort].filter((level) => level && level !== "none");
  if (thinking && thinking.type !== "disabled") efforts.push(isEffort(payload.messages.at(-1)) ? effort : output?.effort);
  return efforts.some((level) => !level || level !== effort);
}

/** Whether it is the message that sets the effort of the next answer. @param {any} message */
const isEffort = (message) => message?.role === "system" && Boolean(message.output_config?.effort);

/**
 * A request with a question appended.
 *
 * @param {any} payload
 * @param {Question} question
 * @param {number} maxTokens of the answer
 * @param {any} pis what Pi would send: the answer's limit in a nearly full window is not that of the request before
 */
function withQuestion(payload, { prompt, effort }, maxTokens, pis) {
  const end = payload.messages.at(-1);
  const before = isEffort(end) ? payload.messages.slice(0, -1) : payload.messages;
  const last = before.at(-1);
  const content = [{ type: "text", text: prompt }];
  // Some providers with Anthropic's format reject two user messages in a row.
  const isOpen = last?.role === "user" && Array.isArray(last.content);
  const asked = isOpen ? before.with(-1, { ...last, content: [...last.content, ...content] }) : [...before, { role: "user", content }];
  const messages = isEffort(end) ? [...asked, { ...end, output_config: { effort } }] : asked;
  const limits = ["max_tokens", "max_completion_tokens"].filter((name) => payload[name]);
  return { ...payload, ...Object.fromEntries(limits.map((name) => [name, Math.min(maxTokens, pis?.[name] ?? payload[name])])), messages };
}

/** @param {any} message */
function textsIn({ content }) {
  const parts = typeof content === "string" ? [content] : content.map((/** @type {any} */ { type, id, text }) => (type === "toolCall" ? id : text));
  return parts.filter((/** @type {unknown} */ text) => typeof text === "string" && text.trim() !== "");
}

/**
 * Whether a request contains these texts in order. Another extension may have replaced some.
 *
 * @param {string} json
 * @param {string[] | undefined} texts
 */
function contains(json, texts) {
  let from = 0;
  return texts !== undefined && texts.length > 0 && texts.every((text) => {
    const written = JSON.stringify(text).slice(1, -1);
    const at = json.indexOf(written, from);
    from = at + written.length;
    return at >= 0;
  });
}
