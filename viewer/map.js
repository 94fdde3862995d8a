/**
 * The map: the branch from left to right, and above it the summaries that cover it, each as wide as its sources, the most condensed on
 * top. It is drawn on a canvas, since there may be many thousands; everything in it is also in the lists.
 */
import { select } from "d3-selection";
import { zoom, zoomIdentity } from "d3-zoom";
import { count, h, minute, day, short } from "./dom.js";
import { color } from "./theme.js";
import { titleOf } from "./words.js";

/** @typedef {import("./branch.js").Branch} Branch */
/** @typedef {import("./branch.js").Item} Item */
/** @typedef {import("./branch.js").Node} Node */

/** px: a row of summaries, the bars of messages, the marks of compactions, and the gap between rows. */
const [ROW, BARS, MARKS, GAP] = [22, 34, 16, 2];
/** The minimum number of messages across the width, and the number of depths with separate colors. */
const [CLOSEST, DEPTHS] = [6, 5];
/** Rectangles narrower than this have no text, px. */
const WORDY = 34;

const SPEAKERS = ["user", "assistant", "tool", "shell", "note", "branch", "purged"];

/**
 * What is shown in addition to the branch. Pairs are places, the second excluded.
 * @typedef {object} Shown
 * @property {Node[]} nodes
 * @property {string} [selected] its id
 * @property {Set<Item> | null} [found]
 * @property {Set<string> | null} [foundSummaries] their ids
 * @property {[number, number]} [seen] in the list
 * @property {number} [step] the selected compaction
 * @property {[number, number]} [kept] by it
 */

/** What is under a point. @typedef {{ node?: Node, item?: Item, step?: number }} Hit */

export class SummaryMap {
  /** @type {Branch | undefined} */
  #branch;
  /** @type {Shown} */
  #shown = { nodes: [] };
  #transform = zoomIdentity;
  #waiting = false;
  #isStale = false;
  /** @type {Record<string, string>} */
  #colors = {};
  #longest = 1;

  /**
   * @param {object} options
   * @param {(node: Node) => void} options.onSummary
   * @param {(item: Item) => void} options.onMessage
   * @param {(step: number) => void} options.onCompaction
   */
  constructor({ onSummary, onMessage, onCompaction }) {
    this.canvas = h("canvas", { role: "img", "aria-label": "The summaries of this branch over its messages" });
    /** What changes with every key is drawn on top, without redrawing the rest. */
    this.over = h("canvas", { className: "over", "aria-hidden": true });
    this.tip = h("div", { className: "tip", hidden: true });
    this.element = h("div", { className: "map" }, this.canvas, this.over, this.tip);
    const target = select(this.canvas);
    this.behavior = zoom().on("zoom", ({ transform }) => {
      this.#transform = transform;
      this.tip.hidden = true;
      this.refresh();
    });
    // The page scrolls if the map is fully zoomed out.
    this.behavior.filter((/** @type {any} */ event) => !event.button && !(event.type === "wheel" && event.deltaY > 0 && this.#transform.k <= 1));
    target.call(/** @type {any} */ (this.behavior)).on("dblclick.zoom", null);
    this.canvas.addEventListener("click", (event) => {
      const { node, item, step } = this.#at(event);
      this.tip.hidden = true;
      if (step !== undefined) onCompaction(step);
      else if (node) onSummary(node);
      else if (item) onMessage(item);
    });
    this.canvas.addEventListener("dblclick", (event) => {
      const { node } = this.#at(event);
      if (node) this.zoomTo(node.from, node.to);
      else this.zoomOut();
    });
    this.canvas.addEventListener("mousemove", (event) => this.#point(event));
    this.canvas.addEventListener("mouseleave", () => (this.tip.hidden = true));
    new ResizeObserver(() => this.#resize()).observe(this.element);
  }

  /** Shows another branch in full. @param {Branch} branch @param {Shown} shown */
  open(branch, shown) {
    this.#branch = branch;
    this.#longest = branch.said.reduce((most, { tokens }) => Math.max(most, tokens), 1);
    this.#shown = shown;
    this.zoomOut(false);
    this.recolour();
    this.#resize();
  }

  /** @param {Partial<Shown>} shown */
  show(shown) {
    const before = this.#depths();
    this.#shown = { ...this.#shown, ...shown };
    if (this.#depths() !== before) this.#resize();
    this.refresh(!Object.keys(shown).every((name) => name === "seen" || name === "selected"));
  }

  /** Applies the theme's colors. */
  recolour() {
    const names = ["text", "dim", "line", "panel", "accent", "found", "bad", "inverse", ...SPEAKERS.map((name) => `c-${name}`)];
    for (let depth = 0; depth < DEPTHS; depth++) names.push(`d${depth}`, `d${depth}-text`);
    this.#colors = Object.fromEntries(names.map((name) => [name, color(name)]));
    this.refresh();
  }

  /** @param {number} by a factor */
  zoomBy(by) {
    this.behavior.scaleBy(/** @type {any} */ (this.#moving()), by);
  }

  zoomOut(moving = true) {
    this.behavior.transform(/** @type {any} */ (moving ? this.#moving() : select(this.canvas)), zoomIdentity);
  }

  /** Zooms to these places, with a small margin. @param {number} from @param {number} to */
  zoomTo(from, to) {
    const [all, width] = [this.#count(), this.#width()];
    const k = Math.min((all / Math.max(to - from, CLOSEST)) * 0.9, all / CLOSEST);
    const middle = ((from + to) / 2 / all) * width;
    this.behavior.transform(/** @type {any} */ (this.#moving()), zoomIdentity.translate(width / 2 - middle * k, 0).scale(Math.max(1, k)));
  }

  #moving() {
    const target = select(this.canvas);
    return matchMedia("(prefers-reduced-motion: reduce)").matches ? target : /** @type {any} */ (target).transition().duration(220);
  }

  #count() {
    return Math.max(1, this.#branch?.said.length ?? 1);
  }

  #width() {
    return this.element.clientWidth;
  }

  /** The number of rows of summaries. */
  #depths() {
    return this.#shown.nodes.reduce((most, { summary }) => Math.max(most, summary.depth + 1), 0);
  }

  /** The top of a row of summaries. @param {number} depth */
  #top(depth) {
    return MARKS + (this.#depths() - 1 - depth) * (ROW + GAP);
  }

  #resize() {
    const [width, height] = [this.#width(), MARKS + this.#depths() * (ROW + GAP) + BARS];
    if (width === 0) return;
    for (const canvas of [this.canvas, this.over]) {
      canvas.width = Math.round(width * devicePixelRatio);
      canvas.height = Math.round(height * devicePixelRatio);
      canvas.style.height = `${height}px`;
    }
    this.behavior
      .extent([[0, 0], [width, height]])
      .translateExtent([[0, 0], [width, height]])
      .scaleExtent([1, Math.max(1, this.#count() / CLOSEST)]);
    this.#draw();
  }

  /** Draws in the next frame. @param {boolean} [all] not only what is visible in the list and selected */
  refresh(all = true) {
    this.#isStale ||= all;
    if (this.#waiting) return;
    this.#waiting = true;
    requestAnimationFrame(() => {
      this.#waiting = false;
      if (this.#isStale) this.#draw();
      else this.#drawOver();
    });
  }

  /** The left edge of a place, px. @param {number} place */
  #x(place) {
    return this.#transform.applyX((place / this.#count()) * this.#width());
  }

  #draw() {
    this.#isStale = false;
    const context = this.#cleared(this.canvas);
    const branch = this.#branch;
    if (!context || !branch) return;
    context.font = "11.5px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.#drawKept(context);
    for (const node of this.#shown.nodes) this.#drawSummary(context, node);
    this.#drawMessages(context, branch);
    this.#drawCompactions(context, branch);
    this.#drawOver();
  }

  /** @param {HTMLCanvasElement} canvas */
  #cleared(canvas) {
    const context = canvas.getContext("2d");
    context?.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context?.clearRect(0, 0, this.#width(), canvas.height);
    return context;
  }

  /** Draws what is visible in the list, and the selection. */
  #drawOver() {
    const context = this.#cleared(this.over);
    if (!context || !this.#branch) return;
    const { seen, selected } = this.#shown;
    const bottom = this.#top(-1) + BARS;
    if (seen) {
      context.fillStyle = this.#colors.dim;
      context.fillRect(this.#x(seen[0]), bottom - 2, Math.max(4, this.#x(seen[1]) - this.#x(seen[0])), 2);
    }
    const node = selected?.startsWith("s-") ? this.#branch.byHandle.get(selected) : undefined;
    if (node) {
      const [left, right] = [this.#x(node.from), this.#x(node.to)];
      context.strokeStyle = this.#colors.text;
      context.lineWidth = 2;
      roundRect(context, left + 1, this.#top(node.summary.depth) + 1, Math.max(1, right - left - 3), ROW - 2);
      context.stroke();
    }
    const item = selected ? this.#branch.byId.get(selected) : undefined;
    if (item?.isSaid) {
      const width = Math.max((this.#width() / this.#count()) * this.#transform.k, 2) + 4;
      context.fillStyle = this.#colors.text;
      context.globalAlpha = 0.14;
      context.fillRect(this.#x(item.place) - 2, bottom - BARS, width, BARS);
      context.globalAlpha = 1;
      context.fillRect(this.#x(item.place) - 2, bottom - BARS, width, 3);
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {Node} node */
  #drawSummary(context, { summary, from, to }) {
    const [left, right] = [this.#x(from), this.#x(to)];
    if (right < 0 || left > this.#width()) return;
    const { foundSummaries } = this.#shown;
    const depth = Math.min(summary.depth, DEPTHS - 1);
    const [y, width] = [this.#top(summary.depth), Math.max(1, right - left - 1)];
    context.globalAlpha = foundSummaries && !foundSummaries.has(summary.id) ? 0.35 : 1;
    context.fillStyle = this.#colors[`d${depth}`];
    roundRect(context, left, y, width, ROW);
    context.fill();
    if (summary.state === "degraded") {
      context.fillStyle = this.#colors.bad;
      context.fillRect(left, y + ROW - 3, width, 3);
    }
    const shownFrom = Math.max(left, 0);
    const room = Math.min(right, this.#width()) - shownFrom - 10;
    if (room > WORDY) {
      context.fillStyle = this.#colors[`d${depth}-text`];
      context.fillText(fitting(context, titleOf(summary.text), room), shownFrom + 5, y + ROW / 2 + 0.5);
    }
    context.globalAlpha = 1;
  }

  /** Draws a bar for each visible message; of those that share a pixel, for a found one or the highest. @param {CanvasRenderingContext2D} context @param {Branch} branch */
  #drawMessages(context, branch) {
    const { found } = this.#shown;
    const bottom = this.#top(-1) + BARS;
    const each = (this.#width() / this.#count()) * this.#transform.k;
    const placeAt = (/** @type {number} */ x) => (this.#transform.invertX(x) / this.#width()) * this.#count();
    const last = Math.min(branch.said.length, Math.ceil(placeAt(this.#width())));
    const isBetter = (/** @type {Item} */ item, /** @type {Item} */ than) => (found && found.has(item) !== found.has(than) ? found.has(item) : item.tokens > than.tokens);
    for (let place = Math.max(0, Math.floor(placeAt(0))); place < last; ) {
      const x = this.#x(place);
      let item = branch.said[place];
      for (place++; place < last && this.#x(place) < x + 1; place++) {
        if (isBetter(branch.said[place], item)) item = branch.said[place];
      }
      const height = Math.max(3, (Math.log2(1 + item.tokens) / Math.log2(1 + this.#longest)) * (BARS - 6));
      const isFound = found?.has(item);
      context.globalAlpha = found && !isFound ? 0.18 : 1;
      context.fillStyle = isFound ? this.#colors.found : this.#colors[`c-${item.speaker}`] ?? this.#colors.dim;
      context.fillRect(x, bottom - height, isFound ? Math.max(each - 1, 2) : Math.max(each > 3 ? each - 1 : each, 1), height);
    }
    context.globalAlpha = 1;
  }

  /** @param {CanvasRenderingContext2D} context @param {Branch} branch */
  #drawCompactions(context, branch) {
    for (const [at, compaction] of branch.compactions.entries()) {
      const x = this.#x(compaction.place);
      if (x < -8 || x > this.#width() + 8) continue;
      const isShown = this.#shown.step === at + 1;
      context.strokeStyle = context.fillStyle = isShown ? this.#colors.accent : this.#colors.dim;
      context.lineWidth = isShown ? 2 : 1;
      context.setLineDash(isShown ? [] : [2, 3]);
      context.beginPath();
      context.moveTo(x, MARKS - 3);
      context.lineTo(x, this.#top(-1) + BARS);
      context.stroke();
      context.setLineDash([]);
      const label = String(at + 1);
      const width = Math.max(14, context.measureText(label).width + 8);
      const left = Math.min(Math.max(0, x - width / 2), this.#width() - width);
      roundRect(context, left, 0, width, MARKS - 3);
      context.fill();
      context.fillStyle = this.#colors.inverse;
      context.fillText(label, left + (width - context.measureText(label).width) / 2, (MARKS - 3) / 2 + 0.5);
    }
  }

  /** Draws what was kept raw. @param {CanvasRenderingContext2D} context */
  #drawKept(context) {
    const { kept } = this.#shown;
    if (!kept) return;
    context.globalAlpha = 0.16;
    context.fillStyle = this.#colors.accent;
    context.fillRect(this.#x(kept[0]), MARKS - 3, Math.max(2, this.#x(kept[1]) - this.#x(kept[0])), this.#top(-1) + BARS);
    context.globalAlpha = 1;
  }

  /** @param {MouseEvent} event @returns {Hit} */
  #at(event) {
    const branch = this.#branch;
    if (!branch) return {};
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const near = branch.compactions.findIndex(({ place }) => Math.abs(this.#x(place) - x) < 8);
    if (y < MARKS) return near >= 0 ? { step: near + 1 } : {};
    const place = Math.min(Math.max(0, Math.floor((this.#transform.invertX(x) / this.#width()) * this.#count())), branch.said.length - 1);
    const row = Math.floor((y - MARKS) / (ROW + GAP));
    const depth = this.#depths() - 1 - row;
    if (depth < 0) return { item: branch.said[place] };
    return { node: this.#shown.nodes.find(({ summary, from, to }) => summary.depth === depth && from <= place && place < to) };
  }

  /** @param {MouseEvent} event */
  #point(event) {
    const { node, item, step } = this.#at(event);
    this.canvas.style.cursor = node || item || step !== undefined ? "pointer" : "grab";
    const words = step !== undefined ? [`Compaction ${step}`] : node ? aboutNode(node) : item ? aboutItem(item) : [];
    this.tip.hidden = words.length === 0;
    this.tip.replaceChildren(...words.map((word, n) => h(n === 0 ? "strong" : "span", null, word)));
    const box = this.element.getBoundingClientRect();
    const left = event.clientX - box.left;
    this.tip.style.left = `${Math.min(left + 12, Math.max(0, this.#width() - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${event.clientY - box.top + 16}px`;
  }
}

/** @param {Node} node */
function aboutNode({ summary, items }) {
  return [titleOf(summary.text), `${summary.handle} · depth ${summary.depth} · ${count(items.length, "message")} · ${short(summary.tokens)} tokens`];
}

/** @param {Item} item */
function aboutItem(item) {
  return [`${item.speaker} · ${item.id}`, `${short(item.tokens)} tokens · ${day(item.time)} ${minute(item.time)}`];
}

/** @param {CanvasRenderingContext2D} context @param {number} x @param {number} y @param {number} width @param {number} height */
function roundRect(context, x, y, width, height) {
  context.beginPath();
  context.roundRect(x, y, width, height, Math.min(4, width / 2));
}

/** As much of `text` as fits. @param {CanvasRenderingContext2D} context @param {string} text @param {number} room px */
function fitting(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= room) low = middle;
    else high = middle - 1;
  }
  return low > 0 ? `${text.slice(0, low)}…` : "";
}
