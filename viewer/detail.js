/**
 * The selection in full: a message with all its parts, a summary with its sources, or a block as the model saw it. Each links up to the
 * summaries that cover it, and down to what it covers.
 */
import { hiddenBecause, isComplete, isPurged, seenOf } from "./branch.js";
import { countedIn } from "./costs.js";
import { count, day, dollars, h, link, number, quiet, short, span, time } from "./dom.js";
import { prose } from "./prose.js";
import { conversation, leadIn, opened, pictureOf } from "./reading.js";
import { headline, partsOf, titleOf } from "./words.js";

/** @typedef {import("./branch.js").Branch} Branch */
/** @typedef {import("./branch.js").Item} Item */
/** @typedef {import("./branch.js").Node} Node */
/** @typedef {import("./words.js").Part} Part */

/** The names of speakers. @type {Record<string, string>} */
const NAMES = {
  user: "User",
  assistant: "Assistant",
  tool: "Tool result",
  shell: "Shell",
  note: "Note",
  branch: "Summary of another branch",
  system: "System",
  purged: "Purged",
  mark: "Entry",
};

/** The number of a summary's messages to list at once. */
const LISTED = 200;

/** The text shown instead of a block that is in no file anymore. */
const BLOCK_IS_GONE = "This compaction comes from the database, as the session's file is gone or something in it was purged: its text, and which messages it kept, are not known.";

/** The text that Pi puts around a block. */
const PI_SAYS = ["The conversation history before this point was compacted into the following summary:\n\n<summary>\n", "\n</summary>"];

/**
 * What the details need from the page.
 * @typedef {object} Page
 * @property {Branch} branch
 * @property {Map<string, any>} edits the replacements of entries
 * @property {number} [step] the selected compaction in time travel
 * @property {(id: string) => void} go
 * @property {(node: Node) => void} zoom
 * @property {(step: number) => void} travel
 */

/** @param {Page} page @param {Item} item */
export function messageDetail(page, item) {
  const { entry, message } = item.line;
  if (entry.type === "compaction") return blockDetail(page, item);
  const hidden = hiddenBecause(item, page.edits);
  return h(
    "article",
    { className: `detail c-${item.speaker}` },
    h("header", null, h("h2", null, titleOfItem(item)), facts([
      message && idOf(message.id),
      item.isSaid && !isPurged(item) && `${number(page.branch.kept.indexOf(item) + 1)} of ${number(page.branch.kept.length)}`,
      `${day(item.time)} ${time(item.time)}`,
      item.tokens > 0 && `≈ ${count(item.tokens, "token")}`,
      entry.message?.model && `${entry.message.provider}/${entry.message.model}`,
    ]), chips([hidden && ["warn", hidden], entry.message?.isError && ["bad", "failed"], ["error", "aborted"].includes(entry.message?.stopReason) && ["bad", entry.message.stopReason]])),
    crumbs(page, item),
    ...partsOf(item.line).map((part) => drawPart(page, part, item)),
    hidden && entry.id && page.edits.get(entry.id) && instead(page, page.edits.get(entry.id)),
    usage(entry.message?.usage),
    raw(item),
  );
}

/** @param {Item} item */
function titleOfItem(item) {
  const { message } = item.line.entry;
  const name = NAMES[item.speaker] ?? item.speaker;
  return message?.toolName ? `${name}: ${message.toolName}` : name;
}

/** @param {Page} page @param {Part} part @param {Item} item @returns {HTMLElement} */
function drawPart(page, part, item) {
  const { kind, text, name, id } = part;
  const lead = leadIn(page);
  if (kind === "image") return pictureOf(part);
  if (kind === "thinking") return h("details", { className: "thinking" }, h("summary", null, `Thinking, ${number(text.length)} characters`), prose(text, { lead }));
  if (kind === "call") {
    const result = id && page.branch.results.get(id);
    const bar = h("div", { className: "bar" }, h("b", null, name === "$" ? "command" : name), result && link("its result", () => page.go(result.id)));
    return h("section", { className: "call" }, bar, prose(text, { lead, plain: true }));
  }
  if (kind === "output") {
    const caller = page.branch.callers.get(item.line.entry.message?.toolCallId);
    const bar = (name || caller) && h("div", { className: "bar" }, name && h("b", null, name), caller && link("the call", () => page.go(caller.id)));
    return h("section", { className: "output" }, bar, prose(text, { lead, plain: true }));
  }
  return kind === "note" ? h("p", { className: "quiet" }, text) : prose(text, { lead });
}

/** What the model sees instead of a message. @param {Page} page @param {any} replacement */
function instead(page, replacement) {
  const parts = partsOf({ entry: { type: "custom_message", content: replacement.content ?? replacement } });
  return h("section", { className: "instead" }, h("h3", null, "The model sees instead"), ...parts.map(({ text }) => prose(text, { lead: leadIn(page) })));
}

/** @param {Page} page @param {Node} node */
export function summaryDetail(page, node) {
  const { summary, items } = node;
  const tokens = items.reduce((sum, item) => sum + item.tokens, 0);
  const cost = summary.usage?.cost?.total;
  const parents = page.branch.session.parents.get(summary.id) ?? [];
  return h(
    "article",
    { className: "detail summary" },
    h("header", null, h("h2", null, titleOf(summary.text)), facts([
      idOf(summary.handle),
      `depth ${summary.depth}`,
      count(items.length, "message"),
      span(summary.fromTime, summary.toTime),
      `≈ ${number(tokens)} → ${count(summary.tokens, "token")}`,
      summary.model ?? "no model",
      cost > 0 && dollars(cost),
    ]), chips([summary.state === "degraded" && ["warn", "degraded: made without a model"]])),
    h("nav", { className: "crumbs" }, ...parents.flatMap(({ id }) => crumb(page, page.branch.node(id))), link("Zoom the map to it", () => page.zoom(node))),
    prose(summary.text, { lead: leadIn(page) }),
    quotes(summary.quotes ?? []),
    summary.depth > 0 ? madeOfSummaries(page, page.branch.nodes(summary.sources)) : madeOfMessages(page, items),
  );
}

/** The view without a selection. @param {Page} page @param {string} title @param {import("./data.js").About} about */
export function overviewDetail(page, title, about) {
  const { said, kept, seen, frontier, compactions, session } = page.branch;
  const removed = said.length - kept.length;
  const hidden = kept.length - seen.length;
  const more = (hidden > 0 ? `, ${number(hidden)} hidden from the model` : "") + (removed > 0 ? `, ${number(removed)} removed for good` : "");
  const all = page.branch.below(frontier).length;
  const covered = new Set(frontier.flatMap(({ items }) => items));
  const bare = seen.filter((item) => !covered.has(item)).length;
  const others = session.branches.length > 1 ? ` The session has ${count(session.branches.length, "branch")}.` : "";
  return h(
    "article",
    { className: "detail overview" },
    h("header", null, h("h2", null, title), facts([session.header.cwd ?? about.cwd, span(seen[0]?.time ?? 0, seen.at(-1)?.time ?? 0), `session ${session.id}`])),
    h("p", null, `${count(seen.length, "message")} on this branch${more}, ${count(all, "summary")} over them, ${count(compactions.length, "compaction")}.${others}`),
    frontier.length ? madeOfSummaries(page, frontier, `What represents the branch now${bare > 0 ? `, with ${count(bare, "message")} that no summary covers` : ""}:`) : h("p", { className: "quiet" }, "No summary covers any of it yet."),
    h("p", { className: "quiet" }, `This page holds the whole session, unencrypted. Exported ${day(about.exportedAt)}, pi-lossless-context ${about.version}. Press ? for keys.`),
  );
}

/** @param {{ kind: string, text: string }[]} quotes */
function quotes(quotes) {
  if (quotes.length === 0) return null;
  return h("section", null, h("h3", null, "Word for word"), ...quotes.map(({ kind, text }) => h("blockquote", { dir: "auto" }, h("small", null, kind), text)));
}

/** @param {Page} page @param {Node[]} nodes */
function madeOfSummaries(page, nodes, title = "Made from") {
  return h("section", null, h("h3", null, `${title} ${count(nodes.length, "summary")}`), h("div", { className: "rows" }, ...nodes.map((node) => summaryRow(page, node))));
}

/** @param {Page} page @param {Node} node */
function summaryRow(page, node) {
  const { handle } = node.summary;
  return h("button", { type: "button", className: "row", "data-id": handle, onclick: () => page.go(handle) }, ...aboutNode(node));
}

/** @param {Page} page @param {Item[]} items */
function madeOfMessages(page, items) {
  const rows = h("div", { className: "rows" });
  const more = h("button", { type: "button", className: "more", onclick: () => list() });
  let at = 0;
  const list = () => {
    for (const item of items.slice(at, at + LISTED)) {
      const words = [h("span", { className: "who" }, item.speaker), h("span", { className: "words" }, headline(item.line)), quiet(short(item.tokens))];
      rows.append(h("button", { type: "button", className: `row c-${item.speaker}`, "data-id": item.id, onclick: () => page.go(item.id) }, words));
    }
    at += LISTED;
    more.hidden = at >= items.length;
    more.textContent = `Show more: ${count(items.length - at, "message")} are left`;
  };
  list();
  return h("section", null, h("h3", null, `Made from ${count(items.length, "message")}`), rows, more);
}

/** The block of a compaction as the model saw it. @param {Page} page @param {Item} item */
function blockDetail(page, item) {
  const { entry } = item.line;
  const step = page.branch.compactions.indexOf(item) + 1;
  const isOurs = Boolean(entry.details?.lcm);
  const isWhole = isComplete(item);
  const frontier = page.branch.frontierAt(item);
  return h(
    "article",
    { className: "detail c-compaction" },
    h("header", null, h("h2", null, `Compaction ${step}`), facts([
      isWhole && `${day(item.time)} ${time(item.time)}`,
      isOurs ? "by pi-lossless-context" : isWhole && "Pi's own, or another extension's",
      entry.tokensBefore > 0 && `${number(entry.tokensBefore)} tokens before`,
      item.tokens > 0 && `block ≈ ${count(item.tokens, "token")}`,
      entry.details?.covered > 0 && `covers ${count(entry.details.covered, "message")}`,
    ])),
    page.step !== step && h("nav", { className: "crumbs" }, link("What the model saw then", () => page.travel(step))),
    isWhole ? h("section", { className: "block" }, prose(PI_SAYS.join(String(entry.summary ?? "")), { lead: leadIn(page) })) : h("p", { className: "quiet" }, BLOCK_IS_GONE),
    page.step === step && tail(page, step),
    frontier.length > 0 && madeOfSummaries(page, frontier, "It shows"),
    raw(item),
  );
}

/** What the model saw after the block. @param {Page} page @param {number} step */
function tail(page, step) {
  const { compaction, kept, since } = page.branch.context(step);
  const isKnown = !compaction || isComplete(compaction);
  const before = seenOf(kept, page.edits).length;
  const name = `${before || isKnown ? `${count(before, "message")} ${isKnown ? "kept as said" : "before it"}, and ` : ""}${number(seenOf(since, page.edits).length)} since`;
  return h("section", { className: "tail" }, h("h3", null, name), conversation(page, [...kept, ...since]).element);
}

/** Links to the covering summaries. @param {Page} page @param {Item} item */
function crumbs(page, item) {
  const over = page.branch.over(item);
  if (over.length === 0) return null;
  return h("nav", { className: "crumbs", "aria-label": "Summaries over this message" }, ...over.flatMap((node) => crumb(page, node)));
}

/** @param {Page} page @param {Node | undefined} node */
function crumb(page, node) {
  if (!node) return [];
  const { handle, text } = node.summary;
  const words = h("span", { className: "words" }, titleOf(text));
  return [h("button", { type: "button", className: "crumb", "data-id": handle, title: titleOf(text), onclick: () => page.go(handle) }, depthOf(node), words)];
}

/** A summary as described in a row. @param {Node} node */
export function aboutNode(node, words = titleOf(node.summary.text)) {
  return [depthOf(node), h("span", { className: "words", dir: "auto" }, words), quiet(`${number(node.items.length || node.summary.messages)}×`)];
}

/** @param {Node} node */
function depthOf({ summary: { depth } }) {
  return h("span", { className: `depth d${Math.min(depth, 4)}` }, `D${depth}`);
}

/** @param {any} used */
function usage(used) {
  if (!countedIn(used)) return null;
  const rows = [["input", used.input], ["cache read", used.cacheRead], ["cache write", used.cacheWrite], ["output", used.output]];
  const words = rows.filter(([, n]) => n > 0).map(([name, n]) => `${name} ${number(n)}`);
  if (used.cost?.total > 0) words.push(dollars(used.cost.total));
  return h("p", { className: "quiet usage" }, `The provider counted: ${words.join(" · ")}`);
}

/** The entry as in Pi's session file. @param {Item} item */
function raw({ line }) {
  return opened("raw", ["The entry as JSON"], () => [prose(JSON.stringify(line.entry, null, 2), { lead: () => undefined, plain: true })]);
}

/** @param {string} id */
function idOf(id) {
  const copy = link("copy", async () => {
    try {
      await navigator.clipboard.writeText(id);
      copy.textContent = "copied";
    } catch {
      copy.textContent = "the browser refuses: copy it by hand";
    }
  });
  return h("span", null, h("code", { className: "copy", title: "Click to copy", onclick: () => copy.click() }, id), " ", copy);
}

/** @param {(HTMLElement | string | false | undefined | null)[]} words */
function facts(words) {
  return h("p", { className: "facts" }, ...words.filter(Boolean).map((word) => h("span", null, word)));
}

/** @param {(false | undefined | null | "" | string[])[]} words */
function chips(words) {
  return words.flatMap((word) => (word ? [h("span", { className: `chip ${word[0]}` }, word[1])] : []));
}
