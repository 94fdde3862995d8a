import { readFileSync } from "node:fs";
import { problemsOf, type Invoice } from "../src/invoice.ts";
import { nextNumber } from "../src/numbering.ts";
import { Queue } from "../src/queue.ts";
import { openStore } from "../src/store.ts";
import { totalsOf } from "../src/tax.ts";

/** node scripts/bill.ts <database> <form.json> */
const [database, form] = process.argv.slice(2);
const store = openStore(database!);

export function bill(file: string): string {
  const raw = JSON.parse(readFileSync(file, "utf8"));
  const invoice: Invoice = {
    ...raw,
    number: nextNumber(store, Number(raw.date.slice(0, 4))),
    lines: raw.lines.map((line: any) => ({
      ...line,
      quantity: BigInt(line.quantity),
      price: { units: BigInt(line.price.units), currency: raw.currency },
    })),
  };
  const problems = problemsOf(invoice);
  if (problems.length > 0) throw new Error(problems.join("; "));
  const id = store.insertInvoice("out", invoice, totalsOf(invoice).gross);
  new Queue(store).put(id, invoice.buyer.peppol ? "peppol" : "mail");
  return invoice.number;
}

process.stdout.write(`${bill(form!)}\n`);
