/** Amounts are integer cents. */

/** What a discount of some percent takes off a sum, rounded half up. */
const discount = (cents, percent) => Math.floor((cents * percent + 50) / 100);

/** The total of an order: the discount is rounded once, as the provider does, so that the receipt has the amount that is charged. */
export function total(items, percent = 0) {
  const sum = items.reduce((cents, { price, quantity }) => cents + price * quantity, 0);
  return sum - discount(sum, percent);
}
