import type { Store } from "./store.ts";

export interface Delivery {
  readonly id: number;
  readonly invoice: number;
  readonly channel: "peppol" | "mail";
  readonly attempts: number;
}

/** How long a worker may take before others think it is dead. */
export const LEASE_MS = 90_000;

/** After this many attempts somebody has to look at it. */
export const MAX_ATTEMPTS = 8;

/** What is still to be delivered. Several workers, in several processes, may take from it. */
export class Queue {
  readonly #store: Store;
  readonly #now: () => number;

  constructor(store: Store, now: () => number = Date.now) {
    this.#store = store;
    this.#now = now;
  }

  put(invoice: number, channel: Delivery["channel"]): number {
    const { lastInsertRowid } = this.#store.db.prepare("INSERT INTO deliveries (invoice, channel) VALUES (?, ?)").run(invoice, channel);
    return Number(lastInsertRowid);
  }

  /** The next delivery that is due, leased to this worker; undefined when there is none. */
  take(worker: string): Delivery | undefined {
    const now = this.#now();
    const row = this.#store.db
      .prepare(
        `SELECT id, invoice, channel, attempts FROM deliveries
          WHERE (state = 'waiting' AND (next_at IS NULL OR next_at <= ?))
             OR (state = 'leased' AND leased_until < ?)
          ORDER BY id LIMIT 1`,
      )
      .get(now, now);
    if (!row) return undefined;
    this.#store.db
      .prepare("UPDATE deliveries SET state = 'leased', leased_by = ?, leased_until = ?, attempts = attempts + 1 WHERE id = ?")
      .run(worker, now + LEASE_MS, row.id);
    return { id: Number(row.id), invoice: Number(row.invoice), channel: row.channel as Delivery["channel"], attempts: Number(row.attempts) + 1 };
  }

  done(id: number): void {
    this.#store.db.prepare("UPDATE deliveries SET state = 'done', leased_by = NULL, leased_until = NULL WHERE id = ?").run(id);
  }

  /** Puts it back for later, or gives it up after too many attempts. */
  failed(id: number, error: string, delayMs: number): void {
    this.#store.db
      .prepare(
        `UPDATE deliveries
            SET state = CASE WHEN attempts >= ? THEN 'dead' ELSE 'waiting' END,
                next_at = ?, last_error = ?, leased_by = NULL, leased_until = NULL
          WHERE id = ?`,
      )
      .run(MAX_ATTEMPTS, this.#now() + delayMs, error, id);
  }

  counts(): Record<string, number> {
    const rows = this.#store.db.prepare("SELECT state, count(*) AS n FROM deliveries GROUP BY state").all();
    return Object.fromEntries(rows.map((row) => [String(row.state), Number(row.n)]));
  }
}
