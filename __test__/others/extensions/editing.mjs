/** An extension that shortens commands' output for the model at the end of a turn; the entries stay unchanged. */

/** @param {import("@earendil-works/pi-coding-agent").ExtensionAPI} pi */
export default function editing(pi) {
  pi.on("turn_end", (event) => {
    /** @type {typeof event.entries} */
    const edits = event.toolResultEntryIds.filter((_id, at) => event.toolResults[at].toolName === "bash").map((targetId) => ({
      type: "context_edit",
      targetId,
      replacement: { content: [{ type: "text", text: "edited0000x: this was long, and is not any more" }] },
    }));
    return edits.length > 0 ? { entries: [...event.entries, ...edits] } : undefined;
  });
}
