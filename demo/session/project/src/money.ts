/** An amount in minor units: cents for EUR, whole yen for JPY. Never a float. */
export interface Money {
  readonly units: bigint;
  readonly currency: Currency;
}

export type Currency = "EUR" | "JPY" | "CNY" | "USD";

/** How many digits stand behind the point. */
const EXPONENT: Record<Currency, number> = { EUR: 2, USD: 2, CNY: 2, JPY: 0 };

export function money(units: bigint | number, currency: Currency): Money {
  return { units: BigInt(units), currency };
}

export function exponentOf(currency: Currency): number {
  return EXPONENT[currency];
}

export function add(a: Money, b: Money): Money {
  same(a, b);
  return { units: a.units + b.units, currency: a.currency };
}

export function negate(a: Money): Money {
  return { units: -a.units, currency: a.currency };
}

export function sum(all: readonly Money[], currency: Currency): Money {
  return all.reduce(add, money(0n, currency));
}

/** `a * numerator / denominator`, rounded half to even, as the tax office does it. */
export function scale(a: Money, numerator: bigint, denominator: bigint): Money {
  return { units: divideHalfEven(a.units * numerator, denominator), currency: a.currency };
}

/** Splits by weights without losing a unit: what is left over goes to the largest remainders. */
export function allocate(a: Money, weights: readonly bigint[]): Money[] {
  const total = weights.reduce((x, y) => x + y, 0n);
  if (total <= 0n) throw new RangeError("weights must add up to more than zero");
  const shares = weights.map((weight) => (a.units * weight) / total);
  let left = a.units - shares.reduce((x, y) => x + y, 0n);
  const order = weights
    .map((weight, index) => ({ index, rest: (a.units * weight) % total }))
    .sort((x, y) => Number(y.rest - x.rest) || x.index - y.index);
  for (const { index } of order) {
    if (left === 0n) break;
    shares[index]! += left > 0n ? 1n : -1n;
    left -= left > 0n ? 1n : -1n;
  }
  return shares.map((units) => ({ units, currency: a.currency }));
}

/** `1234.56 EUR`, `98000 JPY`: for logs and tests, not for letters. */
export function format(a: Money): string {
  const digits = EXPONENT[a.currency];
  const sign = a.units < 0n ? "-" : "";
  const text = (a.units < 0n ? -a.units : a.units).toString().padStart(digits + 1, "0");
  if (digits === 0) return `${sign}${text} ${a.currency}`;
  return `${sign}${text.slice(0, -digits)}.${text.slice(-digits)} ${a.currency}`;
}

export function compare(a: Money, b: Money): number {
  same(a, b);
  return a.units < b.units ? -1 : a.units > b.units ? 1 : 0;
}

function same(a: Money, b: Money): void {
  if (a.currency !== b.currency) throw new TypeError(`cannot mix ${a.currency} and ${b.currency}`);
}

function divideHalfEven(numerator: bigint, denominator: bigint): bigint {
  if (denominator < 0n) return divideHalfEven(-numerator, -denominator);
  const quotient = numerator / denominator;
  const rest = numerator % denominator;
  const twice = (rest < 0n ? -rest : rest) * 2n;
  const away = numerator < 0n ? -1n : 1n;
  if (twice < denominator) return quotient;
  if (twice > denominator) return quotient + away;
  return quotient % 2n === 0n ? quotient : quotient + away;
}
