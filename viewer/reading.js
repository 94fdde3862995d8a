/**
 * A conversation for reading: messages with rendered Markdown, and each tool call with its result, to be opened. A long one is drawn in
 * portions around what is selected.
 */
import { hiddenBecause } from "./branch.js";
import { count, day, h, link, minute, number, quiet } from "./dom.js";
import { markdown, output } from "./markdown.js";
import { nameOf, oneLine, partsOf } from "./words.js";

/** @typedef {import("./branch.js").Item} Item */
/** @typedef {import("./detail.js").Page} Page */
/** @typedef {import("./words.js").Part} Part */

/** Messages to draw at once. */
const PORTION = 40;
/** px: more than the margin above a message that is scrolled to. */
const ABOVE = 10;

/** Whether an item is read: not the marks between messages, nor results, which are with their calls. @param {Page} page */
const isRead = (page) => (/** @type {Item} */ item) => (item.isSaid || item.line.entry.type === "compaction") && !page.branch.callers.has(item.line.entry.message?.toolCallId);

export class Reading {
  constructor() {
    this.element = h("main", { className: "reading", tabIndex: -1, "aria-label": "Conversation" });
  }

  /** @param {Page} page @param {Item[]} items @param {Item | undefined} from what to begin with */
  show(page, items, from) {
    const caller = page.branch.callers.get(from?.line.entry.message?.toolCallId);
    const first = caller ?? from;
    const { element, begin } = conversation(page, items, first && items.indexOf(first));
    this.element.replaceChildren(element);
    begin?.scrollIntoView();
  }

  /** Scrolls to the message after the one at the top, or before it. @param {number} by @returns {string | undefined} its id */
  move(by) {
    const { top, height } = this.element.getBoundingClientRect();
    const first = /** @type {HTMLElement | undefined} */ ([...this.element.querySelectorAll(".said")].find((said) => said.getBoundingClientRect().bottom > top + ABOVE));
    const more = /** @type {HTMLElement | null} */ (this.element.querySelector(`.conversation > .more:${by > 0 ? "last" : "first"}-child`));
    // Early, because what fits on the screen can't be scrolled to.
    if (more && Math.abs(more.getBoundingClientRect().top - top) < 2 * height) more.click();
    const next = /** @type {HTMLElement | null | undefined} */ (by > 0 ? first?.nextElementSibling : first?.previousElementSibling);
    const said = next?.matches(".said") ? next : first;
    said?.scrollIntoView();
    return said?.dataset.id;
  }
}

/**
 * Messages from one on, and buttons for those before and after.
 *
 * @param {Page} page
 * @param {Item[]} items
 * @param {number} [from] the first to draw
 * @returns {{ element: HTMLElement, begin: HTMLElement | undefined }}
 */
export function conversation(page, items, from = 0) {
  const read = items.filter(isRead(page));
  const start = items.slice(0, from).filter(isRead(page)).length;
  let [top, end] = [Math.max(0, start - PORTION / 4), start];
  const earlier = h("button", { type: "button", className: "more", onclick: () => draw(-1) });
  const later = h("button", { type: "button", className: "more", onclick: () => draw(1) });
  const element = h("div", { className: "conversation" }, earlier, later);
  const draw = (/** @type {-1 | 1} */ by) => {
    if (by > 0) later.before(...read.slice(end, (end += PORTION)).map((item) => messageOf(page, item)));
    else earlier.after(...read.slice(Math.max(0, top - PORTION), top).map((item) => messageOf(page, item)));
    if (by < 0) top = Math.max(0, top - PORTION);
    end = Math.min(end, read.length);
    earlier.hidden = top === 0;
    later.hidden = end === read.length;
    earlier.textContent = `Earlier: ${count(top, "message")}`;
    later.textContent = `Later: ${count(read.length - end, "message")}`;
  };
  earlier.after(...read.slice(top, end).map((item) => messageOf(page, item)));
  draw(1);
  return { element, begin: /** @type {HTMLElement | undefined} */ (element.children[1 + start - top]) };
}

/** @param {Page} page @param {Item} item */
function messageOf(page, item) {
  const { entry } = item.line;
  const hidden = hiddenBecause(item, page.edits);
  const head = h("header", null, h("b", null, nameOf(item.line)), quiet(`${day(item.time)} ${minute(item.time)}`), hidden && h("span", { className: "chip warn" }, hidden), link("details", () => page.go(item.id)));
  if (entry.type === "compaction") return h("article", { className: "said c-compaction", "data-id": item.id }, head, blockOf(page, item));
  return h("article", { className: `said c-${item.speaker}`, "data-id": item.id }, head, partsOf(item.line).map((part) => partOf(page, part, item)));
}

/** The block of a compaction, closed. @param {Page} page @param {Item} item */
function blockOf(page, item) {
  const step = page.branch.compactions.indexOf(item) + 1;
  const block = String(item.line.entry.summary ?? "");
  return [opened("tool", [h("b", null, `Compaction ${step}`), quiet(item.tokens ? `the block, ≈ ${count(item.tokens, "token")}` : "the block")], () => [markdown(block, leadIn(page))]), link("What the model saw then", () => page.travel(step))];
}

/** @param {Page} page @param {Part} part @param {Item} item @returns {HTMLElement} */
function partOf(page, part, item) {
  const { kind, text, name, id } = part;
  if (kind === "image") return pictureOf(part);
  if (kind === "thinking") return opened("thinking", [`Thinking, ${number(text.length)} characters`], () => [markdown(text, leadIn(page))]);
  if (kind === "call") return callOf(part, (id && page.branch.results.get(id)) || undefined);
  if (kind === "output") return opened("tool", [h("b", null, name ?? item.line.entry.message?.toolName ?? "output"), quiet(sizeOf(text))], () => [output(text)]);
  return kind === "note" ? h("p", { className: "quiet" }, text) : markdown(text, leadIn(page));
}

/** A call with its result. @param {Part} part @param {Item | undefined} result */
function callOf({ name, text, given }, result) {
  const message = result?.line.entry.message;
  const what = Object.values(given ?? {}).find((value) => typeof value === "string") ?? text;
  const parts = result ? partsOf(result.line) : [];
  const head = [h("b", null, name === "$" ? "$" : name), h("span", { className: "words" }, oneLine(String(what))), message?.isError && h("span", { className: "chip bad" }, "failed"), result && quiet(sizeOf(parts.map((part) => part.text).join("\n")))];
  return opened("tool", head, () => [changeOf(given, message) ?? output(text), ...parts.map((part) => (part.kind === "image" ? pictureOf(part) : output(part.text)))]);
}

/** @param {Part} part */
export function pictureOf({ source, text }) {
  return source ? h("figure", null, h("img", { src: source, alt: `Picture, ${text}` })) : h("p", { className: "quiet" }, `A picture (${text}) that can't be shown.`);
}

/** What an edit changed: as its result has it, or from its arguments. @param {any} given @param {any} result */
function changeOf(given, result) {
  if (typeof result?.details?.diff === "string") return output(result.details.diff, true);
  const edits = [given, ...(Array.isArray(given?.edits) ? given.edits : [])].filter((edit) => typeof edit?.oldText === "string" && typeof edit.newText === "string");
  if (edits.length === 0) return undefined;
  const each = (/** @type {string} */ text, /** @type {string} */ sign) => text.split("\n").map((line) => `${sign}${line}\n`).join("");
  return output(edits.map(({ oldText, newText }) => `@@ ${given.path ?? ""}\n${each(oldText, "-")}${each(newText, "+")}`).join(""), true);
}

/** @param {string} text */
const sizeOf = (text) => count(text.trimEnd().split("\n").length, "line");

/** Something that is drawn when it is opened. @param {string} className @param {import("./dom.js").Child[]} head @param {() => HTMLElement[]} body */
export function opened(className, head, body) {
  const details = h("details", { className }, h("summary", null, ...head));
  details.addEventListener("toggle", () => details.open && details.childElementCount === 1 && details.append(...body()));
  return details;
}

/** @param {Page} page @returns {import("./prose.js").Lead} */
export function leadIn({ branch, step }) {
  const view = step === undefined ? "" : `travel/${step}/`;
  return (id) => (branch.has(id) ? `#${branch.session.address}${view}${id}` : undefined);
}
