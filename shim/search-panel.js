/** `/lcm search` in the TUI: type a query, see the hits, open one. */

import { readFileSync } from "node:fs";
import { columns, fit, wrap } from "./columns.js";
import { lit, pastedIn, Scroll, showPanel } from "./panel.js";
import { messageOf } from "./pi.js";
import { uiOf } from "./ui.js";

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionContext} ExtensionContext */
/** @typedef {import("./panel.js").Screen} Screen */
/** @typedef {import("./panel.js").Tui} Tui */
/** @typedef {{ id: string, kind: string, role: string | null, tool: string | null, agent: string | null, depth: number | null, time: string, place: string, session: { id: string, file: string | null, about: string } | null, snippet: string, marks: { start: number, end: number }[] }} Hit */
/** @typedef {{ hits: Hit[], isCut: boolean, more: number | null, isWidened: boolean, otherSessions: number, missing: string[], unknown: string[], absent: string[], asWords: string[] }} Found */
/** An open hit: its text, where the match is in it, what to highlight, the lines at the current width, and the one whose match was gone to. @typedef {{ hit: Hit, text: string, at: number, found: RegExp | undefined, lines: string[], line?: number, width: number, scroll: Scroll }} Page */
/** @typedef {(line: string) => Promise<import("./commands.js").Answer>} Ask */

/** Characters that a hit shows before the match. */
const LEAD = 24;
/** Columns for the time and the role. */
const WHO = 26;
/** Pause after a key before the engine is asked, in ms. */
const REST_MS = 120;
/**
 * Lines besides the hits, and besides an open hit: the panel's other lines, and two for a widget of another extension, because what goes
 * beyond the screen is cut off, and the keys come last.
 */
const BESIDE_HITS = 8;
const BESIDE_PAGE = 4;
/** Lines above a match. */
const ABOVE = 3;

/**
 * The filters: a key for each, which takes the next value.
 *
 * @type {Record<string, { option: string, values: (seen: { tools: Set<string>, agents: Set<string> }) => Iterable<string> }>}
 */
const FILTERS = {
  "ctrl+r": { option: "role", values: () => ["user", "assistant", "toolResult", "bashExecution"] },
  "ctrl+t": { option: "tool", values: ({ tools }) => tools },
  "ctrl+g": { option: "agent", values: ({ agents }) => agents },
  "ctrl+l": { option: "after", values: () => ["1d", "7d", "30d"] },
};

/**
 * @param {import("@earendil-works/pi-coding-agent").ExtensionCommandContext} ctx
 * @param {Tui} tui
 * @param {Ask} ask
 * @param {boolean} isProject
 */
export async function searchPanel(ctx, tui, ask, isProject) {
  /** @type {Search | undefined} */
  let panel;
  await showPanel(ctx, (screen) => (panel = new Search(screen, tui, ask, isProject)));
  await panel?.leave(ctx);
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
  /** The note about the hits. */
  #found = this.#note;
  /** Whether the hits belong to the text in the field. */
  #current = true;
  #project;
  /** Whether the hits are of the project, because this session has none. */
  #isWidened = false;
  /** The session to search instead. @type {string | undefined} */
  #session;
  /** The filters' values by option. @type {Map<string, string>} */
  #filters = new Map();
  #seen = { tools: new Set(), agents: new Set() };
  /** @type {Page | undefined} */
  #open;
  /** What to do once the panel is closed. @type {(ctx: import("@earendil-works/pi-coding-agent").ExtensionCommandContext) => unknown} */
  leave = () => {};
  /** The number of the last question; answers to earlier ones are dropped. */
  #asked = 0;
  /** @type {NodeJS.Timeout | undefined} */
  #timer;

  /** @param {Screen} screen @param {Tui} tui @param {Ask} ask @param {boolean} isProject */
  constructor(screen, tui, ask, isProject) {
    this.#screen = screen;
    this.#project = isProject;
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
    const rows = this.#screen.rows(BESIDE_HITS);
    const where = this.#session ? `session ${this.#session}` : this.#project || this.#isWidened ? "all sessions of this project" : "this session";
    // A session's id is long, and its end says little.
    const title = [...[...this.#filters].map((filter) => filter.join(" ")), where].join(" · ");
    const from = Math.max(0, Math.min(this.#selected - Math.floor(rows / 2), this.#hits.length - rows));
    const hits = this.#hits.slice(from, from + rows).map((hit, at) => this.#row(hit, from + at === this.#selected, width));
    return [
      theme.fg("accent", theme.bold(fit(`Search ${title}`, width))),
      ...this.#input.render(width),
      ...hits,
      theme.fg("muted", fit(this.#note, width)),
      theme.fg("muted", fit(placeOf(this.#hits[this.#selected]), width)),
      theme.fg("dim", fit("enter: open · tab: session or project · ctrl+s: its session · esc: close", width)),
      theme.fg("dim", fit("only: ctrl+r: a role · ctrl+t: a tool · ctrl+g: an agent · ctrl+l: last days", width)),
    ];
  }

  /** @param {Hit} hit @param {boolean} selected @param {number} width */
  #row(hit, selected, width) {
    const { theme } = this.#screen;
    const who = hit.kind === "summary" ? `D${hit.depth}` : [hit.agent, hit.tool ?? hit.role].filter(Boolean).join(" ");
    const elsewhere = hit.place === "here" ? "" : " *";
    const head = fit(`${minute(hit.time)} ${who}${elsewhere}`, Math.max(0, Math.min(width - 4, 36))).padEnd(Math.min(WHO, width - 4));
    const start = matchedIn(hit)[0]?.start ?? 0;
    const snippet = [...hit.snippet];
    // Show the match, starting at the beginning of a word.
    const from = start > LEAD ? snippet.indexOf(" ", start - LEAD) + 1 : 0;
    const text = `${from > 0 ? "…" : ""}${snippet.slice(from).join("")}`;
    const rest = fit(text, Math.max(0, width - columns(head) - 4));
    const color = selected ? "accent" : "text";
    return theme.fg(color, selected ? "> " : "  ") + theme.fg(selected ? "accent" : "muted", head) + lit(theme, `  ${rest}`, matchesOf(hit), color);
  }

  /** @param {number} width */
  #page(width) {
    const { theme } = this.#screen;
    const open = this.#open;
    if (!open) return [];
    if (open.width !== width) {
      open.lines = wrap(open.text, width);
      // With the word that matches, or it may be on the next line.
      const above = open.text.slice(0, open.at) + (open.text.slice(open.at).match(/^\S*/)?.[0] ?? "");
      open.line = open.width === 0 ? wrap(above, width).length - 1 : undefined;
      if (open.line !== undefined) open.scroll.show(open.line, ABOVE);
      open.width = width;
    }
    const { lines, note } = open.scroll.seen(open.lines);
    const hint = `${open.hit.id} · ${this.#note || note} · ↑↓ page up/down: scroll`;
    const keys = `esc: back · n p: next match, before · c: copy · i: id into prompt${this.#file ? " · r: resume" : ""}`;
    return [
      ...lines.map((line) => lit(theme, line, open.found, "text")),
      theme.fg("muted", fit(hint, width)),
      theme.fg("dim", fit(keys, width)),
    ];
  }

  /** Scrolls to the next line with a match, or opens the next hit. @param {Page} page @param {1 | -1} by */
  #match(page, by) {
    const { hit, lines, found, scroll } = page;
    // The next hit is on its way.
    if (hit !== this.#hits[this.#selected]) return;
    for (let at = (page.line ?? scroll.top + ABOVE) + by; found && at >= 0 && at < lines.length; at += by) {
      if (lines[at].search(found) < 0) continue;
      page.line = at;
      scroll.top = at - ABOVE;
      return;
    }
    if (this.#hits[this.#selected + by]) {
      this.#selected += by;
      void this.#show();
    } else {
      this.#note = by > 0 ? "no match after this" : "no match before this";
    }
  }

  /** The session file of the open hit, if it is another session's. */
  get #file() {
    return this.#open?.hit.session?.file;
  }

  /** @param {string} data */
  #turn(data) {
    const open = this.#open;
    if (!open) return;
    this.#note = "";
    if (this.#screen.is(data, "cancel")) [this.#open, this.#note] = [undefined, this.#found];
    else if (data === "n") this.#match(open, 1);
    else if (data === "p") this.#match(open, -1);
    else if (data === "c") void this.#copy(open.text);
    else if (data === "i") this.#insert(open.hit);
    else if (data === "r" && this.#file) this.#resume(this.#file);
    else {
      const before = open.scroll.top;
      open.scroll.turn(data);
      if (open.scroll.top !== before) open.line = undefined;
    }
  }

  /** Types the hit's id into the prompt. @param {Hit} hit */
  #insert({ id }) {
    this.leave = (ctx) => {
      uiOf(ctx).type(`${id} `);
      this.#screen.draw();
    };
    this.#screen.close();
  }

  /** @param {string} file */
  #resume(file) {
    const { id = "" } = this.#open?.hit.session ?? {};
    // Pi would begin another session under the name of a file that is gone.
    if (!isOf(file, id)) return void (this.#note = `file gone: pi-lcm export --jsonl --session ${id.slice(0, 13)}`);
    this.leave = (ctx) => ctx.switchSession(file);
    this.#screen.close();
  }

  /** @param {string} text */
  async #copy(text) {
    try {
      const { copyToClipboard } = await import("@earendil-works/pi-coding-agent");
      await copyToClipboard(text);
      this.#note = "copied, with its heading";
    } catch (error) {
      this.#note = messageOf(error);
    }
    this.#screen.draw();
  }

  /** @param {string} data */
  #choose(data) {
    const hits = this.#hits.length;
    if (this.#screen.is(data, "cancel")) return this.#screen.close();
    if (this.#screen.is(data, "up")) this.#selected = (this.#selected + hits - 1) % Math.max(1, hits);
    else if (this.#screen.is(data, "down")) this.#selected = (this.#selected + 1) % Math.max(1, hits);
    else if (this.#screen.is(data, "pageUp")) this.#selected = Math.max(0, this.#selected - this.#screen.rows(BESIDE_HITS));
    else if (this.#screen.is(data, "pageDown")) this.#selected = Math.max(0, Math.min(hits - 1, this.#selected + this.#screen.rows(BESIDE_HITS)));
    else if (this.#screen.is(data, "confirm")) void this.#show();
    else if (!this.#narrowed(data)) {
      const before = this.#input.getValue();
      // Pasted lines are words of one query.
      this.#input.handleInput(pastedIn(data) === undefined ? data : data.replace(/[\r\n]+/g, " "));
      if (this.#input.getValue() !== before) this.#look();
    }
  }

  /** Whether a key has changed where, or among what, to search. @param {string} data */
  #narrowed(data) {
    const isKey = (/** @type {string} */ key) => this.#tui.matchesKey(data, /** @type {any} */ (key));
    const key = Object.keys(FILTERS).find(isKey);
    if (key) {
      const { option, values } = FILTERS[key];
      const choices = ["", ...values(this.#seen)];
      if (choices.length === 1) {
        this.#note = `The hits so far name no ${option}: search for other words first.`;
        return true;
      }
      const next = choices[(choices.indexOf(this.#filters.get(option) ?? "") + 1) % choices.length];
      if (next) this.#filters.set(option, next);
      else this.#filters.delete(option);
    } else if (isKey("ctrl+s") && !this.#session && !this.#hits[this.#selected]?.session) {
      if (this.#hits.length > 0) this.#note = `The hit is of this session: tab searches ${this.#project ? "only that" : "all"}.`;
      return true;
    } else if (isKey("ctrl+s")) {
      this.#session = this.#session ? undefined : this.#hits[this.#selected]?.session?.id;
    } else if (isKey("tab")) {
      [this.#project, this.#session] = [!this.#project, undefined];
    } else {
      return false;
    }
    this.#look();
    return true;
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
    /** @type {Found} */
    let found = { hits: [], isCut: false, more: null, isWidened: false, otherSessions: 0, missing: [], unknown: [], absent: [], asWords: [] };
    let note = "Type words to search for.";
    try {
      if (query) {
        const where = this.#session ? ` --session ${this.#session}` : this.#project ? " --project" : "";
        const filters = [...this.#filters].map(([name, value]) => ` --${name} ${value}`).join("");
        found = /** @type {any} */ ((await this.#ask(`search --more${where}${filters} -- ${query}`)).answer);
        note = summaryOf(found, filters.length > 0);
      }
    } catch (error) {
      note = messageOf(error);
    }
    if (mine !== this.#asked) return;
    [this.#hits, this.#note, this.#found, this.#selected, this.#current] = [found.hits, note, note, 0, true];
    this.#isWidened = found.isWidened;
    for (const { kind, tool, agent } of found.hits) {
      if (tool) this.#seen.tools.add(tool);
      if (kind === "message") this.#seen.agents.add(agent ?? "pi");
    }
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
    this.#open = { hit, text, at: startOf(hit, text), found: matchesOf(hit), lines: [], width: 0, scroll: new Scroll(this.#screen, BESIDE_PAGE) };
    this.#note = "";
    this.#screen.draw();
  }
}

/** @param {Found} found @param {boolean} isFiltered */
function summaryOf({ hits, isCut, more, isWidened, otherSessions, missing, unknown, absent, asWords }, isFiltered) {
  const wider = otherSessions > 0 ? " here; tab searches all sessions" : "";
  if (missing.length > 0) return `Nothing says that in whole words${wider}; ${isFiltered ? "press a filter's key again, or leave out the quotes" : "without quotes, the words are searched"}.`;
  if (asWords.length > 0) return `${hits.length} found; ${asWords[0]} is searched for as words: the keys below filter`;
  if (hits.length === 0) return `Nothing found${wider}${isFiltered ? "; its key again changes a filter" : ""}.`;
  if (unknown.length > 0) return `Nothing has ${unknown.join(" or ")}${wider}. ${hits.length} with similar words`;
  const but = absent.length > 0 ? `; nothing has ${absent.join(" or ")}` : "";
  const where = isWidened ? ", none exact in this session" : "";
  const others = hits.some(({ place }) => place !== "here") ? " · *: elsewhere" : "";
  return `${isCut ? `The best ${hits.length} of ${more ? hits.length + more : "more"}` : hits.length} found${but}${where}${others}${otherSessions > 0 ? " · tab: other sessions too" : ""}`;
}

/** What matched in a hit, as one group; undefined for nothing. @param {Hit} hit */
function matchesOf(hit) {
  const words = matchedIn(hit).map(({ word }) => word);
  return words.length ? new RegExp(`(${[...new Set(words)].map(verbatim).join("|")})`, "i") : undefined;
}

/**
 * What matched in a hit's snippet, the longest first: a name as a whole, not the words in it. A single letter is in every word, so it counts
 * only by itself.
 *
 * @param {Hit} hit
 */
function matchedIn({ snippet, marks }) {
  const text = [...snippet];
  /** @type {{ start: number, end: number }[]} */
  const joined = [];
  for (const { start, end } of marks) {
    const last = joined.at(-1);
    if (last && (start === last.end || (start === last.end + 1 && /\S/.test(text[last.end])))) last.end = end;
    else joined.push({ start, end });
  }
  const found = joined.map(({ start, end }) => ({ start, word: text.slice(start, end).join("") })).filter(({ word }) => word.trim());
  const long = found.filter(({ word }) => word.length > 1);
  return (long.length > 0 ? long : found).toSorted((one, other) => other.word.length - one.word.length);
}

/** Where a hit's match is in its text. @param {Hit} hit @param {string} text */
function startOf(hit, text) {
  const [match] = matchedIn(hit);
  if (!match) return 0;
  // In a snippet, white space is folded, and the last word may be cut.
  const words = [...hit.snippet].slice(match.start, match.start + LEAD * 2).join("").trim().split(/\s+/);
  const context = words.slice(0, Math.max(1, words.length - 1)).map(verbatim).join("\\s+");
  // Marks of JSON differ between the two.
  return Math.max(0, [context, verbatim(match.word)].map((pattern) => text.search(new RegExp(pattern))).find((at) => at >= 0) ?? 0);
}

/** A pattern that matches these characters. @param {string} text */
function verbatim(text) {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** Whether this is the file of the session whose id begins so. @param {string} file @param {string} id */
function isOf(file, id) {
  try {
    return readFileSync(file, "utf8").split("\n", 1)[0].includes(id.replace(/…$/, ""));
  } catch {
    return false;
  }
}

/** Where a hit is, if not on this branch. @param {Hit | undefined} hit */
function placeOf(hit) {
  if (hit?.session) {
    const { id, about, file } = hit.session;
    const branch = hit.place === "otherSessionBranch" ? "abandoned branch of " : "";
    return `${branch}session ${id}${about && `: ${about}`}${file ? "" : " (can't be resumed here)"}`;
  }
  return hit?.place === "otherBranch" ? "on another branch" : "";
}

/** A time in the user's zone. @param {string} iso */
function minute(iso) {
  const at = new Date(iso);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16).replace("T", " ");
}
