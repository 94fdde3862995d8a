import { addBusinessDays } from "./calendar.ts";
import type { Day } from "./invoice.ts";
import type { StoredInvoice } from "./store.ts";

export interface Reminder {
  readonly invoice: number;
  readonly number: string;
  readonly level: 1 | 2;
  readonly since: Day;
}

const LEVELS = [
  { level: 2, days: 20 },
  { level: 1, days: 10 },
] as const;

/** Who is to be reminded today, and how firmly. */
export function remindersFor(unpaid: readonly StoredInvoice[], today: Day): Reminder[] {
  return unpaid.flatMap(({ id, invoice }) => {
    const reached = LEVELS.find(({ days }) => addBusinessDays(invoice.due, days) <= today);
    if (!reached) return [];
    return [{ invoice: id, number: invoice.number, level: reached.level, since: addBusinessDays(invoice.due, reached.days) }];
  });
}
