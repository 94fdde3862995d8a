/**
 * Replaces `node:test` while tests are listed: records their titles and runs nothing. See `collect-tests.mjs`.
 *
 * A test is listed even if this machine would skip it, so that the list is the same on all machines. A test without a body is
 * a placeholder for what is left out, and is not listed.
 */

/** The titles of the suites around a test, and its own. @type {string[][]} */
export const listed = [];

/** @type {string[]} */
let around = [];

/** @param {string} name @param {...unknown} rest as of `test` */
export function test(name, ...rest) {
  if (rest.some((arg) => typeof arg === "function")) listed.push([...around, name]);
}

/** @param {string} name @param {...unknown} rest */
export function describe(name, ...rest) {
  const body = rest.find((arg) => typeof arg === "function");
  around = [...around, name];
  if (typeof body === "function") body();
  around = around.slice(0, -1);
}

const nothing = () => {};
export { nothing as after, nothing as afterEach, nothing as before, nothing as beforeEach, test as default, test as it, describe as suite };
