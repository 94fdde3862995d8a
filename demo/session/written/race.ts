import { fork } from "node:child_process";
import { mkdtempSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { Queue } from "../src/queue.ts";
import { openStore } from "../src/store.ts";
import { money } from "../src/money.ts";
import { anInvoice } from "../test/support.ts";

/**
 * Lets several processes empty one queue, and counts what was taken how often.
 *
 *   node scripts/race.ts <processes> <deliveries>
 */
const [processes = "2", deliveries = "2000", file] = process.argv.slice(2);

if (file) {
  const queue = new Queue(openStore(file));
  const taken: number[] = [];
  for (let delivery = queue.take(String(process.pid)); delivery; delivery = queue.take(String(process.pid))) taken.push(delivery.id);
  process.send!(taken);
  process.disconnect();
} else {
  const shared = path.join(mkdtempSync(path.join(os.tmpdir(), "race-")), "kontor.db");
  const store = openStore(shared);
  const invoice = Number(store.insertInvoice("out", anInvoice(), money(11900, "EUR")));
  const queue = new Queue(store);
  for (let n = 0; n < Number(deliveries); n++) queue.put(invoice, "mail");

  const counts = new Map<number, number>();
  const children = Array.from({ length: Number(processes) }, () => fork(import.meta.filename, [processes, deliveries, shared]));
  const all = children.map((child) => new Promise<number[]>((resolve) => child.once("message", (ids) => resolve(ids as number[]))));
  for (const id of (await Promise.all(all)).flat()) counts.set(id, (counts.get(id) ?? 0) + 1);
  const often = [...counts.values()].filter((count) => count > 1).length;
  process.stdout.write(`${deliveries} deliveries, ${processes} processes: ${counts.size} taken, ${Number(deliveries) - counts.size} never, ${often} taken twice\n`);
}
