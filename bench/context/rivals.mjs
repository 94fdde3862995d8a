/**
 * Two other ways to keep a context small, as extensions of Pi: they only change the messages of each request.
 *
 * `editing` is what providers offer (Anthropic's `clear_tool_uses`): beyond 100,000 tokens, all results but the newest three are replaced
 * by a line. `micro` does the same beyond 40,000 tokens, as coding agents do themselves. Both wait until 10,000 tokens can be cleared at
 * once (`clear_at_least`), since each change costs. Cleared results stay cleared, so that the prompt is stable between two changes.
 */

const TRIGGER = process.env.RIVAL === "editing" ? 100_000 : 40_000;
const [KEEP, LEAST] = [3, 10_000];
const CLEARED = "[Old tool result content cleared]";

/** @param {import("@earendil-works/pi-coding-agent").ExtensionAPI} pi */
export default function rival(pi) {
  /** @type {Set<string>} */
  const cleared = new Set();
  pi.on("context", (event) => {
    const shown = () => event.messages.map((message) => (message.role === "toolResult" && cleared.has(message.toolCallId) ? { ...message, content: [{ type: /** @type {const} */ ("text"), text: CLEARED }] } : message));
    const messages = shown();
    if (tokensOf(messages) <= TRIGGER) return { messages };
    const old = messages.flatMap((message) => (message.role === "toolResult" && !cleared.has(message.toolCallId) ? [message] : [])).slice(0, -KEEP);
    if (tokensOf(old) < LEAST) return { messages };
    old.forEach(({ toolCallId }) => cleared.add(toolCallId));
    return { messages: shown() };
  });
}

/** @param {unknown[]} messages */
const tokensOf = (messages) => JSON.stringify(messages).length / 4;
