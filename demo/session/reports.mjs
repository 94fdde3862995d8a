/**
 * The output of programs about the project: test reports and folder listings, made from the current files.
 */

/**
 * @typedef {object} TestFailure
 * @property {string} file
 * @property {string} test the test's name
 * @property {string} error several lines, as the runner prints them
 * @property {number} [assertion] which of the test's assertions failed, from 0
 */

/**
 * The report of `node --test`, with every test in the test files.
 * @param {import("./project.mjs").Project} project
 * @param {import("./random.mjs").Random} random
 * @param {{ only?: string, fails: TestFailure[] }} options
 */
export function testReport(project, random, { only, fails }) {
  const files = only ? [only] : project.paths("test").filter((path) => path.endsWith(".test.ts"));
  const suites = files.map((file) => suiteIn(file, project.read(file)));
  for (const fail of fails) {
    if (!suites.some(({ file, tests }) => file === fail.file && tests.includes(fail.test))) throw new Error(`no test ${fail.test} in ${fail.file}`);
  }
  const took = () => `${(0.2 + random.next() * 2.4).toFixed(6)}ms`;
  const failed = (/** @type {string} */ file, /** @type {string} */ test) => fails.some((fail) => fail.file === file && fail.test === test);
  const tree = suites.flatMap(({ file, name, tests }) => [
    `▶ ${name}`,
    ...tests.map((test) => `  ${failed(file, test) ? "✖" : "✔"} ${test} (${took()})`),
    `${fails.some((fail) => fail.file === file) ? "✖" : "✔"} ${name} (${(3 + random.next() * 30).toFixed(6)}ms)`,
  ]);
  const count = suites.reduce((sum, { tests }) => sum + tests.length, 0);
  const head = only ? [] : ["", `> kontor@${JSON.parse(project.read("package.json")).version} test`, '> node --test --test-reporter=spec "test/*.test.ts"', ""];
  const tail = [
    `ℹ tests ${count}`,
    `ℹ suites ${suites.length}`,
    `ℹ pass ${count - fails.length}`,
    `ℹ fail ${fails.length}`,
    "ℹ cancelled 0",
    "ℹ skipped 0",
    "ℹ todo 0",
    `ℹ duration_ms ${(300 + random.next() * 900).toFixed(6)}`,
  ];
  return [...head, ...tree, ...tail, ...failureReport(project, fails, took)].join("\n");
}

/**
 * @param {string} file
 * @param {string} text
 */
function suiteIn(file, text) {
  const name = /^describe\("(.+)",/m.exec(text)?.[1] ?? file;
  const tests = [...text.matchAll(/^\s+test\((?:"((?:[^"\\]|\\.)+)"|`([^`]+)`),/gm)].flatMap(([, plain, template]) => (plain ? [plain] : expanded(template, text)));
  return { file, name, tests };
}

/**
 * Tests generated from a list, one for each item.
 * @param {string} template
 * @param {string} text
 */
function expanded(template, text) {
  if (template.includes("${name}")) {
    const list = /for \(const name of (\[.+\])\)/.exec(text)?.[1] ?? "[]";
    return /** @type {string[]} */ (JSON.parse(list)).map((name) => template.replace("${name}", name));
  }
  const rows = text.matchAll(/^ {2}\["(.+?)", "(\w+)", /gm);
  return [...rows].map(([, first, second]) => template.replace("${text}", first).replace("${currency}", second));
}

/**
 * @param {import("./project.mjs").Project} project
 * @param {TestFailure[]} fails
 * @param {() => string} took
 */
function failureReport(project, fails, took) {
  if (fails.length === 0) return [];
  const each = fails.flatMap(({ file, test, error, assertion = 0 }) => {
    const place = placeOf(project.read(file), test, assertion);
    return [
      "",
      `test at ${file}:${place.test}`,
      `✖ ${test} (${took()})`,
      ...error.split("\n").map((line) => `  ${line}`),
      `      at TestContext.<anonymous> (file://${project.cwd}/${file}:${place.assertion})`,
      "      at Test.runInAsyncScope (node:async_hooks:214:14)",
      "      at Test.run (node:internal/test_runner/test:1047:25)",
      "      at Suite.processPendingSubtests (node:internal/test_runner/test:744:18)",
      "      at Test.postRun (node:internal/test_runner/test:1173:19)",
      "      at Test.run (node:internal/test_runner/test:1101:12)",
      "      at async Suite.processPendingSubtests (node:internal/test_runner/test:744:7)",
    ];
  });
  return ["", "✖ failing tests:", ...each];
}

/**
 * Line and column of a test and of one of its assertions. A test generated from a list has its template's position.
 * @param {string} text
 * @param {string} test
 * @param {number} assertion
 */
function placeOf(text, test, assertion) {
  const lines = text.split("\n");
  const plain = lines.findIndex((line) => line.includes(`test("${test}"`));
  const start = plain === -1 ? lines.findIndex((line) => line.includes("test(`")) : plain;
  const asserts = lines.flatMap((line, index) => (index > start && /^\s*assert\./.test(line) ? [index] : []));
  const at = asserts[assertion];
  const column = (/** @type {number} */ index) => lines[index].search(/\S/) + 1;
  return { test: `${start + 1}:${column(start)}`, assertion: `${at + 1}:${column(at) + "assert.".length}` };
}

/**
 * `ls -la` of a folder.
 * @param {import("./project.mjs").Project} project
 * @param {string} folder
 */
export function listing(project, folder) {
  const prefix = folder === "." ? "" : `${folder}/`;
  /** @type {Map<string, string>} */
  const names = new Map();
  for (const path of project.paths(folder)) {
    const [first, ...rest] = path.slice(prefix.length).split("/");
    const size = Buffer.byteLength(project.read(path));
    names.set(first, rest.length > 0 ? `drwxrwxr-x 2 jonas jonas  4096 Nov  2 08:31 ${first}` : `-rw-rw-r-- 1 jonas jonas ${String(size).padStart(5)} Nov  2 08:31 ${first}`);
  }
  const dots = [".", ".."].map((name) => `drwxrwxr-x 7 jonas jonas  4096 Nov  2 08:31 ${name}`);
  return [`total ${names.size * 4 + 8}`, ...dots, ...[...names.keys()].sort().map((name) => names.get(name))].join("\n");
}
