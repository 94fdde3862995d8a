/**
 * What the extension appends to a session by itself: at the end of a turn, without stopping anything.
 *
 * Since 0.87 Pi takes entries there, and they hold for the next request of the same run. On an older Pi the agent must have
 * ended; then Pi is asked for a compaction of its own, which comes back to us. Whether anything is due, the engine knows; what
 * is not ready is not waited for.
 */

import { withModels } from "./models.js";
import { modelOf, unwrap, windowOf } from "./pi.js";

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionContext} ExtensionContext */
/** @typedef {import("../index.d.ts").Engine} Engine */
/** @typedef {import("./tree.js").Session} Session */

/** A draft of an entry, as Pi takes it at a boundary. @typedef {{ type: string, summary?: string, firstKeptEntryId?: string | null, details?: unknown }} Draft */
/** What the engine has for it. @typedef {{ entries: Draft[], report?: { text: string, degraded: boolean } }} Due */
/** How full the context is. @typedef {ReturnType<ExtensionContext["getContextUsage"]>} Usage */

/** Answers that are whole: others Pi may have to ask for again, and a compaction behind them would keep it from that. */
export const WHOLE = ["stop", "toolUse"];

/** The leaf of a session that was looked at last, and what its context began with. @type {WeakMap<Session, { leafId: string, from: string | undefined }>} */
const lookedAt = new WeakMap();

/**
 * @param {{ message?: any, entries?: Draft[] }} event of the turn's end
 * @param {ExtensionContext} ctx
 * @param {Session} session
 * @param {Engine} engine
 * @param {Usage} usage
 * @returns {Promise<{ entries: Draft[] } | undefined>}
 */
export async function atTurnEnd(event, ctx, session, engine, usage) {
  session.takesEntries = event.entries !== undefined;
  if (!event.entries || !WHOLE.includes(event.message?.stopReason)) return undefined;
  // Another extension's.
  if (event.entries.some(({ type }) => type === "compaction")) return undefined;
  const { entries } = await due(ctx, session, engine, usage);
  return entries.length > 0 ? { entries: [...event.entries, ...entries] } : undefined;
}

/**
 * The same for a Pi that takes no entries, once the agent has ended. Pi tells others of that end when this is done, and what is
 * typed meanwhile waits for `session.early`.
 *
 * @param {{ messages?: any[] }} event
 * @param {ExtensionContext} ctx
 * @param {Session} session
 * @param {Engine} engine
 */
export async function atAgentEnd(event, ctx, session, engine) {
  if (session.takesEntries !== false || !WHOLE.includes(event.messages?.at(-1)?.stopReason)) return;
  const { entries } = await due(ctx, session, engine, ctx.getContextUsage?.());
  // The agent is told to be idle only after this event.
  await new Promise((resolve) => setImmediate(resolve));
  const isFree = ctx.isIdle() && !ctx.hasPendingMessages() && !session.prompted && !session.closing;
  if (entries.length === 0 || !isFree || session.manager.getLeafId() !== session.offered?.leafId) {
    session.offered = null;
    return;
  }
  session.early = new Promise((resolve) => ctx.compact({ onComplete: () => resolve(), onError: () => resolve() }));
  await session.early;
  session.early = null;
  session.offered = null;
}

/**
 * @param {ExtensionContext} ctx
 * @param {Session} session
 * @param {Engine} engine
 * @param {Usage} usage
 * @returns {Promise<Due>}
 */
async function due(ctx, session, engine, usage) {
  const leafId = session.manager.getLeafId();
  // Right after a compaction Pi does not know how full the context is.
  if (!session.live || session.closing || !leafId || !usage?.tokens) return { entries: [] };
  const end = { leafId, contextTokens: usage.tokens, contextWindow: windowOf(ctx, usage), model: modelOf(ctx), shownFrom: shownFrom(session) };
  /** @type {Due} */
  const answer = unwrap(await engine.boundary(JSON.stringify(end)));
  const draft = answer.entries.find(({ type }) => type === "compaction");
  if (draft && answer.report) session.offered = { summary: draft.summary ?? "", ...answer.report, leafId, draft, tokensBefore: usage.tokens };
  return answer;
}

/**
 * Lets the engine summarise, while the agent works, what a compaction will ask for; whether it is time for that, the engine
 * knows. Nobody waits for it, and what fails is tried again when it is needed.
 *
 * @param {ExtensionContext} ctx
 * @param {Session} session
 * @param {Engine} engine
 * @param {Usage} [known] where that was asked already
 */
export async function prepare(ctx, session, engine, known) {
  if (!session.background) return;
  await session.caughtUp;
  const leafId = session.manager.getLeafId();
  const usage = known ?? ctx.getContextUsage?.();
  // Right after a compaction Pi does not know how full the context is.
  if (session.closing || !leafId || !usage?.tokens) return;
  const request = { leafId, contextTokens: usage.tokens, contextWindow: windowOf(ctx, usage), model: modelOf(ctx) };
  unwrap(await withModels(ctx, session.leaving.signal, (models) => engine.prepare(JSON.stringify(request), models)));
}

/**
 * A compaction as Pi takes it from whoever it has asked for one.
 *
 * @param {NonNullable<Session["offered"]>} offered
 */
export function compactionOf({ summary, draft, tokensBefore = 0 }) {
  return { summary, firstKeptEntryId: /** @type {string} */ (draft?.firstKeptEntryId), details: draft?.details, tokensBefore };
}

/**
 * The compaction that was offered and is on the branch by now; undefined while it is not.
 *
 * @param {Session} session
 */
export function landed({ manager, offered }) {
  if (!offered?.draft) return undefined;
  for (let id = manager.getLeafId(); id && id !== offered.leafId; ) {
    const entry = manager.getEntry(id);
    if (entry?.type === "compaction") return entry.summary === offered.summary ? entry : undefined;
    id = entry?.parentId ?? null;
  }
  return undefined;
}

/**
 * The first entry that the branch's last compaction left raw. What was looked at before is not looked at again.
 *
 * @param {Session} session
 */
export function shownFrom(session) {
  const known = lookedAt.get(session);
  const { manager } = session;
  const leafId = manager.getLeafId();
  if (!leafId) return undefined;
  /** @type {string | undefined} */
  let from;
  for (let entry = manager.getEntry(leafId); entry; entry = entry.parentId ? manager.getEntry(entry.parentId) : undefined) {
    if (entry.type === "compaction") from = manager.getEntry(entry.firstKeptEntryId) ? entry.firstKeptEntryId : entry.id;
    else if (entry.id === known?.leafId) from = known.from;
    else continue;
    break;
  }
  lookedAt.set(session, { leafId, from });
  return from;
}
