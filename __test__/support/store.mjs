/**
 * Reads the store without the engine: tests check the tables themselves. It can also hold the store's lock.
 *
 * In particular it computes coverage from the edges to the messages, and not from any counter.
 */
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { zstdDecompressSync } from "node:zlib";
import { root } from "../../scripts/paths.mjs";

const sqlite = await withoutWarning();

/** How long a test waits for a lock that Pi holds. */
const LOCKED_MS = 10_000;

/** A database that a test opens while Pi may be writing to it. */
export class DatabaseSync extends sqlite.DatabaseSync {
  /**
   * @param {string} file
   * @param {import("node:sqlite").DatabaseSyncOptions} [options]
   */
  constructor(file, options) {
    super(file, { timeout: LOCKED_MS, ...options });
  }
}

/** The compression dictionary of messages. */
const dictionary = readFileSync(path.join(root, "crates", "store", "src", "messages", "messages.dictionary"));

/** How to decode a message's JSON, by the column `codec`. @type {Record<number, (stored: Buffer) => Buffer>} */
const CODECS = {
  0: (stored) => stored,
  1: (stored) => zstdDecompressSync(stored, { dictionary }),
};

/**
 * An entry as it is stored.
 * @typedef {object} StoredEntry
 * @property {string} id Pi's
 * @property {string | null} parentId Pi's
 * @property {string | null} json of its message, if it has one that was not purged
 */

export class Store {
  #database;

  /**
   * @param {string} dir the folder of databases
   * @param {string} [name] which one; without it, there must be a single one
   */
  constructor(dir, name) {
    const files = name ? [name] : databasesIn(dir);
    if (files.length !== 1) throw new Error(`one database is expected, there are: ${files.join(", ") || "none"}`);
    this.file = path.join(dir, files[0]);
    this.#database = new DatabaseSync(this.file, { readOnly: true });
  }

  /**
   * @param {string} sql
   * @param {...import("node:sqlite").SQLInputValue} values
   * @returns {any[]}
   */
  rows(sql, ...values) {
    return this.#database.prepare(sql).all(...values);
  }

  /** @param {string} table */
  count(table) {
    return this.rows(`SELECT count(*) AS n FROM ${table}`)[0].n;
  }

  /**
   * A session's entries in the order they were stored.
   * @param {string} sessionId
   * @returns {StoredEntry[]}
   */
  entries(sessionId) {
    const rows = this.rows(
      `SELECT e.entry_id AS id, above.entry_id AS parentId, e.kind, m.json, m.codec, m.bytes
         FROM entries e
         JOIN conversations c ON c.id = e.conversation_id
         LEFT JOIN entries above ON above.id = e.parent_id
         LEFT JOIN messages m ON m.id = e.message_id AND e.kind = 1 AND m.kind <> 4
        WHERE c.session_id = ? ORDER BY e.id`,
      sessionId,
    );
    return rows.map(({ id, parentId, json, codec }) => ({ id, parentId, json: json && CODECS[codec](Buffer.from(json)).toString("utf8") }));
  }

  /**
   * The session's entries whose messages are under these summaries, by the edges, in the order of the edges.
   * @param {string} sessionId
   * @param {string[]} handles short ids, as in the block
   * @returns {string[]} Pi's entry ids; a message covered twice is listed twice
   */
  entriesUnder(sessionId, handles) {
    const shown = new Map(
      this.rows(
        `SELECT e.message_id, e.entry_id FROM entries e JOIN conversations c ON c.id = e.conversation_id
          WHERE c.session_id = ? AND e.kind = 1`,
        sessionId,
      ).map((row) => [row.message_id, row.entry_id]),
    );
    return handles.flatMap((handle) => this.#messagesUnder(this.summary(handle))).map((message) => shown.get(message) ?? `message ${message}`);
  }

  /**
   * @param {string} handle
   * @returns {number} its row
   */
  summary(handle) {
    const found = this.rows("SELECT id FROM summaries WHERE 's-' || substr(lower(hex(hash)), 1, 10) = ?", handle);
    if (found.length !== 1) throw new Error(`${found.length} summaries are called ${handle}`);
    return found[0].id;
  }

  /**
   * @param {number} summary
   * @returns {number[]}
   */
  #messagesUnder(summary) {
    const edges = this.rows("SELECT message_id, source_id FROM summary_sources WHERE summary_id = ? ORDER BY ordinal", summary);
    return edges.flatMap(({ message_id, source_id }) => (message_id === null ? this.#messagesUnder(source_id) : [message_id]));
  }

  /**
   * The packed data next to a summary's text: a byte for its coding, four for its length, and JSON.
   * @param {Uint8Array | null} column `summaries.extras`
   * @returns {{ quotes?: any[], files?: any, usage?: any }}
   */
  extras(column) {
    if (!column) return {};
    const sealed = Buffer.from(column);
    const json = CODECS[sealed[0]](sealed.subarray(5));
    if (json.length !== sealed.readUInt32LE(1)) throw new Error("the length of the extras of a summary is wrong");
    return JSON.parse(json.toString("utf8"));
  }

  /** Incomplete summaries: there must be none, whatever was aborted or killed. */
  brokenSummaries() {
    return this.rows(
      `SELECT s.id FROM summaries s
        WHERE NOT EXISTS (SELECT 1 FROM summary_sources e WHERE e.summary_id = s.id)
           OR s.messages < 1 OR (s.text = '' AND s.packed IS NULL)`,
    );
  }

  close() {
    this.#database.close();
  }
}

/** How long the lock is held: well below the engine's busy timeout. */
const HELD_MS = 2_000;

/**
 * Slows down a heavy writer of a database: after each successful write, the next one must wait.
 * @param {string} file
 * @param {number} [heldMs] how long
 * @returns {() => Promise<void>} ends it
 */
export function slowed(file, heldMs = HELD_MS) {
  const database = new DatabaseSync(file);
  const version = () => database.prepare("PRAGMA data_version").get()?.data_version;
  let end = (/** @type {string} */ _how) => {};
  const ended = new Promise((resolve) => (end = resolve));
  const pause = (/** @type {number} */ ms) => new Promise((resolve) => {
    const timer = setTimeout(resolve, ms, "go on");
    void ended.then((how) => {
      clearTimeout(timer);
      resolve(how);
    });
  });
  const held = (async () => {
    for (let before = version(), next; next !== "ended"; ) {
      next = await pause(5);
      if (version() === before) continue;
      database.exec("BEGIN IMMEDIATE");
      next = await pause(heldMs);
      database.exec("COMMIT");
      before = version();
    }
    database.close();
  })();
  return async () => {
    end("ended");
    await held;
  };
}

/** @param {string} dir */
export function databasesIn(dir) {
  return existsSync(dir) ? readdirSync(dir).filter((name) => name.endsWith(".db")) : [];
}

/**
 * Copies databases with their logs as they are on the disk now, as after a kill. Not with `copyFile`, which never returns if the file
 * shrinks meanwhile, as a truncated log does: libuv waits for the rest.
 * @param {string} from a folder
 * @param {string} to a folder
 */
export function copyDatabases(from, to) {
  const files = databasesIn(from).flatMap((name) => [name, `${name}-wal`]);
  for (const name of files) if (existsSync(path.join(from, name))) writeFileSync(path.join(to, name), readFileSync(path.join(from, name)));
}

/** Suppresses Node 22's single warning about its sqlite module; other warnings must stay visible. */
async function withoutWarning() {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return await import("node:sqlite");
  } finally {
    process.emitWarning = emitWarning;
  }
}
