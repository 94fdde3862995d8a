import type { StoredInvoice } from "./store.ts";
import { totalsOf } from "./tax.ts";

/** Revenue accounts of chart SKR04, by tax rate. */
const REVENUE: Record<number, string> = { 19: "4400", 7: "4300", 0: "4120" };

const HEADER = ["Umsatz", "S/H", "WKZ", "Konto", "Gegenkonto", "Belegdatum", "Belegfeld 1", "Buchungstext"];

/**
 * One month's invoices as a DATEV booking batch: windows-1252, `;`, decimal comma, a row per invoice and tax rate.
 *
 * DATEV takes no bookings of zero and at most 60 characters of text.
 */
export function datevBatch(invoices: readonly StoredInvoice[], month: string): Uint8Array {
  const rows = invoices.filter(({ invoice }) => invoice.date.startsWith(month)).flatMap(rowsOf);
  return latin([HEADER, ...rows].map((row) => `${row.map(cell).join(";")}\r\n`).join(""));
}

function rowsOf({ invoice }: StoredInvoice): string[][] {
  return totalsOf(invoice)
    .byRate.filter(({ net }) => net.units !== 0n)
    .map(({ rate, net, tax }) => {
      const gross = net.units + tax.units;
      const account = REVENUE[rate];
      if (!account) throw new RangeError(`no revenue account for ${rate} %`);
      const [, month, day] = invoice.date.split("-");
      return [
        decimal(gross < 0n ? -gross : gross),
        gross < 0n ? "H" : "S",
        invoice.currency,
        "10000",
        account,
        `${day}${month}`,
        invoice.number,
        invoice.buyer.name.slice(0, 60),
      ];
    });
}

function decimal(cents: bigint): string {
  const text = cents.toString().padStart(3, "0");
  return `${text.slice(0, -2)},${text.slice(-2)}`;
}

function cell(text: string): string {
  return /[;"\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** DATEV reads windows-1252 only. What it has no letter for becomes a question mark, as in DATEV itself. */
function latin(text: string): Uint8Array {
  return Uint8Array.from([...text].map((letter) => (letter === "€" ? 0x80 : letter.charCodeAt(0) < 0x100 ? letter.charCodeAt(0) : 0x3f)));
}
