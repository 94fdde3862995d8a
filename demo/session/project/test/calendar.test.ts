import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { addBusinessDays, addDays, easterSunday, isBusinessDay } from "../src/calendar.ts";

describe("calendar", () => {
  test("knows Easter", () => {
    assert.deepEqual([2024, 2025, 2026, 2027].map(easterSunday), ["2024-03-31", "2025-04-20", "2026-04-05", "2027-03-28"]);
  });

  test("does not work on weekends and holidays", () => {
    assert.equal(isBusinessDay("2026-10-31"), false);
    assert.equal(isBusinessDay("2026-04-06"), false);
    assert.equal(isBusinessDay("2026-11-02"), true);
  });

  test("crosses a year", () => {
    assert.equal(addDays("2026-12-31", 1), "2027-01-01");
    assert.equal(addBusinessDays("2026-12-23", 3), "2026-12-29");
  });
});
