/** An extension that sends the model something else than what was said, request by request. */

/** @param {import("@earendil-works/pi-coding-agent").ExtensionAPI} pi */
export default function rewriting(pi) {
  pi.on("context", ({ messages }) => ({ messages: JSON.parse(JSON.stringify(messages).replaceAll("plain0000x", "fancy0000x")) }));
  // By changing them in their place too, which Pi's docs leave open.
  pi.on("context", ({ messages }) => {
    for (const message of messages) {
      if (message.role === "user" && Array.isArray(message.content)) message.content.push({ type: "text", text: "added on the way" });
    }
  });
}
