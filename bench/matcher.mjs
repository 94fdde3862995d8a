/**
 * Runs the bare part of a search on a database: which passages contain one of these words, unranked, and the time to read all texts, still
 * packed.
 *
 * It is a separate process: two copies of SQLite in one process would release each other's locks.
 */
import { DatabaseSync } from "node:sqlite";

const connection = new DatabaseSync(process.argv[2], { readOnly: true });
connection.exec("PRAGMA busy_timeout = 5000");
const matching = connection.prepare("SELECT count(*) FROM messages_fts WHERE messages_fts MATCH ?");
const reading = connection.prepare("SELECT count(DISTINCT substr(json, -1)) FROM messages");

process.on("message", (/** @type {{ words?: string[] }} */ { words }) => {
  const began = performance.now();
  if (words) matching.get(words.map((word) => `"${word}"`).join(" OR "));
  else reading.get();
  process.send?.(performance.now() - began);
});
