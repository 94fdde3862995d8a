/** An extension that changes the sections that others have added to the system prompt. */

/** @param {import("@earendil-works/pi-coding-agent").ExtensionAPI} pi */
export default function sectioning(pi) {
  pi.on("before_agent_start", ({ systemPromptOptions: { sections = {} } }) => {
    for (const [name, text] of Object.entries(sections)) sections[name] = `${text} Changed by another extension.`;
  });
}
