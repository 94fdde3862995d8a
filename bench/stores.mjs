/**
 * Large stores for benchmarks, filled by the product's own ingest and kept in `target/bench`, so that a second run is fast.
 *
 * A store is rebuilt when the sources of its bytes change. Benchmarks never use a kept store itself, but a copy (`copyOf`).
 */
import { createHash } from "node:crypto";
import {
  closeSync, constants, cpSync, createWriteStream, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, readdirSync, realpathSync, renameSync, rmSync,
} from "node:fs";
import { once } from "node:events";
import path from "node:path";
import { loadEngine } from "../index.js";
import { root } from "../scripts/paths.mjs";
import { entries, header, sessionId } from "./corpus.mjs";

/** @typedef {import("../index.d.ts").Engine} Engine */
/** @typedef {import("./measure.mjs").Context} Context */

/** Messages of one session; a larger store has several. */
export const SESSION = 100_000;

/** Characters per hand-over, as at a first start. */
const SLICE = 256 * 1024;

/** The sources that determine a store's bytes. */
const SOURCES = ["bench/corpus.mjs", "crates/model/src/passages.rs", "crates/store/src/messages/codec.rs", "crates/store/src/db/schema.sql"];

/** Where stores and logs are kept from one run to the next. */
export const kept = path.join(root, "target", "bench");

/** The project of all stores. */
export function projectFolder() {
  const folder = path.join(kept, "project");
  mkdirSync(folder, { recursive: true });
  return realpathSync(folder);
}

/**
 * The session file of a session's number; it need not exist.
 * @param {number} session
 */
export const sessionFile = (session) => path.join(kept, "sessions", `${sessionId(session)}.jsonl`);

/**
 * Opens a session's engine on the store in a folder.
 * @param {string} folder
 * @param {number} session
 * @param {Record<string, string>} [environment] more settings
 * @returns {Promise<Engine>}
 */
export async function openEngine(folder, session, environment = {}) {
  const { Engine, loadSettings } = loadEngine();
  const cwd = projectFolder();
  const sources = { agentDir: folder, cwd, projectTrusted: false, environment: { LCM_DB_DIR: folder, ...environment } };
  const { settings } = JSON.parse(loadSettings(JSON.stringify(sources))).ok;
  return Engine.open(JSON.stringify({ cwd, sessionId: sessionId(session), sessionFile: sessionFile(session), settings }));
}

/**
 * The entries in slices as they are handed over: JSON arrays.
 * @param {Iterable<object>} all
 */
export function* slices(all) {
  /** @type {string[]} */
  let slice = [];
  let characters = 0;
  for (const entry of all) {
    const json = JSON.stringify(entry);
    slice.push(json);
    characters += json.length;
    if (characters < SLICE) continue;
    yield { json: `[${slice.join(",")}]`, entries: slice.length };
    slice = [];
    characters = 0;
  }
  if (slice.length > 0) yield { json: `[${slice.join(",")}]`, entries: slice.length };
}

/** @param {string} folder @returns {string} empty if there is none */
export function databaseIn(folder) {
  const name = readdirSync(folder).find((name) => name.endsWith(".db"));
  return name ? path.join(folder, name) : "";
}

/**
 * A copy of the store with that many messages, in a new folder.
 * @param {Context} context
 * @param {number} messages 0 or a multiple of `SESSION`; smaller stores have one short session
 */
export async function copyOf(context, messages) {
  const folder = context.folder(`store-${messages}`);
  if (messages === 0) return folder;
  cpSync(await storeOf(context, messages), folder, { recursive: true, mode: constants.COPYFILE_FICLONE });
  // Otherwise the first fsync would wait for the whole copy.
  const copy = openSync(databaseIn(folder), "r+");
  fsyncSync(copy);
  closeSync(copy);
  return folder;
}

/**
 * A new folder with the store of one session, by its number.
 * @param {Context} context
 * @param {number} session
 * @param {number} [messages]
 */
export async function filledWith(context, session, messages = SESSION) {
  const folder = context.folder(`store-of-${session}`);
  await fill(context, folder, session, messages);
  return folder;
}

/**
 * The session file of the first session, of that many messages.
 * @param {Context} context
 * @param {number} messages
 */
export async function sessionFileOf({ say }, messages) {
  const file = path.join(kept, key(), `session-${messages}.jsonl`);
  if (existsSync(file)) return file;
  say(`writing a session of ${messages} messages …`);
  mkdirSync(path.dirname(file), { recursive: true });
  const out = createWriteStream(`${file}.part`);
  for (const line of [header(0, projectFolder()), ...entries(0, messages)]) {
    if (!out.write(`${JSON.stringify(line)}\n`)) await once(out, "drain");
  }
  out.end();
  await once(out, "close");
  renameSync(`${file}.part`, file);
  return file;
}

/**
 * @param {Context} context
 * @param {number} messages
 * @returns {Promise<string>} the folder it is kept in
 */
async function storeOf(context, messages) {
  const folder = path.join(kept, key(), String(messages));
  if (existsSync(folder)) return folder;
  const part = `${folder}.part`;
  rmSync(part, { recursive: true, force: true });
  // A larger store starts with the smaller one.
  if (messages > SESSION) cpSync(await storeOf(context, messages - SESSION), part, { recursive: true });
  const session = messages > SESSION ? messages / SESSION - 1 : 0;
  await fill(context, part, session, Math.min(messages, SESSION));
  if (messages > 2 * SESSION) rmSync(path.join(kept, key(), String(messages - SESSION)), { recursive: true });
  renameSync(part, folder);
  return folder;
}

/**
 * @param {Context} context
 * @param {string} folder
 * @param {number} session
 * @param {number} messages
 */
async function fill({ say }, folder, session, messages) {
  const engine = await openEngine(folder, session);
  let stored = 0;
  for (const { json, entries: count } of slices(entries(session, messages))) {
    const { error } = JSON.parse(engine.handOver(json));
    if (error) throw new Error(error.message);
    await engine.flush();
    stored += count;
    if (stored % 10_000 < count) say(`filling a store, session ${session + 1}: ${stored} of ${messages} messages …`);
  }
  await engine.close();
}

function key() {
  const hash = createHash("sha256");
  for (const source of SOURCES.map((name) => path.join(root, name))) {
    hash.update(readFileSync(source));
  }
  return hash.digest("hex").slice(0, 12);
}
