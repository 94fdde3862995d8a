/**
 * The filter: words that must all occur, `"two words"` verbatim, and a speaker, a tool or a state.
 *
 * It searches a long session in slices and lets the page draw in between, so that no key waits for it.
 */
import { SPEAKERS, textOf } from "./words.js";

/** @typedef {import("./branch.js").Item} Item */

/** A parsed filter; `error` says what it can't mean, `unknown` begins a word like a key that there is not. @typedef {{ words: RegExp[], speakers: string[], tools: string[], states: string[], error?: string, unknown?: string }} Query */

/** The most places that are highlighted at once. */
const MOST_MARKS = 10_000;
/** Work before the page may draw, in ms. */
const SLICE_MS = 8;

/** The speakers that the filter knows, and the states. */
const ROLES = [...new Set(Object.values(SPEAKERS)), "purged"].filter((name) => name !== "compaction");
const STATES = ["failed", "private", "purged", "image"];
/** Pi's names of roles. */
const BY_ROLE = new Map(Object.entries(SPEAKERS).map(([role, name]) => [role.toLowerCase(), name]));

/** @param {string} text @returns {Query | null} null if the filter is empty */
export function queryOf(text) {
  /** @type {Query} */
  const query = { words: [], speakers: [], tools: [], states: [] };
  for (const [, named, quoted, word] of text.matchAll(/(?:(role|tool|is):)?(?:"([^"]*)"?|(\S*))/gi)) {
    const value = quoted ?? word ?? "";
    if (!value && !named) continue;
    const [key, name] = [named?.toLowerCase(), value.toLowerCase()];
    if (key === "role") query.speakers.push(BY_ROLE.get(name) ?? name);
    else if (key === "tool") query.tools.push(name);
    else if (key === "is") query.states.push(name);
    else {
      query.words.push(new RegExp(value.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i"));
      query.unknown ??= /^[a-z]+:(?!\/\/|:)/i.exec(word ?? "")?.[0];
    }
  }
  const role = query.speakers.find((name) => !name || !ROLES.some((known) => known.startsWith(name)));
  const state = query.states.find((name) => !STATES.includes(name));
  if (role !== undefined) query.error = `There is no role:${role}. The roles are ${ROLES.join(", ")}.`;
  else if (state !== undefined) query.error = `There is no is:${state}. It takes ${STATES.join(", ")}.`;
  return query.error || [query.words, query.speakers, query.tools, query.states].some((list) => list.length > 0) ? query : null;
}

/** Whether a word is an id, or its beginning. @param {RegExp} word @param {string} id */
export const isIdOf = ({ source }, id) => /^[ms]-[0-9a-f]{3}/.test(source) && id.startsWith(source);

/** @param {Item} item @param {Query} query */
function matches(item, { words, speakers, tools, states }) {
  if (speakers.length && !speakers.some((name) => item.speaker.startsWith(name))) return false;
  if (tools.length && !tools.every((name) => toolsOf(item).some((tool) => tool.toLowerCase().includes(name)))) return false;
  if (states.length && !states.every((name) => isIn(item, name))) return false;
  if (words.length === 0) return true;
  const text = textOf(item.line);
  return words.every((word) => word.test(text) || isIdOf(word, item.id));
}

/** Says what a query that found nothing asks for in vain: a tool or a key that there is not. @param {Query} query @param {Item[]} items all of them */
export function checkNames(query, items) {
  const known = [...new Set(items.flatMap(toolsOf))].sort();
  const tool = query.tools.find((name) => !known.some((one) => one.toLowerCase().includes(name)));
  if (tool !== undefined) query.error = `There is no tool:${tool}. The tools are ${known.join(", ") || "none"}.`;
  else if (query.unknown) query.error = `There is no filter ${query.unknown}. There are role:, tool: and is:.`;
}

/** @param {Item} item @returns {string[]} */
function toolsOf({ line: { entry } }) {
  if (entry.message?.toolName) return [String(entry.message.toolName)];
  const content = entry.message?.content;
  if (!Array.isArray(content)) return [];
  return content.filter((block) => block?.type === "toolCall").map(({ name }) => String(name));
}

/** @param {Item} item @param {string} state */
function isIn({ line: { entry, message } }, state) {
  if (state === "private") return message?.kind === "private";
  if (state === "purged") return message?.kind === "purged";
  if (state === "failed") return Boolean(entry.message?.isError || entry.message?.exitCode || ["error", "aborted"].includes(entry.message?.stopReason));
  if (state === "image") return Array.isArray(entry.message?.content) && entry.message.content.some((/** @type {any} */ block) => block?.type === "image");
  return false;
}

/** Searches items; a later search ends the current one. */
export class Filter {
  #asked = 0;

  /** Begins a search, which ends the one before. @returns {number} to find with */
  begin() {
    return ++this.#asked;
  }

  /**
   * @param {Query} query
   * @param {Item[]} items
   * @param {number} asked the search
   * @returns {Promise<Item[] | null>} null if another search was started meanwhile
   */
  async find(query, items, asked) {
    const found = [];
    let until = performance.now() + SLICE_MS;
    for (const item of items) {
      if (matches(item, query)) found.push(item);
      if (performance.now() < until) continue;
      await new Promise((resolve) => setTimeout(resolve));
      if (asked !== this.#asked) return null;
      until = performance.now() + SLICE_MS;
    }
    return asked === this.#asked ? found : null;
  }
}

/**
 * Highlights the words of a query below an element without changing its content, if the browser supports it.
 *
 * @param {"found" | "found-rows"} name of these highlights; replaces earlier ones
 * @param {HTMLElement} root
 * @param {Query | null} query
 * @param {string} [within] the elements whose text is searched, and not the page's own words
 * @returns {Range[]} what has them, in order
 */
export function highlight(name, root, query, within = "*") {
  const registry = /** @type {any} */ (CSS).highlights;
  registry?.delete(name);
  if (!query?.words.length) return [];
  /** @type {Range[]} */
  const ranges = [];
  const any = new RegExp(query.words.map(({ source }) => source).join("|"), "gi");
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && ranges.length < MOST_MARKS; node = walker.nextNode()) {
    if (!node.parentElement?.closest(within)) continue;
    for (const match of (node.nodeValue ?? "").matchAll(any)) {
      const range = new Range();
      range.setStart(node, match.index);
      range.setEnd(node, match.index + match[0].length);
      ranges.push(range);
    }
  }
  registry?.set(name, new /** @type {any} */ (globalThis).Highlight(...ranges));
  return ranges;
}

/** The place where all words of a query stand closest together, or the first with one. @param {Range[]} places in order @param {Query | null} query */
export function closest(places, query) {
  /** @type {Range[]} the last place of each word */
  let last = [];
  let [best, shortest] = [places[0], Infinity];
  for (const place of places) {
    const word = query?.words.findIndex((one) => one.test(String(place))) ?? 0;
    if (last.some(({ startContainer }) => startContainer !== place.startContainer)) last = [];
    last[word] = place;
    const begun = Math.min(...(query?.words ?? []).map((_, at) => last[at]?.startOffset ?? -Infinity));
    if (place.endOffset - begun < shortest) [best, shortest] = [last.find((one) => one?.startOffset === begun) ?? place, place.endOffset - begun];
  }
  return best;
}
