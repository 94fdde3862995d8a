/**
 * What a provider would count: how much of each request it has seen before, and what that costs at list prices.
 *
 * A prompt cache holds what was sent before from the start on, as far as the next request repeats it to the byte. So a request
 * is taken as its tools and its messages in order, and the whole ones in common with the request before are cached. That is the ideal
 * prefix. Anthropic finds less: only what ended with an earlier request, and only within 20 blocks before its end; else what stands
 * before the conversation. A token is taken for four bytes, as the scripted model's usage is.
 */
import { createHash } from "node:crypto";

/** @typedef {import("../../demo/model-server.mjs").Received} Received */

/** Dollars for a million tokens. @typedef {{ input: number, output: number, cacheRead: number, cacheWrite: number }} Prices */

/** Of a model as coding agents use it, of the same with a cache at a fiftieth, and of one without a cache. @type {Record<string, Prices>} */
export const PRICES = {
  list: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 },
  fiftieth: { input: 3, output: 15, cacheRead: 0.06, cacheWrite: 3 },
  uncached: { input: 3, output: 15, cacheRead: 0, cacheWrite: 0 },
};
/** Of one that is good enough for summaries. */
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
  /** The provider has forgotten everything before the next request. */
  isCold = false;
  /** What follows are questions, each beside the others. */
  asks = false;
  #prices;
  /** @type {string[]} of the turn before */
  #before = [];
  /** All that was ever sent. @type {Set<string>} */
  #sent = new Set();
  /** Prefixes that ended with a request. @type {Set<string>} */
  #ends = new Set();

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
    const { messages, tools = [] } = request.body;
    const kind = request.toolNames.length === 0 ? "summary" : this.asks ? "question" : "turn";
    const parts = [JSON.stringify(tools), ...messages.map((/** @type {any} */ message) => JSON.stringify(message))];
    const sum = (/** @type {string[]} */ some) => some.reduce((all, part) => all + tokens(part), 0);
    const isCheap = request.body.model === CHEAP.id;
    if (this.isCold && kind === "turn") {
      this.#before = [];
      this.#ends.clear();
      this.isCold = false;
    }
    // A summary is asked for once: nothing comes after it that could use what was kept.
    const same = kind === "summary" || !this.#prices.cacheRead ? 0 : commonStart(parts, this.#before);
    const rest = parts.slice(same);
    const again = kind === "summary" ? 0 : sum(rest.filter((part) => this.#sent.has(hash(part))));
    const found = kind === "summary" ? 0 : this.#found(parts, messages, same);
    if (kind === "turn") {
      this.#before = parts;
      rest.forEach((part) => this.#sent.add(hash(part)));
      this.#ends.add(hash(parts.join("\0")));
    }
    /** @type {Reading} */
    const reading = { kind, isCheap, cached: sum(parts.slice(0, same)), found: sum(parts.slice(0, found)), fresh: sum(rest) - again, again, output: tokens(said) };
    this.readings.push(reading);
    return reading;
  }

  /** How many parts Anthropic would find. @param {string[]} parts @param {any[]} messages @param {number} same */
  #found(parts, messages, same) {
    let blocks = 0;
    for (let end = parts.length; end > 2 && blocks <= LOOKBACK; end--) {
      if (end <= same && this.#ends.has(hash(parts.slice(0, end).join("\0")))) return end;
      const { content, tool_calls: calls = [] } = messages[end - 2];
      blocks += calls.length + (Array.isArray(content) ? content.length : content ? 1 : 0);
    }
    return Math.min(same, 2);
  }

  /** In dollars, of the session without its questions. */
  total() {
    const { input, output, cacheRead, cacheWrite } = this.#prices;
    const total = { read: 0, fresh: 0, again: 0, output: 0, summaries: 0, lookback: 0, dollars: 0 };
    for (const reading of this.readings) {
      if (reading.kind === "summary") {
        const prices = reading.isCheap ? CHEAP.cost : this.#prices;
        total.summaries += ((reading.cached + reading.fresh + reading.again) * prices.input + reading.output * prices.output) / 1e6;
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

/** @param {string} text */
const hash = (text) => createHash("sha1").update(text).digest("base64");

/** @param {string[]} one @param {string[]} other */
function commonStart(one, other) {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  return at;
}
