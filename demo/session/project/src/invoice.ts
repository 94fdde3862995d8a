import type { Currency, Money } from "./money.ts";

/** A date without a time, as `2026-11-02`: an invoice is due on a day, not at an hour. */
export type Day = string;

export interface Line {
  readonly text: string;
  readonly quantity: bigint;
  readonly price: Money;
  /** Per cent, as an integer: 19, 7, 10, 0. */
  readonly taxRate: number;
}

export interface Party {
  readonly name: string;
  readonly country: string;
  readonly taxId?: string;
  /** `iso6523:number`, where the party can be reached through Peppol. */
  readonly peppol?: string;
  readonly mail?: string;
}

export interface Invoice {
  readonly number: string;
  readonly date: Day;
  readonly due: Day;
  readonly currency: Currency;
  readonly seller: Party;
  readonly buyer: Party;
  readonly lines: readonly Line[];
}

/** What is wrong with an invoice, in words for the person who sent it. An empty list is a good invoice. */
export function problemsOf(invoice: Invoice): string[] {
  const problems: string[] = [];
  if (invoice.number.trim() === "") problems.push("the invoice has no number");
  if (!isDay(invoice.date)) problems.push(`the date ${JSON.stringify(invoice.date)} is not a day`);
  if (!isDay(invoice.due)) problems.push(`the due date ${JSON.stringify(invoice.due)} is not a day`);
  if (invoice.due < invoice.date) problems.push(`it is due on ${invoice.due}, before it was written on ${invoice.date}`);
  if (invoice.lines.length === 0) problems.push("it has no lines");
  for (const [index, line] of invoice.lines.entries()) {
    if (line.price.currency !== invoice.currency) problems.push(`line ${index + 1} is in ${line.price.currency}, not ${invoice.currency}`);
    if (line.quantity === 0n) problems.push(`line ${index + 1} has the quantity 0`);
  }
  return problems;
}

export function isDay(text: string): text is Day {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}
