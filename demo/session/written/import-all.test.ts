import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { importAll } from "../src/import/import-all.ts";
import { openStore, type Store } from "../src/store.ts";

const HEAD = "number;date;due;currency;seller;country;text;quantity;price;tax";
const row = (number: string) => `${number};2026-10-30;2026-11-13;EUR;Lager Nord;DE;Palette;4;12,50;19`;
const silent = { info() {}, warn() {} };

describe("importAll", () => {
  let inbox: string;
  let store: Store;

  beforeEach(() => {
    inbox = mkdtempSync(path.join(os.tmpdir(), "kontor-"));
    store = openStore(":memory:");
  });
  afterEach(() => rmSync(inbox, { recursive: true }));

  test("books, and moves the original", () => {
    writeFileSync(path.join(inbox, "a.csv"), `${HEAD}\n${row("B-1")}\n`);
    assert.deepEqual(importAll(inbox, store, silent, false), { booked: 1, known: 0, rejected: 0 });
    assert.ok(existsSync(path.join(inbox, "verarbeitet", "a.csv")));
  });

  test("knows an invoice that comes under another file name", () => {
    writeFileSync(path.join(inbox, "a.csv"), `${HEAD}\n${row("B-1")}\n`);
    writeFileSync(path.join(inbox, "b.csv"), `${HEAD}\n${row("B-1")}\n${row("B-2")}\n`);
    assert.deepEqual(importAll(inbox, store, silent, false), { booked: 2, known: 1, rejected: 0 });
  });

  test("leaves a rejected file where it is", () => {
    writeFileSync(path.join(inbox, "bad.csv"), "number\n1\n");
    assert.deepEqual(importAll(inbox, store, silent, false), { booked: 0, known: 0, rejected: 1 });
    assert.ok(existsSync(path.join(inbox, "bad.csv")));
  });

  test("changes nothing in a dry run", () => {
    writeFileSync(path.join(inbox, "a.csv"), `${HEAD}\n${row("B-1")}\n`);
    importAll(inbox, store, silent, true);
    assert.deepEqual(store.unpaid("in"), []);
    assert.ok(existsSync(path.join(inbox, "a.csv")));
  });
});
