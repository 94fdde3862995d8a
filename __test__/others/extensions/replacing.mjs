/**
 * An extension that keeps secrets out of the session: it replaces messages that have one before Pi stores them. It changes an assistant's
 * message in place, and gives Pi another message for all others.
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
