import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { remindersFor } from "../src/dunning.ts";
import type { StoredInvoice } from "../src/store.ts";
import { anInvoice } from "./support.ts";

const stored = (due: string): StoredInvoice => ({ id: 1, direction: "out", invoice: anInvoice({ due }), total: 11900n, paidOn: null });

describe("dunning", () => {
  test("leaves people alone for ten business days", () => {
    assert.deepEqual(remindersFor([stored("2026-11-02")], "2026-11-13"), []);
  });

  test("reminds after ten, and again after twenty", () => {
    assert.equal(remindersFor([stored("2026-11-02")], "2026-11-16")[0]?.level, 1);
    assert.equal(remindersFor([stored("2026-11-02")], "2026-11-30")[0]?.level, 2);
  });
});
