/** An extension that shortens the result of the first tool call once there are two more, as a context editor would. */

/** @param {import("@earendil-works/pi-coding-agent").ExtensionAPI} pi */
export default function edited(pi) {
  pi.on("context", ({ messages }) => {
    const results = messages.filter(({ role }) => role === "toolResult");
    if (results.length < 3) return undefined;
    return { messages: messages.map((message) => (message === results[0] ? { ...message, content: [{ type: "text", text: "(shortened)" }] } : message)) };
  });
}
