import type { Invoice } from "./invoice.ts";
import { add, money, scale, sum, type Money } from "./money.ts";

export interface Totals {
  readonly net: Money;
  readonly tax: Money;
  readonly gross: Money;
  /** Net and tax by rate, highest rate first. */
  readonly byRate: readonly { rate: number; net: Money; tax: Money }[];
}

const EU = new Set(["AT", "BE", "BG", "CY", "CZ", "DE", "DK", "EE", "ES", "FI", "FR", "GR", "HR", "HU", "IE", "IT", "LT", "LU", "LV", "MT", "NL", "PL", "PT", "RO", "SE", "SI", "SK"]);

/** Within the EU, a buyer in another country who has a tax id pays the tax himself. */
export function isReverseCharge(invoice: Invoice): boolean {
  const { seller, buyer } = invoice;
  return seller.country !== buyer.country && EU.has(seller.country) && EU.has(buyer.country) && Boolean(buyer.taxId);
}

export function totalsOf(invoice: Invoice): Totals {
  const { currency } = invoice;
  const free = isReverseCharge(invoice);
  const nets = Map.groupBy(invoice.lines, (line) => (free ? 0 : line.taxRate));
  const byRate = [...nets]
    .map(([rate, lines]) => {
      const net = sum(lines.map((line) => scale(line.price, line.quantity, 1n)), currency);
      return { rate, net, tax: scale(net, BigInt(rate), 100n) };
    })
    .sort((a, b) => b.rate - a.rate);
  const net = sum(byRate.map((part) => part.net), currency);
  const tax = sum(byRate.map((part) => part.tax), currency);
  return { net, tax, gross: add(net, tax), byRate };
}

export function zero(invoice: Invoice): Money {
  return money(0n, invoice.currency);
}
