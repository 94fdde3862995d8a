/**
 * `npm run check -- FILE …`: what the tests nearest to a changed file say, in seconds.
 *
 * A Rust file is judged by its own tests and by those of `src/tests` that bear its name or its folder's; a test file by itself;
 * the shim by its test on the fake host. All JavaScript is judged by its types, beside the tests.
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

/** A build that takes longer than this shows itself. */
const PATIENCE_MS = 1500;

/**
 * @param {string[]} args files, as the shell names them
 * @returns {Promise<number>} an exit code
 */
export async function check(args) {
  if (args.length === 0) throw new Failure("npm run check needs a file, such as `npm run check -- src/dag/forest.rs`.");
  const files = args.map(fromRoot);
  await setUp();
  const rust = files.filter((file) => file.endsWith(".rs"));
  const tests = new Set(files.filter((file) => !file.endsWith(".rs")).flatMap(testOf));
  if (rust.length > 0) {
    const code = await show("cargo", ["test", "--quiet", "--profile", "fast", "--lib", "--", ...new Set(rust.flatMap(filtersOf))], { cwd: root, env: cargoEnvironment() });
    if (code !== 0) return code;
  }
  if (rust.length === files.length) return 0;
  const types = collect(node22, [programOf("typescript", "tsc"), "-p", "tsconfig.json"], { cwd: root });
  const code = tests.size > 0 ? await runTests([...tests]) : 0;
  const { code: typesCode, stdout } = await types;
  process.stdout.write(stdout);
  return code || typesCode;
}

/** @param {string[]} tests */
async function runTests(tests) {
  await buildAddon({ revealAfterMs: PATIENCE_MS, kind: "tests" });
  if (tests.some((file) => file !== SHIM_TEST)) await Promise.all([buildViewer(), bringHosts()]);
  const node = ["--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", "--test", "--test-reporter=spec"];
  return show(node22, [...node, ...tests], { cwd: root });
}

/** A file's path from the repository's root. @param {string} arg */
function fromRoot(arg) {
  const file = path.relative(root, path.resolve(process.env.INIT_CWD ?? process.cwd(), arg)).replaceAll(path.sep, "/");
  if (!existsSync(path.join(root, file))) throw new Failure(`There is no file ${arg}.`);
  if (!/\.(rs|m?js)$/.test(file)) throw new Failure(`No test is nearest to ${arg}: npm run check takes Rust and JavaScript files, npm test runs everything.`);
  return file;
}

/** The test files nearest to a JavaScript file. @param {string} file */
function testOf(file) {
  if (file.endsWith(".test.mjs")) return [file];
  return file === "index.js" || file.startsWith("shim/") ? [SHIM_TEST] : [];
}

/**
 * By what the tests nearest to a Rust file are found: the file's module, and modules of `src/tests` with its name or its
 * folder's.
 * @param {string} file
 */
function filtersOf(file) {
  const parts = file.replace(/^src\//, "").replace(/(\/mod)?\.rs$/, "").split("/");
  const behaviors = readdirSync(path.join(root, "src", "tests")).map((name) => name.replace(/\.rs$/, ""));
  const near = behaviors.filter((name) => parts.includes(name)).map((name) => `tests::${name}::`);
  return [`${parts.join("::")}::`, ...near];
}
