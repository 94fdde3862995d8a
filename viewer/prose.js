/**
 * Formats text for reading: headings, code, ids as links. Nothing is removed or added: the text of the result is the given text,
 * character by character.
 */
import { h, number } from "./dom.js";

/** The part of a text to draw at once. */
const PORTION = 60_000;

/** Invisible characters, and characters that would change how their surroundings are drawn. */
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]/g;

const INLINE = /(`[^`\n]+`)|(\*\*[^*\n]+\*\*)|\b([sm]-[0-9a-f]{10})\b/g;

/** The target of an id, if it is in this session. @typedef {(id: string) => string | undefined} Lead */

/**
 * @param {string} text
 * @param {{ lead: Lead, plain?: boolean }} options `plain`: a program's output, without markup
 * @returns {HTMLElement}
 */
export function prose(text, { lead, plain = false }) {
  const root = h("div", { className: plain ? "prose plain" : "prose", dir: "auto" });
  let at = 0;
  const more = h("button", { className: "more", type: "button", onclick: () => grow(PORTION * 4) });
  const grow = (/** @type {number} */ size) => {
    const end = endOf(text, at + size);
    const piece = text.slice(at, end);
    more.before(plain ? visible(piece) : marked(piece, lead));
    at = end;
    more.hidden = at >= text.length;
    more.textContent = `Show more: ${number(text.length - at)} of ${number(text.length)} characters are left`;
  };
  root.append(more);
  grow(PORTION);
  if (more.hidden) more.remove();
  return root;
}

/** The end of a line near `at`, never inside a character. @param {string} text @param {number} at */
function endOf(text, at) {
  if (at >= text.length) return text.length;
  const line = text.lastIndexOf("\n", at) + 1;
  if (line > at - 2000 && line > 0) return line;
  return /[\ud800-\udbff]/.test(text[at - 1]) ? at + 1 : at;
}

/** @param {string} text @param {Lead} lead */
function marked(text, lead) {
  const root = document.createDocumentFragment();
  let fence = "";
  for (const line of text.split(/(?<=\n)/)) {
    const mark = /^\s*(```+|~~~+)/.exec(line)?.[1];
    if (fence) {
      root.append(h("span", { className: "code" }, visible(line)));
      if (mark && mark.startsWith(fence)) fence = "";
    } else if (mark) {
      fence = mark;
      root.append(h("span", { className: "code fence" }, visible(line)));
    } else if (/^#{1,6}\s/.test(line)) {
      root.append(h("span", { className: "heading" }, inline(line, lead)));
    } else {
      root.append(inline(line, lead));
    }
  }
  return root;
}

/** @param {string} line @param {Lead} lead @param {boolean} [isBare] without the marks themselves */
export function inline(line, lead, isBare = false) {
  const root = document.createDocumentFragment();
  let at = 0;
  for (const match of line.matchAll(INLINE)) {
    root.append(visible(line.slice(at, match.index)));
    const [whole, code, strong, id] = match;
    const href = id && lead(id);
    if (code) root.append(h("code", null, visible(isBare ? code.slice(1, -1) : code)));
    else if (strong) root.append(h("strong", null, visible(isBare ? strong.slice(2, -2) : strong)));
    else root.append(href ? h("a", { href, className: "id" }, whole) : whole);
    at = match.index + whole.length;
  }
  root.append(visible(line.slice(at)));
  return root;
}

/** Text with invisible characters made visible, which can't reverse other text. @param {string} text */
export function visible(text) {
  const root = document.createDocumentFragment();
  let at = 0;
  for (const match of text.matchAll(CONTROL)) {
    root.append(text.slice(at, match.index));
    const code = match[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
    root.append(h("bdi", { className: "control", "data-code": `U+${code}`, title: `Control character U+${code}` }, document.createTextNode(match[0])));
    at = match.index + 1;
  }
  root.append(text.slice(at));
  return root;
}
