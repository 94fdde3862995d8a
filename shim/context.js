/** The model's context as Pi knows it: its size, its beginning, its cost. */

import { summarizersOf } from "./models.js";
import { COUNTS, ancestors, canRecall, countsOf, modelOf, physicalModel, promptSizes, tokensOf, windowOf } from "./pi.js";

/** The beginning of the context: the first entry that is shown raw after a compaction, and the block. @typedef {{ from?: string, block?: string }} Begin */

export class Context {
  #session;
  /** The beginning at the last leaf that was checked. @type {Begin & { leafId?: string | null }} */
  #known = {};
  /** Tokens before the conversation. @type {ReturnType<typeof promptSizes> | undefined} */
  #promptSizes;
  /** The model that writes summaries, by what it depends on. @type {{ own: any, names: string[], model: import("./models.js").Model | undefined } | undefined} */
  #writer;

  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.#session = session;
  }

  /** The beginning on this branch. Entries that were checked before are skipped. @returns {Begin} */
  begin() {
    const { manager } = this.#session;
    /** @type {Begin} */
    let begin = {};
    for (const entry of ancestors(manager)) {
      if (entry.type === "compaction") {
        const from = manager.getEntry(entry.firstKeptEntryId) ? entry.firstKeptEntryId : entry.id;
        begin = { from, block: entry.summary };
      } else if (entry.id === this.#known.leafId) begin = this.#known;
      else continue;
      break;
    }
    this.#known = { ...begin, leafId: manager.getLeafId() };
    return begin;
  }

  /** The context of the branch, and what it costs. @param {number | undefined} contextTokens */
  live(contextTokens) {
    const { ctx, manager, pi } = this.#session;
    const model = physicalModel(ctx);
    return {
      leafId: manager.getLeafId() ?? "",
      shownFrom: this.begin().from,
      // Pi takes it from the last report.
      contextTokens: countsOf({ input: contextTokens }).input || undefined,
      contextWindow: windowOf(ctx),
      model: modelOf(ctx),
      cost: pricesOf(model),
      tier: tierOf(model),
      summarizer: this.#pricesOfSummaries(),
      canRecall: canRecall(pi),
      ...(this.#promptSizes ??= promptSizes(this.#session)),
    };
  }

  /** What stands before the conversation may have changed. */
  moved() {
    this.#promptSizes = undefined;
  }

  /** The prices of summaries; undefined if they are written within the session, whose prices the engine knows. */
  #pricesOfSummaries() {
    const { ctx, lastRequest, settings } = this.#session;
    const own = physicalModel(ctx);
    const names = settings.compactionModels;
    // Choosing looks at all models that Pi knows.
    if (this.#writer?.own !== own || this.#writer?.names !== names) this.#writer = { own, names, model: summarizersOf(ctx, names)[0] };
    const { model } = this.#writer;
    const isWithin = model === own && !names.includes(modelOf(ctx) ?? "") && lastRequest.isCached(own);
    return isWithin ? undefined : pricesOf(model);
  }
}

/** Prices per million tokens; 0 for a missing or invalid one. @param {{ cost?: any } | undefined} model */
function pricesOf(model) {
  const price = (/** @type {string} */ name) => model?.cost?.[name];
  return Object.fromEntries(COUNTS.map((name) => [name, Number.isFinite(price(name)) ? Math.max(0, price(name)) : 0]));
}

/** The prompt size above which a model's prices rise, if they do. @param {{ cost?: any } | undefined} model */
function tierOf(model) {
  const sizes = [model?.cost?.tiers ?? []].flat().map((/** @type {any} */ tier) => tokensOf(tier.inputTokensAbove)).filter(Boolean);
  return sizes.length > 0 ? Math.min(...sizes) : undefined;
}
