import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseCsv } from "../src/import/csv.ts";

describe("parseCsv", () => {
  test("finds the separator in the first line", () => {
    assert.deepEqual(parseCsv("a;b\n1;2,5\n")[0]!.cells, { a: "1", b: "2,5" });
    assert.deepEqual(parseCsv("a,b\n1,2\n")[0]!.cells, { a: "1", b: "2" });
  });

  test("keeps quotes and newlines inside quotes", () => {
    const [row] = parseCsv('a;b\n"he said ""no""";"two\nlines"\n');
    assert.deepEqual(row!.cells, { a: 'he said "no"', b: "two\nlines" });
  });

  test("counts lines as an editor does", () => {
    const rows = parseCsv('a\n"x\ny"\nz\n');
    assert.deepEqual(rows.map((row) => row.line), [2, 4]);
  });

  test("skips empty lines and a byte order mark", () => {
    assert.deepEqual(parseCsv("\uFEFFa\n\n1\n").map((row) => row.cells), [{ a: "1" }]);
  });
});
