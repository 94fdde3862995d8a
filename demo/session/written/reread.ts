import { readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { readFile } from "../src/import/reader.ts";

/**
 * Reads originals again and corrects the partner's name of the invoices that were booked under a garbled one.
 *
 *   node scripts/reread.ts <database> <id> …
 *
 * The originals are looked up in verarbeitet/ by invoice number. Nothing but `partner` and `body` is written, all in one
 * transaction, and only where number, date and total still agree.
 */
const [database, ...ids] = process.argv.slice(2);
if (!database || ids.length === 0) throw new Error("usage: reread.ts <database> <id> …");

const index = JSON.parse(readFileSync("verarbeitet/index.json", "utf8")) as Record<string, string>;
const db = new DatabaseSync(database);
let corrected = 0;

db.exec("BEGIN IMMEDIATE");
for (const id of ids) {
  const row = db.prepare("SELECT number, date, partner FROM invoices WHERE id = ?").get(Number(id));
  if (!row) throw new Error(`there is no invoice ${id}`);
  const file = index[String(row.number)]!;
  const outcome = readFile(file, readFileSync(`verarbeitet/${file}`));
  if (outcome.kind === "rejected") throw new Error(`${file}: ${outcome.reason}`);
  const invoice = outcome.invoices.find((one) => one.number === row.number && one.date === row.date);
  if (!invoice || invoice.seller.name === row.partner) continue;
  const body = JSON.stringify(invoice, (_key, value) => (typeof value === "bigint" ? `${value}n` : value));
  db.prepare("UPDATE invoices SET partner = ?, body = ? WHERE id = ?").run(invoice.seller.name, body, Number(id));
  process.stdout.write(`${id} ${row.number} → ${invoice.seller.name}\n`);
  corrected++;
}
db.exec("COMMIT");
process.stdout.write(`${corrected} rows corrected, ${ids.length - corrected} left as they are\n`);
