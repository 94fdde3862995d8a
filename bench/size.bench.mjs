/**
 * The size of a store relative to its session file, including index, identities and summaries.
 *
 * The floor is the session file itself, which Pi writes anyway. Each session is stored message by message, compacted once, and closed, as
 * in use. `BENCH_SESSION=FILE` measures your own session.
 */
import { readFileSync, statSync } from "node:fs";
import path from "node:path";
import losslessContext from "../index.js";
import { root } from "../scripts/paths.mjs";
import { FakeHost, reply } from "../__test__/support/fake-host.mjs";
import { History } from "../__test__/support/history.mjs";
import { DatabaseSync } from "../__test__/support/store.mjs";
import { composed } from "./composed.mjs";
import { megabytes, ratio } from "./measure.mjs";
import { databaseIn } from "./stores.mjs";

/** @typedef {import("./measure.mjs").Context} Context */
/** @typedef {import("./measure.mjs").Figure} Figure */

/** Each part of the tables and indexes. @type {[string, string][]} */
const PARTS = [
  ["messages, packed", "name = 'messages'"],
  ["their indexes by lineage, passage and time", "tbl_name = 'messages' AND name <> 'messages'"],
  ["full text", "tbl_name LIKE 'messages_fts%'"],
  ["entries and their indexes", "tbl_name = 'entries'"],
  ["summaries, edges, their full text", "tbl_name LIKE 'summar%' OR tbl_name = 'carried'"],
];

export const title = "the database beside the session file";

/** @param {Context} context @returns {Promise<Figure[]>} */
export async function run(context) {
  const cwd = context.folder("project");
  const own = process.env.BENCH_SESSION;
  if (own) return measure(context, path.basename(own), withIds(linesOf(own)), 0);
  const figures = [];
  const demo = linesOf(path.join(root, "demo", "session.jsonl"));
  // Small: much of it is the fixed part, and logs of random ids pack badly.
  figures.push(...(await measure(context, "the demo's", demo, 1.4)));
  figures.push(...(await measure(context, "composed, 1 MB", composed(1, cwd, 1e6).lines, 0.9)));
  figures.push(...(await measure(context, "composed, 10 MB", composed(2, cwd, 1e7).lines, 0.8)));
  return figures;
}

/** @param {string} file */
const linesOf = (file) => readFileSync(file, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));

/** Entries of the first format have no ids; Pi gives them some. @param {any[]} lines */
const withIds = (lines) => lines.map((line, at) => ({ id: `e${at}`, parentId: at > 1 ? `e${at - 1}` : null, ...line }));

/**
 * @param {Context} context
 * @param {string} name
 * @param {any[]} lines of the session file
 * @param {number} asked target as a share of the session file, 0 for none
 * @returns {Promise<Figure[]>}
 */
async function measure(context, name, [header, ...entries], asked) {
  const [folder, cwd] = [context.folder("store"), context.folder("project")];
  process.env.LCM_DB_DIR = folder;
  const history = new History({ cwd, id: header.id });
  const prose = entries.flatMap(({ message }) => (message?.role === "assistant" ? message.content : [])).filter(({ type }) => type === "text").map(({ text }) => text).join("\n");
  let summaries = 0;
  // With the length of real summaries, in the session's own words.
  const answer = async () => reply(`Part ${++summaries}\n${prose.slice((summaries * 997) % (prose.length / 2)).slice(0, 1500)}`);
  const host = new FakeHost({ cwd, history, sessionFile: path.join(cwd, "session.jsonl"), answer });
  losslessContext(host.pi);
  await host.emit("session_start", { reason: "startup" });
  for (const [at, entry] of entries.entries()) {
    if (at % 1000 === 0) context.say(`${name}: storing message ${at} of ${entries.length} …`);
    history.entries.push(entry);
    history.leaf = entry.id;
    await host.emit("turn_end");
    if (at % 100 === 0) await host.commands.get("lcm").handler("help", host.ctx);
  }
  context.say(`${name}: compacting …`);
  const [compaction] = (await host.emit("session_before_compact", host.compaction(20))).filter(Boolean);
  if (!compaction?.compaction) throw new Error(`${name} was not compacted: ${JSON.stringify(host.notifications)}`);
  history.entry("compaction", { ...compaction.compaction, fromHook: true });
  await host.emit("session_compact", { compactionEntry: history.entries.at(-1), fromExtension: true });
  await host.emit("turn_end");
  await host.emit("session_shutdown", { reason: "quit" });

  const file = [header, ...history.entries].reduce((bytes, line) => bytes + Buffer.byteLength(JSON.stringify(line)) + 1, 0);
  const database = databaseIn(folder);
  const size = statSync(database).size;
  const store = new DatabaseSync(database, { readOnly: true });
  const parts = PARTS.map(([what, where]) => {
    const sql = `SELECT coalesce(sum(d.pgsize), 0) AS bytes FROM dbstat d JOIN sqlite_schema s USING (name) WHERE d.aggregate = TRUE AND (${where})`;
    return { what: `  ${what}`, bytes: /** @type {number} */ (store.prepare(sql).get()?.bytes) };
  });
  store.close();
  const line = (/** @type {string} */ what, /** @type {number} */ bytes) => ({ what, measured: megabytes(bytes), floor: "", ratio: ratio(bytes, file), asked: "" });
  const whole = { ...line(name, size), floor: `${megabytes(file)} file` };
  return [asked ? { ...whole, asked: `≤ ${asked} ×`, reached: size <= asked * file } : whole, ...parts.map(({ what, bytes }) => line(what, bytes))];
}
