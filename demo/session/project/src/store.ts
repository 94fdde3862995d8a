import { readdirSync, readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { Invoice } from "./invoice.ts";
import type { Money } from "./money.ts";

const MIGRATIONS = new URL("../migrations/", import.meta.url);

/** The database, opened and brought up to date. `:memory:` for tests. */
export function openStore(path: string): Store {
  const db = new DatabaseSync(path);
  db.exec("PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON; PRAGMA busy_timeout = 5000;");
  migrate(db);
  return new Store(db);
}

export interface StoredInvoice {
  readonly id: number;
  readonly direction: "in" | "out";
  readonly invoice: Invoice;
  readonly total: bigint;
  readonly paidOn: string | null;
}

export class Store {
  readonly db: DatabaseSync;

  constructor(db: DatabaseSync) {
    this.db = db;
  }

  /** Everything in `work`, or nothing of it. */
  transaction<T>(work: () => T): T {
    this.db.exec("BEGIN IMMEDIATE");
    try {
      const result = work();
      this.db.exec("COMMIT");
      return result;
    } catch (error) {
      this.db.exec("ROLLBACK");
      throw error;
    }
  }

  insertInvoice(direction: "in" | "out", invoice: Invoice, total: Money): number {
    const partner = direction === "in" ? invoice.seller.name : invoice.buyer.name;
    const { lastInsertRowid } = this.db
      .prepare(
        `INSERT INTO invoices (direction, number, partner, date, due, currency, total, body)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      )
      .run(direction, invoice.number, partner, invoice.date, invoice.due, invoice.currency, String(total.units), toJson(invoice));
    return Number(lastInsertRowid);
  }

  invoice(id: number): StoredInvoice | undefined {
    const row = this.db.prepare("SELECT id, direction, total, body, paid_on FROM invoices WHERE id = ?").get(id);
    return row && fromRow(row);
  }

  unpaid(direction: "in" | "out"): StoredInvoice[] {
    const rows = this.db
      .prepare("SELECT id, direction, total, body, paid_on FROM invoices WHERE direction = ? AND paid_on IS NULL ORDER BY due, id")
      .all(direction);
    return rows.map(fromRow);
  }

  markPaid(id: number, day: string): void {
    this.db.prepare("UPDATE invoices SET paid_on = ? WHERE id = ? AND paid_on IS NULL").run(day, id);
  }

  close(): void {
    this.db.close();
  }
}

function migrate(db: DatabaseSync): void {
  const { user_version: version } = db.prepare("PRAGMA user_version").get() as { user_version: number };
  const files = readdirSync(MIGRATIONS).filter((file) => file.endsWith(".sql")).sort();
  for (const [index, file] of files.entries()) {
    if (index < version) continue;
    db.exec("BEGIN IMMEDIATE");
    db.exec(readFileSync(new URL(file, MIGRATIONS), "utf8"));
    db.exec(`PRAGMA user_version = ${index + 1}`);
    db.exec("COMMIT");
  }
}

function fromRow(row: Record<string, unknown>): StoredInvoice {
  return {
    id: Number(row.id),
    direction: row.direction as "in" | "out",
    invoice: fromJson(String(row.body)),
    total: BigInt(String(row.total)),
    paidOn: row.paid_on as string | null,
  };
}

/** JSON has no bigint: they travel as `"123n"`. */
function toJson(invoice: Invoice): string {
  return JSON.stringify(invoice, (_key, value) => (typeof value === "bigint" ? `${value}n` : value));
}

function fromJson(text: string): Invoice {
  return JSON.parse(text, (_key, value) => (typeof value === "string" && /^-?\d+n$/.test(value) ? BigInt(value.slice(0, -1)) : value));
}
