import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fingerprintOf } from "../src/import/fingerprint.ts";
import { money } from "../src/money.ts";
import { openStore } from "../src/store.ts";
import { anInvoice } from "./support.ts";

describe("fingerprint", () => {
  test("does not look at descriptions", () => {
    const other = anInvoice({ lines: [{ ...anInvoice().lines[0]!, text: "Rope 12 mm" }] });
    assert.equal(fingerprintOf(other, 11900n), fingerprintOf(anInvoice(), 11900n));
  });

  test("looks at the total", () => {
    assert.notEqual(fingerprintOf(anInvoice(), 11900n), fingerprintOf(anInvoice(), 11901n));
  });

  test("takes wide letters for narrow ones", () => {
    const wide = anInvoice({ number: "２０２６-00001" });
    assert.equal(fingerprintOf(wide, 1n), fingerprintOf(anInvoice(), 1n));
  });

  test("books an invoice once", () => {
    const store = openStore(":memory:");
    const total = money(11900, "EUR");
    const fingerprint = fingerprintOf(anInvoice(), total.units);
    assert.equal(store.insertInvoice("in", anInvoice(), total, fingerprint), 1);
    assert.equal(store.insertInvoice("in", anInvoice(), total, fingerprint), undefined);
  });
});
