/**
 * Counts like a provider: how much of each request is cached, and what it costs at list prices.
 *
 * A prompt cache holds what was sent before, from the start as far as the next request repeats it byte for byte. So a request is its tools,
 * its system prompt and the blocks of its messages in order, and the prefix in common with the request before is cached: the ideal prefix.
 * Anthropic finds less: only prefixes that an earlier request marked, and only within 20 blocks before a marker of this one. Both are
 * counted. A token is four bytes, as in the scripted model's usage.
 */
import { createHash } from "node:crypto";

/** @typedef {import("../../demo/model-server.mjs").Received} Received */

/** Dollars per million tokens. @typedef {{ input: number, output: number, cacheRead: number, cacheWrite: number }} Prices */

/**
 * A typical model of coding agents, the same with a cache at a fiftieth of the price, and one without a cache.
 *
 * @type {Record<string, Prices>}
 */
export const PRICES = {
  list: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 },
  fiftieth: { input: 3, output: 15, cacheRead: 0.06, cacheWrite: 3 },
  uncached: { input: 3, output: 15, cacheRead: 0, cacheWrite: 0 },
};
/** A model that is good enough for summaries. */
export const CHEAP = { id: "demo-small", cost: { input: 1, output: 5, cacheRead: 0.1, cacheWrite: 1.25 } };

/**
 * @typedef {object} Reading
 * @property {"turn" | "summary" | "question"} kind
 * @property {boolean} isCheap asked of the cheap model
 * @property {number} cached tokens that the request before had
 * @property {number} found of these, as far as Anthropic would find them
 * @property {number} fresh tokens that no request had before
 * @property {number} again tokens that were written to the cache before
 * @property {number} output
 */

const BYTES_PER_TOKEN = 4;
const LOOKBACK = 20;

/** @param {string} text */
const tokens = (text) => Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);

export class Meter {
  /** @type {Reading[]} in the order of the requests */
  readings = [];
  /** Whether the cache has expired before the next request. */
  isCold = false;
  /** Whether the next requests are questions, each independent of the others. */
  asks = false;
  #prices;
  /** @type {string[]} blocks of the turn before */
  #before = [];
  /** Everything that was ever sent. @type {Set<string>} */
  #sent = new Set();
  /** Prefixes that were marked. @type {Set<string>} */
  #marked = new Set();

  /** @param {Prices} prices */
  constructor(prices) {
    this.#prices = prices;
  }

  /**
   * @param {Received} request
   * @param {string} said what is answered
   * @returns {Reading}
   */
  read(request, said) {
    const kind = request.kind === "summary" || request.toolNames.length === 0 ? "summary" : this.asks ? "question" : "turn";
    const { blocks, markers } = blocksOf(request.body);
    const sum = (/** @type {string[]} */ some) => some.reduce((all, block) => all + tokens(block), 0);
    const isCheap = request.body.model === CHEAP.id;
    if (this.isCold && kind === "turn") {
      this.#before = [];
      this.#marked.clear();
      this.isCold = false;
    }
    // A summary is requested once: no later request could use its cache. Within the session it may use what is cached.
    const isBeside = kind === "summary" && !request.isInSession;
    const same = isBeside || !this.#prices.cacheRead ? 0 : commonStart(blocks, this.#before);
    const rest = blocks.slice(same);
    const again = kind === "summary" ? 0 : sum(rest.filter((block) => this.#sent.has(hash(block))));
    const prefixes = isBeside ? [] : prefixesOf(blocks);
    const found = same === 0 ? 0 : Math.max(0, ...markers.map((marker) => this.#foundBefore(prefixes, marker)));
    if (kind === "turn") {
      this.#before = blocks;
      rest.forEach((block) => this.#sent.add(hash(block)));
      markers.forEach((marker) => this.#marked.add(prefixes[marker]));
    }
    /** @type {Reading} */
    const reading = { kind, isCheap, cached: sum(blocks.slice(0, same)), found: sum(blocks.slice(0, found)), fresh: sum(rest) - again, again, output: tokens(said) };
    this.readings.push(reading);
    return reading;
  }

  /** How many blocks Anthropic finds from a marker. @param {string[]} prefixes @param {number} marker */
  #foundBefore(prefixes, marker) {
    for (let at = marker; at >= Math.max(0, marker - LOOKBACK); at--) if (this.#marked.has(prefixes[at])) return at + 1;
    return 0;
  }

  /** In dollars, for the session without its questions. */
  total() {
    const { input, output, cacheRead, cacheWrite } = this.#prices;
    const total = { read: 0, fresh: 0, again: 0, output: 0, summaries: 0, lookback: 0, dollars: 0 };
    for (const reading of this.readings) {
      if (reading.kind === "summary") {
        const prices = reading.isCheap ? CHEAP.cost : this.#prices;
        total.summaries += (reading.cached * cacheRead + (reading.fresh + reading.again) * prices.input + reading.output * prices.output) / 1e6;
        total.lookback += ((reading.cached - reading.found) * (input - cacheRead)) / 1e6;
      } else if (reading.kind === "turn") {
        const write = cacheWrite || input;
        total.read += (reading.cached * cacheRead) / 1e6;
        total.fresh += (reading.fresh * write) / 1e6;
        total.again += (reading.again * write) / 1e6;
        total.output += (reading.output * output) / 1e6;
        total.lookback += ((reading.cached - reading.found) * (write - cacheRead)) / 1e6;
      }
    }
    total.dollars = total.read + total.fresh + total.again + total.output + total.summaries;
    return total;
  }
}

/**
 * A request's blocks without their markers, and the positions of the marked ones.
 * @param {any} body in Anthropic's format
 */
function blocksOf({ tools = [], system = [], messages }) {
  const parts = [tools, ...[system].flat(), ...messages.flatMap((/** @type {any} */ { content }) => content)];
  const unmarked = (/** @type {unknown} */ part) => JSON.stringify(part, (name, value) => (name === "cache_control" ? undefined : value));
  const isMarked = (/** @type {any} */ part) => (Array.isArray(part) ? part.some(({ cache_control: marker }) => marker) : Boolean(part.cache_control));
  return { blocks: parts.map(unmarked), markers: parts.flatMap((part, at) => (isMarked(part) ? [at] : [])) };
}

/** The hash of each block together with all blocks before it. @param {string[]} blocks */
function prefixesOf(blocks) {
  let before = "";
  return blocks.map((block) => (before = hash(before + block)));
}

/** @param {string} text */
const hash = (text) => createHash("sha1").update(text).digest("base64");

/** @param {string[]} one @param {string[]} other */
function commonStart(one, other) {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  return at;
}
