/**
 * An extension that has its own idea of compaction. `/rival compact` gives one at Pi's next, `/rival cancel` forbids it,
 * `/rival boundary` writes one by itself at the end of the next turn, where Pi lets extensions do so, and `/rival off` ends it.
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
