import type { Invoice } from "./invoice.ts";
import { problemsOf } from "./invoice.ts";
import { nextNumber } from "./numbering.ts";
import type { Queue } from "./queue.ts";
import type { Store } from "./store.ts";
import { totalsOf } from "./tax.ts";

/** An invoice that has no number yet: it gets one when it is issued, not before. */
export type Draft = Omit<Invoice, "number">;

export class DraftError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`the draft cannot be issued: ${problems.join("; ")}`);
    this.name = "DraftError";
    this.problems = problems;
  }
}

/**
 * Numbers, books and queues an invoice, all in one transaction: a number that is taken belongs to an invoice that exists.
 */
export function issue(store: Store, queue: Queue, draft: Draft): { id: number; number: string } {
  return store.transaction(() => {
    const number = nextNumber(store, Number(draft.date.slice(0, 4)));
    const invoice: Invoice = { ...draft, number };
    const problems = problemsOf(invoice);
    if (problems.length > 0) throw new DraftError(problems);
    const id = store.insertInvoice("out", invoice, totalsOf(invoice).gross)!;
    queue.put(id, invoice.buyer.peppol ? "peppol" : "mail");
    return { id, number };
  });
}
