import assert from "node:assert/strict";
import { test } from "node:test";
import { find, list, place } from "../src/orders.js";
import { order, shop } from "./support.js";

test("an order takes goods from the stock and empties the cart", () => {
  const db = shop();
  assert.equal(find(db, order(db, 2)).total, 2500);
  assert.equal(db.prepare("SELECT stock FROM products").get().stock, 1);
  assert.throws(() => place(db, "cart", {}), /the cart is empty/);
});

test("orders are listed with their items, newest first", () => {
  const db = shop();
  const ids = [order(db), order(db, 2)];
  const listed = list(db);
  assert.deepEqual(listed.map(({ id }) => id), ids.toReversed());
  assert.deepEqual(listed[0].items.map(({ name, quantity }) => [name, quantity]), [["Lantern", 2]]);
});
