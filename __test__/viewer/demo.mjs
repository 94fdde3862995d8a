/** The shipped session with three compactions and one step back: built in the real Pi, and exported by it as a page. */
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { startPi } from "../../demo/rpc.mjs";
import { PROMPTS } from "../../demo/script.mjs";
import { makeWorld } from "../../demo/world.mjs";
import { extension } from "../../scripts/paths.mjs";

/** The positions of the compactions, as parts of the session. */
const COMPACTED_AT = [0.35, 0.62, 0.85];
/** Small chunks, so that a session of this length has summaries of several depths. */
const SETTINGS = { LCM_LEAF_CHUNK_TOKENS: "1200", LCM_CONDENSATION_THRESHOLD: "4" };
/** The demo model's price of a cached token in dollars. */
const CACHED = 0.1e-6;

/** The exported page. @returns {Promise<{ file: string, session: string, remove: () => Promise<void> }>} */
export async function exportedDemo() {
  const world = await makeWorld();
  const settings = path.join(world.agentDir, "settings.json");
  writeFileSync(settings, JSON.stringify({ ...JSON.parse(readFileSync(settings, "utf8")), compaction: { keepRecentTokens: 2_000 } }));
  const [header, ...entries] = linesOf(world.session);
  const cuts = COMPACTED_AT.map((part) => nextQuestion(entries, Math.floor(entries.length * part)));
  let saved = 0;
  let at = 0;
  writeFileSync(world.session, "");
  append(world.session, [header]);
  for (const cut of [...cuts, entries.length]) {
    const last = linesOf(world.session).at(-1);
    const piece = entries.slice(at, cut).map((entry) => counted(entry, saved));
    if (at > 0) piece[0] = { ...piece[0], parentId: last.id };
    append(world.session, at > 0 && at === cuts[0] ? [...aside(piece[0].parentId), ...piece] : piece);
    at = cut;
    const pi = startPi({ agentDir: world.agentDir, cwd: world.project, args: ["--session", world.session, "-e", extension], env: { LCM_DB_DIR: world.store, ...SETTINGS } });
    await pi.waitFor(() => /msgs/.test(pi.status("lcm") ?? ""));
    if (cut < entries.length) {
      const { tokensBefore, estimatedTokensAfter } = await pi.request("compact");
      saved += Math.max(0, tokensBefore - estimatedTokensAfter);
    } else {
      await pi.prompt(PROMPTS.check);
      await pi.prompt(PROMPTS.size);
      await pi.request("prompt", { message: "/lcm export --html page.html" });
      await pi.waitFor(() => pi.ui("notify").some(({ message }) => /written to/.test(message)));
    }
    await pi.stop();
  }
  return { file: path.join(world.project, "page.html"), session: world.session, remove: () => world.remove() };
}

/** A question that was not followed up. @param {string} parentId */
function aside(parentId) {
  const at = { timestamp: "2026-11-03T10:02:11.000Z" };
  const usage = { input: 900, output: 80, cacheRead: 12_000, cacheWrite: 700, totalTokens: 13_680, cost: { input: 0.0009, output: 0.0003, cacheRead: 0.0012, cacheWrite: 0.0008, total: 0.0032 } };
  return [
    { type: "message", id: "aa000001", parentId, ...at, message: { role: "user", content: [{ type: "text", text: "What if the events were in Postgres instead of SQLite?" }], timestamp: Date.parse(at.timestamp) } },
    { type: "message", id: "aa000002", parentId: "aa000001", ...at, message: { role: "assistant", content: [{ type: "text", text: "`ON CONFLICT DO NOTHING` would take the place of `INSERT OR IGNORE`. It would need a server, though, and the shop has none: let us stay with SQLite." }], api: "anthropic-messages", provider: "demo", model: "demo-model", usage, stopReason: "stop", timestamp: Date.parse(at.timestamp) + 4000 } },
  ];
}

/** A message with the usage it would have had after the compactions. @param {any} entry @param {number} saved tokens */
function counted(entry, saved) {
  const usage = entry.message?.usage;
  if (!usage || saved === 0) return entry;
  const less = Math.min(saved, usage.cacheRead);
  const cost = { ...usage.cost, cacheRead: usage.cost.cacheRead - less * CACHED, total: usage.cost.total - less * CACHED };
  return { ...entry, message: { ...entry.message, usage: { ...usage, cacheRead: usage.cacheRead - less, totalTokens: usage.totalTokens - less, cost } } };
}

/** The next entry with a message of the user. @param {any[]} entries @param {number} from */
function nextQuestion(entries, from) {
  return entries.findIndex((entry, at) => at >= from && entry.message?.role === "user");
}

/** @param {string} file @returns {any[]} */
function linesOf(file) {
  return readFileSync(file, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

/** @param {string} file @param {any[]} lines */
function append(file, lines) {
  appendFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
}
