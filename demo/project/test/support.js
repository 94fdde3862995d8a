import { open } from "../src/db.js";
import { place } from "../src/orders.js";
import { reserve } from "../src/cart.js";

/** A shop with one product, of which there are 3 at $12.50. */
export function shop() {
  const db = open(":memory:");
  db.exec("INSERT INTO products VALUES (1, 'Lantern', 1250, 3)");
  return db;
}

export function order(db, quantity = 1) {
  reserve(db, "cart", 1, quantity);
  return place(db, "cart", { customer: "Zoë Müller", email: "zoe@example.com" });
}

/** A provider that remembers what was captured. `answers` are the statuses of its first answers. */
export function provider(...answers) {
  const captured = new Map();
  const requests = [];
  const fetch = async (_url, { headers, body }) => {
    const { order, amount } = JSON.parse(body);
    const key = headers["idempotency-key"] ?? `no key ${requests.length}`;
    requests.push(key);
    if (!captured.has(key)) captured.set(key, { order, amount });
    return Response.json(captured.get(key), { status: answers.shift() ?? 201 });
  };
  return { fetch, requests, charged: () => [...captured.values()] };
}
