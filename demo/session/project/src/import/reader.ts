import { parseAmount } from "../amounts.ts";
import { problemsOf, type Invoice, type Line, type Party } from "../invoice.ts";
import type { Currency } from "../money.ts";
import { parseCsv, type Row } from "./csv.ts";
import { decode } from "./encoding.ts";
import { child, parseXml, textOf, type Element } from "./xml.ts";

/** What became of one file. Nothing is thrown: one bad file must not stop the others. */
export type Outcome =
  | { kind: "read"; file: string; invoices: Invoice[] }
  | { kind: "rejected"; file: string; reason: string };

const US: Party = { name: "Kontor Reuter & Söhne GmbH", country: "DE", taxId: "DE811569869" };

/** Reads one partner's file. The name decides the format, the bytes decide the encoding. */
export function readFile(file: string, bytes: Uint8Array): Outcome {
  try {
    const { text } = decode(bytes);
    const invoices = file.toLowerCase().endsWith(".xml") ? fromXml(text) : fromCsv(text);
    for (const invoice of invoices) {
      const problems = problemsOf(invoice);
      if (problems.length > 0) return { kind: "rejected", file, reason: `${invoice.number}: ${problems.join("; ")}` };
    }
    return { kind: "read", file, invoices };
  } catch (error) {
    return { kind: "rejected", file, reason: error instanceof Error ? error.message : String(error) };
  }
}

/** One row per line; rows of one number are one invoice. */
function fromCsv(text: string): Invoice[] {
  const byNumber = Map.groupBy(parseCsv(text), (row) => cell(row, "number"));
  return [...byNumber].map(([number, rows]) => {
    const [first] = rows as [Row, ...Row[]];
    const currency = cell(first, "currency") as Currency;
    return {
      number,
      date: cell(first, "date"),
      due: cell(first, "due"),
      currency,
      seller: { name: cell(first, "seller"), country: cell(first, "country") },
      buyer: US,
      lines: rows.map((row) => lineOf(row, currency)),
    };
  });
}

function lineOf(row: Row, currency: Currency): Line {
  return {
    text: cell(row, "text"),
    quantity: BigInt(cell(row, "quantity") || "1"),
    price: parseAmount(cell(row, "price"), currency),
    taxRate: Number(cell(row, "tax") || "0"),
  };
}

function cell(row: Row, name: string): string {
  const value = row.cells[name];
  if (value === undefined) throw new Error(`line ${row.line}: there is no column ${name}`);
  return value.trim();
}

function fromXml(text: string): Invoice[] {
  const root = parseXml(text);
  const elements = root.name === "invoices" ? root.children : [root];
  return elements.map(invoiceOf);
}

function invoiceOf(element: Element): Invoice {
  const currency = textOf(element, "currency") as Currency;
  const seller = child(element, "seller");
  const positions = child(element, "positions")?.children ?? [];
  return {
    number: textOf(element, "number"),
    date: textOf(element, "date"),
    due: textOf(element, "due"),
    currency,
    seller: { name: seller ? textOf(seller, "name") : "", country: seller ? textOf(seller, "country") : "" },
    buyer: US,
    lines: positions.map((position) => ({
      text: textOf(position, "content"),
      quantity: BigInt(textOf(position, "quantity") || "1"),
      price: parseAmount(textOf(position, "price"), currency),
      taxRate: Number(textOf(position, "tax") || "0"),
    })),
  };
}
