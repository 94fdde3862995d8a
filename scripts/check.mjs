/**
 * `npm run check -- FILE …`: runs the tests nearest to a changed file, in seconds.
 *
 * For a file of a crate these are the crate's tests; for one in `src` its own tests and those in `src/tests` that begin with its name or
 * its folder's (for `lcm_expand/` also `expand_around.rs`), or without any all tests of its folder; for a test file the file itself; for the
 * shim its test on the fake host. For JavaScript the type check runs too.
 */
import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { buildAddon, cargoEnvironment } from "./build.mjs";
import { bringHosts } from "./hosts.mjs";
import { node22, programOf, root } from "./paths.mjs";
import { collect, show } from "./proc.mjs";
import { Failure, setUp } from "./setup.mjs";
import { buildViewer } from "./viewer.mjs";

const SHIM_TEST = "__test__/shim.test.mjs";

/** A build that takes longer than this shows its output. */
const PATIENCE_MS = 1500;

/** Runs Rust tests of the library. */
const CARGO_TEST = ["test", "--locked", "--quiet", "--profile", "fast", "--lib"];

/**
 * @param {string[]} args files, as the shell names them
 * @returns {Promise<number>} an exit code
 */
export async function check(args) {
  if (args.length === 0) throw new Failure("npm run check needs a file, such as `npm run check -- crates/model/src/dag/forest.rs`.");
  const files = args.map(fromRoot);
  await setUp();
  const rust = files.filter((file) => file.endsWith(".rs"));
  const [inCrates, inEngine] = [rust.filter((file) => file.startsWith("crates/")), rust.filter((file) => !file.startsWith("crates/"))];
  const tests = new Set(files.filter((file) => !file.endsWith(".rs")).flatMap(testOf));
  if (inCrates.length > 0) {
    const crates = new Set(inCrates.map((file) => `lcm-${file.split("/")[1]}`));
    const code = await show("cargo", [...CARGO_TEST, ...[...crates].flatMap((name) => ["-p", name])], { cwd: root, env: cargoEnvironment() });
    if (code !== 0) return code;
  }
  if (inEngine.length > 0) {
    const known = await rustTests();
    const code = await show("cargo", [...CARGO_TEST, "--", ...new Set(inEngine.flatMap((file) => filtersOf(file, known)))], { cwd: root, env: cargoEnvironment() });
    if (code !== 0) return code;
  }
  if (rust.length === files.length) return 0;
  const types = collect(node22, [programOf("typescript", "tsc"), "-p", "tsconfig.json"], { cwd: root });
  let code = 0;
  try {
    if (tests.size > 0) code = await runTests([...tests]);
  } finally {
    const { code: typesCode, stdout, stderr } = await types;
    process.stdout.write(stdout + stderr);
    code ||= typesCode;
  }
  return code;
}

/** The names of all Rust tests. @returns {Promise<string[]>} */
async function rustTests() {
  const { code, stdout, stderr } = await collect("cargo", [...CARGO_TEST, "--", "--list"], { cwd: root, env: cargoEnvironment(), revealAfterMs: PATIENCE_MS });
  if (code !== 0) throw new Failure(`${stderr}cargo test failed with exit code ${code}: its output is above.`);
  return [...stdout.matchAll(/^(\S+): test$/gm)].map(([, name]) => name);
}

/** @param {string[]} tests */
async function runTests(tests) {
  await buildAddon({ revealAfterMs: PATIENCE_MS, kind: "tests" });
  if (tests.some((file) => file !== SHIM_TEST)) await Promise.all([buildViewer(), bringHosts()]);
  const node = ["--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", "--test", "--test-reporter=spec"];
  return show(node22, [...node, ...tests], { cwd: root });
}

/** A file's path, relative to the repository's root. @param {string} arg */
function fromRoot(arg) {
  const file = path.relative(root, path.resolve(process.env.INIT_CWD ?? process.cwd(), arg)).replaceAll(path.sep, "/");
  if (!existsSync(path.join(root, file))) throw new Failure(`There is no file ${arg}.`);
  if (!/\.(rs|m?js)$/.test(file)) throw noneNearTo(arg);
  return file;
}

/** @param {string} file */
function noneNearTo(file) {
  return new Failure(`No test is nearest to ${file}: npm run check takes Rust and JavaScript files, npm test runs everything.`);
}

/** The test files nearest to a JavaScript file. @param {string} file */
function testOf(file) {
  if (file.endsWith(".test.mjs")) return [file];
  return file === "index.js" || file.startsWith("shim/") ? [SHIM_TEST] : [];
}

/**
 * Filters for the tests nearest to a Rust file: the file's module, and modules of `src/tests` that begin with its name or its folder's;
 * otherwise the nearest parent module with tests.
 * @param {string} file
 * @param {string[]} known the names of all tests
 */
function filtersOf(file, known) {
  const parts = file.replace(/^src\//, "").replace(/(\/mod)?\.rs$/, "").split("/");
  const behaviors = readdirSync(path.join(root, "src", "tests")).map((name) => name.replace(/\.rs$/, ""));
  const near = behaviors.filter((name) => parts.some((part) => name.startsWith(part.replace("lcm_", "")))).map((name) => `tests::${name}::`);
  const hasTests = (/** @type {string} */ filter) => known.some((name) => name.startsWith(filter));
  const own = [`${parts.join("::")}::`, ...near].filter(hasTests);
  if (own.length > 0) return own;
  const around = parts.map((_, at) => `${parts.slice(0, at).join("::")}::`).slice(1).findLast(hasTests);
  if (!around) throw noneNearTo(file);
  return [around];
}
