import type { Store } from "./store.ts";

/** The next invoice number of a year: `2026-00042`. The tax office wants no gaps. */
export function nextNumber(store: Store, year: number): string {
  const row = store.db.prepare("SELECT last FROM numbers WHERE year = ?").get(year);
  const next = Number(row?.last ?? 0) + 1;
  store.db.prepare("INSERT INTO numbers (year, last) VALUES (?, ?) ON CONFLICT (year) DO UPDATE SET last = excluded.last").run(year, next);
  return `${year}-${String(next).padStart(5, "0")}`;
}
