/**
 * Pi's session files, as the reference for the store and the block.
 *
 * The reader follows only Pi's docs/session-format.md and shares no code with the engine; otherwise the tests would compare the engine with
 * itself.
 */
import { readFileSync } from "node:fs";

/**
 * A line of a session file after the header.
 * @typedef {any} Entry
 */

export class SessionFile {
  /** @param {string} file */
  constructor(file) {
    const [header, ...entries] = readFileSync(file, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
    this.file = file;
    this.header = header;
    /** @type {Entry[]} */
    this.entries = entries;
  }

  /** @returns {string} */
  get id() {
    return this.header.id;
  }

  /** @param {string} id */
  entry(id) {
    return this.entries.find((entry) => entry.id === id);
  }

  /** The last compaction in the file. @returns {Entry} */
  get lastCompaction() {
    return this.entries.findLast((entry) => entry.type === "compaction");
  }

  /**
   * From root to leaf.
   * @param {string} [leaf] by default the file's last entry, where Pi opens it
   */
  branch(leaf = this.entries.at(-1)?.id) {
    const byId = new Map(this.entries.map((entry) => [entry.id, entry]));
    /** @type {Entry[]} */
    const branch = [];
    for (let entry = byId.get(leaf); entry; entry = byId.get(entry.parentId)) branch.unshift(entry);
    return branch;
  }

  /**
   * The entries of a branch whose messages the model sees, or saw before a compaction.
   * @param {string} [leaf]
   */
  visible(leaf) {
    const branch = this.branch(leaf);
    const hidden = new Set(branch.filter((entry) => entry.type === "context_edit" && !entry.replacement).map((entry) => entry.targetId));
    return branch.filter((entry) => isConversation(entry) && !hidden.has(entry.id));
  }

  /**
   * Ids of the visible messages that a compaction replaced.
   * @param {Entry} [compaction]
   * @returns {string[]}
   */
  compactedBy(compaction = this.lastCompaction) {
    const { position, visible } = this.#around(compaction);
    return visible.filter((entry) => position(entry.id) < position(compaction.firstKeptEntryId)).map(({ id }) => id);
  }

  /**
   * The messages that a compaction kept raw.
   * @param {Entry} [compaction]
   * @returns {Entry[]}
   */
  keptBy(compaction = this.lastCompaction) {
    const { position, visible } = this.#around(compaction);
    return visible.filter((entry) => position(entry.id) >= position(compaction.firstKeptEntryId));
  }

  /** @param {Entry} compaction */
  #around(compaction) {
    const order = new Map(this.branch(compaction.id).map((entry, at) => [entry.id, at]));
    return { position: (/** @type {string} */ id) => order.get(id) ?? NaN, visible: this.visible(compaction.id) };
  }
}

/** @param {Entry} entry */
function isConversation(entry) {
  if (entry.type === "message") return entry.message.role !== "system" && !entry.message.excludeFromContext;
  return entry.type === "custom_message" || entry.type === "branch_summary";
}

/**
 * The text of a message, without what the model has thought.
 * @param {any} message
 * @returns {string}
 */
export function textIn(message) {
  const blocks = Array.isArray(message?.content) ? message.content : [];
  return blocks.filter((/** @type {any} */ { type }) => type === "text").map((/** @type {any} */ { text }) => text).join("\n");
}

/**
 * The exact JSON that the store must keep for an entry; null if it shows no message.
 * @param {Entry} entry
 */
export function jsonOf(entry) {
  if (entry.type === "message") return JSON.stringify(entry.message);
  if (entry.type !== "custom_message" && entry.type !== "branch_summary") return null;
  const { id: _id, parentId: _parentId, ...said } = entry;
  return JSON.stringify(said);
}
