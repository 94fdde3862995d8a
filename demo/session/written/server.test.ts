import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { money } from "../src/money.ts";
import { MAX_ATTEMPTS, Queue } from "../src/queue.ts";
import { createServer } from "../src/server.ts";
import { openStore } from "../src/store.ts";
import { anInvoice } from "./support.ts";

describe("server", () => {
  const store = openStore(":memory:");
  const queue = new Queue(store);
  const server = createServer(store, queue);
  let url = "";

  before(async () => {
    for (let n = 1; n <= 5; n++) store.insertInvoice("out", anInvoice({ number: `2026-0000${n}` }), money(11900, "EUR"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => server.close());

  const get = async (path: string) => (await fetch(`${url}${path}`)).json() as Promise<any>;
  const post = (path: string) => fetch(`${url}${path}`, { method: "POST" });

  test("says that it is well", async () => {
    assert.deepEqual(await get("/health"), { ok: true, deliveries: {} });
  });

  test("lists what is unpaid", async () => {
    const { invoices } = await get("/invoices/unpaid");
    assert.deepEqual(invoices.map((one: { total: string }) => one.total), ["11900", "11900", "11900", "11900", "11900"]);
  });

  test("pages by cursor, and the pages make the whole", async () => {
    const numbers: string[] = [];
    let after: string | null = "";
    while (after !== null) {
      const page: { invoices: { number: string }[]; next: string | null } = await get(`/invoices?limit=2${after && `&after=${after}`}`);
      numbers.push(...page.invoices.map((one) => one.number));
      after = page.next;
    }
    assert.deepEqual(numbers, ["2026-00001", "2026-00002", "2026-00003", "2026-00004", "2026-00005"]);
  });

  test("refuses a limit that makes no sense", async () => {
    assert.equal((await fetch(`${url}/invoices?limit=0`)).status, 400);
    assert.equal((await fetch(`${url}/invoices?limit=many`)).status, 400);
  });

  test("tries a dead delivery again, and no other", async () => {
    const id = queue.put(1, "mail");
    assert.equal((await post(`/deliveries/${id}/retry`)).status, 409);
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      queue.take("w");
      queue.failed(id, "w", "no", 0);
    }
    assert.equal((await post(`/deliveries/${id}/retry`)).status, 202);
    assert.deepEqual(queue.counts(), { waiting: 1 });
    assert.equal((await post("/deliveries/999/retry")).status, 404);
  });

  test("knows no other route", async () => {
    assert.equal((await fetch(`${url}/nothing`)).status, 404);
  });
});
