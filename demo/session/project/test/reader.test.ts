import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readFile } from "../src/import/reader.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

const HEAD = "number;date;due;currency;seller;country;text;quantity;price;tax";

describe("readFile", () => {
  test("puts the rows of one number into one invoice", () => {
    const outcome = readFile(
      "lager.csv",
      bytes(`${HEAD}\nB-7;2026-10-30;2026-11-13;EUR;Lager Nord;DE;Palette;4;12,50;19\nB-7;2026-10-30;2026-11-13;EUR;Lager Nord;DE;Folie;1;3,99;19\n`),
    );
    assert.equal(outcome.kind, "read");
    if (outcome.kind === "read") assert.deepEqual(outcome.invoices.map((one) => one.lines.length), [2]);
  });

  test("reads the XML from Shenzhen", () => {
    const outcome = readFile(
      "sz.xml",
      bytes(
        "<invoice><number>SZ-1</number><date>2026-10-30</date><due>2026-11-30</due><currency>CNY</currency>" +
          "<seller><name>深圳海联</name><country>CN</country></seller>" +
          "<positions><position><content>Kabel</content><quantity>3</quantity><price>19.90</price><tax>0</tax></position></positions></invoice>",
      ),
    );
    assert.equal(outcome.kind, "read");
    if (outcome.kind === "read") assert.equal(outcome.invoices[0]!.lines[0]!.price.units, 1990n);
  });

  test("rejects a file with a reason, and never throws", () => {
    const outcome = readFile("bad.csv", bytes("number;date\n1;2026-11-02\n"));
    assert.deepEqual(outcome, { kind: "rejected", file: "bad.csv", reason: "line 2: there is no column currency" });
  });
});
