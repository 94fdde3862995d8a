import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { LEASE_MS, MAX_ATTEMPTS, Queue } from "../src/queue.ts";
import { openStore, type Store } from "../src/store.ts";
import { anInvoice } from "./support.ts";
import { money } from "../src/money.ts";

describe("queue", () => {
  let now = 1_000_000;
  let store: Store;
  let queue: Queue;
  let invoice: number;

  beforeEach(() => {
    store = openStore(":memory:");
    queue = new Queue(store, () => now);
    invoice = store.insertInvoice("out", anInvoice(), money(11900, "EUR"));
  });

  test("hands out in order", () => {
    const first = queue.put(invoice, "mail");
    queue.put(invoice, "mail");
    assert.equal(queue.take("a")?.id, first);
  });

  test("does not hand out what is leased", () => {
    queue.put(invoice, "mail");
    queue.take("a");
    assert.equal(queue.take("b"), undefined);
  });

  test("hands out again when the lease has run out", () => {
    const id = queue.put(invoice, "mail");
    queue.take("a");
    now += LEASE_MS + 1;
    assert.deepEqual(queue.take("b"), { id, invoice, channel: "mail", attempts: 2 });
  });

  test("waits before it tries again", () => {
    queue.put(invoice, "mail");
    queue.failed(queue.take("a")!.id, "busy", 5_000);
    assert.equal(queue.take("a"), undefined);
    now += 5_000;
    assert.equal(queue.take("a")?.attempts, 2);
  });

  test("gives up after too many attempts", () => {
    const id = queue.put(invoice, "mail");
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      queue.take("a");
      queue.failed(id, "no", 0);
    }
    assert.deepEqual(queue.counts(), { dead: 1 });
  });
});
