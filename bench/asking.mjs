/** A conversation in a store of its own, and what `lcm_grep` answers about it. */
import { createHash } from "node:crypto";
import { openEngine, slices } from "./stores.mjs";

/** @typedef {{ text: string, lines: string[], places: number[], tokens: number, ms: number }} Answer `lines` are the results, `places` their messages; no tokens where nothing was found */

/**
 * @param {string} folder for the store
 * @param {number} session its number
 * @param {any[]} messages Pi's, oldest first
 */
export async function historyOf(folder, session, messages) {
  const engine = await openEngine(folder, session);
  /** @type {Map<string, number>} */
  const places = new Map();
  let lineage = Buffer.alloc(32);
  for (const [place, message] of messages.entries()) {
    lineage = sha256(Buffer.concat([lineage, sha256(Buffer.from(JSON.stringify(message)))]));
    places.set(`m-${lineage.toString("hex").slice(0, 10)}`, place);
  }
  // What is being asked is no answer: so something else is asked last.
  const asking = { role: "user", content: "Look that up, please.", timestamp: messages.at(-1).timestamp };
  const entries = [...messages, asking].map((message, at) => ({ type: "message", id: String(at), parentId: at > 0 ? String(at - 1) : null, timestamp: "2026-05-04T00:00:00.000Z", message }));
  for (const { json } of slices(entries)) engine.handOver(json);
  await engine.flush();
  return {
    close: () => engine.close(),
    /** @param {string} query @returns {Promise<Answer>} */
    async ask(query) {
      const began = performance.now();
      const { ok, error } = JSON.parse(await engine.callTool(0, "lcm_grep", JSON.stringify({ query }), entries.at(-1)?.id));
      const ms = performance.now() - began;
      if (error) throw new Error(`${query}: ${error.message}`);
      const { text } = ok[0];
      const lines = text.split("\n").filter((/** @type {string} */ line) => /^m-/.test(line));
      const found = lines.map((/** @type {string} */ line) => places.get(line.slice(0, 12)) ?? -1);
      return { text, lines, places: found, tokens: lines.length > 0 ? text.length / 4 : 0, ms };
    },
  };
}

/** @param {Buffer} bytes */
const sha256 = (bytes) => createHash("sha256").update(bytes).digest();
