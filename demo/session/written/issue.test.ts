import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { DraftError, issue, type Draft } from "../src/issue.ts";
import { Queue } from "../src/queue.ts";
import { openStore, type Store } from "../src/store.ts";
import { anInvoice } from "./support.ts";

describe("issue", () => {
  let store: Store;
  let queue: Queue;
  const { number: _, ...draft } = anInvoice();

  beforeEach(() => {
    store = openStore(":memory:");
    queue = new Queue(store);
  });

  test("numbers from one, year by year", () => {
    const numbers = [draft, draft, { ...draft, date: "2027-01-04", due: "2027-01-18" }].map((one) => issue(store, queue, one).number);
    assert.deepEqual(numbers, ["2026-00001", "2026-00002", "2027-00001"]);
  });

  test("gives the number back when the draft is bad", () => {
    const bad: Draft = { ...draft, lines: [] };
    assert.throws(() => issue(store, queue, bad), DraftError);
    assert.equal(issue(store, queue, draft).number, "2026-00001");
  });

  test("gives the number back when booking fails", () => {
    store.db.exec("CREATE TRIGGER full BEFORE INSERT ON deliveries BEGIN SELECT RAISE(ABORT, 'disk full'); END");
    assert.throws(() => issue(store, queue, draft), /disk full/);
    store.db.exec("DROP TRIGGER full");
    assert.equal(issue(store, queue, draft).number, "2026-00001");
  });

  test("takes Peppol where there is an address, mail elsewhere", () => {
    issue(store, queue, draft);
    issue(store, queue, { ...draft, buyer: { name: "Jens", country: "DK", mail: "jens@example.dk" } });
    assert.deepEqual([queue.take("w")?.channel, queue.take("w")?.channel], ["peppol", "mail"]);
  });
});
