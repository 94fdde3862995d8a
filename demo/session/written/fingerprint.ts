import { createHash } from "node:crypto";
import type { Invoice } from "../invoice.ts";

/**
 * What makes two files the same invoice: who sent it, its number, its date, its total.
 *
 * Not the file name and not the texts of the lines: Osaka sends an invoice again, under another name and with better
 * descriptions, when somebody over there has found a typing error.
 */
export function fingerprintOf(invoice: Invoice, total: bigint): string {
  const parts = [plain(invoice.seller.name), plain(invoice.number), invoice.date, invoice.currency, String(total)];
  return createHash("sha256").update(parts.join("\u0000")).digest("hex");
}

/** Full-width and half-width, upper and lower case, and spaces make no difference in a name. */
function plain(text: string): string {
  return text.normalize("NFKC").toLowerCase().replace(/\s+/g, "");
}
