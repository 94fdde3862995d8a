/**
 * Two other ways to keep a context small, as extensions of Pi: they change the messages of each request and nothing else.
 *
 * `editing` is what providers offer (Anthropic's `clear_tool_uses`): beyond 100,000 tokens all results but the newest three give way
 * to a line. `micro` does the same beyond 40,000 tokens, as coding agents do by themselves. What gave way once stays away, so that the
 * prompt is the same between two changes.
 */

const [TRIGGER, KEEP] = process.env.RIVAL === "editing" ? [100_000, 3] : [40_000, 3];
const CLEARED = "[Old tool result content cleared]";

/** @param {import("@earendil-works/pi-coding-agent").ExtensionAPI} pi */
export default function rival(pi) {
  /** @type {Set<string>} */
  const cleared = new Set();
  pi.on("context", (event) => {
    const shown = () => event.messages.map((message) => (message.role === "toolResult" && cleared.has(message.toolCallId) ? { ...message, content: [{ type: /** @type {const} */ ("text"), text: CLEARED }] } : message));
    const messages = shown();
    if (JSON.stringify(messages).length / 4 <= TRIGGER) return { messages };
    const results = messages.flatMap((message) => (message.role === "toolResult" ? [message.toolCallId] : []));
    results.slice(0, -KEEP).forEach((id) => cleared.add(id));
    return { messages: shown() };
  });
}
