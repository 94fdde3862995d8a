/** Prints the tests of the suite TEST_SUITE as JSON, without running them. For `list-tests.mjs`. */
import { registerHooks } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { allTestFiles } from "./checks.mjs";
import { root } from "./paths.mjs";

const stub = pathToFileURL(path.join(root, "scripts", "listed-test.mjs")).href;
registerHooks({ resolve: (name, context, next) => (name === "node:test" ? { url: stub, shortCircuit: true } : next(name, context)) });
const { listed } = await import(stub);
/** @type {object[]} */
const all = [];
for (const file of allTestFiles()) {
  listed.length = 0;
  await import(pathToFileURL(path.join(root, file)).href);
  all.push(...listed.map((/** @type {object} */ test) => ({ file, ...test })));
}
process.stdout.write(JSON.stringify(all), () => process.exit());
