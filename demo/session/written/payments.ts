import type { Day } from "./invoice.ts";
import type { Store, StoredInvoice } from "./store.ts";

/** A line of the bank's statement. */
export interface Transfer {
  readonly day: Day;
  readonly amount: bigint;
  readonly from: string;
  readonly reference: string;
}

export type Match =
  | { kind: "paid"; invoice: StoredInvoice; transfer: Transfer }
  | { kind: "differs"; invoice: StoredInvoice; transfer: Transfer; missing: bigint }
  | { kind: "unknown"; transfer: Transfer };

/** Our numbers as people type them: `2026-00391`, `2026 391`, `RE2026/00391`, `RG-Nr. 202600391`. */
const NUMBER = /(20\d\d)\s*[-/. ]?\s*0*(\d{1,5})(?!\d)/g;

/**
 * Finds the invoice a transfer pays.
 *
 * By the number in the reference, never by the amount alone: two customers of ours order the same crate every month.
 */
export function matchTransfer(transfer: Transfer, unpaid: readonly StoredInvoice[]): Match {
  const numbers = [...transfer.reference.matchAll(NUMBER)].map(([, year, number]) => `${year}-${number!.padStart(5, "0")}`);
  const named = unpaid.filter(({ invoice }) => numbers.includes(invoice.number));
  const exact = named.find(({ total }) => total === transfer.amount);
  if (exact) return { kind: "paid", invoice: exact, transfer };
  const [first] = named;
  if (first) return { kind: "differs", invoice: first, transfer, missing: first.total - transfer.amount };
  return { kind: "unknown", transfer };
}

/** Marks as paid what is paid to the cent, and returns the rest for a person to look at. */
export function settle(store: Store, transfers: readonly Transfer[]): Match[] {
  return store.transaction(() => {
    const open: Match[] = [];
    for (const transfer of transfers) {
      const match = matchTransfer(transfer, store.unpaid("out"));
      if (match.kind === "paid") store.markPaid(match.invoice.id, transfer.day);
      else open.push(match);
    }
    return open;
  });
}
