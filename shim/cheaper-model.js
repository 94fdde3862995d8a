/**
 * Chooses the model for summaries if Pi has no key for a model of the setting: the cheapest suitable one of the session's provider, with
 * the same key. Nothing goes to a provider that the user has not chosen.
 */

/** @typedef {{ id: string, provider: string, api: string, reasoning?: boolean, contextWindow?: number, cost?: { input?: number, output?: number } }} Known */

/** A summary is shorter than its source by about this factor. */
const SHORTER = 20;
/** Another model must be cheaper than the session's by this factor. */
const CHEAPER = 1.5;
/** Models cheaper than this share of the session's own are too weak. */
const WEAK = 1 / 20;
/** Tokens that must fit into its window: a large chunk, the question and the answer. */
const WINDOW = 64_000;

/**
 * Returns the cheapest replacement for a model: of the same provider, wire format and family (`claude`, `gpt`), and reasoning only
 * if it reasons; older generations do not reason.
 *
 * @template {Known} M
 * @param {M | undefined} own
 * @param {M[]} models all known ones
 * @returns {M | undefined} undefined if none is notably cheaper, or a price is unknown
 */
export function cheaperModel(own, models) {
  const price = priceOf(own);
  if (!own || !price) return undefined;
  const fits = (/** @type {M} */ one) =>
    one.provider === own.provider &&
    one.api === own.api &&
    familyOf(one) === familyOf(own) &&
    (one.reasoning || !own.reasoning) &&
    (one.contextWindow ?? 0) >= WINDOW &&
    priceOf(one) * CHEAPER <= price &&
    priceOf(one) >= price * WEAK;
  // If one model has several names, the shortest is the alias of the newest version.
  const [cheapest] = models.filter(fits).sort((a, b) => priceOf(a) - priceOf(b) || a.id.length - b.id.length);
  return cheapest;
}

/** The price of summarizing a token; 0 if prices are unknown. @param {Known | undefined} model */
function priceOf(model) {
  const price = (model?.cost?.input ?? 0) + (model?.cost?.output ?? 0) / SHORTER;
  return price > 0 ? price : 0;
}

/** The family and variant in a model's id, without generation and size: `claude` of `claude-haiku-4-5`. @param {Known} model */
function familyOf({ id }) {
  const [name, variant = ""] = id.split(":");
  return `${/^.[^-\d]*/.exec(name)}:${variant}`;
}
