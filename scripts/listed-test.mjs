/** Stands in for `node:test` while tests are listed: notes what would run, and runs nothing. See `collect-tests.mjs`. */

/** @typedef {{ path: string[], skipped: boolean }} Listed */

/** @type {Listed[]} */
export const listed = [];

/** @type {{ name: string, skipped: boolean }[]} */
let around = [];

/** @param {unknown[]} args as of `test` @returns {{ name: string, skipped: boolean, body: unknown }} */
function read(args) {
  const options = /** @type {{ skip?: unknown } | undefined} */ (args.find((arg) => typeof arg === "object"));
  return { name: String(args[0]), skipped: Boolean(options?.skip), body: args.find((arg) => typeof arg === "function") };
}

/** @param {...unknown} args */
export function test(...args) {
  const { name, skipped } = read(args);
  listed.push({ path: [...around.map((suite) => suite.name), name], skipped: skipped || around.some((suite) => suite.skipped) });
}

/** @param {...unknown} args */
export function describe(...args) {
  const { body, ...suite } = read(args);
  around = [...around, suite];
  if (typeof body === "function") body();
  around = around.slice(0, -1);
}

const nothing = () => {};
export { nothing as after, nothing as afterEach, nothing as before, nothing as beforeEach, test as default, test as it, describe as suite };
