import assert from "node:assert/strict";
import { test } from "node:test";
import { reserve } from "../src/cart.js";
import { shop } from "./support.js";

test("the last piece is reserved once", () => {
  const db = shop();
  assert.ok(reserve(db, "one", 1, 3));
  assert.ok(!reserve(db, "two", 1, 1));
});

test("a reservation expires after 15 minutes", () => {
  const db = shop();
  const now = Date.now();
  reserve(db, "one", 1, 3, now);
  assert.ok(!reserve(db, "two", 1, 1, now + 15 * 60_000 - 1));
  assert.ok(reserve(db, "two", 1, 1, now + 15 * 60_000));
});
