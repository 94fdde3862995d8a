/** An extension that rewrites each request to the model. */

/** @param {import("@earendil-works/pi-coding-agent").ExtensionAPI} pi */
export default function rewriting(pi) {
  pi.on("context", ({ messages }) => ({ messages: JSON.parse(JSON.stringify(messages).replaceAll("plain0000x", "fancy0000x")) }));
  // It also changes messages in place, which Pi's docs neither allow nor forbid.
  pi.on("context", ({ messages }) => {
    for (const message of messages) {
      if (message.role === "user" && Array.isArray(message.content)) message.content.push({ type: "text", text: "added on the way" });
    }
  });
}
