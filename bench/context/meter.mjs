/**
 * What a provider would count: how much of each request it has seen before, and what that costs at list prices.
 *
 * A prompt cache holds what was sent before from the start on, as far as the next request repeats it to the byte. So a request
 * is taken as its tools, its system prompt and its messages in order, and the whole ones in common with the request before
 * are cached. A token is taken for four bytes, as the scripted model's usage is.
 */

/** @typedef {import("../../demo/model-server.mjs").Received} Received */

/** Dollars for a million tokens, of a model as coding agents use it, and of one that is good enough for summaries. */
export const PRICES = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };
export const CHEAP = { id: "cheap-model", cost: { input: 1, output: 5, cacheRead: 0.1, cacheWrite: 1.25 } };

/**
 * @typedef {object} Reading
 * @property {"turn" | "summary"} kind
 * @property {boolean} isCheap asked of the cheap model
 * @property {number} cached tokens that the request before had
 * @property {number} fresh tokens
 * @property {number} output
 */

const BYTES_PER_TOKEN = 4;

/** @param {string} text */
const tokens = (text) => Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);

export class Meter {
  /** @type {Reading[]} in the order of the requests */
  readings = [];
  /** @type {string[]} of the turn before */
  #before = [];

  /**
   * @param {Received} request
   * @param {string} said what is answered
   * @returns {Reading}
   */
  read(request, said) {
    const kind = request.toolNames.length > 0 ? "turn" : "summary";
    const { messages, tools = [] } = request.body;
    const parts = [JSON.stringify(tools), ...messages.map((/** @type {any} */ message) => JSON.stringify(message))];
    const sum = (/** @type {string[]} */ some) => some.reduce((all, part) => all + tokens(part), 0);
    // A summary is asked for once: nothing comes after it that could use what was kept.
    const same = kind === "turn" ? commonStart(parts, this.#before) : 0;
    if (kind === "turn") this.#before = parts;
    const isCheap = request.body.model === CHEAP.id;
    /** @type {Reading} */
    const reading = { kind, isCheap, cached: sum(parts.slice(0, same)), fresh: sum(parts.slice(same)), output: tokens(said) };
    this.readings.push(reading);
    return reading;
  }

  /** Of all requests. */
  total() {
    const total = { cached: 0, fresh: 0, output: 0, dollars: 0 };
    for (const { kind, isCheap, cached, fresh, output } of this.readings) {
      total.cached += cached;
      total.fresh += fresh;
      total.output += output;
      const prices = isCheap ? CHEAP.cost : PRICES;
      const price = kind === "turn" ? prices.cacheWrite : prices.input;
      total.dollars += (cached * prices.cacheRead + fresh * price + output * prices.output) / 1e6;
    }
    return total;
  }
}

/** @param {string[]} one @param {string[]} other */
function commonStart(one, other) {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  return at;
}
