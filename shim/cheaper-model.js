/**
 * Who writes summaries where no model of the setting has a key: the cheapest fitting one of the session's own provider, on the same
 * key. Nothing goes to a provider that the user has not chosen.
 */

/** @typedef {{ id: string, provider: string, api: string, reasoning?: boolean, contextWindow?: number, cost?: { input?: number, output?: number } }} Known */

/** A summary is about so much shorter than what it is made from. */
const SHORTER = 20;
/** It has to be cheaper than the session's own by this factor to be worth another model. */
const CHEAPER = 1.5;
/** Models cheaper than this share of the session's own are too weak for what the session is about. */
const WEAK = 1 / 20;
/** Tokens that fit into its window: a large chunk, the question and the answer. */
const WINDOW = 64_000;

/**
 * The cheapest model that fits in the place of another: of the same provider, wire format and family (`claude`, `gpt`), and like it in whether it
 * reasons, which older generations do not.
 *
 * @template {Known} M
 * @param {M | undefined} own
 * @param {M[]} models all that are known
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
  // Of several names of one model the shortest goes with the newest.
  const [cheapest] = models.filter(fits).sort((a, b) => priceOf(a) - priceOf(b) || a.id.length - b.id.length);
  return cheapest;
}

/** What summarizing a token costs; 0 if prices are unknown. @param {Known | undefined} model */
function priceOf(model) {
  const price = (model?.cost?.input ?? 0) + (model?.cost?.output ?? 0) / SHORTER;
  return price > 0 ? price : 0;
}

/** What a name begins with, up to its generation or size, and its variant: `claude` of `claude-haiku-4-5`. @param {Known} model */
function familyOf({ id }) {
  const [name, variant = ""] = id.split(":");
  return `${/^.[^-\d]*/.exec(name)}:${variant}`;
}
