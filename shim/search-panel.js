/** `/lcm search` in the TUI: type a query, see the hits, open one. */

import { columns, fit, wrap } from "./columns.js";
import { showPanel } from "./panel.js";
import { messageOf } from "./pi.js";

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionContext} ExtensionContext */
/** @typedef {import("./panel.js").Screen} Screen */
/** @typedef {import("./panel.js").Tui} Tui */
/** @typedef {{ id: string, kind: string, role: string | null, tool: string | null, agent: string | null, depth: number | null, time: string, place: string, snippet: string, marks: { start: number, end: number }[] }} Hit */
/** @typedef {(line: string) => Promise<import("./commands.js").Answer>} Ask */

/** Characters that a hit shows before the match. */
const LEAD = 24;
/** Columns for the time and the role. */
const WHO = 26;
/** Pause after a key before the engine is asked, in ms. */
const REST_MS = 120;

/** @param {ExtensionContext} ctx @param {Tui} tui @param {Ask} ask */
export function searchPanel(ctx, tui, ask) {
  return showPanel(ctx, (screen) => new Search(screen, tui, ask));
}

class Search {
  #screen;
  #ask;
  #tui;
  #input;
  /** @type {Hit[]} */
  #hits = [];
  #selected = 0;
  #note = "Type words to search for.";
  /** Whether the hits belong to the text in the field. */
  #current = true;
  #project = false;
  /** @type {{ lines: string[], width: number, top: number, text: string } | undefined} */
  #open;
  /** The number of the last question; answers to earlier ones are dropped. */
  #asked = 0;
  /** @type {NodeJS.Timeout | undefined} */
  #timer;

  /** @param {Screen} screen @param {Tui} tui @param {Ask} ask */
  constructor(screen, tui, ask) {
    this.#screen = screen;
    this.#tui = tui;
    this.#ask = ask;
    this.#input = new tui.Input();
  }

  set focused(/** @type {boolean} */ focused) {
    this.#input.focused = focused;
  }

  get focused() {
    return this.#input.focused;
  }

  invalidate() {
    this.#input.invalidate();
  }

  dispose() {
    clearTimeout(this.#timer);
    this.#asked++;
  }

  /** @param {number} width */
  render(width) {
    return this.#open ? this.#page(width) : this.#list(width);
  }

  /** @param {string} data */
  handleInput(data) {
    if (this.#open) this.#turn(data);
    else this.#choose(data);
    this.#screen.draw();
  }

  /** @param {number} width */
  #list(width) {
    const { theme } = this.#screen;
    const rows = this.#screen.rows();
    const where = this.#project ? "all sessions of this project" : "this session";
    const from = Math.max(0, Math.min(this.#selected - Math.floor(rows / 2), this.#hits.length - rows));
    const hits = this.#hits.slice(from, from + rows).map((hit, at) => this.#row(hit, from + at === this.#selected, width));
    return [
      theme.fg("accent", theme.bold(fit(`Search ${where}`, width))),
      ...this.#input.render(width),
      ...hits,
      theme.fg("muted", fit(this.#note, width)),
      theme.fg("dim", fit("enter: open · tab: this session or the project · esc: close", width)),
    ];
  }

  /** @param {Hit} hit @param {boolean} selected @param {number} width */
  #row(hit, selected, width) {
    const { theme } = this.#screen;
    const who = hit.kind === "summary" ? `D${hit.depth}` : [hit.agent, hit.tool ?? hit.role].filter(Boolean).join(" ");
    const elsewhere = hit.place === "here" ? "" : " *";
    const time = hit.time.slice(0, 16).replace("T", " ");
    const head = fit(`${time} ${who}${elsewhere}`, Math.max(0, Math.min(width - 4, 36))).padEnd(Math.min(WHO, width - 4));
    const start = hit.marks[0]?.start ?? 0;
    const snippet = [...hit.snippet];
    // Show the match, starting at the beginning of a word.
    const from = start > LEAD ? snippet.indexOf(" ", start - LEAD) + 1 : 0;
    const text = `${from > 0 ? "…" : ""}${snippet.slice(from).join("")}`;
    const rest = fit(text, Math.max(0, width - columns(head) - 4));
    const color = selected ? "accent" : "text";
    return theme.fg(color, selected ? "> " : "  ") + theme.fg(selected ? "accent" : "muted", head) + theme.fg(color, `  ${rest}`);
  }

  /** @param {number} width */
  #page(width) {
    const { theme } = this.#screen;
    const rows = this.#screen.rows();
    const open = this.#open;
    if (!open) return [];
    if (open.width !== width) [open.width, open.lines] = [width, wrap(open.text, width)];
    open.top = Math.max(0, Math.min(open.top, open.lines.length - rows));
    const last = Math.min(open.lines.length, open.top + rows);
    const hint = `lines ${open.top + 1} to ${last} of ${open.lines.length} · ↑↓ page up/down: scroll · esc: back`;
    return [...open.lines.slice(open.top, last).map((line) => theme.fg("text", line)), theme.fg("dim", fit(hint, width))];
  }

  /** @param {string} data */
  #turn(data) {
    const rows = this.#screen.rows();
    const open = this.#open;
    if (!open) return;
    if (this.#screen.is(data, "cancel")) this.#open = undefined;
    else if (this.#screen.is(data, "up")) open.top -= 1;
    else if (this.#screen.is(data, "down")) open.top += 1;
    else if (this.#screen.is(data, "pageUp")) open.top -= rows;
    else if (this.#screen.is(data, "pageDown") || data === " ") open.top += rows;
  }

  /** @param {string} data */
  #choose(data) {
    const hits = this.#hits.length;
    if (this.#screen.is(data, "cancel")) return this.#screen.close();
    if (this.#screen.is(data, "up")) this.#selected = (this.#selected + hits - 1) % Math.max(1, hits);
    else if (this.#screen.is(data, "down")) this.#selected = (this.#selected + 1) % Math.max(1, hits);
    else if (this.#screen.is(data, "pageUp")) this.#selected = Math.max(0, this.#selected - this.#screen.rows());
    else if (this.#screen.is(data, "pageDown")) this.#selected = Math.max(0, Math.min(hits - 1, this.#selected + this.#screen.rows()));
    else if (this.#screen.is(data, "confirm")) void this.#show();
    else if (this.#tui.matchesKey(data, "tab")) {
      this.#project = !this.#project;
      this.#look();
    } else {
      const before = this.#input.getValue();
      this.#input.handleInput(data);
      if (this.#input.getValue() !== before) this.#look();
    }
  }

  #look() {
    this.#current = false;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#find(), REST_MS);
  }

  async #find() {
    clearTimeout(this.#timer);
    const query = this.#input.getValue().trim();
    const mine = ++this.#asked;
    /** @type {{ hits: Hit[], isCut: boolean, elsewhere: number }} */
    let found = { hits: [], isCut: false, elsewhere: 0 };
    let note = "Type words to search for.";
    try {
      if (query) {
        found = /** @type {any} */ ((await this.#ask(`search --more${this.#project ? " --project" : ""} -- ${query}`)).answer);
        note = summaryOf(found);
      }
    } catch (error) {
      note = messageOf(error);
    }
    if (mine !== this.#asked) return;
    [this.#hits, this.#note, this.#selected, this.#current] = [found.hits, note, 0, true];
    this.#screen.draw();
  }

  async #show() {
    // Enter right after typing refers to the new text, not to the hits of the old one.
    if (!this.#current) await this.#find();
    if (!this.#current) return;
    const hit = this.#hits[this.#selected];
    if (!hit) return;
    let text;
    try {
      ({ text } = await this.#ask(`show ${hit.id}`));
    } catch (error) {
      text = messageOf(error);
    }
    this.#open = { text, lines: [], width: 0, top: 0 };
    this.#screen.draw();
  }
}

/** @param {{ hits: Hit[], isCut: boolean, elsewhere: number }} found */
function summaryOf({ hits, isCut, elsewhere }) {
  if (hits.length === 0) return elsewhere > 0 ? `Nothing here; ${elsewhere} in other sessions: press tab.` : "Nothing found.";
  const others = hits.some(({ place }) => place !== "here") ? " · *: another branch or session" : "";
  return `${isCut ? `The best ${hits.length} of more` : hits.length} found${others}`;
}
