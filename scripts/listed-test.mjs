/**
 * Replaces `node:test` while tests are listed: records their titles and runs nothing. See `collect-tests.mjs`.
 *
 * A skipped test is listed too, with its reason: it may depend on the machine, and the list has to be the same everywhere. A test without a
 * body is a placeholder for skipped ones, and is not listed.
 */

/**
 * @typedef {object} Listed
 * @property {string[]} path the titles of the suites around a test, and its own
 * @property {unknown} [skip] why it is skipped
 */

/** @type {Listed[]} */
export const listed = [];

/** @type {Listed} */
let around = { path: [] };

/** @param {string} name @param {...unknown} rest as of `test` */
export function test(name, ...rest) {
  if (rest.some((arg) => typeof arg === "function")) listed.push(inside(name, rest));
}

/** @param {string} name @param {...unknown} rest */
export function describe(name, ...rest) {
  const body = rest.find((arg) => typeof arg === "function");
  const outer = around;
  around = inside(name, rest);
  if (typeof body === "function") body();
  around = outer;
}

/** @param {string} name @param {unknown[]} rest @returns {Listed} */
function inside(name, rest) {
  const { skip } = /** @type {{ skip?: unknown }} */ (rest.find((arg) => arg && typeof arg === "object") ?? {});
  return { path: [...around.path, name], skip: around.skip || skip };
}

const nothing = () => {};
export { nothing as after, nothing as afterEach, nothing as before, nothing as beforeEach, test as default, test as it, describe as suite };
