/** Reservations: goods in a cart are kept for a while, so that nobody else can buy them. */
import { transaction } from "./db.js";

const KEPT_FOR = 15 * 60_000;

/** Reserves goods, or returns false if there are not enough. */
export function reserve(db, cart, product, quantity, now = Date.now()) {
  return transaction(db, () => {
    db.prepare("DELETE FROM reservations WHERE until <= ?").run(now);
    const { left } = db.prepare(`SELECT stock - (SELECT coalesce(sum(quantity), 0) FROM reservations WHERE product = p.id) AS left FROM products p WHERE id = ?`).get(product);
    if (left < quantity) return false;
    db.prepare("INSERT INTO reservations VALUES (?, ?, ?, ?)").run(product, cart, quantity, now + KEPT_FOR);
    return true;
  });
}

/** What is in a cart and still kept. */
export const contents = (db, cart, now = Date.now()) =>
  db.prepare("SELECT product, name, price, sum(quantity) AS quantity FROM reservations JOIN products p ON p.id = product WHERE cart = ? AND until > ? GROUP BY product").all(cart, now);
