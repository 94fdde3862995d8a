import assert from "node:assert/strict";
import { test } from "node:test";
import { total } from "../src/money.js";

test("an order's discount is rounded once", () => {
  assert.equal(total([{ price: 1250, quantity: 2 }]), 2500);
  assert.equal(total([{ price: 999, quantity: 3 }], 33), 2008);
});
