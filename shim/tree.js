/**
 * From Pi's session tree to the engine: what is new, in order, and what the store would not take earlier.
 *
 * Entries are handed over, not events: an event comes before its entry, and not every entry has one. The walk from the leaf to
 * what is known costs the length of what is new, whatever made it new.
 */

import { setImmediate as pause } from "node:timers/promises";
import { unwrap } from "./pi.js";

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionContext} ExtensionContext */
/** @typedef {import("@earendil-works/pi-coding-agent").SessionEntry} SessionEntry */
/** @typedef {import("../index.d.ts").Engine} Engine */

/**
 * One session of Pi with its engine.
 *
 * @typedef {object} Session
 * @property {string} id Pi's session id
 * @property {ExtensionContext["sessionManager"]} manager the session's tree
 * @property {Promise<Engine>} engine rejects when the store can't be opened
 * @property {() => Promise<Engine>} reopen tries again what failed
 * @property {Promise<Engine> | null} reopening under way
 * @property {number} [failed] when opening failed last
 * @property {Promise<void>} caughtUp when what was said before we were here is handed over
 * @property {boolean} live entries may be handed over one by one: we have caught up
 * @property {string | null} last the leaf that was looked at last
 * @property {boolean} catchingUp under way
 * @property {boolean} closing nothing more is to be handed over
 * @property {Set<string>} reused ids that several entries have
 * @property {number} surplus entries beyond the first of their id
 * @property {AbortController} leaving stops the model calls that nobody waits for
 * @property {string | null} preamble what the system prompt gets; changes only with what stands before all messages
 * @property {string | null} nextPreamble what it gets from the next run on, unless a request comes before that
 * @property {{ summary: string, text: string, degraded: boolean, leafId?: string, draft?: import("./boundary.js").Draft, tokensBefore?: number } | null} offered
 *   the compaction under way; with a draft, one that the extension began by itself at `leafId`
 * @property {boolean} footer whether the footer is wanted
 * @property {boolean} background whether summaries may be written ahead of a compaction
 * @property {boolean} lean whether the context is kept lean
 * @property {string[]} summarizers models that write summaries, as `provider/id`
 * @property {import("./within.js").Sent} [sent] the request that is being answered
 * @property {import("./within.js").Answered} [answered] the last one that was
 * @property {string} [marked] what Anthropic's cache was shown last, see marker.js
 * @property {ReturnType<typeof import("./pi.js").promptSizes>} [promptSizes] tokens before the conversation
 * @property {Promise<string>} [deciding] what is to be appended, as long as that is being decided
 * @property {boolean} [stubs] there are stubs that Pi does not show by itself
 * @property {boolean} counting for the footer; `stale` when it has to be done once more
 * @property {boolean} stale
 * @property {boolean} compacting the footer tells of that
 * @property {boolean} [takesEntries] whether Pi takes entries at the end of a turn
 * @property {Promise<void> | null} early a compaction that Pi was asked for, under way
 * @property {Promise<string | null> | null} changed what the first prompt tells the model of files that changed on disk
 * @property {boolean} prompted something was said, and the agent has not begun yet
 */

/**
 * Characters of JSON handed over at once when a session is seen for the first time, and entries asked about; between slices
 * Pi's own work goes on.
 */
const SLICE = { characters: 256 * 1024, entries: 2000 };

/**
 * The engine of a session, with everything said so far handed over.
 *
 * @param {Session} session
 */
export async function ready(session) {
  const engine = await session.engine.catch(() => session.reopen());
  goOn(session, engine);
  await session.caughtUp;
  walk(session, engine);
  return engine;
}

/**
 * Goes on where handing over the past was broken off, once the store takes something again.
 *
 * @param {Session} session
 * @param {Engine} engine
 */
export function goOn(session, engine) {
  if (session.live || session.catchingUp || session.closing || !engine.accepts()) return undefined;
  session.caughtUp = catchUp(session, engine);
  return session.caughtUp;
}

/**
 * Whether the store lacks something of the session that is not on its way.
 *
 * @param {Session} session
 * @param {Engine} engine
 */
export const isBehind = ({ manager, surplus }, engine) => engine.known() < manager.getEntries().length - surplus;

/**
 * The end of the branch as far as the store has it, and whether the user has sent a request since: what it can't take does not keep
 * the rest from being asked.
 *
 * @param {Session} session
 * @param {Engine} engine
 */
export function storedLeaf({ manager }, engine) {
  let id = manager.getLeafId();
  let newerRequest = false;
  while (id && !engine.knows(id)) {
    const entry = manager.getEntry(id);
    newerRequest ||= entry?.type === "message" && entry.message.role === "user";
    id = entry?.parentId ?? null;
  }
  return { leafId: id ?? undefined, newerRequest };
}

/**
 * Hands over again what the store lost on its way, on whatever branch, even while it is given a rest. At the end of a run, so that
 * what was said since the store takes something again does not wait for the next one.
 *
 * @param {Session} session
 * @param {Engine} engine
 */
export async function makeUp(session, engine) {
  // What is on its way counts as known until it has failed.
  await engine.flush();
  if (session.catchingUp || session.closing || !isBehind(session, engine)) return;
  session.caughtUp = catchUp(session, engine);
  await session.caughtUp;
}

/**
 * Hands over the entries between the leaf and what the engine knows: the length of what is new, whatever made it new.
 *
 * @param {Session} session
 * @param {Engine} engine
 */
export function walk(session, engine) {
  const { manager } = session;
  // While the past is being handed over, the end of the branch still hangs in the air.
  if (!session.live || manager.getSessionId() !== session.id) return;
  let id = manager.getLeafId();
  // Mostly the session went on by one entry. Pi stands still for this, so that is one call and nothing else.
  const next = id && id !== session.last ? manager.getEntry(id) : undefined;
  const goesOn = next?.parentId && next.parentId === session.last;
  session.last = id;
  if ((goesOn && engine.append(next.id, JSON.stringify(next))) || !engine.accepts()) return;
  /** @type {SessionEntry[]} */
  const fresh = [];
  while (id && !engine.knows(id)) {
    const entry = manager.getEntry(id);
    if (!entry) break;
    fresh.push(entry);
    id = entry.parentId;
  }
  if (fresh.length > 0) handOver(session, engine, fresh.reverse());
}

/**
 * Hands over what a session has beyond what is stored of it, all branches, in slices, each while the one before is being stored.
 * What the store would not take is left for the next time.
 *
 * @param {Session} session
 * @param {Engine} engine
 */
export async function catchUp(session, engine) {
  session.live = false;
  session.catchingUp = true;
  try {
    session.live = await handOverAll(session, engine);
  } finally {
    session.catchingUp = false;
  }
  walk(session, engine);
}

/**
 * @param {Session} session
 * @param {Engine} engine
 * @returns {Promise<boolean>} whether nothing was left over
 */
async function handOverAll(session, engine) {
  const all = session.manager.getEntries();
  countReused(session, all);
  for (let at = 0; at < all.length; at += SLICE.entries) {
    const asked = all.slice(at, at + SLICE.entries);
    const answer = await engine.missing(JSON.stringify(asked.map(({ id }) => id)));
    if (session.closing) return false;
    /** @type {Set<number>} */
    const missing = new Set(unwrap(answer));
    const entries = parentsFirst(session, engine, asked.filter(({ id }, place) => missing.has(place) || session.reused.has(id)));
    if (!(await handOverSlices(session, engine, entries))) return false;
  }
  return true;
}

/**
 * Ids are unique, but for a file that was damaged or made up. Of the entries of one id Pi shows the last; in the store the first has it,
 * and the others are kept beside that one.
 *
 * @param {Session} session
 * @param {SessionEntry[]} all
 */
function countReused(session, all) {
  const ids = new Set();
  const reused = all.map(({ id }) => id).filter((id) => ids.has(id) || !ids.add(id));
  session.reused = new Set(reused);
  session.surplus = reused.length;
}

/**
 * Pi appends, so that parents come first; in a file that was merged or edited by hand they may not, and to Pi it is all the
 * same.
 *
 * @param {Session} session
 * @param {Engine} engine
 * @param {SessionEntry[]} entries
 * @returns {SessionEntry[]} the same, each behind its parent
 */
function parentsFirst({ manager }, engine, entries) {
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
      next = parentId && !ids.has(parentId) && !engine.knows(parentId) ? manager.getEntry(parentId) : undefined;
    }
    for (const next of [...chain].reverse()) {
      ordered.add(next);
      ids.add(next.id);
    }
  }
  return [...ordered];
}

/**
 * @param {Session} session
 * @param {Engine} engine
 * @param {SessionEntry[]} entries parents before children
 * @returns {Promise<boolean>} whether nothing was left over
 */
async function handOverSlices(session, engine, entries) {
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
    handOver(session, engine, slice, `[${texts.join()}]`);
    [slice, texts, characters] = [[], [], 0];
    const before = stored;
    stored = engine.flush();
    stored.catch(() => {});
    await before;
    if (session.closing || !engine.accepts()) return false;
  }
  await stored;
  return !session.closing && engine.accepts();
}

/**
 * @param {Session} session
 * @param {Engine} engine
 * @param {SessionEntry[]} entries parents before children
 * @param {string} json the same, written down
 */
function handOver({ manager }, engine, entries, json = JSON.stringify(entries)) {
  // Of an entry whose parent is nowhere Pi makes a root. Any other that lacks its parent in the store must wait for it.
  const orphans = entries.filter(({ parentId }) => parentId && !manager.getEntry(parentId)).map(({ id }) => id);
  unwrap(engine.handOver(json, orphans));
}
