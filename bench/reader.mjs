/**
 * Reads a few rows and searches for a word in a database continuously, and reports each time.
 *
 * It is a separate process: two copies of SQLite in one process would release each other's locks.
 */
import { DatabaseSync } from "node:sqlite";

const [database, everyMs] = process.argv.slice(2);
const connection = new DatabaseSync(database, { readOnly: true });
connection.exec("PRAGMA busy_timeout = 5000");
const last = connection.prepare("SELECT id, length(json) FROM messages ORDER BY id DESC LIMIT 5");
const found = connection.prepare("SELECT rowid FROM messages_fts WHERE messages_fts MATCH 'interfoldor' LIMIT 5");

/** @type {number[]} */
const times = [];
const reading = setInterval(() => {
  const began = performance.now();
  last.all();
  found.all();
  times.push(performance.now() - began);
}, Number(everyMs));

process.once("message", () => {
  clearInterval(reading);
  connection.close();
  process.send?.(times, () => process.disconnect());
});
