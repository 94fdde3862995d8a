import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { money } from "../src/money.ts";
import { Queue } from "../src/queue.ts";
import { createServer } from "../src/server.ts";
import { openStore } from "../src/store.ts";
import { anInvoice } from "./support.ts";

describe("server", () => {
  const store = openStore(":memory:");
  const server = createServer(store, new Queue(store));
  let url = "";

  before(async () => {
    store.insertInvoice("out", anInvoice(), money(11900, "EUR"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => server.close());

  test("says that it is well", async () => {
    const response = await fetch(`${url}/health`);
    assert.deepEqual(await response.json(), { ok: true, deliveries: {} });
  });

  test("lists what is unpaid", async () => {
    const { invoices } = (await (await fetch(`${url}/invoices/unpaid`)).json()) as { invoices: { total: string }[] };
    assert.deepEqual(invoices.map((one) => one.total), ["11900"]);
  });

  test("knows no other route", async () => {
    assert.equal((await fetch(`${url}/nothing`)).status, 404);
  });
});
