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
  return has(session, sent, stretch) ? Math.ceil(JSON.stringify(sent.payload).length / CHARACTERS_PER_TOKEN) : null;
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

/** Did the request show the whole stretch? @param {Session} session @param {Sent} sent @param {Stretch} stretch */
function has({ manager }, { from, leafId }, { first, last }) {
  let isWithin = false;
  for (let id = leafId; id; id = manager.getEntry(id)?.parentId ?? null) {
    isWithin ||= id === last;
    if (isWithin && id === first) return true;
    if (id === from) return false;
  }
  return false;
}
