import assert from "node:assert/strict";
import { test } from "node:test";
import { find } from "../src/orders.js";
import { Payments } from "../src/payments.js";
import { handle, settle } from "../src/webhook.js";
import { order, provider, shop } from "./support.js";

const event = (id) => ({ id: "evt_1", type: "payment.authorized", order: id });

test("an authorized payment is captured and the order paid", async () => {
  const [db, bank] = [shop(), provider()];
  const id = order(db);
  assert.equal(handle(db, event(id)), "accepted");
  await settle(db, new Payments({ fetch: bank.fetch }));
  assert.equal(find(db, id).status, "paid");
  assert.deepEqual(bank.charged(), [{ order: id, amount: 1250 }]);
});

test("an event that is delivered three times charges once", async () => {
  const [db, bank] = [shop(), provider()];
  const id = order(db);
  assert.deepEqual([1, 2, 3].map(() => handle(db, event(id))), ["accepted", "known", "known"]);
  await settle(db, new Payments({ fetch: bank.fetch }));
  assert.equal(bank.charged().length, 1);
});

test("two servers that settle at once charge once", async () => {
  const [db, bank] = [shop(), provider()];
  handle(db, event(order(db)));
  const payments = new Payments({ fetch: bank.fetch });
  await Promise.all([settle(db, payments), settle(db, payments)]);
  assert.equal(bank.charged().length, 1);
});
