import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseAmount } from "../src/amounts.ts";
import type { Currency } from "../src/money.ts";

const CASES: [text: string, currency: Currency, units: bigint][] = [
  ["1.234,56", "EUR", 123456n],
  ["1,234.56", "USD", 123456n],
  ["12,5", "EUR", 1250n],
  ["1.234", "EUR", 123400n],
  ["¥98,000", "JPY", 98000n],
  ["98000 円", "JPY", 98000n],
  ["-12,50", "EUR", -1250n],
  ["1'000.00", "EUR", 100000n],
];

describe("parseAmount", () => {
  for (const [text, currency, units] of CASES) {
    test(`reads ${text} ${currency}`, () => {
      assert.deepEqual(parseAmount(text, currency), { units, currency });
    });
  }

  test("says what it could not read", () => {
    assert.throws(() => parseAmount("about 12", "EUR"), /not an amount in EUR: "about 12"/);
  });
});
