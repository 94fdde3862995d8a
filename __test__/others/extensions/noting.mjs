/**
 * An extension that writes into the session wherever it can: after each turn an entry, a label and a message; on request at the end of a
 * prompt, a message that makes the model continue; and drafts of entries, if Pi takes them.
 */

/** @param {import("@earendil-works/pi-coding-agent").ExtensionAPI} pi */
export default function noting(pi) {
  let turns = 0;
  let wanted = false;

  pi.on("input", ({ text }) => {
    wanted = text.includes("go on by yourself");
    return undefined;
  });

  pi.on("turn_end", (event, ctx) => {
    turns++;
    pi.appendEntry("noted", { turn: turns });
    pi.setLabel(ctx.sessionManager.getLeafId() ?? "", `turn ${turns}`);
    /** @type {typeof event.entries} */
    const drafts = [
      { type: "custom", customType: "drafted", data: { turn: turns } },
      { type: "custom_message", customType: "drafted", content: `drafted after turn ${turns}`, display: true },
    ];
    return event.entries && { entries: [...event.entries, ...drafts] };
  });

  // If Pi has this event, it still continues with messages that are sent before.
  pi.on(/** @type {any} */ ("registerEntryRenderer" in pi ? "agent_settled" : "agent_end"), () => {
    if (!wanted) return pi.sendMessage({ customType: "aside", content: `said aside after turn ${turns}`, display: true });
    wanted = false;
    // Like a timer or a file watcher.
    setTimeout(() => pi.sendMessage({ customType: "aside", content: "please go on", display: true }, { triggerTurn: true }), 50);
  });
}
