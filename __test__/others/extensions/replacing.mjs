/**
 * An extension that lets no secret into the session: what has one is replaced before Pi stores it, whoever said it; for an
 * assistant by changing the message in its place, for all others by giving Pi another.
 */

/** @param {import("@earendil-works/pi-coding-agent").ExtensionAPI} pi */
export default function replacing(pi) {
  pi.on("message_end", ({ message }) => {
    if (!("content" in message) || message.role === "system" || !JSON.stringify(message).includes("secret")) return undefined;
    const content = JSON.parse(JSON.stringify(message.content).replaceAll("secret", "[taken out, 秘密 \u2028]"));
    if (message.role === "assistant") {
      message.content = content;
      return undefined;
    }
    return { message: { ...message, content } };
  });
}
