/** The model's context as Pi knows it: its size, its beginning, its cost. */

import { CHARACTERS_PER_TOKEN, ancestors, modelOf, windowOf } from "./pi.js";

/** The context's size. @typedef {ReturnType<import("@earendil-works/pi-coding-agent").ExtensionContext["getContextUsage"]>} Usage */
/**
 * The beginning of the context: the first entry that is shown raw after a compaction, the block, and the block's tokens.
 *
 * @typedef {{ from?: string, block?: string, blockTokens: number }} Begin
 */

const COUNTS = ["input", "output", "cacheRead", "cacheWrite"];

export class Context {
  #session;
  /** The beginning at the last leaf that was checked. @type {Begin & { leafId?: string | null }} */
  #known = { blockTokens: 0 };

  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.#session = session;
  }

  /** The beginning on this branch. Entries that were checked before are skipped. @returns {Begin} */
  begin() {
    const { manager } = this.#session;
    /** @type {Begin} */
    let begin = { blockTokens: 0 };
    for (const entry of ancestors(manager)) {
      if (entry.type === "compaction") {
        const from = manager.getEntry(entry.firstKeptEntryId) ? entry.firstKeptEntryId : entry.id;
        begin = { from, block: entry.summary, blockTokens: Math.ceil((entry.summary?.length ?? 0) / CHARACTERS_PER_TOKEN) };
      } else if (entry.id === this.#known.leafId) begin = this.#known;
      else continue;
      break;
    }
    this.#known = { ...begin, leafId: manager.getLeafId() };
    return begin;
  }

  /** What the engine's decisions depend on. @param {Usage} [usage] as Pi reports it */
  live(usage = this.#session.ctx.getContextUsage()) {
    const { ctx, manager } = this.#session;
    const { from, blockTokens } = this.begin();
    return {
      leafId: manager.getLeafId() ?? "",
      shownFrom: from,
      blockTokens,
      contextTokens: usage?.tokens ?? undefined,
      contextWindow: windowOf(ctx, usage),
      model: modelOf(ctx),
      cost: pricesOf(ctx.model),
    };
  }
}

/** Prices per million tokens; 0 for a missing or invalid one. @param {{ cost?: any } | undefined} model */
export function pricesOf(model) {
  return Object.fromEntries(COUNTS.map((name) => [name, atLeastZero(model?.cost?.[name])]));
}

/** @param {any} usage that a provider reported */
export function countsOf(usage) {
  return Object.fromEntries(COUNTS.map((name) => [name, Math.round(atLeastZero(usage?.[name]))]));
}

/** @param {unknown} value */
function atLeastZero(value) {
  return typeof value === "number" && Number.isFinite(value) ? Math.max(0, value) : 0;
}
