/** An extension that adds to the system prompt in the way that every Pi supports. */

/** @param {import("@earendil-works/pi-coding-agent").ExtensionAPI} pi */
export default function prompting(pi) {
  pi.on("before_agent_start", ({ systemPrompt }) => ({ systemPrompt: `${systemPrompt}\n\nMind the ledger, says another extension.` }));
}
