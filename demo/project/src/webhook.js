/** What the payment provider reports to `POST /webhooks/payments`. */
import { transaction } from "./db.js";
import { find, markPaid } from "./orders.js";

/**
 * Handles an event once, however often and at however many servers it arrives: the row in `events` and what follows from the event are one
 * transaction. The money is captured after it, by `settle`, so that the provider gets its answer at once.
 */
export function handle(db, event, now = Date.now()) {
  if (event.type !== "payment.authorized") return "ignored";
  return transaction(db, () => {
    const { changes } = db.prepare("INSERT OR IGNORE INTO events VALUES (?, ?, ?)").run(event.id, event.order, now);
    if (changes === 0) return "known";
    db.prepare("UPDATE orders SET status = 'authorized' WHERE id = ? AND status = 'placed'").run(event.order);
    return "accepted";
  });
}

/** Captures the money of all authorized orders. */
export async function settle(db, payments) {
  for (const { id } of db.prepare("SELECT id FROM orders WHERE status = 'authorized'").all()) {
    const order = find(db, id);
    await payments.capture(order.id, order.total);
    markPaid(db, order.id);
  }
}
