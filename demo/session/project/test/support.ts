import type { Invoice } from "../src/invoice.ts";
import { money } from "../src/money.ts";

/** An invoice like any other; a test names only what it is about. */
export function anInvoice(more: Partial<Invoice> = {}): Invoice {
  return {
    number: "2026-00001",
    date: "2026-10-01",
    due: "2026-10-15",
    currency: "EUR",
    seller: { name: "Kontor Reuter & Söhne GmbH", country: "DE", taxId: "DE811569869" },
    buyer: { name: "Werft Vegesack", country: "DE", mail: "rechnung@werft.example", peppol: "0204:991-4711-06" },
    lines: [{ text: "Tauwerk 12 mm", quantity: 10n, price: money(1000, "EUR"), taxRate: 19 }],
    ...more,
  };
}
