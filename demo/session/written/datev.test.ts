import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { datevBatch } from "../src/datev.ts";
import type { Invoice } from "../src/invoice.ts";
import { money } from "../src/money.ts";
import { anInvoice } from "./support.ts";

const batch = (...invoices: Invoice[]) => {
  const stored = invoices.map((invoice, index) => ({ id: index, direction: "out" as const, invoice, total: 0n, paidOn: null }));
  return new TextDecoder("windows-1252").decode(datevBatch(stored, "2026-10")).split("\r\n").slice(1, -1);
};

describe("datev", () => {
  test("writes a row with a decimal comma", () => {
    assert.deepEqual(batch(anInvoice()), ["119,00;S;EUR;10000;4400;0110;2026-00001;Werft Vegesack"]);
  });

  test("writes a row for each tax rate", () => {
    const [line] = anInvoice().lines;
    const rows = batch(anInvoice({ lines: [line!, { ...line!, taxRate: 7 }] }));
    assert.deepEqual(rows.map((row) => row.split(";").slice(0, 5).join(" ")), ["119,00 S EUR 10000 4400", "107,00 S EUR 10000 4300"]);
  });

  test("books a credit on the other side", () => {
    const [line] = anInvoice().lines;
    const [row] = batch(anInvoice({ lines: [{ ...line!, quantity: -1n }] }));
    assert.ok(row!.startsWith("11,90;H;"));
  });

  test("rounds a half cent away from zero, as DATEV does", () => {
    const [row] = batch(anInvoice({ lines: [{ text: "x", quantity: 1n, price: money(150, "EUR"), taxRate: 19 }] }));
    assert.ok(row!.startsWith("1,79;"));
  });

  test("leaves other months out", () => {
    assert.deepEqual(batch(anInvoice({ date: "2026-09-30" })), []);
  });
});
