/** Opens the database and runs the migrations that it has not seen yet, in the order of their names. */
import { readdirSync, readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

const folder = new URL("../migrations/", import.meta.url);

export function open(file) {
  const db = new DatabaseSync(file);
  db.exec("PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 5000; PRAGMA foreign_keys = ON");
  const { user_version: seen } = db.prepare("PRAGMA user_version").get();
  for (const name of readdirSync(folder).sort().slice(seen)) {
    transaction(db, () => db.exec(`${readFileSync(new URL(name, folder), "utf8")}; PRAGMA user_version = ${parseInt(name, 10)}`));
  }
  return db;
}

/** Runs `work` in one transaction. Nothing of it stays if it throws. */
export function transaction(db, work) {
  db.exec("BEGIN IMMEDIATE");
  try {
    const result = work();
    db.exec("COMMIT");
    return result;
  } catch (error) {
    db.exec("ROLLBACK");
    throw error;
  }
}
