/**
 * Plots tokens and cost: the size of the context at each request and its cached part, the total cost so far, and the composition of the
 * history.
 */
import uPlot from "uplot";
import { compositionOf, requestsOf, summaryCosts, totalsOf } from "./costs.js";
import { count, day, dollars, h, minute, number, quiet, short } from "./dom.js";
import { color } from "./theme.js";

/** @typedef {import("./branch.js").Branch} Branch */
/** @typedef {import("./costs.js").Request} Request */

/** px */
const [HEIGHT, NARROWEST] = [240, 240];
/** The number of parts of a composition with separate bars. */
const PARTS = 12;

export class Plots {
  /** @type {uPlot[]} */
  #plots = [];

  /** @param {(id: string) => void} go */
  constructor(go) {
    this.go = go;
    this.element = h("div", { className: "costs" });
    new ResizeObserver(() => this.#fit()).observe(this.element);
  }

  /** @param {Branch} branch */
  show(branch) {
    for (const plot of this.#plots) plot.destroy();
    this.#plots = [];
    const requests = requestsOf(branch);
    this.element.replaceChildren(tiles(branch, requests));
    if (requests.length > 0) {
      this.#draw("Context of each request", "What the provider counted, from the cache or newly written. Dashed: a compaction.", (width) => contextPlot(branch, requests, width, this.go));
      const isPriced = requests.some(({ cost }) => cost > 0);
      const words = isPriced ? "By the prices that Pi knew. Summaries are added when they were made." : "Pi knew no prices for these models: tokens are shown instead.";
      this.#draw("Paid so far", words, (width) => costPlot(branch, requests, width, this.go));
    } else {
      this.element.append(h("p", { className: "quiet" }, "No answer on this branch says how many tokens it took."));
    }
    this.element.append(composition(branch));
  }

  /** @param {string} title @param {string} words @param {(width: number) => uPlot} make */
  #draw(title, words, make) {
    const chart = h("div", { className: "chart" });
    this.element.append(h("section", { className: "plot" }, h("h3", null, title), h("p", { className: "quiet" }, words), chart));
    const plot = make(Math.max(NARROWEST, chart.clientWidth));
    chart.append(plot.root);
    this.#plots.push(plot);
  }

  #fit() {
    for (const plot of this.#plots) {
      const width = plot.root.parentElement?.clientWidth ?? 0;
      if (width > 0) plot.setSize({ width: Math.max(NARROWEST, width), height: HEIGHT });
    }
  }
}

/** @param {number} share */
function percent(share) {
  return share > 0 && share < 0.005 ? "< 1 %" : `${Math.round(share * 100)} %`;
}

/** @param {Branch} branch @param {Request[]} requests */
function tiles(branch, requests) {
  const totals = totalsOf(branch, requests);
  const tile = (/** @type {string} */ value, /** @type {string} */ name) => h("div", { className: "tile" }, h("b", null, value), h("span", null, name));
  return h(
    "div",
    { className: "tiles" },
    tile(number(totals.messages), "messages"),
    tile(number(totals.requests), "requests"),
    tile(short(totals.prompt), "tokens in"),
    tile(percent(totals.cachedShare), "of them cached"),
    tile(short(totals.output), "tokens out"),
    tile(dollars(totals.cost), "for requests"),
    tile(dollars(totals.summariesCost), `for ${count(totals.summaries, "summary")}${totals.replaced ? `, ${number(totals.replaced)} since replaced` : ""}`),
    tile(number(branch.compactions.length), branch.compactions.length === 1 ? "compaction" : "compactions"),
  );
}

/** @param {Branch} branch @param {Request[]} requests @param {number} width @param {(id: string) => void} go */
function contextPlot(branch, requests, width, go) {
  const xs = requests.map((_, n) => n + 1);
  const parts = requests.map(({ cached, written, input }) => [cached, written, input]);
  // Areas overlap: the lowest is drawn last.
  const upTo = (/** @type {number} */ n) => parts.map((part) => part.slice(0, n).reduce((sum, tokens) => sum + tokens, 0));
  /** @type {(label: string, name: string, n: number) => uPlot.Series} */
  const area = (label, name, n) => ({
    label,
    value: (_plot, _value, _series, at) => (at === null || at === undefined ? "–" : number(parts[at][n])),
    stroke: color(name),
    fill: color(name),
    width: 0,
    points: { show: false },
  });
  return plot({
    width,
    requests,
    branch,
    go,
    data: [xs, upTo(3), upTo(2), upTo(1)],
    series: [area("not cached", "p-input", 2), area("written to the cache", "p-written", 1), area("from the cache", "p-cached", 0)],
    values: (n) => short(n),
  });
}

/** @param {Branch} branch @param {Request[]} requests @param {number} width @param {(id: string) => void} go */
function costPlot(branch, requests, width, go) {
  const isPriced = requests.some(({ cost }) => cost > 0);
  const summaries = summaryCosts(branch);
  let [paid, made, next] = [0, 0, 0];
  /** @type {[number[], number[]]} */
  const [all, forSummaries] = [[], []];
  for (const { item, cost, cached, written, input, output } of requests) {
    for (; next < summaries.length && summaries[next].time <= item.time; next++) made += summaries[next].cost;
    paid += isPriced ? cost : cached + written + input + output;
    all.push(paid + (isPriced ? made : 0));
    forSummaries.push(made);
  }
  const value = (/** @type {uPlot} */ _plot, /** @type {number | null} */ n) => (n === null || n === undefined ? "–" : isPriced ? dollars(n) : number(n));
  const line = (/** @type {string} */ label, /** @type {string} */ name) => ({ label, value, stroke: color(name), width: 2, points: { show: false } });
  const series = [line(isPriced ? "paid in all" : "tokens in all", "accent")];
  const data = [requests.map((_, n) => n + 1), all];
  if (made > 0) {
    series.push(line("of it for summaries", "p-input"));
    data.push(forSummaries);
  }
  return plot({ width, requests, branch, go, data: /** @type {any} */ (data), series, values: (n) => (isPriced ? dollars(n) : short(n)) });
}

/**
 * @param {object} options
 * @param {number} options.width
 * @param {Branch} options.branch
 * @param {Request[]} options.requests
 * @param {(id: string) => void} options.go
 * @param {uPlot.AlignedData} options.data
 * @param {uPlot.Series[]} options.series
 * @param {(n: number) => string} options.values
 */
function plot({ width, branch, requests, go, data, series, values }) {
  const axis = { stroke: color("dim"), grid: { stroke: color("line"), width: 1 }, ticks: { stroke: color("line"), width: 1 } };
  const made = new uPlot(
    {
      width,
      height: HEIGHT,
      cursor: { drag: { x: true, y: false } },
      scales: { x: { time: false }, y: { range: (_plot, _least, most) => [0, Math.max(most, 1e-9) * 1.05] } },
      axes: [{ ...axis, values: (_plot, at) => at.map((n) => (Number.isInteger(n) ? String(n) : "")) }, { ...axis, size: 64, values: (_plot, at) => at.map(values) }],
      series: [{ label: "request", value: (_plot, n) => (n ? `${n}, ${when(requests[n - 1])}` : "–") }, ...series],
      hooks: { draw: [(plot) => drawCompactions(plot, branch, requests)] },
    },
    data,
    document.createElement("div"),
  );
  let pressed = 0;
  made.over.addEventListener("mousedown", (event) => (pressed = event.clientX));
  made.over.addEventListener("click", (event) => {
    const at = made.cursor.idx;
    // Dragging zooms to the selected range.
    if (at !== null && at !== undefined && Math.abs(event.clientX - pressed) < 3) go(requests[at].item.id);
  });
  return made;
}

/** @param {Request | undefined} request */
function when(request) {
  return request ? `${day(request.item.time)} ${minute(request.item.time)}` : "";
}

/** @param {uPlot} plot @param {Branch} branch @param {Request[]} requests */
function drawCompactions(plot, branch, requests) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.strokeStyle = color("c-compaction");
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
  for (const { place } of branch.compactions) {
    const before = requests.filter(({ item }) => item.place < place).length;
    const x = plot.valToPos(before + 0.5, "x", true);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

/** @param {Branch} branch */
function composition(branch) {
  const parts = compositionOf(branch);
  const all = parts.reduce((sum, { tokens }) => sum + tokens, 0) || 1;
  const rows = parts.slice(0, PARTS).map(({ name, speaker, tokens, messages }) => {
    const bar = h("span", { className: `fill c-${speaker}` });
    bar.style.width = `${Math.max(0.5, (tokens / parts[0].tokens) * 100)}%`;
    const figures = quiet(`${short(tokens)} · ${percent(tokens / all)} · ${number(messages)}×`);
    return h("div", { className: "share" }, h("span", { className: "name" }, name), h("span", { className: "track" }, bar), figures);
  });
  const words = "Estimated tokens of all messages, whether the model still sees them or not.";
  return h("section", { className: "plot" }, h("h3", null, "What fills the history"), h("p", { className: "quiet" }, words), h("div", { className: "shares" }, ...rows));
}
