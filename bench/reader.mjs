/**
 * A thread that reads a few rows and searches a word of a database again and again, and tells how long each time took.
 */
import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";

const { database, everyMs } = workerData;
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
}, everyMs);

parentPort?.once("message", () => {
  clearInterval(reading);
  connection.close();
  parentPort?.postMessage(times);
});
