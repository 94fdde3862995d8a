/**
 * A fourth cache marker for Anthropic's format, where the context has last been changed.
 *
 * Anthropic looks for a cached prefix only at places that an earlier request marked, and only within 20 blocks before a marker of
 * this one. Pi marks the tools, the system prompt and the end. When results in the middle give way to stubs, the end of the request
 * before is gone from the prompt, and everything behind the system prompt would be written again. So the last stub is marked in each
 * request, or where there is none the block: the next change begins behind it, and finds it.
 */

/** What a stub says, see `pruning/stub.rs`. */
const STUB = "left out to save context. All of it: lcm_expand";

/** So many markers Anthropic takes. */
const MOST = 4;

/**
 * A request with one more marker.
 *
 * @param {any} payload as Pi is about to send it
 * @param {boolean} isFolded whether the first message is a block
 * @returns {any} nothing where it stays as it is
 */
export function withMarker(payload, isFolded) {
  const { system, tools, messages } = payload ?? {};
  if (!Array.isArray(system) || !Array.isArray(messages)) return undefined;
  const end = messages.at(-1)?.content;
  const marker = Array.isArray(end) ? end.at(-1)?.cache_control : undefined;
  const marked = [...system, ...(tools ?? []), ...messages.flatMap(({ content }) => content)].filter((part) => part?.cache_control);
  // With a login to Anthropic Pi marks two blocks of its system prompt; the second mark covers the first.
  const isSpare = marked.length === MOST && system.length > 1 && Boolean(system[0].cache_control);
  if (!marker || (marked.length >= MOST && !isSpare)) return undefined;
  const at = lastStub(messages) ?? (isFolded ? { message: 0, block: 0 } : undefined);
  if (!at || at.message === messages.length - 1) return undefined;
  const { content, ...message } = messages[at.message];
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const changed = { ...message, content: blocks.with(at.block, { ...blocks[at.block], cache_control: marker }) };
  const { cache_control: _, ...first } = system[0] ?? {};
  return { ...payload, ...(isSpare && { system: system.with(0, first) }), messages: messages.with(at.message, changed) };
}

/** @param {any[]} messages */
function lastStub(messages) {
  for (let message = messages.length - 1; message >= 0; message--) {
    const { role, content } = messages[message];
    if (role !== "user" || !Array.isArray(content)) continue;
    const block = content.findLastIndex((part) => part.type === "tool_result" && textOf(part).includes(STUB));
    if (block >= 0) return { message, block };
  }
  return undefined;
}

/** What the first text of a tool's result begins with; a stub is short. @param {any} result */
function textOf({ content }) {
  const text = typeof content === "string" ? content : content?.[0]?.text;
  return typeof text === "string" ? text.slice(0, 500) : "";
}
