/**
 * Questions to the session's own model within its conversation: the last request that was answered, which its provider most likely has
 * in its cache, with one more message. What is asked about is read at the price of cached tokens. Whether that pays, the engine says.
 */

import { CHARACTERS_PER_TOKEN, isCold, modelOf } from "./pi.js";

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionContext} ExtensionContext */
/** @typedef {import("./tree.js").Session} Session */

/** A request as it was sent: of which model, and the first and last entry of its conversation. @typedef {{ payload: any, model: string | undefined, from?: string, leafId: string | null }} Sent */
/** The last request that was answered, when, and its tokens. @typedef {Sent & { timestamp: number, tokens?: number, json?: string }} Answered */
/** A stretch of the conversation, by its first and its last entry. @typedef {{ first: string, last: string }} Stretch */

/** The wire formats whose messages end with what the user says. */
const FORMATS = ["anthropic-messages", "openai-completions"];

/** @param {any} model */
const isSpoken = (model) => FORMATS.includes(model?.api) && !model.compat?.requiresAssistantAfterToolResult;

/** Whether the model thinks before it answers. What it thinks would cost more than the cache saves. @param {any} payload */
const thinks = ({ thinking, reasoning, reasoning_effort: effort }) => (thinking && thinking.type !== "disabled") || [effort, reasoning?.effort].some((level) => level && level !== "none");

/**
 * Can the session's model be asked within the session, as things stand?
 *
 * @param {Session} session
 * @param {any} model
 */
export function canBeAsked({ answered }, model) {
  return isSpoken(model) && answered?.model === `${model.provider}/${model.id}` && !thinks(answered.payload) && !isCold(answered);
}

/**
 * Keeps a request of the agent's that Pi is about to send; others have no tools.
 *
 * @param {Session} session
 * @param {ExtensionContext} ctx
 * @param {any} payload
 * @param {string | undefined} from the first entry after the block
 */
export function keepSent(session, ctx, payload, from) {
  if (!payload?.tools?.length || !isSpoken(ctx.model)) return;
  session.sent = { payload, model: modelOf(ctx), from, leafId: session.manager.getLeafId() };
}

/**
 * Notes that it was answered: only then the provider has it.
 *
 * @param {Session} session
 * @param {any} answer
 */
export function noteAnswered(session, { stopReason, timestamp = Date.now(), usage }) {
  if (session.sent && ["stop", "toolUse"].includes(stopReason)) session.answered = { ...session.sent, timestamp, tokens: promptOf(usage) };
  session.sent = undefined;
}

/** Tokens of a prompt, as its provider reports them. @param {any} usage */
function promptOf(usage) {
  const sum = ["input", "cacheRead", "cacheWrite"].reduce((all, name) => all + (Number(usage?.[name]) || 0), 0);
  return sum > 0 ? sum : undefined;
}

/**
 * Tokens of the last request that was answered, if it had the stretch and `model` most likely has it cached.
 *
 * @param {Session} session
 * @param {any} model the session's
 * @param {Stretch} stretch
 */
export function cachedTokens(session, model, stretch) {
  const { answered } = session;
  if (!answered || !canBeAsked(session, model)) return null;
  answered.json ??= JSON.stringify(answered.payload);
  if (!shows(answered.json, wordsOf(session, answered, stretch))) return null;
  return answered.tokens ?? Math.ceil(answered.json.length / CHARACTERS_PER_TOKEN);
}

/**
 * A request with a question at its end.
 *
 * @param {any} payload
 * @param {string} prompt
 * @param {number} maxTokens of the answer
 */
export function withQuestion(payload, prompt, maxTokens) {
  const last = payload.messages.at(-1);
  const content = [{ type: "text", text: prompt }];
  // Some providers that speak Anthropic's format take no two messages of the user's in a row.
  const isOpen = last?.role === "user" && Array.isArray(last.content);
  const messages = isOpen ? payload.messages.with(-1, { ...last, content: [...last.content, ...content] }) : [...payload.messages, { role: "user", content }];
  const limits = ["max_tokens", "max_completion_tokens"].filter((name) => payload[name] > maxTokens);
  return { ...payload, ...Object.fromEntries(limits.map((name) => [name, maxTokens])), messages };
}

/**
 * What user and model say in a stretch, and the ids of their calls, in its order; undefined if the request did not have all of it.
 *
 * @param {Session} session
 * @param {Sent} sent
 * @param {Stretch} stretch
 */
function wordsOf({ manager }, { from, leafId }, { first, last }) {
  /** @type {string[]} */
  const texts = [];
  let isWithin = false;
  for (let id = leafId; id; ) {
    /** @type {any} */
    const entry = manager.getEntry(id);
    isWithin ||= id === last;
    if (isWithin && ["user", "assistant"].includes(entry?.message?.role)) texts.unshift(...spoken(entry.message));
    if (isWithin && id === first) return texts;
    if (id === from) return undefined;
    id = entry?.parentId ?? null;
  }
  return undefined;
}

/** @param {{ content: any }} message */
function spoken({ content }) {
  const parts = typeof content === "string" ? [content] : content.map((/** @type {any} */ { type, id, text }) => (type === "toolCall" ? id : text));
  return parts.filter((/** @type {unknown} */ text) => typeof text === "string" && text.trim() !== "");
}

/**
 * Does a request have these texts, one after the other? Another extension may have written something else in their place.
 *
 * @param {string} json
 * @param {string[] | undefined} texts
 */
function shows(json, texts) {
  let from = 0;
  return texts !== undefined && texts.length > 0 && texts.every((text) => {
    const written = JSON.stringify(text).slice(1, -1);
    const at = json.indexOf(written, from);
    from = at + written.length;
    return at >= 0;
  });
}
