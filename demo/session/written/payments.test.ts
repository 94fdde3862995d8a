import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { money } from "../src/money.ts";
import { matchTransfer, settle } from "../src/payments.ts";
import { openStore, type StoredInvoice } from "../src/store.ts";
import { anInvoice } from "./support.ts";

const stored = (number: string, total = 11900n): StoredInvoice => ({ id: 1, direction: "out", invoice: anInvoice({ number }), total, paidOn: null });
const transfer = (reference: string, amount = 11900n) => ({ day: "2026-11-05", amount, from: "Werft Vegesack", reference });

describe("payments", () => {
  for (const name of ["2026-00391", "RE 2026/00391 danke", "Rechnung 2026 391", "RG-Nr. 202600391", "2026-00388 + 2026-00391"]) {
    test(`finds the invoice in ${name}`, () => {
      assert.equal(matchTransfer(transfer(name), [stored("2026-00390"), stored("2026-00391")]).kind, "paid");
    });
  }

  test("does not go by the amount alone", () => {
    assert.equal(matchTransfer(transfer("wie besprochen"), [stored("2026-00391")]).kind, "unknown");
  });

  test("says how much is missing", () => {
    const match = matchTransfer(transfer("2026-00391", 11800n), [stored("2026-00391")]);
    assert.equal(match.kind === "differs" && match.missing, 100n);
  });

  test("marks as paid, once, and returns the rest", () => {
    const store = openStore(":memory:");
    store.insertInvoice("out", anInvoice({ number: "2026-00001" }), money(11900, "EUR"));
    const open = settle(store, [transfer("2026-00001"), transfer("2026-00001"), transfer("?")]);
    assert.deepEqual(open.map((match) => match.kind), ["unknown", "unknown"]);
    assert.deepEqual(store.unpaid("out"), []);
  });
});
