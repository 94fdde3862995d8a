/**
 * Reasoning that is bound to what comes before it.
 *
 * A provider may sign a model's thinking over the system prompt, the tools and every earlier message. If any of these changes, it drops the
 * thinking from later requests or refuses them. What a change makes invalid can be read off the branch: the thinking of all answers between
 * the changed place and the entry that changed it. It is left out of each request from then on, so what is thought later stays valid. The
 * session keeps it.
 *
 * What the branch does not show, such as a change by another extension's request handler, is recognized by the provider's refusal: an entry
 * marks the place, and the request is sent again.
 */

import { ancestors, failureOf, lastEntry, physicalModel } from "./pi.js";

/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("@earendil-works/pi-ai").Model<any>} Model */

/** The type of the entry after which no earlier thinking is sent. */
const MARK = "lcm_unbound";
/** Anthropic's words for thinking that does not fit; gateways pass them on. */
const REFUSED = /bound to a different conversation|invalid `?signature`? in `?thinking`?/i;
/** Claude by its name, and the generations whose signatures are not checked. */
const CLAUDE = /claude|fable/i;
const UNCHECKED = /claude[- ][23]|(opus|sonnet|haiku)[- ][34]|(opus|sonnet|fable)[- ]5(?![-.]\d(?!\d))/i;
/** OpenAI's models whose encrypted reasoning is checked. */
const CHECKED = /gpt-(6\.[2-9]|[7-9])/i;

/** Whether a model's provider checks its reasoning against what comes before it. @param {Model | undefined} model */
export function isBound(model) {
  if (!model?.reasoning) return false;
  // Behind a gateway of the user's own, only the display name may say what it is.
  const names = `${model.id} ${model.name}`;
  return CHECKED.test(names) || (CLAUDE.test(names) && !UNCHECKED.test(names));
}

/** The thinking that is invalid at a leaf, and the traits of the model that it depends on. @typedef {{ leafId: string | null, traits: string, found: Set<string> }} Known */

export class Thinking {
  #session;
  /** What was found last. @type {Known} */
  #known = { leafId: null, traits: "", found: new Set() };

  /** @param {Session} session */
  constructor(session) {
    this.#session = session;
  }

  /**
   * Takes invalid thinking out of a request.
   *
   * @param {{ messages: any[] }} event
   * @returns {{ messages: any[] } | undefined} undefined if nothing changes
   */
  atRequest({ messages }) {
    this.#known = invalid(this.#session, this.#known);
    const signatures = this.#known.found;
    if (signatures.size === 0) return undefined;
    const isValid = (/** @type {any} */ part) => part.type !== "thinking" || !signatures.has(part.thinkingSignature);
    return { messages: messages.map((message) => (message.role === "assistant" ? { ...message, content: message.content.filter(isValid) } : message)) };
  }

  /**
   * Sends a request again that the provider has refused because of earlier thinking, without that.
   *
   * @param {import("@earendil-works/pi-coding-agent").AgentBeforeSettleEvent} event
   */
  repair({ outcome, entries }) {
    const { manager } = this.#session;
    const failed = outcome === "error" && REFUSED.test(failureOf(manager) ?? "") ? lastEntry(manager, "assistant") : undefined;
    if (!failed || isMarked(manager, failed.id)) return undefined;
    this.#session.report("the provider refused this session's earlier reasoning, because the conversation before it has changed. It is left out from now on.", undefined, "info");
    return { entries: [...entries, { type: /** @type {const} */ ("custom"), customType: MARK }, { type: /** @type {const} */ ("context_edit"), targetId: failed.id, replacement: null }], continue: true };
  }
}

/** Whether the mark was set since the last complete answer, so that it has not helped. @param {Session["manager"]} manager @param {string} failed */
function isMarked(manager, failed) {
  for (const entry of ancestors(manager, failed)) {
    if (entry.type === "custom" && entry.customType === MARK) return true;
    if (entry.type === "message" && entry.message.role === "assistant" && entry.id !== failed && entry.message.stopReason !== "error") return false;
  }
  return false;
}

/**
 * The signatures of the thinking in the context that does not fit what comes before it any more. Entries that were looked at before are
 * skipped, unless a newer one changes something above it.
 *
 * @param {Session} session
 * @param {Known} known
 * @returns {Known}
 */
function invalid({ ctx, manager }, known) {
  const model = physicalModel(ctx);
  // OpenAI drops what does not fit, and needs the items that belong together.
  const isChecked = isBound(model) && !CHECKED.test(model?.id ?? "");
  /** @type {any} */
  const { supportsMidConvoSystemMessages: patchesSections, supportsMidConvoToolChanges: patchesTools } = model?.compat ?? {};
  const traits = [isChecked, patchesSections, patchesTools].join();
  // Whether nothing earlier is valid; the first entry of the context; the changed entries that are not reached yet.
  let [isAllInvalid, first] = [false, /** @type {string | undefined} */ (undefined)];
  /** @type {Set<string>} */
  const edited = new Set();
  /** @type {Set<string>} */
  const found = new Set();
  // From the leaf up: what has been passed came later.
  for (const entry of ancestors(manager)) {
    if (entry.id === known.leafId && traits === known.traits && !isAllInvalid && edited.size === 0 && !first) {
      for (const signature of known.found) found.add(signature);
      break;
    }
    if (entry.type === "message" && entry.message.role === "assistant") {
      if (isAllInvalid || edited.size > 0) for (const part of entry.message.content) if (part.type === "thinking" && part.thinkingSignature) found.add(part.thinkingSignature);
    } else if (entry.type === "custom" && entry.customType === MARK) isAllInvalid = true;
    else if (entry.type === "compaction") {
      isAllInvalid ||= isChecked;
      first ??= entry.firstKeptEntryId ?? entry.id;
    } else if (isChecked && entry.type === "context_edit") edited.add(entry.targetId);
    else if (isChecked && entry.type === "message" && /** @type {string} */ (entry.message.role) === "system") {
      /** @type {any} */
      const { sections, toolsAdded, toolsRemoved } = entry.message;
      isAllInvalid ||= (sections && !patchesSections) || ((toolsAdded || toolsRemoved) && !(patchesSections && patchesTools));
    }
    edited.delete(entry.id);
    if (entry.id === first) break;
  }
  return { leafId: manager.getLeafId(), traits, found };
}
