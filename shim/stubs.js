/**
 * Puts stubs into requests if Pi does not: they are stored in our own entries. A Pi with context edits needs this only for stubs made
 * before a prompt, when it takes no entries.
 */

import { hasEdits } from "./pi.js";
import { quietly } from "./ui.js";

/** @typedef {{ content: any, lcm?: { hides?: number } } | null} Replacement */

/** The type of entries that hold a stub if Pi has no context edits. */
const STUB = "lcm_stub";

export class Stubs {
  #session;
  /** Whether the session has stubs that Pi does not apply itself. */
  #areThere = false;
  #isSubscribed = false;

  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.#session = session;
  }

  /** Looks for stubs of earlier runs. */
  start() {
    const { manager } = this.#session;
    const isOld = !hasEdits(manager);
    this.#areThere = manager.getEntries().some((/** @type {any} */ entry) => isStub(entry) || (isOld && isMarked(entry)));
    this.show();
  }

  /** Puts stubs into requests if there are any. Pi copies all messages for each handler, so none is registered before. */
  show() {
    const session = this.#session;
    if (this.#isSubscribed || !this.#areThere) return;
    this.#isSubscribed = true;
    session.pi.on("context", async ({ messages }) => {
      const changed = session.isOpen ? await session.guard(() => this.#replace(messages)) : undefined;
      return changed && { messages: changed };
    });
  }

  /** Appends stubs as our own entries. @param {import("./boundary.js").Draft[]} drafts */
  append(drafts) {
    const { id, manager, pi, sync } = this.#session;
    const stubs = drafts.filter(({ type }) => type === "context_edit");
    // The branch or the session may have changed by now.
    if (stubs.length === 0 || manager.getSessionId() !== id) return;
    const branch = new Set(manager.getBranch().map(({ id }) => id));
    if (!stubs.every(({ targetId }) => branch.has(targetId ?? ""))) return;
    quietly(() => stubs.forEach(({ targetId, replacement }) => pi.appendEntry(STUB, { targetId, replacement })));
    this.#areThere = true;
    sync.walk();
  }

  /**
   * The messages of a request, with the branch's stubs in place of what they replace.
   *
   * @param {any[]} messages
   * @returns {any[] | undefined} undefined if nothing changes
   */
  #replace(messages) {
    const { context, manager } = this.#session;
    /** @type {any[]} */
    const branch = manager.getBranch();
    const stubs = stubsOf(branch, hasEdits(manager));
    if (stubs.size === 0) return undefined;
    const { from } = context.begin();
    const replaced = matched(from ? branch.slice(branch.findIndex(({ id }) => id === from)) : branch, messages, stubs);
    /** Calls that are no longer shown. @type {Set<string>} */
    const removed = new Set();
    const result = messages.flatMap((message) => {
      const replacement = replaced.get(message);
      if (replacement === null) {
        if (message.role === "assistant") for (const part of message.content) if (part.type === "toolCall") removed.add(part.id);
        return [];
      }
      // No result may remain without its call, even if other extensions have changed the messages.
      if (message.role === "toolResult" && removed.has(message.toolCallId)) return [];
      return replacement ? [{ ...message, content: replacement.content }] : [message];
    });
    return replaced.size > 0 ? result : undefined;
  }
}

/** @param {any} entry */
function isStub(entry) {
  return entry.type === "custom" && entry.customType === STUB && typeof entry.data?.targetId === "string";
}

/** @param {any} entry */
function isMarked(entry) {
  return entry.type === "context_edit" && Boolean(entry.replacement?.lcm);
}

/**
 * The stubs of a branch, by the ids of the entries they replace; null removes an entry.
 *
 * @param {any[]} branch
 * @param {boolean} editsCount whether Pi applies context edits itself
 * @returns {Map<string, Replacement>}
 */
function stubsOf(branch, editsCount) {
  /** @type {Map<string, Replacement>} */
  const stubs = new Map();
  /** How many of the next edits hide the rest of a turn; a removal can't carry that mark itself. */
  let hides = 0;
  for (const entry of branch) {
    const below = hides;
    hides = 0;
    if (isStub(entry)) stubs.set(entry.data.targetId, entry.data.replacement ?? null);
    else if (entry.type !== "context_edit") continue;
    else if (editsCount) stubs.delete(entry.targetId);
    else if (isMarked(entry)) {
      stubs.set(entry.targetId, entry.replacement);
      hides = entry.replacement.lcm.hides ?? 0;
    } else if (entry.replacement === null && below > 0) {
      stubs.set(entry.targetId, null);
      hides = below - 1;
    }
  }
  return stubs;
}

/**
 * Maps the messages of a request that belong to pruned entries to their replacements. A request has no entry ids, but has the messages in
 * the same order.
 *
 * @param {any[]} entries from the first that is shown
 * @param {any[]} messages
 * @param {Map<string, Replacement>} stubs
 */
function matched(entries, messages, stubs) {
  /** @type {Map<string, any[]>} */
  const byKey = new Map();
  for (const message of messages) {
    const key = keyOf(message);
    byKey.set(key, [...(byKey.get(key) ?? []), message]);
  }
  /** @type {Map<any, Replacement>} */
  const found = new Map();
  for (const entry of entries) {
    const message = entry.type === "message" ? entry.message : entry.type === "custom_message" ? { ...entry, role: "custom" } : undefined;
    const own = message && byKey.get(keyOf(message))?.shift();
    const replacement = stubs.get(entry.id);
    if (own && replacement !== undefined) found.set(own, replacement);
  }
  return found;
}

/** The identity of a message. An extension's message has another timestamp in its entry. @param {any} message */
function keyOf({ role, timestamp, toolCallId, customType, content }) {
  return JSON.stringify(role === "custom" ? [role, customType, content] : [role, timestamp, toolCallId]);
}
