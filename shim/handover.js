/**
 * Hands over entries from Pi's session tree to the engine: new ones in order, and those that failed earlier.
 *
 * Entries are handed over, not events: an event comes before its entry, and not every entry has one. The walk from the leaf to the first
 * known entry takes time in proportion to the new entries, wherever they come from.
 */

import { setImmediate as pause } from "node:timers/promises";
import { unwrap } from "./pi.js";

/** @typedef {import("@earendil-works/pi-coding-agent").SessionEntry} SessionEntry */
/** @typedef {import("../index.d.ts").Engine} Engine */
/** @typedef {import("./session.js").Session} Session */

/**
 * The size of a slice when a session is handed over for the first time: characters of JSON, and ids per query. Pi continues between slices.
 */
const SLICE = { characters: 256 * 1024, entries: 2000 };

export class Handover {
  /** Whether the history is handed over, so that single entries may follow. */
  isLive = false;
  /** Resolves when the history is handed over. @type {Promise<void>} */
  caughtUp = Promise.resolve();

  #session;
  #manager;
  /** @type {Engine} */
  #engine = /** @type {any} */ (undefined);
  #isCatchingUp = false;
  /** The leaf of the last walk. @type {string | null} */
  #last = null;
  /** Ids that several entries have. @type {Set<string>} */
  #duplicates = new Set();
  /** Entries beyond the first of their id. */
  #surplus = 0;
  /** Entries that differ from what was stored of them, once that is known. */
  edited = 0;
  #isCompared = false;

  /** @param {Session} session */
  constructor(session) {
    this.#session = session;
    this.#manager = session.manager;
  }

  /**
   * Whether several entries have one id. Pi shows the last of them; in the store the first has the id, and the others are stored under ids
   * of their own.
   */
  get hasDuplicates() {
    return this.#duplicates.size > 0;
  }

  /** Whether the store lacks entries of the session that are not queued. Costs the session's length. */
  get isBehind() {
    return this.#engine.known() < this.#manager.getEntries().length - this.#surplus;
  }

  /** Hands over the history to an engine that was just opened. @param {Engine} engine */
  start(engine) {
    this.#engine = engine;
    return this.#catchUp();
  }

  /** Continues an interrupted hand-over of the history, once the store accepts entries again. */
  resume() {
    if (this.isLive || this.#isCatchingUp || this.#session.isClosing || !this.#engine.accepts()) return undefined;
    return (this.caughtUp = this.#catchUp());
  }

  /**
   * Hands over lost entries again, on any branch, even during the store's pause. It runs at the end of a run, so that entries do not wait
   * for the next run once the store accepts them.
   */
  async retry() {
    // Queued entries count as known until they fail.
    await this.#engine.flush();
    if (!this.#isCatchingUp && !this.#session.isClosing && this.isBehind) await (this.caughtUp = this.#catchUp());
  }

  /** Hands over new entries one tick later, when the event's entry exists. */
  walkSoon() {
    setImmediate(() => {
      this.#session.engine.then(() => this.walk()).catch(() => {});
    });
  }

  /** Hands over the entries between the leaf and the first known one. */
  walk() {
    // While the history is being handed over, the parents of the branch's end are not stored yet.
    if (!this.isLive || this.#manager.getSessionId() !== this.#session.id) return;
    let id = this.#manager.getLeafId();
    // Mostly there is one new entry. Pi waits for this, so that case is a single call.
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
   * The last stored entry of the branch, and whether the user has sent a request since: entries that can't be stored do not block questions
   * about the rest.
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
   * Hands over the entries of all branches that are not stored yet, in slices, each while the one before is being stored. Entries that the
   * store rejects are left for the next time.
   */
  async #catchUp() {
    this.isLive = false;
    this.#isCatchingUp = true;
    try {
      this.isLive = await this.#handOverAll();
      if (this.isLive && !this.#isCompared) await this.#compare();
    } finally {
      this.#isCatchingUp = false;
    }
    this.walk();
    // What came meanwhile was not handed over when the footer counted it.
    void this.#session.footer.update();
  }

  /** Hands over what Pi shows of entries whose file was edited since they were stored. Others do not wait for the comparison. */
  async #compare() {
    this.#isCompared = true;
    this.edited = unwrap(await this.#engine.setAside());
    if (this.edited === 0) return;
    this.isLive = false;
    this.#last = null;
    this.isLive = await this.#handOverAll();
  }

  /** @returns {Promise<boolean>} whether nothing was left over */
  async #handOverAll() {
    // A fork of a file of Pi's first format has its entries without ids, which no branch shows.
    const all = this.#manager.getEntries().filter(({ id }) => id);
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
   * Pi appends, so parents come first. A merged or hand-edited file may have another order, which Pi accepts.
   *
   * @param {SessionEntry[]} entries
   * @returns {SessionEntry[]} the same, each after its parent
   */
  #parentsFirst(entries) {
    /** @type {Set<SessionEntry>} */
    const ordered = new Set();
    const ids = new Set();
    for (const entry of entries) {
      // The chain of parents may be as long as the session.
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
    // The next slice is prepared while one is written; at most two are in memory.
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

  /** @param {SessionEntry[]} entries parents before children @param {string} json the same as JSON */
  #handOver(entries, json = JSON.stringify(entries)) {
    // Pi treats an entry whose parent does not exist as a root. Others wait for their parent in the store.
    const orphans = entries.filter(({ parentId }) => parentId && !this.#manager.getEntry(parentId)).map(({ id }) => id);
    unwrap(this.#engine.handOver(json, orphans));
  }
}
