/** The model's context as Pi knows it: how full it is, how it begins, what it costs. */

import { CHARACTERS_PER_TOKEN, ancestors, modelOf, windowOf } from "./pi.js";

/** How full it is. @typedef {ReturnType<import("@earendil-works/pi-coding-agent").ExtensionContext["getContextUsage"]>} Usage */
/** What it begins with: the first entry that is shown raw after a compaction, the block, and the block's tokens. @typedef {{ from?: string, block?: string, blockTokens: number }} Begin */

const COUNTS = ["input", "output", "cacheRead", "cacheWrite"];

export class Context {
  #session;
  /** How it began at the last leaf we looked at. @type {Begin & { leafId?: string | null }} */
  #known = { blockTokens: 0 };

  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.#session = session;
  }

  /** How it begins on this branch. Entries already looked at are not looked at again. @returns {Begin} */
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
  live(usage = this.#session.ctx.getContextUsage?.()) {
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
