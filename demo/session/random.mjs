/**
 * Repeatable random numbers: the shipped session must be the same, byte for byte, each time it is made.
 */

/** A small seeded generator (mulberry32). */
export class Random {
  #state;

  /** @param {number} seed */
  constructor(seed) {
    this.#state = seed >>> 0;
  }

  /** A number from 0 up to, but not including, 1. */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /**
   * A whole number between two bounds, inclusive.
   * @param {number} low
   * @param {number} high
   */
  between(low, high) {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  /**
   * @template T
   * @param {readonly T[]} items
   * @returns {T}
   */
  pick(items) {
    return items[this.between(0, items.length - 1)];
  }

  /** @param {number} digits */
  hex(digits) {
    return Array.from({ length: digits }, () => this.between(0, 15).toString(16)).join("");
  }

  /** @param {number} length */
  bytes(length) {
    return Uint8Array.from({ length }, () => this.between(0, 255));
  }
}
