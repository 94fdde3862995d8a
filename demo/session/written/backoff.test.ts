import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { backoff } from "../src/backoff.ts";

describe("backoff", () => {
  test("doubles its ceiling", () => {
    assert.deepEqual([1, 2, 3].map((attempt) => backoff(attempt, () => 0.5)), [1_000, 2_000, 4_000]);
  });

  test("has a cap", () => {
    assert.equal(backoff(40, () => 1), 15 * 60_000);
  });

  test("waits at least as long as it was told to", () => {
    assert.equal(backoff(1, () => 0, 30_000), 30_000);
    assert.equal(backoff(5, () => 1, 1_000), 32_000);
  });
});
