/** Answers Pi's compactions and branch summaries, and follows up once a compaction is on the branch. */

import { withModels } from "./models.js";
import { ancestors, canRecall, cancellable, failureOf, modelOf, passCompaction, promptSizes, unlessAborted, unwrap, windowOf } from "./pi.js";
import { notifyRedrawn } from "./ui.js";

/** @typedef {import("../index.d.ts").Engine} Engine */
/** A compaction that is made but not on the branch yet; a fold was made at `leafId`. @typedef {{ summary: string, text: string, degraded: boolean, leafId?: string }} Pending */

export class Compaction {
  /** @type {Pending | null} */
  pending = null;
  /** The report on the last one. @type {{ text: string } | undefined} */
  lastReport;

  #session;

  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.#session = session;
  }

  /** @param {import("@earendil-works/pi-coding-agent").SessionBeforeCompactEvent} event */
  async before(event) {
    const session = this.#session;
    const { ctx, manager } = session;
    session.repeats = [];
    this.pending = null;
    const { preparation, signal } = event;
    // A long session may not be stored completely yet.
    const engine = await unlessAborted(session.ready(), signal);
    if (!engine) return { cancel: true };
    if (session.handover.hasDuplicates) return undefined;
    passCompaction(session, engine);
    const request = {
      leafId: manager.getLeafId(),
      firstKeptEntryId: preparation.firstKeptEntryId,
      tokensBefore: preparation.tokensBefore,
      customInstructions: event.customInstructions,
      reason: event.reason,
      contextWindow: windowOf(ctx),
      reserveTokens: preparation.settings?.reserveTokens,
      model: modelOf(ctx),
      failure: failureOf(manager),
      promptTokens: promptSizes(session).promptTokens,
      shownFrom: session.context.begin().from,
      canRecall: canRecall(session.pi),
    };
    const stop = session.footer.followCompaction(() => engine.compactionProgress());
    const outcome = await this.#run(engine, signal, (operation, models) => engine.compact(operation, JSON.stringify(request), models)).finally(stop);
    if (outcome.kind === "cancelled") return { cancel: true };
    if (outcome.kind !== "compacted") return undefined;
    this.pending = { summary: outcome.compaction.summary, text: outcome.report, degraded: outcome.degraded };
    return { compaction: outcome.compaction };
  }

  /** @param {import("@earendil-works/pi-coding-agent").SessionBeforeTreeEvent} event of a branch that the user leaves */
  async beforeTree({ preparation, signal }) {
    const { ctx, pi, handover } = this.#session;
    const { oldLeafId, commonAncestorId, customInstructions, userWantsSummary } = preparation;
    if (!userWantsSummary || !oldLeafId) return undefined;
    const engine = await this.#session.ready();
    if (handover.hasDuplicates) return undefined;
    const branch = { leafId: oldLeafId, commonAncestorId, customInstructions, contextWindow: windowOf(ctx), model: modelOf(ctx), canRecall: canRecall(pi) };
    const outcome = await this.#run(engine, signal, (operation, models) => engine.summarizeLeft(operation, JSON.stringify(branch), models));
    if (outcome.kind === "cancelled") return { cancel: true };
    return outcome.kind === "summarized" ? { summary: outcome.summary } : undefined;
  }

  /**
   * @param {string | undefined} summary of the compaction that is on the branch now
   * @param {boolean} fromExtension whether Pi got it from an extension
   */
  async done(summary, fromExtension) {
    const session = this.#session;
    session.handover.walk();
    const { pending } = this;
    this.pending = null;
    if (!pending?.leafId) session.boundary.moved();
    if (pending && summary === pending.summary) {
      this.lastReport = { text: `LCM: ${pending.text}` };
      notifyRedrawn(session.ctx, this.lastReport.text, pending.degraded ? "warning" : "info");
    } else if (pending && fromExtension) {
      session.report("another extension's compaction replaced this one. Every message is still stored.");
    }
    session.repeatReports();
    void session.footer.update();
  }

  /** The same for a fold handed over at a turn's end, for which Pi emits no event. */
  async settle() {
    const { pending } = this;
    if (!pending?.leafId) return;
    for (const entry of ancestors(this.#session.manager)) {
      if (entry.id === pending.leafId) break;
      if (entry.type === "compaction") return this.done(entry.summary, true);
    }
    // Pi has dropped it.
    this.pending = null;
  }

  /**
   * @param {Engine} engine
   * @param {AbortSignal | undefined} signal
   * @param {(operation: number, models: (call: string) => Promise<string>) => Promise<string>} call
   */
  async #run(engine, signal, call) {
    return unwrap(await cancellable(this.#session, engine, signal, (operation) => withModels(this.#session, signal, (models) => call(operation, models))));
  }
}
