/**
 * Chooses a model for summaries within the session's provider: the smallest capable one of the same maker, called with the same key.
 *
 * A summary needs little intelligence, so names of small models that write good ones come first. Where a catalog has none of them, the
 * price decides. Nothing goes to a provider that the user has not chosen.
 */

/** @typedef {{ input?: number, output?: number }} Cost prices per million tokens */
/** @typedef {{ id: string, provider: string, api: string, baseUrl?: string, reasoning?: boolean, contextWindow?: number, cost?: Cost & { tiers?: (Cost & { inputTokensAbove: number })[] } }} Known */

/** Small models that write good summaries, those of a maker from best to worst, with names as `nameOf` returns them. */
export const SMALL = [
  ...["claude-haiku-5-5", "claude-haiku-4-5"],
  ...["gpt-6-luna", "gpt-5-6-luna"],
  ...["gemini-3-5-flash-lite", "gemini-3-1-flash-lite"],
  ...["deepseek-v4-1-flash", "deepseek-flash"],
  ...["mistral-small-2603", "mistral-small"],
  "glm-5-3-flash",
  "mimo-v2-6-flash",
  "nova-2-lite",
  "qwen3-8-flash",
];

/** A summary is shorter than its source by about this factor. */
const SHORTER = 20;
/** Chosen by its price, a model must be cheaper than the session's by this factor. */
const CHEAPER = 1.5;
/** Tokens that must fit into its window: a large chunk, the question and the answer. */
const WINDOW = 64_000;
/** Tokens of a usual call. Some prices rise with the size of the prompt. */
const USUAL = 20_000;
/** The same model on other terms: answers take hours, come faster for more, may be cut off, or may be paid for with the text. */
const OTHER_TERMS = /:\D|-(batch|fast|spot|free|contributor)(?![a-z])/i;
/** Names with a size below 10 billion parameters. */
const WEAK = /[-_:]e?\d(\.\d+)?b\b/i;

/**
 * @template {Known} M
 * @param {M | undefined} own the session's model
 * @param {M[]} models all known ones
 * @returns {M | undefined} undefined if none is better suited than the session's
 */
export function cheaperModel(own, models) {
  if (!own) return undefined;
  // If one model has several ids, the shortest is the alias of its newest version.
  const siblings = models.filter((one) => isSibling(one, own)).sort((a, b) => a.id.length - b.id.length);
  const small = SMALL.map((name) => siblings.find((one) => nameOf(one) === name)).find(Boolean);
  if (small) return nameOf(small) !== nameOf(own) && (weightOf(small) > 0 ? weightOf(small) < weightOf(own) : weightOf(own) === 0) ? small : undefined;
  // A price of 0 is none: a free or unknown one can't be compared.
  const priced = siblings.filter((one) => weightOf(one) > 0 && weightOf(one) * CHEAPER <= weightOf(own));
  const capable = priced.filter(({ id, reasoning }) => (reasoning || !own.reasoning) && !WEAK.test(id));
  return capable.sort((a, b) => weightOf(a) - weightOf(b))[0];
}

/** The prices of a usual call, per million tokens; undefined if the catalog has none. @param {Known} model */
export function usualPrices({ cost }) {
  const [tier] = (cost?.tiers ?? []).filter(({ inputTokensAbove: above }) => above < USUAL).sort((a, b) => b.inputTokensAbove - a.inputTokensAbove);
  const { input = 0, output = 0 } = tier ?? cost ?? {};
  return input >= 0 && output >= 0 && input + output > 0 ? { input, output } : undefined;
}

/** The price of summarizing a token; 0 if there is none. @param {Known} model */
function weightOf(model) {
  const { input, output } = usualPrices(model) ?? { input: 0, output: 0 };
  return input + output / SHORTER;
}

/** Whether it is reached in the same way, by the same maker, on the usual terms, and reads enough. @param {Known} one @param {Known} own */
function isSibling(one, own) {
  const isReachedAlike = one.provider === own.provider && one.api === own.api && one.baseUrl === own.baseUrl;
  return isReachedAlike && makerOf(one) === makerOf(own) && (one.contextWindow ?? 0) >= WINDOW && !OTHER_TERMS.test(one.id);
}

/** The prefix of an id and the first word of its name: `us.anthropic.claude` of `us.anthropic.claude-haiku-5-5`. @param {Known} model */
function makerOf({ id }) {
  const [prefix, name] = partsOf(id);
  return prefix + /^.?[^-\d]*/.exec(name)?.[0];
}

/** A model's name, however a provider writes it: `claude-haiku-4-5` of `us.anthropic.claude-haiku-4-5-20251001-v1:0`. @param {Known} model */
export function nameOf({ id }) {
  // Dots are also written as dashes, or as `p`.
  return partsOf(id)[1].replace(/(\d)[.p](?=\d)/g, "$1-").replace(/(-\d{8})?(-v\d+(:\d+)?)?$/, "").replace(/-latest$/, "");
}

/** The prefix of an id, a path or labels with dots, and its name in lower case. @param {string} id */
function partsOf(id) {
  const [, prefix = "", name = ""] = /^(.*\/|(?:[a-z-]+\.)*)(.*)$/s.exec(id) ?? [];
  return [prefix, name.toLowerCase()];
}
