/**
 * The data in the page, which `/lcm export --html` writes into `<script type="application/json">` elements. A session is parsed when it
 * is first shown; then its elements are removed.
 */

import { itemOf } from "./branch.js";
import { headline } from "./words.js";

/** The message of an entry. @typedef {{ id: string, tokens: number, kind?: "private" | "system" | "purged" }} Shown */
/** An entry of Pi's session file, with the store's data about it. @typedef {{ message?: Shown, tokens?: number, entry: any }} Line */
/** An end of a session. @typedef {{ leaf: string, frontier: string[] }} End */
/** What is known of a session without its entries; `leaf` is that of its current branch. @typedef {{ id: string, header: any, leaf: string | null, branches: End[] }} Facts */
/** The page's header. @typedef {{ format: number, version: string, exportedAt: number, cwd: string, sessions: number }} About */

/**
 * A summary. `sources` are entry ids for a leaf summary (depth 0), summary ids for a condensed one; times are in ms.
 * @typedef {object} Summary
 * @property {string} id
 * @property {string} handle
 * @property {number} depth
 * @property {string} text
 * @property {number} tokens
 * @property {"ok" | "degraded"} state
 * @property {string | null} model
 * @property {number} createdAt
 * @property {any} usage
 * @property {{ kind: string, text: string }[]} [quotes]
 * @property {string[]} sources
 * @property {number} messages
 * @property {number} fromTime
 * @property {number} toTime
 */

/** The only format that this viewer reads. */
const FORMAT = 1;

/** @returns {About} */
export function readAbout() {
  const about = parsed("about")[0];
  if (about?.format !== FORMAT) throw new Error(`The data in this page is of format ${about?.format}; this viewer reads ${FORMAT}.`);
  return about;
}

/** What is known about each session without reading it. @returns {Facts[]} */
export function readSessions() {
  return parsed("session");
}

export class Session {
  /** Summaries by id. @type {Map<string, Summary>} */
  summaries = new Map();
  /** Entries by id. @type {Map<string, Line>} */
  lines = new Map();
  /** The summaries condensed from a summary. @type {Map<string, Summary[]>} */
  parents = new Map();
  /** The session's last name. @type {string | undefined} */
  name;
  /** The branches that say something of their own, and for every entry one on which it is. @type {End[]} */
  branches = [];
  /** @type {Map<string, string>} */
  leaves = new Map();

  /**
   * @param {number} number of the session in the page
   * @param {Facts} facts
   */
  constructor(number, { id, header, leaf, branches }) {
    this.id = id;
    this.header = header;
    /** What an address in this session begins with; the first needs no name. */
    this.address = number > 0 ? `session/${encodeURIComponent(id)}/` : "";
    for (const summary of taken("summaries", number)) this.summaries.set(summary.id, summary);
    for (const line of taken("entries", number)) {
      this.lines.set(line.entry.id, line);
      if (line.entry.type === "session_info") this.name = line.entry.name || undefined;
    }
    for (const summary of this.summaries.values()) {
      if (summary.depth === 0) continue;
      for (const source of summary.sources) this.parents.set(source, [...(this.parents.get(source) ?? []), summary]);
    }
    this.branches = this.#speaking(branches, leaf);
    /** The leaf of the current branch. */
    this.leaf = leaf && this.lines.has(leaf) ? leaf : this.branches.at(-1)?.leaf;
  }

  /** The open branch, and those with a message that no other has; of equal ones, the last. @param {End[]} ends @param {string | null} open */
  #speaking(ends, open) {
    const speaking = new Set();
    for (const end of [...ends.filter(({ leaf }) => leaf === open), ...ends.toReversed()]) {
      for (let line = this.lines.get(end.leaf); line && !this.leaves.has(line.entry.id); line = this.lines.get(line.entry.parentId)) {
        this.leaves.set(line.entry.id, end.leaf);
        if (itemOf(line, 0).isSaid || end.leaf === open) speaking.add(end);
      }
    }
    return speaking.size ? ends.filter((end) => speaking.has(end)) : ends.slice(-1);
  }

  /** The message, entry or summary with this name in the page, or the only one whose name begins so. @param {string} beginning @returns {string | undefined} its whole name */
  idOf(beginning) {
    const ids = [...[...this.summaries.values()].map(({ handle }) => handle), ...[...this.lines.values()].map((line) => itemOf(line, -1).id)];
    if (ids.includes(beginning)) return beginning;
    const begun = /^[ms]-[0-9a-f]{3}/.test(beginning) ? ids.filter((id) => id.startsWith(beginning)) : [];
    return begun.length === 1 ? begun[0] : undefined;
  }

  /** A branch with this message, entry or summary. @param {string} id its name in the page @returns {string | undefined} the branch's leaf */
  leafOf(id) {
    let summary = [...this.summaries.values()].find(({ handle }) => handle === id);
    let source = [...this.lines.values()].find((line) => itemOf(line, -1).id === id)?.entry.id;
    // All that comes before the last source is on its branch too.
    for (; summary; summary = this.summaries.get(source)) source = summary.sources.at(-1);
    return this.leaves.get(source);
  }

  /** All messages of all branches. @returns {import("./branch.js").Item[]} */
  get said() {
    this.#said ??= [...this.lines.values()].map((line) => itemOf(line, -1)).filter(({ isSaid }) => isSaid);
    return this.#said;
  }

  /** @type {import("./branch.js").Item[] | undefined} */
  #said;
}

/** A session's name or first request, from entries that are not read yet. @param {number} number */
export function titleIn(number) {
  let [name, request] = ["", ""];
  for (const { textContent } of elements("entries", number)) {
    const text = textContent ?? "";
    if (request && !text.includes('"session_info"')) continue;
    for (const line of JSON.parse(text)) {
      if (line.entry.type === "session_info") name = line.entry.name || "";
      if (!request && line.entry.message?.role === "user") request = headline(line);
    }
  }
  return name || request;
}

/** @param {string} kind @param {number} [session] */
function elements(kind, session) {
  const which = session === undefined ? "" : `[data-session="${session}"]`;
  return [...document.querySelectorAll(`script[type="application/json"][data-kind="${kind}"]${which}`)];
}

/** @param {string} kind */
function parsed(kind) {
  return elements(kind).map((element) => JSON.parse(element.textContent ?? "null"));
}

/** The contents of the elements, which are removed, since the contents are in memory. @param {string} kind @param {number} session */
function* taken(kind, session) {
  for (const element of elements(kind, session)) {
    const list = JSON.parse(element.textContent ?? "[]");
    element.remove();
    yield* list;
  }
}
