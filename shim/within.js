/**
 * Questions to the session's own model within its conversation: the last request, which its provider has cached, with one more
 * message. What is asked about is read at the price of cached tokens. Whether that pays, the engine says.
 */

import { CHARACTERS_PER_TOKEN, isCold, modelOf } from "./pi.js";

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionContext} ExtensionContext */
/** @typedef {import("./tree.js").Session} Session */

/** A request as it was sent: of which model, with the conversation from which entry to which. @typedef {{ payload: any, model: string | undefined, from?: string, leafId: string | null, timestamp: number }} Sent */
/** A stretch of the conversation, by its first and its last entry. @typedef {{ first: string, last: string }} Stretch */

/** The wire formats whose messages end with what the user says. */
const FORMATS = ["anthropic-messages", "openai-completions"];

/** Can this model be asked within a session? @param {any} model */
export const canBeAsked = (model) => FORMATS.includes(model?.api);

/**
 * Keeps a request of the agent's that Pi is about to send; others have no tools.
 *
 * @param {Session} session
 * @param {ExtensionContext} ctx
 * @param {any} payload
 * @param {string | undefined} from the first entry after the block
 */
export function keepSent(session, ctx, payload, from) {
  if (!payload?.tools?.length) return;
  session.sent = { payload, model: modelOf(ctx), from, leafId: session.manager.getLeafId(), timestamp: Date.now() };
}

/**
 * Tokens of the request that was sent last, if it had the stretch and `model` still has it cached.
 *
 * @param {Session} session
 * @param {any} model the session's
 * @param {Stretch} stretch
 */
export function cachedTokens(session, model, stretch) {
  const { sent } = session;
  if (!sent || !canBeAsked(model) || sent.model !== `${model.provider}/${model.id}` || isCold(sent)) return null;
  const json = JSON.stringify(sent.payload);
  return shows(json, textsOf(session, sent, stretch)) ? Math.ceil(json.length / CHARACTERS_PER_TOKEN) : null;
}

/**
 * The request that was sent last, with a question at its end.
 *
 * @param {any} payload
 * @param {string} prompt
 */
export function withQuestion(payload, prompt) {
  const last = payload.messages.at(-1);
  const content = [{ type: "text", text: prompt }];
  // Some providers that speak Anthropic's format take no two messages of the user's in a row.
  const isOpen = last?.role === "user" && Array.isArray(last.content);
  const messages = isOpen ? payload.messages.with(-1, { ...last, content: [...last.content, ...content] }) : [...payload.messages, { role: "user", content }];
  return { ...payload, messages };
}

/**
 * What user and model say in a stretch, in its order; undefined if the request did not have all of it.
 *
 * @param {Session} session
 * @param {Sent} sent
 * @param {Stretch} stretch
 */
function textsOf({ manager }, { from, leafId }, { first, last }) {
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
  const parts = typeof content === "string" ? [content] : content.map((/** @type {any} */ { text }) => text);
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
  return texts?.every((text) => {
    const written = JSON.stringify(text).slice(1, -1);
    const at = json.indexOf(written, from);
    from = at + written.length;
    return at >= 0;
  });
}
