/**
 * An extension with slow message handlers, like one that calls a server: work that Pi does not wait for happens late, in print mode on some
 * Pis even after the session's shutdown.
 */
import { appendFileSync } from "node:fs";
import path from "node:path";

const TIME_MS = 400;

/** @param {import("@earendil-works/pi-coding-agent").ExtensionAPI} pi */
export default function slow(pi) {
  pi.on("message_end", async ({ message }) => {
    await new Promise((resolve) => setTimeout(resolve, TIME_MS));
    note(`message_end ${message.role}`);
  });
  pi.on("session_start", () => note("session_start"));
  pi.on("session_shutdown", () => note("session_shutdown"));
}

/** The file for its log of events, one per line. @param {string} agentDir */
export const notesIn = (agentDir) => path.join(agentDir, "events.txt");

/** @param {string} event */
function note(event) {
  appendFileSync(notesIn(process.env.PI_CODING_AGENT_DIR ?? ""), `${event}\n`);
}
