/**
 * Renders Markdown for reading: headings, lists, quotes, tables, code and diffs. What it does not know stays text. Links stay text too,
 * since a page of a session leads nowhere else.
 */
import { h } from "./dom.js";
import { inline, prose, visible } from "./prose.js";

/** A longer text is shown as it is, in portions. */
const MOST = 60_000;

const FENCE = /^\s*(```+|~~~+)\s*(\S*)/;
const ITEM = /^(\s*)(?:[-*+]|(\d+)[.)])\s+(.*)$/;
const ROW = /^\s*\|(.*)\|\s*$/;
/** How a diff of any kind begins. */
const DIFF = /^(?:diff --git |@@ -|--- .*\n\+\+\+ )/m;

/** @typedef {import("./prose.js").Lead} Lead */

/** @param {string} text @param {Lead} lead @returns {HTMLElement} */
export function markdown(text, lead) {
  if (text.length > MOST) return prose(text, { lead });
  return h("div", { className: "markdown", dir: "auto" }, blocks(text.split("\n"), lead));
}

/** A program's output, with colors if it is a diff. @param {string} text @param {boolean} [isDiff] */
export function output(text, isDiff = DIFF.test(text)) {
  if (!isDiff || text.length > MOST) return prose(text, { lead: () => undefined, plain: true });
  const kinds = [[/^(\+\+\+|---|diff |index )/, "meta"], [/^@@/, "hunk"], [/^\+/, "added"], [/^-/, "removed"]];
  const lines = text.split("\n").map((line) => h("span", { className: String(kinds.find(([begins]) => /** @type {RegExp} */ (begins).test(line))?.[1] ?? "same") }, visible(`${line}\n`)));
  return h("pre", { className: "diff" }, lines);
}

/** @param {string[]} lines @param {Lead} lead @returns {HTMLElement[]} */
function blocks(lines, lead) {
  const out = [];
  for (let at = 0; at < lines.length; ) {
    const [block, next] = blockAt(lines, at, lead);
    if (block) out.push(block);
    at = next;
  }
  return out;
}

/** The block that begins at a line, and the line after it. @param {string[]} lines @param {number} at @param {Lead} lead @returns {[HTMLElement | undefined, number]} */
function blockAt(lines, at, lead) {
  const line = lines[at];
  if (!line.trim()) return [undefined, at + 1];
  const end = (/** @type {(line: string) => boolean} */ goesOn) => {
    let next = at + 1;
    while (next < lines.length && goesOn(lines[next])) next++;
    return next;
  };
  const [, mark, language] = FENCE.exec(line) ?? [];
  if (mark) {
    const next = end((other) => !other.trim().startsWith(mark));
    const code = lines.slice(at + 1, next).join("\n");
    return [language === "diff" ? output(code, true) : h("pre", { className: "code" }, visible(code)), next + 1];
  }
  const [, hashes, title] = /^(#{1,6})\s+(.*)$/.exec(line) ?? [];
  if (hashes) return [h("p", { className: `heading h${hashes.length}` }, inline(title, lead, true)), at + 1];
  if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) return [h("hr", null), at + 1];
  if (/^\s*>/.test(line)) {
    const next = end((other) => /^\s*>/.test(other));
    return [h("blockquote", null, blocks(lines.slice(at, next).map((quoted) => quoted.replace(/^\s*> ?/, "")), lead)), next];
  }
  if (ITEM.test(line)) return list(lines, at, lead);
  if (ROW.test(line) && ROW.test(lines[at + 1] ?? "")) {
    const next = end((other) => ROW.test(other));
    return [table(lines.slice(at, next), lead), next];
  }
  const next = end((other) => Boolean(other.trim()) && !FENCE.test(other) && !ITEM.test(other) && !/^(#{1,6}\s|\s*>)/.test(other));
  return [h("p", null, lines.slice(at, next).flatMap((part, n) => [n > 0 && h("br", null), inline(part, lead, true)])), next];
}

/** @param {string[]} lines @param {number} at @param {Lead} lead @returns {[HTMLElement, number]} */
function list(lines, at, lead) {
  const [, indent, number] = /** @type {RegExpExecArray} */ (ITEM.exec(lines[at]));
  const items = [];
  while (at < lines.length) {
    const [, spaces, digits, words] = ITEM.exec(lines[at]) ?? [];
    if (spaces?.length !== indent.length || !digits !== !number) break;
    // What is indented more belongs to the item.
    let next = at + 1;
    const isInner = (/** @type {string} */ line) => (line.trim() ? line.search(/\S/) > indent.length : ITEM.test(lines[next + 1] ?? "") || (lines[next + 1] ?? "").search(/\S/) > indent.length);
    while (next < lines.length && isInner(lines[next])) next++;
    items.push(h("li", null, blocks([words, ...lines.slice(at + 1, next)], lead)));
    at = next;
  }
  return [number ? h("ol", { start: Number(number) }, items) : h("ul", null, items), at];
}

/** @param {string[]} rows @param {Lead} lead */
function table(rows, lead) {
  const cells = (/** @type {string} */ row) => row.trim().slice(1, -1).split(/(?<!\\)\|/).map((cell) => cell.trim());
  const isRule = (/** @type {string} */ row) => /^[\s|:-]+$/.test(row);
  const body = rows.filter((row) => !isRule(row));
  return h("table", null, body.map((row, at) => h("tr", null, cells(row).map((cell) => h(at === 0 && isRule(rows[1]) ? "th" : "td", null, inline(cell, lead, true))))));
}
