import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DeliveryError } from "../src/deliver/peppol.ts";
import { Worker } from "../src/deliver/worker.ts";
import { money } from "../src/money.ts";
import { Queue } from "../src/queue.ts";
import { openStore } from "../src/store.ts";
import { anInvoice } from "./support.ts";

const silent = { info() {}, warn() {} };

function setUp(send: () => Promise<string>) {
  const store = openStore(":memory:");
  const queue = new Queue(store);
  queue.put(store.insertInvoice("out", anInvoice(), money(11900, "EUR")), "mail");
  return { queue, worker: new Worker("w", store, queue, { mail: send, peppol: send }, silent) };
}

describe("worker", () => {
  test("delivers what is due", async () => {
    const { queue, worker } = setUp(async () => "<1@werft.example>");
    assert.equal(await worker.drain(), 1);
    assert.deepEqual(queue.counts(), { done: 1 });
  });

  test("puts back what failed for a while", async () => {
    const { queue, worker } = setUp(async () => {
      throw new DeliveryError("busy", true);
    });
    assert.equal(await worker.drain(), 0);
    assert.deepEqual(queue.counts(), { waiting: 1 });
  });
});
