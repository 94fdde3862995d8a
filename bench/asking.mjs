/** A conversation in a separate store, and the answers of `lcm_grep` about it. */
import { createHash } from "node:crypto";
import { openEngine, slices } from "./stores.mjs";

/** @typedef {{ text: string, lines: string[], places: number[], also: number[][], tokens: number, ms: number }} Answer `lines` are the results, `places` their messages, `also` those that each names as equal; no tokens if nothing was found */

/**
 * @param {string} folder for the store
 * @param {number} session its number; those that are stored apart follow it
 * @param {any[]} messages Pi's, oldest first
 * @param {string[]} [apart] the session of each message, where each is to be one of Pi's, before the one that asks
 */
export async function historyOf(folder, session, messages, apart) {
  /** @type {Map<string, number>} */
  const places = new Map();
  /** @param {number} number @param {number[]} said places of its messages @param {any[]} [behind] */
  const stored = async (number, said, behind = []) => {
    const engine = await openEngine(folder, number);
    let lineage = Buffer.alloc(32);
    for (const place of said) {
      lineage = sha256(Buffer.concat([lineage, sha256(Buffer.from(JSON.stringify(messages[place])))]));
      places.set(`m-${lineage.toString("hex").slice(0, 10)}`, place);
    }
    const list = [...said.map((place) => messages[place]), ...behind];
    const entries = list.map((message, at) => ({ type: "message", id: String(at), parentId: at > 0 ? String(at - 1) : null, timestamp: "2026-05-04T00:00:00.000Z", message }));
    for (const { json } of slices(entries)) engine.handOver(json);
    await engine.flush();
    return { engine, leaf: entries.at(-1)?.id };
  };
  const all = [...messages.keys()];
  for (const [at, name] of [...new Set(apart)].entries()) {
    const { engine } = await stored(session + 1 + at, all.filter((place) => apart?.[place] === name));
    await engine.close();
  }
  // The last request is never a result, so another one is added after it.
  const asking = { role: "user", content: "Look that up, please.", timestamp: messages.at(-1).timestamp };
  const { engine, leaf } = await stored(session, apart ? [] : all, [asking]);
  return {
    close: () => engine.close(),
    /** @param {string} query @param {object} [how] more arguments @returns {Promise<Answer>} */
    async ask(query, how = {}) {
      const began = performance.now();
      const { ok, error } = JSON.parse(await engine.callTool(0, "lcm_grep", JSON.stringify({ query, ...how }), leaf));
      const ms = performance.now() - began;
      if (error) throw new Error(`${query}: ${error.message}`);
      const { text } = ok.content[0];
      const lines = text.split("\n").filter((/** @type {string} */ line) => /^m-/.test(line));
      const placeOf = (/** @type {string} */ handle) => places.get(handle) ?? -1;
      const found = lines.map((/** @type {string} */ line) => placeOf(line.slice(0, 12)));
      const also = lines.map((/** @type {string} */ line) => (/ \(also in (m-[^)]*)\)$/.exec(line)?.[1].split(", ") ?? []).map(placeOf));
      return { text, lines, places: found, also, tokens: lines.length > 0 ? text.length / 4 : 0, ms };
    },
  };
}

/** @param {Buffer} bytes */
const sha256 = (bytes) => createHash("sha256").update(bytes).digest();
