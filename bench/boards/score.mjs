/** Scores of answers, and their means with 95 % bootstrap intervals. */
import { Dice } from "../corpus.mjs";
import { quantile } from "../measure.mjs";

/** @typedef {import("./formats.mjs").Query} Query */
/** @typedef {import("../asking.mjs").Answer} Answer */
/**
 * One query's scores: the share of gold messages in the first results, the reciprocal rank of the first, and the same for sessions.
 * @typedef {Query & { at1: number, at5: number, at10: number, mrr: number, seen?: number, tokens: number, empty: number, ms: number, session1?: number, session5?: number, sessionMrr?: number, places: number[], ranks: number[] }} Scores
 */
/** @typedef {Scores & { board: string, conversation: string }} Scored */

/** The number of results to check, and of those whose snippet may be the answer. */
const RESULTS = 20;
const SHOWN = 10;
/** If a snippet lacks the whole needle: the length of its beginning, and the share of its words that the snippet must have. */
const BEGINNING = 80;
const ENOUGH = 0.7;
const RESAMPLED = 1000;

/** @type {[string, keyof Scores, number][]} */
const MEASURES = [["r@1", "at1", 3], ["r@5", "at5", 3], ["r@10", "at10", 3], ["MRR", "mrr", 3], ["visible@10", "seen", 3], ["tokens", "tokens", 0], ["session hit@1", "session1", 3], ["hit@5", "session5", 3], ["MRR", "sessionMrr", 3]];
export const COLUMNS = ["", "queries", ...MEASURES.map(([name]) => name), "empty"];

/** @param {Query} query @param {Answer} answer @param {string[]} [sessions] of each message @returns {Scores} */
export function score(query, { places, also, lines, tokens, ms }, sessions) {
  const found = [...new Set(places)].slice(0, RESULTS);
  const holds = (/** @type {number} */ at, /** @type {number} */ place) => places[at] === place || also[at].includes(place);
  const ranks = query.gold.map((place) => found.findIndex((one) => holds(places.indexOf(one), place)) + 1).filter((rank) => rank > 0).sort((one, other) => one - other);
  const within = (/** @type {number} */ k) => ranks.filter((rank) => rank <= k).length / query.gold.length;
  const shown = lines.slice(0, SHOWN).filter((_, at) => query.gold.some((place) => holds(at, place)));
  const needle = query.needle;
  const seen = needle === undefined ? undefined : Number(shown.some((line) => tells(line, needle)));
  return { ...query, at1: within(1), at5: within(5), at10: within(10), mrr: 1 / (ranks[0] ?? Infinity), seen, tokens, empty: Number(places.length === 0), ms, ...bySession(query, found, sessions), places: found, ranks };
}

/** @param {Query} query @param {number[]} found @param {string[]} [sessions] */
function bySession(query, found, sessions) {
  if (!sessions || new Set(sessions).size < 2) return {};
  const gold = new Set(query.gold.map((place) => sessions[place]));
  const rank = [...new Set(found.map((place) => sessions[place]))].findIndex((name) => gold.has(name)) + 1 || Infinity;
  return { session1: Number(rank <= 1), session5: Number(rank <= 5), sessionMrr: 1 / rank };
}

/** Whether the line contains the needle, or most words of its beginning. @param {string} line @param {string} needle */
function tells(line, needle) {
  const plain = line.replace(/[«»]/g, "").replace(/\s+/g, " ").toLowerCase();
  const words = (/** @type {string} */ text) => new Set(text.match(/[\p{L}\p{N}_]+/gu) ?? []);
  const [wanted, has] = [words(needle.slice(0, BEGINNING)), words(plain)];
  return plain.includes(needle) || (wanted.size > 0 && [...wanted].filter((word) => has.has(word)).length >= ENOUGH * wanted.size);
}

/** A line of the table. @param {string} name @param {Scores[]} scores */
export function row(name, scores) {
  const cells = MEASURES.map(([, key, digits]) => {
    const values = scores.map((one) => one[key]).filter((value) => typeof value === "number");
    return values.length > 0 ? `${mean(values).toFixed(digits)} (${interval(values).map((bound) => bound.toFixed(digits)).join(" – ")})` : "";
  });
  return [name, String(scores.length), ...cells, String(scores.filter(({ empty }) => empty).length)];
}

/** The changes since then: better and worse queries, and the mean difference. @param {Scored[]} before @param {Scored[]} after */
export function changed(before, after) {
  const key = (/** @type {Scored} */ one) => JSON.stringify([one.board, one.conversation, one.kind, one.query, one.gold]);
  const old = new Map(before.map((one) => [key(one), one]));
  const pairs = after.flatMap((one) => (old.has(key(one)) ? [{ was: /** @type {Scored} */ (old.get(key(one))), is: one }] : []));
  return MEASURES.flatMap(([name, measure, digits]) => {
    const differences = pairs.map(({ was, is }) => Number(is[measure]) - Number(was[measure])).filter((value) => !Number.isNaN(value));
    if (differences.length === 0) return [];
    const [low, high] = interval(differences);
    const [better, worse] = [differences.filter((value) => value > 0).length, differences.filter((value) => value < 0).length];
    return [`${name}: ${mean(differences).toFixed(digits + 1)} (${low.toFixed(digits + 1)} – ${high.toFixed(digits + 1)}), ${better} up, ${worse} down`];
  }).join("\n");
}

/** @param {number[]} values */
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** @param {number[]} values */
function interval(values) {
  const dice = new Dice(1);
  const means = Array.from({ length: RESAMPLED }, () => mean(values.map(() => values[dice.below(values.length)])));
  return [quantile(means, 0.025), quantile(means, 0.975)];
}
