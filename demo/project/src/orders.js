/** Orders: placing, listing, and what the webhook changes. */
import { contents } from "./cart.js";
import { transaction } from "./db.js";
import { total } from "./money.js";

/** Turns a cart into an order. Returns its id. */
export function place(db, cart, { customer, email, percent = 0 }, now = Date.now()) {
  return transaction(db, () => {
    const items = contents(db, cart, now);
    if (items.length === 0) throw new Error("the cart is empty");
    const { id } = db.prepare("INSERT INTO orders (customer, email, total, created) VALUES (?, ?, ?, ?) RETURNING id").get(customer, email, total(items, percent), now);
    for (const { product, quantity, price } of items) {
      db.prepare("INSERT INTO items VALUES (?, ?, ?, ?)").run(id, product, quantity, price);
      db.prepare("UPDATE products SET stock = stock - ? WHERE id = ?").run(quantity, product);
    }
    db.prepare("DELETE FROM reservations WHERE cart = ?").run(cart);
    return id;
  });
}

export const find = (db, id) => db.prepare("SELECT * FROM orders WHERE id = ?").get(id);
export const markPaid = (db, id) => db.prepare("UPDATE orders SET status = 'paid' WHERE id = ?").run(id);

/** A page of orders for /admin/orders, newest first, each with its items. */
export function list(db, { before = Number.MAX_SAFE_INTEGER, limit = 50 } = {}) {
  const orders = db.prepare("SELECT * FROM orders WHERE id < ? ORDER BY id DESC LIMIT ?").all(before, limit);
  const items = db.prepare(`SELECT i."order", name, quantity, i.price FROM items i JOIN products p ON p.id = i.product WHERE i."order" BETWEEN ? AND ?`).all(orders.at(-1)?.id ?? 0, orders[0]?.id ?? 0);
  const byOrder = Map.groupBy(items, (item) => item.order);
  return orders.map((order) => ({ ...order, items: byOrder.get(order.id) ?? [] }));
}
