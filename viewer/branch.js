/**
 * One branch of a session, root to leaf: its messages, the summaries that cover them, and what the model saw after each compaction. Pure:
 * it touches no elements.
 */
import { editOf, speaker, timeOf } from "./words.js";

/** @typedef {import("./data.js").Line} Line */
/** @typedef {import("./data.js").Session} Session */
/** @typedef {import("./data.js").Summary} Summary */

/**
 * An entry on the branch. `place` numbers the messages from 0; an entry without a message has the place of the next one.
 * @typedef {object} Item
 * @property {string} id its name in the page: `m-…`, or `e-` and the entry's id
 * @property {Line} line
 * @property {string} speaker
 * @property {boolean} isSaid
 * @property {number} place
 * @property {number} time ms
 * @property {number} tokens estimated
 */

/**
 * A summary, the places it covers, `to` excluded, and its messages there, without those that are kept from the model.
 * @typedef {{ summary: Summary, from: number, to: number, items: Item[] }} Node
 */

/**
 * What the model sees after a compaction: the block, what was kept, and what was added before the next compaction. `edits` are the
 * replacements of entries, null for none.
 * @typedef {{ compaction: Item | null, kept: Item[], since: Item[], edits: Map<string, any> }} Context
 */

export class Branch {
  /** @type {Item[]} */
  items = [];
  /** @type {Item[]} */
  said = [];
  /** @type {Item[]} */
  compactions = [];
  /** @type {Map<string, Item>} */
  byId = new Map();
  /** @type {Map<string, Item>} */
  byEntry = new Map();
  /** The replacements of entries, null for none. @type {Map<string, any>} */
  edits = new Map();
  /** The messages that call tools, and the results, by call id. @type {Map<string, Item>} */
  callers = new Map();
  /** @type {Map<string, Item>} */
  results = new Map();
  /** @type {Map<string, Node>} */
  byHandle = new Map();
  /** @type {Map<string, Node>} */
  #spans = new Map();

  /** @param {Session} session @param {string} leaf an entry's id */
  constructor(session, leaf) {
    this.session = session;
    this.leaf = leaf;
    for (const line of pathTo(session, leaf)) this.#add(line);
    for (const summary of [...session.summaries.values()].sort((a, b) => a.depth - b.depth)) this.#place(summary);
    /** The summaries that cover the branch now. */
    this.frontier = this.nodes(session.branches.find((end) => end.leaf === leaf)?.frontier ?? []);
    /** The messages that were not purged, which are numbered from 1. */
    this.kept = this.said.filter((item) => !isPurged(item));
  }

  /** @param {Line} line */
  #add(line) {
    const { entry } = line;
    const item = itemOf(line, this.said.length);
    this.items.push(item);
    if (item.isSaid) this.said.push(item);
    if (entry.type === "compaction") this.compactions.push(item);
    this.byId.set(item.id, item);
    this.byEntry.set(entry.id, item);
    const edit = editOf(entry);
    if (edit) this.edits.set(edit.target, edit.replacement);
    if (entry.message?.toolCallId) this.results.set(entry.message.toolCallId, item);
    for (const block of Array.isArray(entry.message?.content) ? entry.message.content : []) {
      if (block?.type === "toolCall") this.callers.set(block.id, item);
    }
  }

  /** Finds the place of a summary, if it is on this branch. @param {Summary} summary */
  #place(summary) {
    const places = summary.sources.map((source) => {
      if (summary.depth > 0) return this.#spans.get(source);
      const item = this.byEntry.get(source);
      return item && { from: item.place, to: item.place + 1, items: [item] };
    });
    const [first, last] = [places[0], places.at(-1)];
    if (!first || !last || !places.every(Boolean)) return;
    const node = { summary, from: first.from, to: last.to, items: places.flatMap((part) => part?.items ?? []) };
    this.#spans.set(summary.id, node);
    this.byHandle.set(summary.handle, node);
  }

  /** What the model sees. @returns {Item[]} */
  get seen() {
    return seenOf(this.said, this.edits);
  }

  /** @param {string} id of an item, or a summary's handle */
  has(id) {
    return this.byId.has(id) || this.byHandle.has(id);
  }

  /** @param {string} id of a summary @returns {Node | undefined} */
  node(id) {
    return this.#spans.get(id);
  }

  /** @param {string[]} ids @returns {Node[]} */
  nodes(ids) {
    return ids.flatMap((id) => this.#spans.get(id) ?? []);
  }

  /** These and all their sources, the deepest first. @param {Node[]} roots @returns {Node[]} */
  below(roots) {
    const found = new Map(roots.map((node) => [node.summary.id, node]));
    for (const node of found.values()) {
      if (node.summary.depth === 0) continue;
      for (const child of this.nodes(node.summary.sources)) found.set(child.summary.id, child);
    }
    return [...found.values()].sort((a, b) => b.summary.depth - a.summary.depth || a.from - b.from);
  }

  /** The summaries of a message, from the top down. @param {Item} item @returns {Node[]} */
  over(item) {
    /** @type {Node[]} */
    const path = [];
    let among = this.frontier;
    for (;;) {
      const node = among.find(({ items }) => items.includes(item));
      if (!node) return path;
      path.push(node);
      among = node.summary.depth > 0 ? this.nodes(node.summary.sources) : [];
    }
  }

  /** The frontier that the block of a compaction showed; empty if it is not from this extension. @param {Item} compaction */
  frontierAt(compaction) {
    if (isComplete(compaction)) return this.nodes(compaction.line.entry.details?.frontier ?? []);
    // The database has what each compaction added.
    const until = this.compactions.slice(0, this.compactions.indexOf(compaction) + 1);
    const added = this.nodes(until.flatMap(({ line }) => line.entry.details?.summaries ?? []).map(({ id }) => id));
    const under = new Set(added.flatMap(({ summary }) => (summary.depth > 0 ? summary.sources : [])));
    return added.filter(({ summary }) => !under.has(summary.id));
  }

  /**
   * What the model saw, as Pi shows it: 0 before the first compaction, n after the nth.
   * @param {number} step
   * @returns {Context}
   */
  context(step) {
    const compaction = this.compactions[step - 1] ?? null;
    const next = this.compactions[step];
    const at = compaction ? this.items.indexOf(compaction) : -1;
    const end = next ? this.items.indexOf(next) : this.items.length;
    const first = compaction ? this.items.findIndex(({ line }) => line.entry.id === compaction.line.entry.firstKeptEntryId) : -1;
    const kept = first >= 0 ? this.items.slice(first, at) : [];
    const since = this.items.slice(at + 1, end);
    const edits = new Map();
    for (const { line } of [...kept, ...since]) {
      const edit = editOf(line.entry);
      if (edit) edits.set(edit.target, edit.replacement);
    }
    const said = (/** @type {Item[]} */ items) => items.filter(({ isSaid }) => isSaid);
    return { compaction, kept: said(kept), since: said(since), edits };
  }
}

/** @param {Item} item */
export const isPurged = ({ line }) => line.message?.kind === "purged";

/** @param {Line} line @param {number} place @returns {Item} */
export function itemOf(line, place) {
  const { entry, message } = line;
  const who = speaker(line);
  const isSaid = message !== undefined && message.kind !== "system" && who !== "mark";
  // Of a block whose text is gone, the size is unknown too.
  const tokens = entry.type === "compaction" && !isComplete({ line }) ? 0 : (message?.tokens ?? line.tokens ?? 0);
  return { id: message ? message.id : `e-${entry.id}`, line, speaker: who, isSaid, place, time: timeOf(line), tokens };
}

/** @param {Session} session @param {string} leaf @returns {Line[]} */
function pathTo(session, leaf) {
  const path = [];
  const seen = new Set();
  for (let line = session.lines.get(leaf); line && !seen.has(line); line = session.lines.get(line.entry.parentId)) {
    seen.add(line);
    path.push(line);
  }
  return path.reverse();
}

/** Whether a compaction is as in the session's file; the database has its summaries, but not its time, its text and what it kept. @param {{ line: Line }} item */
export const isComplete = ({ line }) => Date.parse(line.entry.timestamp) > 0;

/** Whether the model sees a message, as it is or in another form. @param {Line} line @param {Map<string, any>} edits */
export function isSeen({ entry, message }, edits) {
  return message?.kind === undefined && edits.get(entry.id) !== null;
}

/** @param {Item[]} items @param {Map<string, any>} edits */
export const seenOf = (items, edits) => items.filter(({ line }) => isSeen(line, edits));

/** Why the model does not see an entry, or sees a replacement; undefined if it sees the entry. @param {Item} item @param {Map<string, any>} edits */
export function hiddenBecause(item, edits) {
  if (item.line.message?.kind === "private") return "kept from the model (!!)";
  if (isPurged(item)) return "removed for good";
  if (!edits.has(item.line.entry.id)) return undefined;
  return edits.get(item.line.entry.id) === null ? "hidden from the model by an edit" : "shown to the model in another form";
}
