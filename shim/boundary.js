/**
 * Appends stubs and folds to a session, as the engine's policy decides, without interrupting the agent.
 *
 * Since 0.87, Pi takes entries at the end of a turn; they apply to the next request of the same run. On an older Pi, stubs are stored
 * in our own entries, and a fold has to wait until the agent has ended: then we ask Pi to compact, and answer that compaction with
 * the fold. The agent waits for summaries only where Pi alone would compact, and so wait for its own.
 */

import { countsOf, pricesOf } from "./context.js";
import { summarizerOf, withModels } from "./models.js";
import { isCold, lastMessage, modelOf, promptSizes, timeout, unlessAborted, unwrap, windowOf } from "./pi.js";

/** @typedef {import("./context.js").Usage} Usage */
/** A draft of an entry, as Pi takes it at a boundary. @typedef {{ type: string, summary?: string, firstKeptEntryId?: string | null, details?: unknown, targetId?: string, replacement?: any }} Draft */

/** Complete answers. Pi may retry any other, and a compaction after it would prevent that. */
const COMPLETE = ["stop", "toolUse"];

/** How long a prompt or the end of a turn waits for the session's history to be stored, in ms. */
const CATCH_UP_MS = 500;

/** How long a fold waits for its summaries where Pi alone would compact, in ms. */
const SUMMARIES_MS = 30_000;

export class Boundary {
  /** Whether Pi takes entries at the end of a turn; unknown before the first turn ends. @type {boolean | undefined} */
  takesEntries;

  #session;
  /** The decision in progress. @type {Promise<string> | undefined} */
  #deciding;
  /** Tokens before the conversation. @type {ReturnType<typeof promptSizes> | undefined} */
  #promptSizes;
  /** Whether the user sent a prompt that the agent has not started on. */
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
    // Another extension compacts here.
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

  /** Holds back input while an older Pi compacts for us; Pi would lose it. @returns {Promise<undefined>} */
  async beforeInput() {
    await this.#session.compaction.requested;
    this.#isPrompted = this.#session.ctx.isIdle();
  }

  /** The prompt has reached the agent. */
  atAgentStart() {
    this.#isPrompted = false;
  }

  /**
   * Before a prompt is sent: if the provider's cache has expired, the whole prompt is written again anyway, so stubs are free. Pi
   * takes no entries here, so stubs are stored in our own. Folds wait for the end of the turn: made here, they saved at most 1 % in
   * the benchmark's sessions, even with 30 % cold prompts.
   */
  async beforePrompt() {
    const { ctx, manager, stubs, sync } = this.#session;
    const last = lastMessage(manager, "assistant");
    if (!last || !(isCold(last) || `${last.provider}/${last.model}` !== modelOf(ctx))) return;
    // A resumed session may not be stored completely yet.
    await this.#catchUp();
    sync.walk();
    const entries = await this.#decide(ctx.getContextUsage?.(), { isCold: true, canFold: false });
    if (entries.length > 0) stubs.append(entries);
  }

  /**
   * Folds on a Pi that takes no entries, once the agent has ended. Pi emits the event to other extensions, and handles new input,
   * only after this.
   *
   * @param {{ messages?: any[] }} event
   */
  async atAgentEnd(event) {
    const { compaction, ctx, manager } = this.#session;
    if (this.takesEntries !== false || !COMPLETE.includes(event.messages?.at(-1)?.stopReason)) return;
    // A fold is the answer to a compaction; stubs are there before the next prompt.
    this.#session.stubs.append(await this.#decide(ctx.getContextUsage?.(), { canFold: true }));
    // Pi marks the agent as idle only after this event.
    await new Promise((resolve) => setImmediate(resolve));
    const isFree = ctx.isIdle() && !ctx.hasPendingMessages() && !this.#isPrompted && !this.#session.isClosing;
    if (isFree && compaction.pending?.draft && manager.getLeafId() === compaction.pending.leafId) await compaction.request();
    compaction.pending = null;
  }

  /**
   * Lets the engine write summaries in the background while the agent works; the engine decides when. A summary that fails is tried
   * again when a compaction needs it.
   *
   * @param {Usage} [known] the context's usage, if the caller has it
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
   * @returns {Promise<Draft[]>} the entries to append
   */
  async #decide(usage, moment, mayWait = true) {
    const session = this.#session;
    const { sync } = session;
    const engine = await session.engine;
    // The first request counts towards the session's cost, even if the history is not stored completely yet.
    if (!sync.isLive) await this.#catchUp();
    // An older Pi does not wait for the previous decision, and another one may wait for it, too.
    for (let previous; previous !== this.#deciding; ) {
      previous = this.#deciding;
      await previous?.catch(() => {});
    }
    const live = session.context.live(usage);
    // Right after a compaction Pi does not know how full the context is.
    if (!sync.isLive || session.isClosing || sync.hasDuplicates || !live.leafId || !live.contextTokens) return [];
    const request = { ...live, ...moment, summarizer: this.#pricesOfSummaries(), ...(this.#promptSizes ??= promptSizes(session)) };
    this.#deciding = engine.boundary(JSON.stringify(request));
    /** @type {{ entries: Draft[], report?: { text: string, degraded: boolean }, waits?: boolean }} */
    const { entries, report, waits } = unwrap(await this.#deciding);
    if (waits && mayWait) {
      const written = this.prepare(usage).catch(() => {});
      const stop = session.footer.followCompaction(() => "LCM: writing summaries");
      await unlessAborted(Promise.race([written, timeout(SUMMARIES_MS)]), session.ctx.signal).finally(stop);
      // The request that was just answered counts once.
      return this.#decide(usage, { ...moment, usage: undefined }, false);
    }
    const draft = entries.find(({ type }) => type === "compaction");
    if (draft && report) session.compaction.pending = { summary: draft.summary ?? "", ...report, leafId: live.leafId, draft, tokensBefore: live.contextTokens };
    return entries;
  }

  /** The prices of summaries; undefined if they are written within the session, whose prices the engine knows. */
  #pricesOfSummaries() {
    const { ctx, lastRequest, settings } = this.#session;
    const names = settings.compactionModels;
    const writer = summarizerOf(ctx, names);
    const isWithin = writer === ctx.model && !names.includes(modelOf(ctx) ?? "") && lastRequest.isCached(writer);
    return isWithin ? undefined : pricesOf(writer);
  }
}
