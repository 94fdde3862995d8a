/**
 * Answers of `/lcm` in the TUI, below what was asked: in colors, and in a panel first if they are longer than the screen.
 *
 * Pi shows a notification in one dim color, and replaces it by the next one.
 */

import { plain, wrap } from "./columns.js";
import { components, pastedIn, Scroll, showPanel } from "./panel.js";
import { uiOf } from "./ui.js";

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionCommandContext} ExtensionCommandContext */
/** @typedef {import("./panel.js").Theme} Theme */

/** Columns next to a text in Pi's transcript. */
const MARGIN = 2;
/** Lines that Pi's editor and footer take. */
const BESIDE = 10;
/** Lines of the panel besides the answer. */
const BESIDE_ANSWER = 2;
/** Answers to show again with the next one. */
const KEPT = 8;

/** The parts of an answer: an id, a match, a verdict, a warning, a figure; and the name of a row. */
const PARTS = /\b(?<id>[ms]-[0-9a-f]{10})\b|(?<match>«[^»]*»)|\b(?<good>ok)\b|\b(?<bad>WRONG|Incomplete|degraded)\b|(?<![\w:.,/-])(?<figure>\$?\d+(?:,\d{3})*(?:\.\d+)?%?)(?![\w/-]|[:.,]\d)/g;
const NAME = /^ *[A-Z][\w ]*?(?= {2,})/;

/** The colors of these parts. @type {Record<string, import("@earendil-works/pi-coding-agent").ThemeColor>} */
const COLORS = { id: "accent", match: "warning", good: "success", bad: "warning", figure: "syntaxNumber" };

/** An answer below what was asked, or the reason why there is none. @typedef {{ text: string, isFailure: boolean }} Shown */
/** The last answers, and the session and its leaf then: once something else was said, Pi replaces none of them. @type {{ place: string, answers: Shown[] }} */
const last = { place: "", answers: [] };

/** The columns that Pi leaves for a text. @param {ExtensionCommandContext} ctx */
export function columnsFor(ctx) {
  return ctx.mode === "tui" && process.stdout.columns ? process.stdout.columns - MARGIN : undefined;
}

/**
 * @param {ExtensionCommandContext} ctx
 * @param {string} line what was asked
 * @param {string} text
 * @param {boolean} isAwaited whether the user waits for it, so that a panel does not interrupt
 * @param {object} [options]
 * @param {string} [options.leaving] what Escape does in a panel
 * @param {boolean} [options.isFailure]
 */
export async function show(ctx, line, text, isAwaited, { leaving = "close", isFailure = false } = {}) {
  const lines = wrap(text, columnsFor(ctx) ?? 80);
  const shown = [plain(`/lcm ${line}`.trim()), ...lines].join("\n");
  const paint = (/** @type {string} */ answer) => colored(ctx.ui.theme, answer, isFailure);
  const isLong = lines.length + BESIDE > (process.stdout.rows ?? Infinity);
  const tui = isAwaited && isLong ? await components(ctx) : undefined;
  if (tui) await showPanel(ctx, (screen) => new LongAnswer(screen, tui, paint(shown).split("\n"), leaving, uiOf(ctx).type));
  const place = `${ctx.sessionManager.getSessionId()} ${ctx.sessionManager.getLeafId()}`;
  if (last.place !== place) Object.assign(last, { place, answers: [] });
  last.answers = [...last.answers, { text: shown, isFailure }].slice(-KEPT);
  const texts = last.answers.map((answer) => answer.text);
  uiOf(ctx).show(texts, (answer, at) => colored(ctx.ui.theme, answer, last.answers[at].isFailure));
}

/** An answer in colors. @param {Theme} theme @param {string} answer @param {boolean} isFailure */
function colored(theme, answer, isFailure) {
  const [asked, ...lines] = answer.split("\n");
  if (isFailure) return [theme.fg("accent", theme.bold(asked)), ...lines.map((line) => theme.fg("error", line))].join("\n");
  // After the first paragraph, an answer may quote a message.
  const end = lines.includes("") ? lines.indexOf("") : lines.length;
  return [theme.fg("accent", theme.bold(asked)), ...lines.map((line, at) => (at < end ? inColors(theme, line) : theme.fg("text", line)))].join("\n");
}

/** @param {Theme} theme @param {string} line */
function inColors(theme, line) {
  const name = NAME.exec(line)?.[0] ?? "";
  let out = name && theme.fg("muted", name);
  let from = name.length;
  for (const { 0: part, index, groups } of line.matchAll(PARTS)) {
    if (index < from) continue;
    const [kind] = Object.entries(groups ?? {}).find(([, found]) => found !== undefined) ?? ["id"];
    out += theme.fg("text", line.slice(from, index)) + theme.fg(COLORS[kind], part);
    from = index + part.length;
  }
  return out + theme.fg("text", line.slice(from));
}

/** An answer that scrolls. */
class LongAnswer {
  #screen;
  #tui;
  #asked;
  #lines;
  #scroll;
  #leaving;
  #type;

  /**
   * @param {import("./panel.js").Screen} screen
   * @param {import("./panel.js").Tui} tui
   * @param {string[]} lines what was asked, and the answer
   * @param {string} leaving
   * @param {(text: string) => void} type puts what is typed into the prompt
   */
  constructor(screen, tui, [asked, ...lines], leaving, type) {
    this.#leaving = leaving;
    this.#type = type;
    this.#screen = screen;
    this.#tui = tui;
    this.#asked = asked;
    this.#lines = lines;
    this.#scroll = new Scroll(screen, BESIDE_ANSWER);
  }

  invalidate() {}

  /** @param {number} width */
  render(width) {
    const { lines, note } = this.#scroll.seen(this.#lines);
    const cut = (/** @type {string} */ line) => this.#tui.truncateToWidth(line, width);
    return [this.#asked, ...lines, this.#screen.theme.fg("dim", `${note} · ↑↓ page up/down: scroll · esc: ${this.#leaving}`)].map(cut);
  }

  /** @param {string} data */
  handleInput(data) {
    if (this.#screen.is(data, "cancel") || this.#screen.is(data, "confirm")) return this.#screen.close();
    const typed = pastedIn(data) ?? (/^[^\p{C}\s]/u.test(data) ? data : "");
    if (this.#leaving === "close" && typed) {
      // Who types on has read it. Closing gives the editor its text back, and the rest of what is typed.
      this.#screen.close();
      return this.#type(typed);
    }
    this.#scroll.turn(data);
    this.#screen.draw();
  }
}
