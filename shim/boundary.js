/**
 * Appends stubs and folds to a session, as the engine's policy decides, without interrupting the agent.
 *
 * Pi takes entries at the end of a turn; they apply to the next request of the same run. The agent waits for summaries only where Pi alone
 * would compact, and so wait for its own.
 */

import { countsOf, pricesOf } from "./context.js";
import { summarizerOf, withModels } from "./models.js";
import { modelOf, promptSizes, timeout, unlessAborted, unwrap, windowOf } from "./pi.js";

/** @typedef {import("./context.js").Usage} Usage */
/** A draft of an entry, as Pi takes it at a boundary. @typedef {{ type: string, summary?: string, firstKeptEntryId?: string | null, details?: unknown, targetId?: string, replacement?: any }} Draft */

/** Complete answers. Pi may retry any other, and a compaction after it would prevent that. */
const COMPLETE = ["stop", "toolUse"];

/** How long a fold waits for its summaries where Pi alone would compact, in ms. */
const SUMMARIES_MS = 30_000;

export class Boundary {
  #session;
  /** Tokens before the conversation. @type {ReturnType<typeof promptSizes> | undefined} */
  #promptSizes;

  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.#session = session;
  }

  /**
   * @param {{ message: any, entries: Draft[] }} event of the turn's end
   * @param {Usage} usage
   * @returns {Promise<{ entries: Draft[] } | undefined>}
   */
  async atTurnEnd(event, usage) {
    if (!COMPLETE.includes(event.message.stopReason)) return undefined;
    const others = event.entries;
    // Another extension compacts here.
    if (others.some(({ type }) => type === "compaction")) return undefined;
    const entries = await this.#decide(usage, {
      edited: others.flatMap(({ type, targetId }) => (type === "context_edit" ? [targetId] : [])),
      usage: countsOf(event.message.usage),
      canFold: true,
    });
    return entries.length > 0 ? { entries: [...others, ...entries] } : undefined;
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
    const usage = known ?? ctx.getContextUsage();
    // Right after a compaction Pi does not know how full the context is.
    if (this.#session.isClosing || sync.hasDuplicates || !leafId || !usage?.tokens) return;
    const request = { leafId, contextTokens: usage.tokens, contextWindow: windowOf(ctx, usage), model: modelOf(ctx) };
    unwrap(await withModels(this.#session, leaving.signal, (models) => engine.prepare(JSON.stringify(request), models)));
  }

  /**
   * @param {Usage} usage
   * @param {{ edited?: any[], usage?: unknown, canFold: boolean }} moment
   * @returns {Promise<Draft[]>} the entries to append
   */
  async #decide(usage, moment, mayWait = true) {
    const session = this.#session;
    const { sync } = session;
    const engine = await session.engine;
    const live = session.context.live(usage);
    // Right after a compaction Pi does not know how full the context is.
    if (!sync.isLive || session.isClosing || sync.hasDuplicates || !live.leafId || !live.contextTokens) return [];
    const request = { ...live, ...moment, summarizer: this.#pricesOfSummaries(), ...(this.#promptSizes ??= promptSizes(session)) };
    /** @type {{ entries: Draft[], report?: { text: string, degraded: boolean }, waits?: boolean }} */
    const { entries, report, waits } = unwrap(await engine.boundary(JSON.stringify(request)));
    if (waits && mayWait) {
      const written = this.prepare(usage).catch(() => {});
      const stop = session.footer.followCompaction(() => "LCM: writing summaries");
      await unlessAborted(Promise.race([written, timeout(SUMMARIES_MS)]), session.ctx.signal).finally(stop);
      // The request that was just answered counts once.
      return this.#decide(usage, { ...moment, usage: undefined }, false);
    }
    const draft = entries.find(({ type }) => type === "compaction");
    if (draft && report) session.compaction.pending = { summary: draft.summary ?? "", ...report, leafId: live.leafId };
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
