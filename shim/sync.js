/**
 * Hands over entries from Pi's session tree to the engine: new ones in order, and those that failed earlier.
 *
 * Entries are handed over, not events: an event comes before its entry, and not every entry has one. The walk from the leaf to
 * what is known costs the length of what is new, whatever made it new.
 */

import { setImmediate as pause } from "node:timers/promises";
import { unwrap } from "./pi.js";

/** @typedef {import("@earendil-works/pi-coding-agent").SessionEntry} SessionEntry */
/** @typedef {import("../index.d.ts").Engine} Engine */
/** @typedef {import("./session.js").Session} Session */

/**
 * Characters of JSON handed over at once when a session is seen for the first time, and entries asked about; between slices
 * Pi's own work goes on.
 */
const SLICE = { characters: 256 * 1024, entries: 2000 };

export class Sync {
  /** Whether the past is handed over, so that entries may follow one by one. */
  isLive = false;
  /** When the past is handed over. @type {Promise<void>} */
  caughtUp = Promise.resolve();

  #session;
  #manager;
  /** @type {Engine} */
  #engine = /** @type {any} */ (undefined);
  #isCatchingUp = false;
  /** The leaf that was looked at last. @type {string | null} */
  #last = null;
  /** Ids that several entries have. @type {Set<string>} */
  #duplicates = new Set();
  /** Entries beyond the first of their id. */
  #surplus = 0;

  /** @param {Session} session */
  constructor(session) {
    this.#session = session;
    this.#manager = session.manager;
  }

  /** Whether several entries have one id. Of those Pi shows the last; in the store the first has it, and the others are kept beside it. */
  get hasDuplicates() {
    return this.#duplicates.size > 0;
  }

  /** Whether the store lacks something of the session that is not on its way. */
  get isBehind() {
    return this.#engine.known() < this.#manager.getEntries().length - this.#surplus;
  }

  /** Hands over the past to an engine that was just opened. @param {Engine} engine */
  start(engine) {
    this.#engine = engine;
    return this.#catchUp();
  }

  /** Goes on where handing over the past was broken off, once the store takes something again. */
  resume() {
    if (this.isLive || this.#isCatchingUp || this.#session.isClosing || !this.#engine.accepts()) return undefined;
    return (this.caughtUp = this.#catchUp());
  }

  /**
   * Hands over again what the store lost on its way, on whatever branch, even while it is given a rest. At the end of a run, so
   * that what was said since the store takes something again does not wait for the next one.
   */
  async retry() {
    // What is on its way counts as known until it has failed.
    await this.#engine.flush();
    if (!this.#isCatchingUp && !this.#session.isClosing && this.isBehind) await (this.caughtUp = this.#catchUp());
  }

  /** Hands over new entries one tick later, when the event's entry exists. */
  walkSoon() {
    setImmediate(() => {
      this.#session.engine.then(() => this.walk()).catch(() => {});
    });
  }

  /** Hands over the entries between the leaf and what the engine knows. */
  walk() {
    // While the past is being handed over, the end of the branch still hangs in the air.
    if (!this.isLive || this.#manager.getSessionId() !== this.#session.id) return;
    let id = this.#manager.getLeafId();
    // Mostly the session went on by one entry. Pi stands still for this, so that is one call and nothing else.
    const next = id && id !== this.#last ? this.#manager.getEntry(id) : undefined;
    const goesOn = next?.parentId && next.parentId === this.#last;
    this.#last = id;
    if ((goesOn && this.#engine.append(next.id, JSON.stringify(next))) || !this.#engine.accepts()) return;
    /** @type {SessionEntry[]} */
    const fresh = [];
    while (id && !this.#engine.knows(id)) {
      const entry = this.#manager.getEntry(id);
      if (!entry) break;
      fresh.push(entry);
      id = entry.parentId;
    }
    if (fresh.length > 0) this.#handOver(fresh.reverse());
  }

  /**
   * The end of the branch as far as the store has it, and whether the user has sent a request since: what it can't take does not
   * keep the rest from being asked.
   */
  storedLeaf() {
    let id = this.#manager.getLeafId();
    let newerRequest = false;
    while (id && !this.#engine.knows(id)) {
      const entry = this.#manager.getEntry(id);
      newerRequest ||= entry?.type === "message" && entry.message.role === "user";
      id = entry?.parentId ?? null;
    }
    return { leafId: id ?? undefined, newerRequest };
  }

  /**
   * Hands over what the session has beyond what is stored of it, all branches, in slices, each while the one before is being
   * stored. What the store would not take is left for the next time.
   */
  async #catchUp() {
    this.isLive = false;
    this.#isCatchingUp = true;
    try {
      this.isLive = await this.#handOverAll();
    } finally {
      this.#isCatchingUp = false;
    }
    this.walk();
  }

  /** @returns {Promise<boolean>} whether nothing was left over */
  async #handOverAll() {
    const all = this.#manager.getEntries();
    const ids = new Set();
    const repeated = all.map(({ id }) => id).filter((id) => ids.has(id) || !ids.add(id));
    this.#duplicates = new Set(repeated);
    this.#surplus = repeated.length;
    for (let at = 0; at < all.length; at += SLICE.entries) {
      const asked = all.slice(at, at + SLICE.entries);
      const answer = await this.#engine.missing(JSON.stringify(asked.map(({ id }) => id)));
      if (this.#session.isClosing) return false;
      /** @type {Set<number>} */
      const missing = new Set(unwrap(answer));
      const entries = this.#parentsFirst(asked.filter(({ id }, place) => missing.has(place) || this.#duplicates.has(id)));
      if (!(await this.#handOverSlices(entries))) return false;
    }
    return true;
  }

  /**
   * Pi appends, so that parents come first; in a file that was merged or edited by hand they may not, and to Pi it is all the
   * same.
   *
   * @param {SessionEntry[]} entries
   * @returns {SessionEntry[]} the same, each behind its parent
   */
  #parentsFirst(entries) {
    /** @type {Set<SessionEntry>} */
    const ordered = new Set();
    const ids = new Set();
    for (const entry of entries) {
      // It may be as long as the session.
      /** @type {Set<SessionEntry>} */
      const chain = new Set();
      for (let next = /** @type {SessionEntry | undefined} */ (entry); next && !ordered.has(next) && !chain.has(next); ) {
        chain.add(next);
        const { parentId } = next;
        next = parentId && !ids.has(parentId) && !this.#engine.knows(parentId) ? this.#manager.getEntry(parentId) : undefined;
      }
      for (const next of [...chain].reverse()) {
        ordered.add(next);
        ids.add(next.id);
      }
    }
    return [...ordered];
  }

  /** @param {SessionEntry[]} entries parents before children @returns {Promise<boolean>} whether nothing was left over */
  async #handOverSlices(entries) {
    /** @type {SessionEntry[]} */
    let slice = [];
    /** @type {string[]} */
    let texts = [];
    let characters = 0;
    // The next slice is made ready while one is written; more than these two are never on their way.
    /** @type {Promise<unknown>} */
    let stored = pause();
    for (const entry of entries) {
      const text = JSON.stringify(entry);
      slice.push(entry);
      texts.push(text);
      characters += text.length;
      if (characters < SLICE.characters && entry !== entries.at(-1)) continue;
      this.#handOver(slice, `[${texts.join()}]`);
      [slice, texts, characters] = [[], [], 0];
      const before = stored;
      stored = this.#engine.flush();
      stored.catch(() => {});
      await before;
      if (this.#isStopped()) return false;
    }
    await stored;
    return !this.#isStopped();
  }

  #isStopped() {
    return this.#session.isClosing || !this.#engine.accepts();
  }

  /** @param {SessionEntry[]} entries parents before children @param {string} json the same, written down */
  #handOver(entries, json = JSON.stringify(entries)) {
    // Of an entry whose parent is nowhere Pi makes a root. Any other that lacks its parent in the store must wait for it.
    const orphans = entries.filter(({ parentId }) => parentId && !this.#manager.getEntry(parentId)).map(({ id }) => id);
    unwrap(this.#engine.handOver(json, orphans));
  }
}
