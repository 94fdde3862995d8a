import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { add, allocate, compare, format, money, scale, sum } from "../src/money.ts";

describe("money", () => {
  test("adds amounts of one currency", () => {
    assert.deepEqual(add(money(1050, "EUR"), money(-50, "EUR")), money(1000, "EUR"));
  });

  test("refuses to mix currencies", () => {
    assert.throws(() => add(money(1, "EUR"), money(1, "JPY")), /cannot mix EUR and JPY/);
  });

  test("sums nothing to zero", () => {
    assert.deepEqual(sum([], "JPY"), money(0, "JPY"));
  });

  test("rounds halves to even", () => {
    assert.equal(scale(money(250, "EUR"), 1n, 100n).units, 2n);
    assert.equal(scale(money(350, "EUR"), 1n, 100n).units, 4n);
    assert.equal(scale(money(-250, "EUR"), 1n, 100n).units, -2n);
  });

  test("splits without losing a cent", () => {
    const parts = allocate(money(100, "EUR"), [1n, 1n, 1n]);
    assert.deepEqual(parts.map((part) => part.units), [34n, 33n, 33n]);
  });

  test("splits a refund like a payment", () => {
    const parts = allocate(money(-100, "EUR"), [1n, 1n, 1n]);
    assert.equal(parts.reduce((total, part) => total + part.units, 0n), -100n);
  });

  test("writes yen without decimals", () => {
    assert.equal(format(money(98000, "JPY")), "98000 JPY");
    assert.equal(format(money(-5, "EUR")), "-0.05 EUR");
  });

  test("compares", () => {
    assert.equal(compare(money(1, "EUR"), money(2, "EUR")), -1);
  });
});
