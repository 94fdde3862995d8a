/**
 * What the extension appends to a session by itself, without stopping anything: stubs and folds, as the engine's policy decides.
 *
 * Since 0.87 Pi takes entries at the end of a turn, and they hold for the next request of the same run. On an older Pi stubs stand
 * in entries of ours, and for a fold the agent must have ended; then Pi is asked for a compaction of its own, which comes back to
 * us. What is not ready is not waited for.
 */

import { countsOf, pricesOf } from "./context.js";
import { summarizerOf, withModels } from "./models.js";
import { isCold, lastMessage, modelOf, promptSizes, timeout, unwrap, windowOf } from "./pi.js";

/** @typedef {import("./context.js").Usage} Usage */
/** A draft of an entry, as Pi takes it at a boundary. @typedef {{ type: string, summary?: string, firstKeptEntryId?: string | null, details?: unknown, targetId?: string, replacement?: any }} Draft */

/** Complete answers: others Pi may have to ask for again, and a compaction behind them would keep it from that. */
const COMPLETE = ["stop", "toolUse"];

/** How long a prompt or the end of a turn waits for the session's past, so that it is known what may leave the context. */
const CATCH_UP_MS = 500;

export class Boundary {
  /** Whether Pi takes entries at the end of a turn; not known before the first. @type {boolean | undefined} */
  takesEntries;

  #session;
  /** What is to be appended, as long as that is being decided. @type {Promise<string> | undefined} */
  #deciding;
  /** Tokens before the conversation. @type {ReturnType<typeof promptSizes> | undefined} */
  #promptSizes;
  /** Whether something was said, and the agent has not begun yet. */
  #isPrompted = false;

  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.#session = session;
  }

  /**
   * @param {{ message?: any, entries?: Draft[] }} event of the turn's end
   * @param {Usage} usage
   * @returns {Promise<{ entries: Draft[] } | undefined>}
   */
  async atTurnEnd(event, usage) {
    this.takesEntries = event.entries !== undefined;
    if (!COMPLETE.includes(event.message?.stopReason)) return undefined;
    const others = event.entries ?? [];
    // Another extension's: what it covers is its business.
    if (others.some(({ type }) => type === "compaction")) return undefined;
    const entries = await this.#decide(usage, {
      edited: others.flatMap(({ type, targetId }) => (type === "context_edit" ? [targetId] : [])),
      usage: countsOf(event.message.usage),
      // A newer Pi keeps the cache warm while tools run.
      isCold: !this.takesEntries && isCold(event.message),
      canFold: this.takesEntries,
      isLate: !this.takesEntries,
    });
    if (entries.length === 0) return undefined;
    if (event.entries) return { entries: [...event.entries, ...entries] };
    this.#session.stubs.append(entries);
    return undefined;
  }

  /** What is said while an older Pi compacts for us waits until that is done: there it would be lost. @returns {Promise<undefined>} */
  async beforeInput() {
    await this.#session.compaction.requested;
    this.#isPrompted = this.#session.ctx.isIdle();
  }

  /** What was said has reached the agent. */
  atAgentStart() {
    this.#isPrompted = false;
  }

  /**
   * Before a prompt is sent: where the provider's cache has expired meanwhile, everything is written again anyway. Pi takes no
   * entries here, so stubs stand in entries of ours.
   */
  async beforePrompt() {
    const { ctx, manager, stubs, sync } = this.#session;
    const last = lastMessage(manager, "assistant");
    if (!last || !(isCold(last) || `${last.provider}/${last.model}` !== modelOf(ctx))) return;
    // A session that is taken up may still be on its way.
    await this.#catchUp();
    sync.walk();
    const entries = await this.#decide(ctx.getContextUsage?.(), { isCold: true, canFold: false });
    if (entries.length > 0) stubs.append(entries);
  }

  /**
   * A fold on a Pi that takes no entries, once the agent has ended. Pi tells others of that end when this is done, and what is
   * typed meanwhile waits for it.
   *
   * @param {{ messages?: any[] }} event
   */
  async atAgentEnd(event) {
    const { compaction, ctx, manager } = this.#session;
    if (this.takesEntries !== false || !COMPLETE.includes(event.messages?.at(-1)?.stopReason)) return;
    await this.#decide(ctx.getContextUsage?.(), { canFold: true });
    // The agent is told to be idle only after this event.
    await new Promise((resolve) => setImmediate(resolve));
    const isFree = ctx.isIdle() && !ctx.hasPendingMessages() && !this.#isPrompted && !this.#session.isClosing;
    if (isFree && compaction.pending?.draft && manager.getLeafId() === compaction.pending.leafId) await compaction.request();
    compaction.pending = null;
  }

  /**
   * Lets the engine summarize, while the agent works, what a compaction will ask for; whether it is time for that, the engine
   * knows. Nobody waits for it, and what fails is tried again when it is needed.
   *
   * @param {Usage} [known] where that was asked already
   */
  async prepare(known) {
    const { ctx, leaving, manager, settings, sync } = this.#session;
    if (!settings.background) return;
    const engine = await this.#session.engine;
    await sync.caughtUp;
    const leafId = manager.getLeafId();
    const usage = known ?? ctx.getContextUsage?.();
    // Right after a compaction Pi does not know how full the context is.
    if (this.#session.isClosing || sync.hasDuplicates || !leafId || !usage?.tokens) return;
    const request = { leafId, contextTokens: usage.tokens, contextWindow: windowOf(ctx, usage), model: modelOf(ctx) };
    unwrap(await withModels(this.#session, leaving.signal, (models) => engine.prepare(JSON.stringify(request), models)));
  }

  /** @returns {Promise<unknown>} */
  #catchUp() {
    return Promise.race([this.#session.sync.caughtUp.catch(() => {}), timeout(CATCH_UP_MS)]);
  }

  /**
   * @param {Usage} usage
   * @param {{ edited?: any[], usage?: unknown, isCold?: boolean, canFold: boolean, isLate?: boolean }} moment
   * @returns {Promise<Draft[]>} what is to be appended
   */
  async #decide(usage, moment) {
    const session = this.#session;
    const { sync } = session;
    const engine = await session.engine;
    // An older Pi does not wait for the one before.
    await this.#deciding?.catch(() => {});
    // The first request is part of what the session costs, although its past may still be on its way.
    if (!sync.isLive) await this.#catchUp();
    const live = session.context.live(usage);
    // Right after a compaction Pi does not know how full the context is.
    if (!sync.isLive || session.isClosing || sync.hasDuplicates || !live.leafId || !live.contextTokens) return [];
    const request = { ...live, ...moment, summarizer: this.#pricesOfSummaries(), ...(this.#promptSizes ??= promptSizes(session)) };
    this.#deciding = engine.boundary(JSON.stringify(request));
    /** @type {{ entries: Draft[], report?: { text: string, degraded: boolean } }} */
    const { entries, report } = unwrap(await this.#deciding);
    const draft = entries.find(({ type }) => type === "compaction");
    if (draft && report) session.compaction.pending = { summary: draft.summary ?? "", ...report, leafId: live.leafId, draft, tokensBefore: live.contextTokens };
    return entries;
  }

  /** Nothing where they are written within the session: there the engine knows the price. */
  #pricesOfSummaries() {
    const { ctx, lastRequest, settings } = this.#session;
    const names = settings.compactionModels;
    const writer = summarizerOf(ctx, names);
    const isWithin = writer === ctx.model && !names.includes(modelOf(ctx) ?? "") && lastRequest.isCached(writer);
    return isWithin ? undefined : pricesOf(writer);
  }
}
