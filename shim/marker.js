/**
 * Adds a fourth cache marker for Anthropic's format, at the last change of the context.
 *
 * Anthropic looks for a cached prefix only at places that an earlier request marked, and only within 20 blocks before a marker of this one.
 * Pi marks the tools, the system prompt and the end. When stubs replace results in the middle, the end of the previous request is gone, and
 * everything after the system prompt would be written again. So each request marks the last stub, or without stubs the block: the next
 * change comes after it and finds it.
 */

/** A stub's text, see `pruning/stub.rs`. */
const STUB = "left out to save context. All of it: lcm_expand";

/** Anthropic's limits: markers per request, and blocks it looks back from one. */
const [MOST, LOOKBACK] = [4, 20];

/** The marker's name if it is on the block. */
const BLOCK = "block";

/** A place in a request's messages. @typedef {{ message: number, block: number, part: any }} Place */

export class CacheMarker {
  /** The last marked place. @type {string | undefined} */
  #last;

  /**
   * Returns a request with one more marker.
   *
   * @param {any} payload as Pi is about to send it
   * @param {boolean} isFolded whether the first message is a block
   * @returns {any} undefined if it stays unchanged
   */
  mark(payload, isFolded) {
    const { system, tools = [], messages } = payload ?? {};
    if (![system, tools, messages].every(Array.isArray)) return undefined;
    /** @type {Place[]} */
    const places = messages.flatMap((/** @type {any} */ one, /** @type {number} */ message) => [one?.content ?? []].flat().map((part, block) => ({ message, block, part })));
    const markers = places.filter(({ part }) => part?.cache_control);
    const end = markers.at(-1);
    const marked = [...system, ...tools].filter((part) => part?.cache_control).length + markers.length;
    // With an Anthropic login, Pi marks two blocks of its system prompt; the second marker covers the first.
    const isSpare = marked === MOST && Boolean(system[0]?.cache_control && system[1]?.cache_control);
    if (!end || (marked >= MOST && !isSpare)) return undefined;
    const at = this.#place(places, isFolded);
    if (!at || at.message >= end.message) return undefined;
    const { content, ...message } = messages[at.message];
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
    const changed = { ...message, content: blocks.with(at.block, { ...blocks[at.block], cache_control: end.part.cache_control }) };
    const { cache_control: _, ...first } = system[0] ?? {};
    return { ...payload, ...(isSpare && { system: system.with(0, first) }), messages: messages.with(at.message, changed) };
  }

  /**
   * The last stub, or the block. If that is too far after the last marked place, this returns the old place once more; the next request
   * gets the new one.
   *
   * @param {Place[]} places
   * @param {boolean} isFolded
   * @returns {Place | undefined}
   */
  #place(places, isFolded) {
    const stub = places.findLastIndex(({ part }) => isStub(part));
    const newest = stub >= 0 ? stub : isFolded ? 0 : -1;
    if (newest < 0 || !places[newest]) return undefined;
    const { part } = places[newest];
    const old = this.#last === BLOCK ? (isFolded ? 0 : -1) : places.findIndex(({ part }) => isStub(part) && part.tool_use_id === this.#last);
    this.#last = isStub(part) ? part.tool_use_id : BLOCK;
    return places[old >= 0 && newest - old > LOOKBACK ? old : newest];
  }
}

/** Whether it is a stubbed tool result. A stub is short. @param {any} part */
function isStub(part) {
  if (part?.type !== "tool_result") return false;
  const text = typeof part.content === "string" ? part.content : part.content?.[0]?.text;
  return typeof text === "string" && text.slice(0, 500).includes(STUB);
}
