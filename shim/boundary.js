/**
 * What the extension appends to a session by itself, without stopping anything: stubs and folds, as the engine's policy decides.
 *
 * Since 0.87 Pi takes entries at the end of a turn, and they hold for the next request of the same run. On an older Pi stubs stand
 * in entries of ours, and for a fold the agent must have ended; then Pi is asked for a compaction of its own, which comes back to
 * us. What is not ready is not waited for.
 */

import { summarizerOf, withModels } from "./models.js";
import { CHARACTERS_PER_TOKEN, isCold, modelOf, patience, promptSizes, unwrap, windowOf } from "./pi.js";
import { append } from "./pruning.js";
import { walk } from "./tree.js";
import { canBeAsked } from "./within.js";

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionAPI} ExtensionAPI */
/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionContext} ExtensionContext */
/** @typedef {import("../index.d.ts").Engine} Engine */
/** @typedef {import("./tree.js").Session} Session */

/** A draft of an entry, as Pi takes it at a boundary. @typedef {{ type: string, summary?: string, firstKeptEntryId?: string | null, details?: unknown, targetId?: string, replacement?: any }} Draft */
/** What the engine has for it. @typedef {{ entries: Draft[], report?: { text: string, degraded: boolean } }} Due */
/** How full the context is. @typedef {ReturnType<ExtensionContext["getContextUsage"]>} Usage */

/** Answers that are whole: others Pi may have to ask for again, and a compaction behind them would keep it from that. */
const WHOLE = ["stop", "toolUse"];

/** How long a prompt or the end of a turn waits for the session's past, so that it is known what may leave the context. */
const CATCH_UP_MS = 500;

/** What a session's context begins with: the block, its tokens, and the first entry behind it. @typedef {{ from?: string, blockTokens: number, block?: string }} Begin */

/** The leaf of a session that was looked at last, and what its context began with. @type {WeakMap<Session, Begin & { leafId: string }>} */
const lookedAt = new WeakMap();

/**
 * @param {ExtensionAPI} pi
 * @param {{ message?: any, entries?: Draft[] }} event of the turn's end
 * @param {ExtensionContext} ctx
 * @param {Session} session
 * @param {Engine} engine
 * @param {Usage} usage
 * @returns {Promise<{ entries: Draft[] } | undefined>}
 */
export async function atTurnEnd(pi, event, ctx, session, engine, usage) {
  session.takesEntries = event.entries !== undefined;
  if (!WHOLE.includes(event.message?.stopReason)) return undefined;
  const others = event.entries ?? [];
  // Another extension's: what it covers is its business.
  if (others.some(({ type }) => type === "compaction")) return undefined;
  const { entries } = await due(pi, ctx, session, engine, usage, {
    edited: others.flatMap(({ type, targetId }) => (type === "context_edit" ? [targetId] : [])),
    usage: countsOf(event.message.usage),
    // A newer Pi keeps the cache warm while tools run.
    isCold: !session.takesEntries && isCold(event.message),
    canFold: session.takesEntries,
    isLate: !session.takesEntries,
  });
  if (entries.length === 0) return undefined;
  if (event.entries) return { entries: [...event.entries, ...entries] };
  append(pi, session, engine, entries);
  return undefined;
}

/**
 * Before a prompt is sent: where the provider's cache has expired meanwhile, everything is written again anyway. Pi takes no entries
 * here, so stubs stand in entries of ours.
 *
 * @param {ExtensionAPI} pi
 * @param {ExtensionContext} ctx
 * @param {Session} session
 * @param {Engine} engine
 */
export async function atPrompt(pi, ctx, session, engine) {
  const last = lastAnswer(session);
  if (!last || !(isCold(last) || `${last.provider}/${last.model}` !== modelOf(ctx))) return;
  // A session that is taken up may still be on its way.
  await Promise.race([session.caughtUp.catch(() => {}), patience(CATCH_UP_MS)]);
  walk(session, engine);
  const { entries } = await due(pi, ctx, session, engine, ctx.getContextUsage?.(), { isCold: true, canFold: false });
  if (entries.length > 0) append(pi, session, engine, entries);
}

/**
 * A fold on a Pi that takes no entries, once the agent has ended. Pi tells others of that end when this is done, and what is typed
 * meanwhile waits for `session.early`.
 *
 * @param {ExtensionAPI} pi
 * @param {{ messages?: any[] }} event
 * @param {ExtensionContext} ctx
 * @param {Session} session
 * @param {Engine} engine
 */
export async function atAgentEnd(pi, event, ctx, session, engine) {
  if (session.takesEntries !== false || !WHOLE.includes(event.messages?.at(-1)?.stopReason)) return;
  await due(pi, ctx, session, engine, ctx.getContextUsage?.(), { canFold: true });
  // The agent is told to be idle only after this event.
  await new Promise((resolve) => setImmediate(resolve));
  const isFree = ctx.isIdle() && !ctx.hasPendingMessages() && !session.prompted && !session.closing;
  if (!session.offered?.draft || !isFree || session.manager.getLeafId() !== session.offered.leafId) {
    session.offered = null;
    return;
  }
  session.early = new Promise((resolve) => ctx.compact({ onComplete: () => resolve(), onError: () => resolve() }));
  await session.early;
  session.early = null;
  session.offered = null;
}

/**
 * @param {ExtensionAPI} pi
 * @param {ExtensionContext} ctx
 * @param {Session} session
 * @param {Engine} engine
 * @param {Usage} usage
 * @param {{ edited?: any[], usage?: unknown, isCold?: boolean, canFold: boolean, isLate?: boolean }} moment
 * @returns {Promise<Due>}
 */
async function due(pi, ctx, session, engine, usage, moment) {
  // An older Pi does not wait for the one before.
  await session.deciding?.catch(() => {});
  // The first request is part of what the session costs, although its past may still be on its way.
  if (!session.live) await Promise.race([session.caughtUp.catch(() => {}), patience(CATCH_UP_MS)]);
  const live = liveOf(ctx, session, usage);
  // Right after a compaction Pi does not know how full the context is.
  if (!session.live || session.closing || session.reused.size > 0 || !live.leafId || !live.contextTokens) return { entries: [] };
  const writer = summarizerOf(ctx, session.summarizers);
  // Within the session the engine knows the price.
  const isWithin = writer === ctx.model && !session.summarizers.includes(modelOf(ctx) ?? "") && canBeAsked(session, writer);
  const summarizer = isWithin ? undefined : pricesOf(writer);
  const request = { ...live, ...moment, summarizer, ...(session.promptSizes ??= promptSizes(pi, ctx)) };
  session.deciding = engine.boundary(JSON.stringify(request));
  /** @type {Due} */
  const answer = unwrap(await session.deciding);
  const draft = answer.entries.find(({ type }) => type === "compaction");
  if (draft && answer.report) session.offered = { summary: draft.summary ?? "", ...answer.report, leafId: live.leafId, draft, tokensBefore: live.contextTokens };
  return answer;
}

/**
 * The context, as far as Pi knows it.
 *
 * @param {ExtensionContext} ctx
 * @param {Session} session
 * @param {Usage} [usage] as Pi tells it
 */
export function liveOf(ctx, session, usage = ctx.getContextUsage?.()) {
  const begin = beginOf(session);
  return {
    leafId: session.manager.getLeafId() ?? "",
    shownFrom: begin.from,
    blockTokens: begin.blockTokens,
    contextTokens: usage?.tokens ?? undefined,
    contextWindow: windowOf(ctx, usage),
    model: modelOf(ctx),
    cost: pricesOf(ctx.model),
  };
}

/** What is no number is 0: others write these files. @param {{ cost?: any } | undefined} model */
function pricesOf(model) {
  return Object.fromEntries(["input", "output", "cacheRead", "cacheWrite"].map((name) => [name, atLeastZero(model?.cost?.[name])]));
}

/** @param {any} usage that a provider reported */
function countsOf(usage) {
  return Object.fromEntries(["input", "output", "cacheRead", "cacheWrite"].map((name) => [name, Math.round(atLeastZero(usage?.[name]))]));
}

/** @param {unknown} value */
function atLeastZero(value) {
  return typeof value === "number" && Number.isFinite(value) ? Math.max(0, value) : 0;
}

/** The model's last answer on the branch. @param {Session} session @returns {any} */
function lastAnswer({ manager }) {
  for (let id = manager.getLeafId(); id; ) {
    const entry = manager.getEntry(id);
    if (entry?.type === "message" && entry.message.role === "assistant") return entry.message;
    id = entry?.parentId ?? null;
  }
  return undefined;
}

/**
 * Lets the engine summarize, while the agent works, what a compaction will ask for; whether it is time for that, the engine
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
  if (session.closing || session.reused.size > 0 || !leafId || !usage?.tokens) return;
  const request = { leafId, contextTokens: usage.tokens, contextWindow: windowOf(ctx, usage), model: modelOf(ctx) };
  unwrap(await withModels(ctx, session, session.leaving.signal, (models) => engine.prepare(JSON.stringify(request), models)));
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
 * The first entry that the branch's last compaction left raw.
 *
 * @param {Session} session
 */
export function shownFrom(session) {
  return beginOf(session).from;
}

/**
 * How the context of the branch begins. What was looked at before is not looked at again.
 *
 * @param {Session} session
 * @returns {Begin}
 */
function beginOf(session) {
  const known = lookedAt.get(session);
  const { manager } = session;
  const leafId = manager.getLeafId();
  /** @type {Begin} */
  let begin = { blockTokens: 0 };
  if (!leafId) return begin;
  for (let entry = manager.getEntry(leafId); entry; entry = entry.parentId ? manager.getEntry(entry.parentId) : undefined) {
    if (entry.type === "compaction") {
      const from = manager.getEntry(entry.firstKeptEntryId) ? entry.firstKeptEntryId : entry.id;
      begin = { from, blockTokens: Math.ceil((entry.summary?.length ?? 0) / CHARACTERS_PER_TOKEN), block: entry.summary };
    } else if (entry.id === known?.leafId) begin = known;
    else continue;
    break;
  }
  lookedAt.set(session, { ...begin, leafId });
  return begin;
}

/**
 * The block that the session's context begins with, if something was compacted.
 *
 * @param {Session} session
 */
export function blockOf(session) {
  return beginOf(session).block;
}
