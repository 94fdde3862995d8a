import { exponentOf, type Currency, type Money } from "./money.ts";

/**
 * Reads an amount as partners write it: `1.234,56`, `1,234.56`, `¥98,000`, `98000 円`, `-12,5`.
 *
 * The last separator is the decimal point if at most two digits follow it and the currency has decimals;
 * every other separator only groups.
 */
export function parseAmount(text: string, currency: Currency): Money {
  const cleaned = text.trim().replace(/^[¥€$]|\s*(円|元|EUR|JPY|CNY|USD)$/g, "").trim();
  const match = /^([+-]?)([0-9][0-9.,' ]*)$/.exec(cleaned);
  if (!match) throw new AmountError(text, currency);
  const [, sign, body] = match;
  const { whole, fraction } = split(body!, exponentOf(currency));
  const units = BigInt(whole + fraction.padEnd(exponentOf(currency), "0"));
  return { units: sign === "-" ? -units : units, currency };
}

export class AmountError extends Error {
  readonly text: string;

  constructor(text: string, currency: Currency) {
    super(`not an amount in ${currency}: ${JSON.stringify(text)}`);
    this.name = "AmountError";
    this.text = text;
  }
}

function split(body: string, digits: number): { whole: string; fraction: string } {
  const last = Math.max(body.lastIndexOf(","), body.lastIndexOf("."));
  const behind = body.length - last - 1;
  if (last === -1 || digits === 0 || behind > digits) return { whole: strip(body), fraction: "" };
  return { whole: strip(body.slice(0, last)), fraction: body.slice(last + 1) };
}

function strip(body: string): string {
  return body.replace(/[.,' ]/g, "");
}
