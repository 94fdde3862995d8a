/**
 * Asks the session's own model within its conversation: the last answered request, which its provider most likely has cached, with one more
 * message. The model reads the conversation at the price of cached tokens. The engine decides whether that pays.
 */

import { CHARACTERS_PER_TOKEN, ancestors } from "./pi.js";

/** @typedef {import("./session.js").Session["manager"]} Manager */
/**
 * A request that was sent: its model, and the first and last entry of its conversation.
 *
 * @typedef {{ payload: any, model: string, from?: string, leafId: string | null }} Sent
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
  #manager;

  /** @param {Manager} manager @param {Answered} [answered] */
  constructor(manager, answered) {
    this.#manager = manager;
    this.#answered = answered;
  }

  /**
   * Remembers a request of the agent that Pi is about to send; other requests have no tools.
   *
   * @param {any} payload
   * @param {any} model
   * @param {string | undefined} from the first entry after the block
   */
  note(payload, model, from) {
    if (!payload?.tools?.length || !isSupported(model)) return;
    this.#sent = { payload, model: `${model.provider}/${model.id}`, from, leafId: this.#manager.getLeafId() };
  }

  /** Records that it was answered: only then the provider has it cached. @param {any} answer */
  noteAnswer({ stopReason, timestamp = Date.now(), usage }) {
    if (this.#sent && ["stop", "toolUse"].includes(stopReason)) this.#answered = { ...this.#sent, timestamp, tokens: promptTokens(usage) };
    this.#sent = undefined;
  }

  /** Whether the model most likely has the request cached and would answer a question at once. @param {any} model */
  isCached(model) {
    const answered = this.#answered;
    return isSupported(model) && answered?.model === `${model.provider}/${model.id}` && !thinks(answered.payload) && Date.now() - answered.timestamp < FRESH_MS;
  }

  /**
   * The tokens of the request, if it contained a range of the conversation and `model` most likely has it cached.
   *
   * @param {any} model the session's
   * @param {{ first: string, last: string }} range by its entries
   */
  cachedTokens(model, range) {
    const answered = this.#answered;
    if (!answered || !this.isCached(model)) return null;
    answered.json ??= JSON.stringify(answered.payload);
    if (!contains(answered.json, this.#textsOf(answered, range))) return null;
    return answered.tokens ?? Math.ceil(answered.json.length / CHARACTERS_PER_TOKEN);
  }

  /**
   * The options of Pi's model call to ask within the session; undefined if no request was answered.
   *
   * @param {string} prompt
   * @param {number} maxTokens of the answer
   */
  askOptions(prompt, maxTokens) {
    const answered = this.#answered;
    return answered && { sessionId: this.#manager.getSessionId(), onPayload: () => withQuestion(answered.payload, prompt, maxTokens) };
  }

  /**
   * The texts of user and model in a range, and the ids of calls, in order; undefined if the request did not contain all of the range.
   *
   * @param {Sent} sent
   * @param {{ first: string, last: string }} range
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

/** Whether the model thinks before it answers, which would cost more than the cache saves. @param {any} payload */
function thinks({ thinking, reasoning, reasoning_effort: effort }) {
  return (thinking && thinking.type !== "disabled") || [effort, reasoning?.effort].some((level) => level && level !== "none");
}

/** Tokens of a prompt, as its provider reports them. @param {any} usage */
function promptTokens(usage) {
  const sum = ["input", "cacheRead", "cacheWrite"].reduce((all, name) => all + (Number(usage?.[name]) || 0), 0);
  return sum > 0 ? sum : undefined;
}

/** A request with a question appended. @param {any} payload @param {string} prompt @param {number} maxTokens of the answer */
function withQuestion(payload, prompt, maxTokens) {
  const last = payload.messages.at(-1);
  const content = [{ type: "text", text: prompt }];
  // Some providers with Anthropic's format reject two user messages in a row.
  const isOpen = last?.role === "user" && Array.isArray(last.content);
  const messages = isOpen ? payload.messages.with(-1, { ...last, content: [...last.content, ...content] }) : [...payload.messages, { role: "user", content }];
  const limits = ["max_tokens", "max_completion_tokens"].filter((name) => payload[name] > maxTokens);
  return { ...payload, ...Object.fromEntries(limits.map((name) => [name, maxTokens])), messages };
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
