/**
 * The viewer: a session's history in one page. Only a small state decides what is shown: the branch, one of three views, the selection
 * and the filter.
 */
import "./locale.js";
import { Branch, isPurged, isSeen } from "./branch.js";
import { readAbout, readSessions, Session, titleIn } from "./data.js";
import { messageDetail, overviewDetail, summaryDetail } from "./detail.js";
import { count, date, day, h, minute, number } from "./dom.js";
import { checkNames, closest, Filter, highlight, isIdOf, queryOf } from "./filter.js";
import { listen } from "./keys.js";
import { List } from "./list.js";
import { SummaryMap } from "./map.js";
import { Plots } from "./plots.js";
import { Reading } from "./reading.js";
import { byDay, drawRow, ROW_HEIGHT, rowsFound, rowsOfContext } from "./rows.js";
import { onTheme, startTheme, switchTheme, theme } from "./theme.js";
import { editOf, headline, legible } from "./words.js";

/** @typedef {import("./branch.js").Item} Item */
/** @typedef {import("./branch.js").Node} Node */
/** @typedef {import("./rows.js").Row} Row */
/** @typedef {"history" | "read" | "travel" | "cost"} View */

/** @type {[View, string][]} */
const VIEWS = [["history", "History"], ["read", "Read"], ["travel", "Time travel"], ["cost", "Tokens & cost"]];

/** ms: the pause in typing before a search, and how long the address may lag behind. */
const [TYPING, LAGGING] = [90, 250];
/** What an address names to show what is known of the session. */
const ABOUT = "about";
/** px: below the end of any list. */
const FAR = 1e9;

class Viewer {
  /** What is shown of the session that is open. @type {Branch} */
  branch = /** @type {any} */ (undefined);
  /** @type {View} */
  view = "history";
  /** How far the list of the history is scrolled, in px. */
  scrolled = FAR;
  /** The id of the selection. @type {string | undefined} */
  selected;
  /** The number of compactions before the selected moment. */
  step = 0;
  /** @type {import("./filter.js").Query | null} */
  query = null;
  /** The filter's results on the branch. @type {Item[] | null} */
  found = null;
  /** Its results on other branches and in other sessions. @type {import("./rows.js").Elsewhere[]} */
  elsewhere = [];
  filter = new Filter();
  /** @type {Map<string, any>} */
  edits = new Map();
  /** The list's rows by the id of what they show. @type {Map<string, number>} */
  places = new Map();
  /** The messages whose rows are marked as a summary's. @type {Item[] | undefined} */
  marked;
  /** The sessions' titles. @type {string[]} */
  titles = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  typing;
  /** The last search. @type {Promise<void> | undefined} */
  looking;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  lagging;

  constructor() {
    this.about = readAbout();
    this.facts = readSessions();
    /** @type {Map<number, Session>} */
    this.read = new Map();
    /** @type {List<Row>} */
    this.list = new List({
      label: "Messages",
      height: ROW_HEIGHT,
      draw: (row) => drawRow(row, { query: this.query, edits: this.edits, covered: this.#node()?.items, width: this.list.element.clientWidth }),
      select: (row) => this.#choose(row),
      seen: (from, to) => this.#seen(from, to),
    });
    this.map = new SummaryMap({ onSummary: ({ summary }) => this.go(summary.handle), onMessage: (item) => this.go(item.id), onCompaction: (step) => this.travel(step) });
    this.plots = new Plots((id) => this.go(id));
    this.reading = new Reading();
    this.detail = h("main", { className: "pane", tabIndex: -1, "aria-label": "Details" });
    this.steps = h("div", { className: "steps", role: "toolbar", "aria-label": "Compactions" });
    this.hits = h("span", { className: "quiet count", role: "status" });
    this.input = h("input", { type: "search", placeholder: "Filter  /", "aria-label": "Filter", spellcheck: false, oninput: () => this.#typed() });
    this.sessions = h("select", { "aria-label": "Session", onchange: () => this.openSession(Number(this.sessions.value)) });
    this.branches = h("select", { "aria-label": "Branch", onchange: () => this.openBranch(this.branches.value) });
    this.title = h("h1", null);
    this.tabs = VIEWS.map(([view, name]) => h("button", { type: "button", role: "tab", "data-view": view, onclick: () => this.turn(view) }, name));
    this.themeButton = h("button", { type: "button", className: "icon", onclick: switchTheme });
    const search = h("div", { className: "search" }, this.input, this.hits);
    const aboutButton = h("button", { type: "button", className: "icon about", title: "About this session", "aria-label": "About this session", onclick: () => this.go(ABOUT) }, "i");
    const helpButton = h("button", { type: "button", className: "icon", title: "Keys (?)", "aria-label": "Keys", onclick: this.#listen() }, "?");
    this.element = h(
      "div",
      { className: "page" },
      h("header", { className: "top" }, this.title, this.facts.length > 1 && this.sessions, this.branches, search, aboutButton, this.themeButton, helpButton),
      h("nav", { className: "tabs", role: "tablist" }, ...this.tabs),
      this.map.element,
      this.steps,
      h("div", { className: "columns" }, this.list.element, this.detail),
      this.reading.element,
      this.plots.element,
    );
    onTheme(() => this.#themed());
    addEventListener("hashchange", () => this.#follow(location.hash));
  }

  /** @param {number} number of the session in the page */
  openSession(number) {
    const session = this.#session(number);
    this.session = session;
    this.sessions.value = String(number);
    const folder = String(session.header.cwd ?? this.about.cwd).split(/[\\/]/).filter(Boolean).at(-1) ?? "";
    const name = session.name ?? (this.facts.length > 1 ? this.titles[number] : folder);
    this.title.textContent = document.title = legible(name || "Session history");
    this.title.title = legible(`${session.header.cwd ?? this.about.cwd}\nSession ${session.id}`);
    this.branches.replaceChildren(...session.branches.toReversed().map((end) => h("option", { value: end.leaf }, this.#nameOf(session, end.leaf))));
    this.openBranch(session.leaf ?? "");
  }

  /** @param {string} name a session's id, or what only one begins with @returns {number} -1 for none */
  #numberOf(name) {
    const whole = this.facts.findIndex(({ id }) => id === name);
    // Ids of other agents' sessions have the agent's name before their own.
    const begun = this.facts.filter(({ id }) => name.length >= 4 && [id, id.split(":").at(-1) ?? ""].some((one) => one.startsWith(name)));
    return whole < 0 && begun.length === 1 ? this.facts.indexOf(begun[0]) : whole;
  }

  /** @param {number} number */
  #session(number) {
    const session = this.read.get(number) ?? new Session(number, this.facts[number]);
    this.read.set(number, session);
    return session;
  }

  /** @param {Session} session @param {string} leaf */
  #nameOf(session, leaf) {
    let words = "";
    let seen = 0;
    let when = "";
    const edits = new Map();
    for (let line = session.lines.get(leaf); line; line = session.lines.get(line.entry.parentId)) {
      const edit = editOf(line.entry);
      // The last one counts.
      if (edit && !edits.has(edit.target)) edits.set(edit.target, edit.replacement);
      if (!line.message || line.message.kind === "system") continue;
      if (isSeen(line, edits)) seen++;
      if (!words && line.entry.message?.role === "user") words = short(headline(line));
      when ||= date(Date.parse(line.entry.timestamp));
    }
    return `${leaf === session.leaf ? "● " : ""}${words || "Before any request"} — ${count(seen, "message")}, ${when}`;
  }

  /** @param {string} leaf */
  openBranch(leaf) {
    if (!this.session) return;
    this.branch = new Branch(this.session, leaf);
    this.branches.value = leaf;
    // An address may name what is only on a branch that says nothing.
    if (this.branches.value !== leaf) this.branches.append(h("option", { value: leaf, selected: true }, this.#nameOf(this.session, leaf)));
    this.branches.disabled = this.branches.length < 2;
    this.step = this.branch.compactions.length;
    this.selected = undefined;
    [this.found, this.elsewhere] = [null, []];
    this.#context();
    this.map.open(this.branch, { nodes: [], step: this.step });
    void this.#look();
    // All views open anew: the history at its end, time travel at its top.
    this.element.dataset.view = "";
    this.scrolled = FAR;
    this.turn(this.view);
  }

  /** Opens a session, and the branch that is named, or has what is named. @param {number} number @param {string | undefined} leaf @param {string} [id] */
  #openAt(number, leaf, id = "") {
    const session = this.#session(number);
    if (session !== this.session) this.openSession(number);
    const named = (leaf && session.lines.has(leaf) ? leaf : session.leaf) ?? "";
    if (named !== this.branch.leaf) this.openBranch(named);
    if (id && !this.branch.has(id)) this.openBranch(session.leafOf(id) ?? "");
  }

  /** Shows one of the views. @param {View} view */
  turn(view) {
    this.view = view;
    const before = this.element.dataset.view;
    if (before === "history") this.scrolled = this.list.element.scrollTop;
    this.element.dataset.view = view;
    for (const tab of this.tabs) tab.setAttribute("aria-selected", String(tab.dataset.view === view));
    this.#context();
    this.#rows();
    this.#mapped();
    if (before !== view) {
      this.list.element.scrollTop = view === "travel" ? 0 : this.scrolled;
      this.#mark();
    }
    if (view === "cost") this.plots.show(this.branch);
    if (view === "read") {
      this.#readFrom(this.selected);
      // For its scrolling keys; a select may be in use.
      if (document.activeElement?.tagName !== "SELECT") this.reading.element.focus();
    }
    this.#detailed();
    this.#address();
  }

  /** @param {string | undefined} id */
  #readFrom(id) {
    const item = this.branch.byId.get(id ?? "") ?? this.branch.said[this.#node()?.from ?? 0];
    this.reading.show(this.#page(), this.branch.items, item);
    highlight("found", this.reading.element, this.query);
  }

  /** Shows what the model saw after this many compactions. @param {number} step */
  travel(step) {
    this.step = Math.min(Math.max(0, step), this.branch.compactions.length);
    this.selected = this.branch.compactions[this.step - 1]?.id;
    this.turn("travel");
    this.list.element.scrollTop = 0;
    this.#mark();
  }

  /** Selects a message, an entry or a summary. @param {string | undefined} id */
  go(id) {
    this.selected = id;
    const isListed = !id || this.#placeOf(id) >= 0;
    if (!isListed && this.found && id?.startsWith("m-")) this.#clear();
    if (this.view === "cost" || this.view === "read" || (this.view === "travel" && id && id !== ABOUT && !id.startsWith("s-") && this.#placeOf(id) < 0)) this.view = "history";
    if (this.element.dataset.view !== this.view) this.turn(this.view);
    this.#mark();
    this.#detailed();
    this.#address();
  }

  /** @param {Row} row */
  #choose(row) {
    const id = row.item?.id ?? row.node?.summary.handle;
    if (row.session !== undefined) this.#openAt(row.session, undefined, id);
    if (id) this.go(id);
  }

  /** @param {number} by rows that are not headings */
  #move(by) {
    if (this.view === "read") {
      const end = Number.isFinite(by) ? undefined : this.branch.said.at(by < 0 ? 0 : -1)?.id;
      if (end) this.#readFrom(end);
      this.selected = end ?? this.reading.move(by);
      return this.#address();
    }
    const { rows, visible: [first, last] } = this.list;
    const before = this.list.selected;
    // Without a selection, it begins with what is visible.
    let place = before >= 0 ? before : by > 0 ? first - 1 : last + 1;
    for (let left = Math.abs(by); left > 0; left--) {
      let next = place + Math.sign(by);
      while (rows[next] && !rows[next].item && !rows[next].node) next += Math.sign(by);
      if (!rows[next]) break;
      place = next;
    }
    if (!rows[place]) return;
    // A message elsewhere opens by Enter.
    if (rows[place].session === undefined) this.#choose(rows[place]);
    else this.list.select(place);
  }

  /** Opens what is selected; from the filter, goes to the first result. */
  async #enter() {
    const isTyping = document.activeElement === this.input;
    if (isTyping) await this.#results(1);
    const row = this.list.rows[this.list.selected];
    if (row?.session !== undefined) this.#choose(row);
    else if (!isTyping) this.turn("read");
  }

  /** Moves, also out of the filter. @param {number} by */
  async #results(by) {
    if (document.activeElement === this.input) {
      // Whoever types fast means the results of what is typed.
      if (this.typing) this.#apply();
      await this.looking;
      if (this.view === "read") this.turn("history");
      this.list.element.focus();
    }
    this.#move(by);
  }

  /** The selected summary. @returns {Node | undefined} */
  #node() {
    return this.selected?.startsWith("s-") ? this.branch.byHandle.get(this.selected) : undefined;
  }

  /** Goes from a message to its summary, or from a summary to the one above. */
  #up() {
    const node = this.#node();
    const item = this.branch.byId.get(this.selected ?? "");
    const parents = node ? this.branch.session.parents.get(node.summary.id) : undefined;
    const above = parents?.map(({ id }) => this.branch.node(id)).find(Boolean) ?? (item && this.branch.over(item).at(-1));
    if (above) this.go(above.summary.handle);
  }

  /** Goes from a summary to its first source. */
  #down() {
    const node = this.#node();
    if (!node) return;
    const first = node.summary.depth > 0 ? this.branch.nodes(node.summary.sources)[0]?.summary.handle : this.branch.said[node.from]?.id;
    if (first) this.go(first);
  }

  /** Goes to the next summary of the same depth. @param {number} by */
  #sibling(by) {
    const node = this.#node();
    if (!node) return;
    const row = this.branch.below(this.#roots()).filter(({ summary }) => summary.depth === node.summary.depth);
    const next = row[row.findIndex(({ summary }) => summary.id === node.summary.id) + by];
    if (next) this.go(next.summary.handle);
  }

  /** @param {string} id @returns {number} its row, -1 for none */
  #placeOf(id) {
    return this.places.get(id) ?? -1;
  }

  /** The summaries that cover the branch at the selected moment. */
  #roots() {
    const compaction = this.view === "travel" ? this.branch.compactions[this.step - 1] : undefined;
    if (compaction) return this.branch.frontierAt(compaction);
    return this.view === "travel" ? [] : this.branch.frontier;
  }

  #context() {
    this.edits = this.view === "travel" ? this.branch.context(this.step).edits : this.branch.edits;
  }

  #rows() {
    const all = this.view === "travel" ? rowsOfContext(this.branch, this.branch.context(this.step), this.step) : byDay(this.branch.items);
    const found = this.found && new Set(this.found);
    // A purged message counts only where it is looked for.
    const said = all.flatMap(({ item }) => (item?.isSaid && (!isPurged(item) || found?.has(item)) ? [item] : []));
    this.hits.textContent = found ? `${number(said.filter((item) => found.has(item)).length)} of ${number(said.length)}` : "";
    const rows = this.query?.error ? [{ words: this.query.error }] : found ? rowsFound(all, found, this.view === "history" ? this.#foundSummaries() : [], this.elsewhere) : all;
    this.places = new Map(rows.flatMap(({ item, node, session }, place) => (session === undefined ? [[item?.id ?? node?.summary.handle ?? "", place]] : [])));
    this.list.rows = rows;
    this.#steps();
    this.#mark();
  }

  #steps() {
    const step = (/** @type {string} */ name, /** @type {number} */ n) =>
      h("button", { type: "button", "aria-pressed": String(n === this.step), "data-step": n, onclick: () => this.travel(n) }, name);
    const { compactions } = this.branch;
    const names = compactions.map(({ time }, n) => [n + 1, date(time), minute(time)].filter(Boolean).join(" · "));
    this.steps.replaceChildren(...[compactions.length ? "Before any" : "Nothing was compacted yet", ...names].map(step));
    this.steps.querySelector('[aria-pressed="true"]')?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** Marks the selection, in the list and on the map. */
  #mark() {
    const covered = this.#node()?.items;
    if (covered !== this.marked) this.list.redraw();
    this.marked = covered;
    const place = this.selected ? this.#placeOf(this.selected) : -1;
    this.list.select(place);
    if (place < 0 && covered) {
      const first = this.list.rows.findIndex(({ item }) => item?.isSaid && item.place >= covered[0].place);
      if (first >= 0) this.list.show(first);
    }
    this.map.show({ selected: this.selected });
  }

  #mapped() {
    const { kept, compaction } = this.branch.context(this.step);
    const isTravel = this.view === "travel";
    this.map.show({
      nodes: this.branch.below(this.#roots()),
      step: isTravel ? this.step : undefined,
      kept: isTravel && compaction && kept.length ? [kept[0].place, (kept.at(-1)?.place ?? 0) + 1] : undefined,
      found: this.found && new Set(this.found),
      foundSummaries: this.found && new Set(this.#foundSummaries().map(({ summary }) => summary.id)),
    });
  }

  /** @param {number} from @param {number} to visible rows */
  #seen(from, to) {
    const places = this.list.rows.slice(from, to).flatMap(({ item }) => (item?.isSaid ? [item.place] : []));
    highlight("found-rows", this.list.element, this.query, ".words");
    this.map?.show({ seen: places.length ? [Math.min(...places), Math.max(...places) + 1] : undefined });
  }

  /** @returns {import("./detail.js").Page} */
  #page() {
    return {
      branch: this.branch,
      edits: this.edits,
      step: this.view === "travel" ? this.step : undefined,
      go: (id) => this.go(id),
      zoom: ({ from, to }) => this.map.zoomTo(from, to),
      travel: (step) => this.travel(step),
    };
  }

  #detailed() {
    const page = this.#page();
    const [node, item] = [this.#node(), this.branch.byId.get(this.selected ?? "")];
    this.element.classList.toggle("has-detail", Boolean(this.selected));
    const rest = () => (this.selected && this.selected !== ABOUT ? h("p", null, missing(this.selected)) : overviewDetail(page, this.title.textContent ?? "", this.about));
    const back = h("button", { type: "button", className: "back link", onclick: () => this.go(undefined) }, "← Back to the list");
    this.detail.replaceChildren(back, node ? summaryDetail(page, node) : item ? messageDetail(page, item) : rest());
    this.detail.scrollTop = 0;
    const find = () => closest(highlight("found", this.detail, this.query, ".prose"), this.query);
    let first = find();
    // A long text is drawn as far as the first place that has a word.
    for (let more; !first && this.query?.words.length && (more = this.detail.querySelector(".prose > .more:not([hidden])")); first = find()) /** @type {HTMLElement} */ (more).click();
    const [at, box] = [first?.getBoundingClientRect().top ?? 0, this.detail.getBoundingClientRect()];
    if (at > box.bottom) this.detail.scrollTop = at - box.top - box.height / 3;
  }

  #typed() {
    this.#stopWaiting();
    this.typing = setTimeout(() => this.#apply(), TYPING);
  }

  #apply() {
    this.#stopWaiting();
    if (this.input.value && ["read", "cost"].includes(this.view)) this.turn("history");
    // On a narrow screen it hides the results.
    if (this.input.value) this.element.classList.remove("has-detail");
    this.looking = this.#look();
  }

  #stopWaiting() {
    clearTimeout(this.typing);
    this.typing = undefined;
  }

  /** Applies the filter, to the branch first, then to all the rest of the page. */
  async #look() {
    const { branch, filter } = this;
    const query = queryOf(this.input.value);
    this.query = query;
    const asked = filter.begin();
    const found = query && !query.error ? await filter.find(query, branch.said, asked) : null;
    if (query && !query.error && !found) return;
    [this.found, this.elsewhere] = [found, []];
    if (query) this.scrolled = this.list.element.scrollTop = 0;
    this.#rows();
    this.#mapped();
    highlight("found", this.detail, query, ".prose");
    if (!query || !found) return;
    for (const at of this.facts.keys()) {
      const session = this.#session(at);
      const others = session.said.filter(({ line }) => session !== this.session || !branch.byEntry.has(line.entry.id));
      const items = await filter.find(query, others, asked);
      if (!items) return;
      const title = session === this.session ? "On other branches" : (this.titles[at] ?? "");
      const nodes = [...session.summaries.values()].filter((summary) => this.#finds(summary) && !(session === this.session && branch.byHandle.has(summary.handle)) && session.leafOf(summary.handle));
      if (items.length || nodes.length) this.elsewhere.push({ number: at, title, items, nodes: nodes.map((summary) => ({ summary, from: 0, to: 0, items: [] })) });
    }
    if (!found.length && !this.elsewhere.length && !this.#foundSummaries().length) checkNames(query, [...this.read.values()].flatMap(({ said }) => said));
    if (this.elsewhere.length || query.error) this.#rows();
  }

  /** Summaries on the branch that contain all the words. @returns {Node[]} */
  #foundSummaries() {
    return this.branch.below(this.branch.frontier).filter(({ summary }) => this.#finds(summary));
  }

  /** Whether a summary contains all the words. @param {import("./data.js").Summary} summary */
  #finds({ text, handle }) {
    const { query } = this;
    if (!query?.words.length || query.error || query.speakers.length || query.tools.length || query.states.length) return false;
    return query.words.every((word) => word.test(text) || isIdOf(word, handle));
  }

  #clear() {
    this.input.value = "";
    this.query = this.found = null;
    this.elsewhere = [];
    this.filter.begin();
    this.#stopWaiting();
    this.#rows();
    this.#mapped();
  }

  /** The address of what is shown. */
  get #hash() {
    const { leaf, session } = this.branch;
    const branch = leaf && leaf !== session.leaf ? ["branch", leaf] : [];
    const parts = [...branch, ...(this.view === "history" ? [] : [this.view]), ...(this.view === "travel" ? [this.step] : []), this.selected];
    return `#${this.branch.session.address}${parts.filter((part) => part !== undefined).map(encodeURIComponent).join("/")}`;
  }

  /** Stores the state in the address, so that the browser's Back button works. */
  #address() {
    const hash = this.#hash;
    clearTimeout(this.lagging);
    // Browsers limit how often a page may change its address, as when a key is held down.
    this.lagging = setTimeout(() => {
      if (hash !== (location.hash || "#")) history.pushState(null, "", hash);
    }, LAGGING);
  }

  /** Shows what an address names, without storing another: that would end the browser's way forward, and Back would return here. @param {string} hash */
  #follow(hash) {
    const parts = hash.slice(1).split("/").map(decoded);
    const name = parts[0] === "session" ? (parts.splice(0, 2)[1] ?? "") : this.facts[0].id;
    const named = this.#numberOf(name);
    const leaf = parts[0] === "branch" ? parts.splice(0, 2)[1] : undefined;
    const view = VIEWS.find(([name]) => name !== "history" && name === parts[0])?.[0] ?? "history";
    if (view !== "history") parts.shift();
    const step = view === "travel" ? Number(parts.shift()) || 0 : 0;
    const isBranch = !leaf || this.#session(Math.max(named, 0)).lines.has(leaf);
    const wanted = !isBranch ? `branch ${leaf}` : parts[0] || undefined;
    const id = named < 0 && (!wanted || wanted === ABOUT) ? `session ${name}` : wanted;
    const isListed = id && id !== ABOUT;
    const at = isListed ? [Math.max(named, 0), ...this.facts.keys()].find((number) => this.#session(number).idOf(id)) : named;
    const whole = (isListed && at !== undefined && this.#session(at).idOf(id)) || id;
    if (at !== undefined || named >= 0) this.#openAt(at ?? named, leaf, isListed && at !== undefined ? whole : undefined);
    if (at === undefined || view === "history") {
      this.view = "history";
      this.go(whole);
    } else if (view === "travel") {
      this.travel(step);
      if (whole) this.go(whole);
    } else {
      this.selected = whole;
      this.turn(view);
    }
    clearTimeout(this.lagging);
    // A compaction's number past the end, the beginning of an id. What is not in the page stays, to be corrected.
    if (at !== undefined && this.#hash !== (hash || "#")) history.replaceState(null, "", this.#hash);
  }

  #themed() {
    const names = { auto: ["◐", "as the system has it"], light: ["☀", "light"], dark: ["☾", "dark"] };
    const [sign, words] = names[/** @type {keyof typeof names} */ (theme())] ?? names.auto;
    this.themeButton.textContent = sign;
    this.themeButton.title = `Theme: ${words} (t)`;
    this.themeButton.setAttribute("aria-label", this.themeButton.title);
    this.map.recolour();
    if (this.view === "cost") this.plots.show(this.branch);
  }

  #listen() {
    const nothing = () => {
      if (this.view === "read" && document.activeElement !== this.input) return this.go(this.selected);
      if (this.input.value) {
        this.#clear();
        this.#detailed();
      } else if (this.selected) {
        this.go(undefined);
      }
      this.input.blur();
    };
    const help = listen([
      { keys: ["j", "ArrowDown"], help: "next message", run: () => this.#results(1) },
      { keys: ["k", "ArrowUp"], help: "message before", run: () => this.#results(-1) },
      { keys: ["g", "Home"], help: "first message", run: () => this.#move(-Infinity) },
      { keys: ["G", "End"], help: "last message", run: () => this.#move(Infinity) },
      { keys: ["u"], help: "up: the summary over it", run: () => this.#up() },
      { keys: ["d"], help: "down: what the summary was made from", run: () => this.#down() },
      { keys: ["h", "ArrowLeft"], help: "summary before", run: () => this.#sibling(-1) },
      { keys: ["l", "ArrowRight"], help: "next summary", run: () => this.#sibling(1) },
      { keys: ["Enter"], help: "from the filter: first result; else read from here", run: () => this.#enter() },
      { keys: ["z"], help: "zoom the map to what is selected", run: () => this.#zoom() },
      { keys: ["+", "="], help: "zoom in", run: () => this.map.zoomBy(1.6) },
      { keys: ["-"], help: "zoom out", run: () => this.map.zoomBy(1 / 1.6) },
      { keys: ["0"], help: "the whole branch on the map", run: () => this.map.zoomOut() },
      { keys: ["["], help: "time travel: the compaction before", run: () => this.travel(this.step - (this.view === "travel" ? 1 : 0)) },
      { keys: ["]"], help: "time travel: the next compaction", run: () => this.travel(this.step + 1) },
      { keys: ["1"], help: "history", run: () => this.turn("history") },
      { keys: ["2"], help: "read the conversation", run: () => this.turn("read") },
      { keys: ["3"], help: "time travel", run: () => this.turn("travel") },
      { keys: ["4"], help: "tokens and cost", run: () => this.turn("cost") },
      { keys: ["/", "f"], help: "filter", run: () => this.input.focus() },
      { keys: ["b"], help: "branches", run: () => this.branches.focus() },
      { keys: ["t"], help: "theme: the system's, light, dark", run: switchTheme },
      { keys: ["Escape"], help: "back from reading; away with the filter, then with what is selected", run: nothing },
      { keys: ["?"], help: "these keys", run: () => help() },
    ]);
    return help;
  }

  #zoom() {
    const [node, item] = [this.#node(), this.branch.byId.get(this.selected ?? "")];
    if (node) this.map.zoomTo(node.from, node.to);
    else if (item) this.map.zoomTo(item.place - 10, item.place + 11);
  }

  start() {
    const isOne = this.facts.length === 1;
    this.titles = this.facts.map(({ id, header }, number) => {
      const title = isOne ? "" : titleIn(number);
      // Ids of other agents' sessions begin with the agent.
      const agent = title && id.includes(":") ? `${id.split(":")[0]}: ` : "";
      // It begins as its origin does.
      const fork = header.parentSession ? "fork: " : "";
      const began = Date.parse(header.timestamp);
      return `${agent}${fork}${short(title || id)} — ${day(began)} ${minute(began)}`;
    });
    this.sessions.append(...this.titles.map((title, value) => h("option", { value }, title)));
    this.#themed();
    this.openSession(0);
    if (location.hash.length > 1) this.#follow(location.hash);
  }
}

/** A part of an address; as it stands, if it is malformed. @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Says that an address names nothing, or perhaps several. @param {string} name */
function missing(name) {
  const mayBegin = /^[ms]-[0-9a-f]{0,9}$/.test(name) || /^session .{1,35}$/.test(name);
  return `There is no ${name} in this page.${mayBegin ? " If several begin so, give more of it." : ""}`;
}

/** @param {string} title */
const short = (title) => (title.length > 60 ? `${title.slice(0, 59)}…` : title);

/** Shows the page, or why it can't. */
function start() {
  const loading = document.getElementById("loading");
  const root = document.getElementById("app");
  try {
    startTheme();
    const viewer = new Viewer();
    root?.append(viewer.element);
    if (root) root.hidden = false;
    viewer.start();
    loading?.remove();
  } catch (error) {
    if (loading) loading.textContent = `The history can't be shown: ${error instanceof Error ? error.message : error}`;
    throw error;
  }
}

start();
