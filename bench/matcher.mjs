/**
 * A process that asks a database for the bare part of a search: which passages hold one of these words, unranked, and how
 * long all texts take to be read, packed as they are.
 *
 * A process of its own: two copies of SQLite in one would take each other's locks away.
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
