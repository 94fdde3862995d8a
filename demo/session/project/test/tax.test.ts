import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { money } from "../src/money.ts";
import { isReverseCharge, totalsOf } from "../src/tax.ts";
import { anInvoice } from "./support.ts";

describe("tax", () => {
  test("adds tax by rate", () => {
    const line = (taxRate: number, units: number) => ({ text: "x", quantity: 1n, price: money(units, "EUR"), taxRate });
    const totals = totalsOf(anInvoice({ lines: [line(7, 1000), line(19, 1000), line(19, 500)] }));
    assert.deepEqual(totals.byRate.map(({ rate, net, tax }) => [rate, net.units, tax.units]), [[19, 1500n, 285n], [7, 1000n, 70n]]);
    assert.equal(totals.gross.units, 2855n);
  });

  test("leaves the tax to a business in another EU country", () => {
    const buyer = { name: "Havn A/S", country: "DK", taxId: "DK12345678" };
    assert.equal(isReverseCharge(anInvoice({ buyer })), true);
    assert.equal(totalsOf(anInvoice({ buyer })).tax.units, 0n);
  });

  test("taxes a private buyer abroad", () => {
    assert.equal(isReverseCharge(anInvoice({ buyer: { name: "Jens", country: "DK" } })), false);
  });
});
