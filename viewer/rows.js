/** The rows of the list: messages by day, what the model saw after a compaction, or the filter's results. */
import { hiddenBecause, isComplete, seenOf } from "./branch.js";
import { aboutNode } from "./detail.js";
import { count, day, h, minute, number, quiet, short } from "./dom.js";
import { around, headline, nameOf, textOf, titleOf } from "./words.js";

/** @typedef {import("./branch.js").Branch} Branch */
/** @typedef {import("./branch.js").Context} Context */
/** @typedef {import("./branch.js").Item} Item */
/** @typedef {import("./branch.js").Node} Node */
/** @typedef {import("./filter.js").Query} Query */
/** What was found in a session, besides what is on the branch. @typedef {{ number: number, title: string, items: Item[], nodes: Node[] }} Elsewhere */
/** A row is an item, also of another session or branch, a found summary, or a heading. @typedef {{ item?: Item, session?: number, node?: Node, words?: string, tokens?: number }} Row */

/** px */
export const ROW_HEIGHT = 30;

/** px: of a row, besides its words; of a character, at most. */
const [BESIDE, WIDE] = [220, 8];
/** Messages to list of another session. */
const LISTED = 100;

/** Whether an entry only holds the place of one that the database has without a line. @param {import("./data.js").Line} line */
const isLink = ({ entry, message }) => entry.type === "custom" && entry.customType === "lcm-link" && !message;

/** @param {Item[]} items @returns {Row[]} */
export function byDay(items) {
  /** @type {Row[]} */
  const rows = [];
  let [from, to] = [0, 0];
  for (const item of items.filter(({ line }) => !isLink(line))) {
    // Formatting every date would take as long as all the rest.
    if (item.time > 0 && (item.time < from || item.time >= to)) {
      from = new Date(item.time).setHours(0, 0, 0, 0);
      to = new Date(from).setHours(24);
      rows.push({ words: day(item.time) });
    }
    rows.push({ item });
  }
  return rows;
}

/** @param {Branch} branch @param {Context} context @param {number} step @returns {Row[]} */
export function rowsOfContext(branch, { compaction, kept, since, edits }, step) {
  const [before, after] = [seenOf(kept, edits), seenOf(since, edits)];
  const tokens = (/** @type {Item[]} */ items) => items.reduce((sum, item) => sum + item.tokens, 0);
  const next = step < branch.compactions.length ? `until compaction ${step + 1}` : "until the end of the branch";
  if (!compaction) return [{ words: `${count(after.length, "message")}, all as they were said, ${next}`, tokens: tokens(after) }, ...since.map((item) => ({ item }))];
  return [
    { words: "The block, in place of all before", tokens: compaction.tokens },
    { item: compaction },
    { words: before.length ? `${count(before.length, "message")} ${isComplete(compaction) ? "kept as said" : "before it, kept or not"}` : isComplete(compaction) ? "No message was kept as it was said" : "Which messages it kept is not known", tokens: tokens(before) },
    ...kept.map((item) => ({ item })),
    { words: `${count(after.length, "message")} said since, ${next}`, tokens: tokens(after) },
    ...since.map((item) => ({ item })),
  ];
}

/**
 * The rows that were found.
 * @param {Row[]} rows
 * @param {Set<Item>} found
 * @param {Node[]} summaries
 * @param {Elsewhere[]} elsewhere
 * @returns {Row[]}
 */
export function rowsFound(rows, found, summaries, elsewhere) {
  const items = rows.flatMap(({ item }) => (item && found.has(item) ? [item] : []));
  // What the model did not see at a moment of time travel.
  const seen = new Set(items);
  const unseen = [...found].filter((item) => !seen.has(item));
  const others = elsewhere.reduce((sum, { items, nodes }) => sum + items.length + nodes.length, 0);
  const here = count(items.length, "message");
  /** @type {Row[]} */
  const head = [];
  if (others) head.push({ words: `${found.size ? count(found.size, "message") : "Nothing"} on this branch, ${number(others)} elsewhere, below` });
  else if (found.size === 0 && summaries.length === 0) head.push({ words: "Nothing here has what is looked for" });
  if (summaries.length) head.push({ words: count(summaries.length, "summary") }, ...summaries.map((node) => ({ node })), { words: here });
  const tail = elsewhere.flatMap(({ number: session, title, items, nodes }) => [
    { words: `${title}: ${[nodes.length && count(nodes.length, "summary"), items.length && count(items.length, "message"), items.length > LISTED && `the first ${LISTED}`].filter(Boolean).join(", ")}` },
    ...nodes.map((node) => ({ node, session })),
    ...items.slice(0, LISTED).map((item) => ({ item, session })),
  ]);
  const own = unseen.length ? [...byDay(items), { words: `Not in what the model saw then: ${count(unseen.length, "message")}` }, ...byDay(unseen)] : byDay(items);
  return [...head, ...own, ...tail];
}

/**
 * @param {Row} row
 * @param {{ query: Query | null, edits: Map<string, any>, covered: Item[] | undefined, width: number }} page `width` is the list's, in px
 * @returns {HTMLElement}
 */
export function drawRow(row, { query, edits, covered, width }) {
  const { item, node } = row;
  const words = (/** @type {string} */ line, /** @type {() => string} */ text) => wordsOf(line, text, query, Math.max(0, width - BESIDE) / WIDE);
  if (item) return drawItem(item, words(headline(item.line), () => textOf(item.line)), edits, covered);
  if (node) return h("div", { className: "row c-summary", "data-id": node.summary.handle }, ...aboutNode(node, words(titleOf(node.summary.text), () => node.summary.text)));
  return h("div", { className: "row words-between" }, h("span", null, row.words), row.tokens ? quiet(`≈ ${number(row.tokens)} tokens`) : null);
}

/** @param {Item} item @param {string} words @param {Map<string, any>} edits @param {Item[] | undefined} covered */
function drawItem(item, words, edits, covered) {
  const { entry } = item.line;
  const hidden = hiddenBecause(item, edits);
  const failed = entry.message?.isError || ["error", "aborted"].includes(entry.message?.stopReason);
  const isCovered = covered?.includes(item);
  return h(
    "div",
    { className: `row c-${item.speaker}${hidden ? " hidden-from-model" : ""}${isCovered ? " covered" : ""}`, "data-id": item.id },
    h("span", { className: "who" }, nameOf(item.line)),
    h("span", { className: "words", dir: "auto" }, words),
    hidden && item.speaker !== "purged" && h("span", { className: "chip warn", title: hidden }, item.line.message?.kind === "private" ? "!!" : "edited"),
    failed && h("span", { className: "chip bad" }, "failed"),
    h("span", { className: "quiet tokens" }, item.tokens ? short(item.tokens) : ""),
    h("span", { className: "quiet time" }, minute(item.time)),
  );
}

/** A line, or so much of a text that what is looked for is visible. @param {string} line @param {() => string} whole @param {Query | null} query @param {number} room characters */
function wordsOf(line, whole, query, room) {
  const words = query?.words ?? [];
  if (words.every((word) => word.test(line.slice(0, room)))) return line;
  const text = whole();
  const places = words.map((word) => text.search(word)).filter((at) => at >= 0).sort((a, b) => a - b);
  const apart = places.filter((at, n) => n === 0 || at > places[n - 1] + room / 3);
  if (apart.length < 2) return apart.length ? around(text, apart[0], room / 4) : line;
  const each = room / apart.length;
  return apart.map((at) => around(text, at, each / 4, each * 0.75)).join(" ");
}
