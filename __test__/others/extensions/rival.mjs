/**
 * An extension with its own compaction. `/rival compact` supplies one at Pi's next, `/rival cancel` forbids it, `/rival boundary` appends
 * one at the end of the next turn, if Pi allows that, and `/rival off` ends it.
 */

/** @param {import("@earendil-works/pi-coding-agent").ExtensionAPI} pi */
export default function rival(pi) {
  let mood = "off";
  let times = 0;
  const summary = () => `The rival's own words, number ${++times}.`;

  pi.registerCommand("rival", { description: "What a test wants", handler: async (line) => void ([mood, times] = [line.trim(), 0]) });

  pi.on("session_before_compact", ({ preparation: { firstKeptEntryId, tokensBefore } }) => {
    if (mood === "cancel") return { cancel: true };
    if (mood === "compact") return { compaction: { summary: summary(), firstKeptEntryId, tokensBefore } };
    return undefined;
  });

  pi.on("turn_end", (event) => {
    if (mood !== "boundary") return undefined;
    mood = "off";
    return { entries: [...event.entries, { type: "compaction", summary: summary(), firstKeptEntryId: null }] };
  });
}
