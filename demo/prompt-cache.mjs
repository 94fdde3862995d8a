/**
 * A provider's prompt cache. With markers, as Anthropic's: what precedes a marker is written, and read again by later requests until it
 * expires. Without, as OpenAI's: each request is written whole, and the longest prefix that is known is read.
 *
 * A request consists of blocks in a fixed order: tools, system prompt, messages. A marker writes the prefix that ends with it. Reading
 * starts at the last marker and looks back a few blocks for a written prefix, then at the marker before it, and so on; a prefix that is
 * read lives on. A request with `max_tokens: 1`, which only keeps a prefix alive, is like any other here.
 */
import { blocksOf, chained, itemsOf, meaningOf } from "./judge.mjs";

/** How many blocks back from a marker a prefix is found. */
const LOOKBACK = 20;
const LONG_MS = 3_600_000;

export class PromptCache {
  /** Written prefixes, by their hash. @type {Map<string, { lifeMs: number, until: number }>} */
  #written = new Map();
  #now;
  #lifeMs;

  /**
   * @param {object} [options]
   * @param {() => number} [options.now] the clock, in milliseconds
   * @param {number} [options.lifeMs] how long a prefix lives after it was last used, unless its marker asks for an hour
   */
  constructor({ now = Date.now, lifeMs = 300_000 } = {}) {
    this.#now = now;
    this.#lifeMs = lifeMs;
  }

  /**
   * Reads what a request finds, and writes what it marks.
   * @param {any} body in Anthropic's format, or in that of OpenAI Responses
   * @returns {{ read: number, written: number, rest: number }} bytes; the rest is what follows the last marker
   */
  use({ model, tools, system, messages, instructions, input }) {
    const blocks = messages ? [...blocksOf(tools), ...blocksOf(system), ...messages.flatMap(ofMessage)] : [tools, instructions, ...itemsOf(input)];
    const meanings = blocks.map(meaningOf);
    let prefix = model;
    const prefixes = meanings.map((meaning) => (prefix = chained(prefix, meaning)));
    const marked = [...blocks.keys()].filter((at) => !messages || blocks[at].cache_control);
    const found = this.#found(prefixes, marked);
    this.#read(prefixes[found]);
    for (const at of marked) this.#write(prefixes[at], blocks[at]?.cache_control?.ttl);
    const bytes = (/** @type {number} */ from, /** @type {number} */ to) => meanings.slice(from, to).reduce((sum, meaning) => sum + Buffer.byteLength(meaning), 0);
    const end = (marked.at(-1) ?? -1) + 1;
    return { read: bytes(0, found + 1), written: bytes(found + 1, end), rest: bytes(end, blocks.length) };
  }

  /**
   * The last block of the prefix that is found, or -1.
   * @param {string[]} prefixes
   * @param {number[]} marked
   */
  #found(prefixes, marked) {
    const isAlive = (/** @type {number} */ at) => (this.#written.get(prefixes[at])?.until ?? 0) > this.#now();
    for (const from of marked.toReversed()) {
      for (let at = from; at >= 0 && at > from - LOOKBACK; at--) if (isAlive(at)) return at;
    }
    return -1;
  }

  /** @param {string} prefix */
  #read(prefix) {
    const entry = this.#written.get(prefix);
    if (entry) entry.until = this.#now() + entry.lifeMs;
  }

  /**
   * @param {string} prefix
   * @param {string | undefined} ttl
   */
  #write(prefix, ttl) {
    const lifeMs = ttl === "1h" ? LONG_MS : this.#lifeMs;
    this.#written.set(prefix, { lifeMs, until: this.#now() + lifeMs });
  }
}

/** The blocks of a message: the same text of another role is another block. @param {any} message */
function ofMessage({ role, content }) {
  return blocksOf(content).map((block) => ({ ...block, role }));
}
