/**
 * The checks of a change: behind `npm test`, `npm run test:all` and `npm run check`.
 *
 * They run in two lanes. Cargo's checks take turns, because they share a target folder. Node's run in parallel: first those that need no
 * addon, the tests once it is built. A failing check ends both lanes. The report lists the slowest pieces, so that a slower run is noticed.
 */
import { readdirSync } from "node:fs";
import path from "node:path";
import { buildAddon, linting } from "./build.mjs";
import { bringHosts } from "./hosts.mjs";
import { lastTimes } from "./node-tests.mjs";
import { node22, programOf, root } from "./paths.mjs";
import { collect, show } from "./proc.mjs";
import { Failure, needCargo, setUp } from "./setup.mjs";
import { buildViewer } from "./viewer.mjs";

/** The checks with a name; a part of a test file's path selects that file. The Rust tests are linted too. */
const CHECKS = /** @type {const} */ (["format", "lints", "rust", "types"]);

/**
 * The passes of the tests, each with a model that thinks in another way (see `__test__/support/project.mjs`): in `npm run test:all` every
 * file in all of them, in `npm test` those that depend on what a request shows also in the second, where the provider is strictest, if they
 * don't choose how the model thinks.
 */
const PASSES = /** @type {const} */ ([
  { thinking: "none", only: /./ },
  { thinking: "bound", only: /__test__\/(main-job\/(?!alone|importing|recall-off|storing|thinking|threads|virtual)|others\/)|hosts\/lifecycle/ },
  { thinking: "free", only: /./ },
]);

/**
 * @param {object} options
 * @param {boolean} options.everything every behavior on every host; otherwise a covering choice
 * @param {string[]} options.args names of checks, parts of the paths of test files, and `--shard I/N`; nothing for all
 * @returns {Promise<number>} an exit code
 */
export async function runChecks({ everything, args }) {
  const { names, shard } = read(args);
  // The Rust tests read it too.
  process.env.TEST_SUITE = everything ? "all" : "";
  const files = testFiles(names, shard);
  const isWanted = (/** @type {typeof CHECKS[number]} */ name) => (names.length === 0 ? (shard?.index ?? 1) === 1 : names.includes(name));
  const run = new Run();

  const addon = needCargo().then(() => run.step("addon", () => buildAddon({ revealAfterMs: 0, kind: "tests" })));
  const cargoLane = async () => {
    await addon;
    if (isWanted("format")) await run.program("format", "cargo", ["fmt", "--check"]);
    if (names.includes("lints")) await run.program("lints", "cargo", ["clippy", "--locked", "--profile", "fast", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    if (isWanted("rust")) await run.program("rust", "cargo", ["test", "--locked", "--profile", "fast", "--workspace"]);
  };
  const nodeLane = async () => {
    await run.step("packages", setUp);
    if (isWanted("types")) await run.program("types", node22, [programOf("typescript", "tsc"), "-p", "tsconfig.json"]);
    if (files.length > 0) {
      await run.step("viewer", buildViewer);
      await run.step("other Pis", bringHosts);
    }
    await addon;
    if (isWanted("types")) await run.program("index.d.ts", node22, [path.join(root, "scripts", "check-types.mjs")]);
    for (const { thinking, only } of PASSES.slice(0, everything ? 3 : 2)) {
      const some = files.filter((file) => everything || only.test(file));
      if (some.length > 0) await run.nodeTests(some, thinking);
    }
  };
  await Promise.all([cargoLane(), nodeLane()].map((lane) => lane.catch((error) => run.fail(error))));
  run.report();
  return run.failed ? 1 : 0;
}

/**
 * @param {string[]} args
 * @returns {{ names: string[], shard?: { index: number, total: number } }}
 */
function read(args) {
  const at = args.findIndex((arg) => arg === "--shard" || arg.startsWith("--shard="));
  if (at < 0) return { names: args };
  const [text, length] = args[at].includes("=") ? [args[at].split("=")[1], 1] : [args[at + 1] ?? "", 2];
  const [, index, total] = (/^(\d+)\/(\d+)$/.exec(text) ?? []).map(Number);
  if (!(index >= 1 && index <= total)) throw new Failure(`--shard takes a part of a number, such as 2/4, not \`${text}\`.`);
  return { names: args.toSpliced(at, length), shard: { index, total } };
}

/** The test files, relative to the repository's root. Not in deeper folders, which have the other Pis and their node_modules. */
export function allTestFiles() {
  const inFolder = (/** @type {string} */ folder) => readdirSync(path.join(root, folder), { withFileTypes: true }).map((entry) => ({ entry, file: `${folder}/${entry.name}` }));
  const top = inFolder("__test__");
  const all = [...top, ...top.filter(({ entry }) => entry.isDirectory()).flatMap(({ file }) => inFolder(file))];
  return all.filter(({ file }) => file.endsWith(".test.mjs")).map(({ file }) => file).sort();
}

/**
 * @param {string[]} names
 * @param {{ index: number, total: number }} [shard]
 */
function testFiles(names, shard) {
  const all = allTestFiles();
  const parts = names.filter((name) => !CHECKS.some((check) => check === name));
  for (const part of parts) {
    if (!all.some((file) => file.includes(part))) throw new Failure(`No check and no test file is called ${part}: the checks are ${CHECKS.join(", ")}, the files are in __test__.`);
  }
  const chosen = names.length === 0 ? all : all.filter((file) => parts.some((part) => file.includes(part)));
  return shard ? chosen.filter((_, at) => at % shard.total === shard.index - 1) : chosen;
}

/** One run of the checks: its times, and whether something failed. */
class Run {
  failed = false;
  #started = Date.now();
  /** @type {{ name: string, ms: number }[]} */
  #pieces = [];
  #abort = new AbortController();

  /**
   * Runs a step whose output is on the screen.
   * @template T
   * @param {string} name
   * @param {() => Promise<T>} work
   */
  async step(name, work) {
    this.#abort.signal.throwIfAborted();
    const started = Date.now();
    const value = await work();
    this.#done(name, started);
    return value;
  }

  /**
   * Runs a program whose output is only shown if it fails.
   * @param {string} name
   * @param {string} command
   * @param {string[]} args
   */
  async program(name, command, args) {
    await this.step(name, async () => {
      const { code, stdout, stderr } = await collect(command, args, { cwd: root, env: linting(), signal: this.#abort.signal });
      if (code !== 0) throw new Failure(`${stdout}${stderr}\nFAILED: ${name} (${[path.basename(command), ...args].join(" ")})`);
      process.stdout.write(stdout.split("\n").filter((line) => line.startsWith("test result:")).map((line) => `${line}\n`).join(""));
    });
  }

  /** @param {string[]} files @param {string} thinking the model's */
  async nodeTests(files, thinking) {
    const script = path.join(root, "scripts", "node-tests.mjs");
    const started = Date.now();
    const env = { ...process.env, TEST_THINKING: thinking };
    const code = await show(node22, ["--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", script, ...files], { cwd: root, env, signal: this.#abort.signal });
    // An aborted run keeps the times of the run before it.
    this.#abort.signal.throwIfAborted();
    const times = lastTimes();
    this.#pieces.push(...files.map((name) => ({ name, ms: times[name] ?? 0 })));
    if (code !== 0) throw new Failure("\nFAILED: the JavaScript tests; what failed is listed above.");
    this.#say(`JavaScript tests, thinking: ${thinking}`, started);
  }

  /** @param {unknown} error */
  fail(error) {
    const isFirst = !this.failed;
    this.failed = true;
    this.#abort.abort();
    if (!isFirst) return;
    if (!(error instanceof Failure)) throw error;
    process.stderr.write(`${error.message}\n`);
  }

  /** The ten slowest pieces, and the total. */
  report() {
    const slowest = this.#pieces.toSorted((a, b) => b.ms - a.ms).slice(0, 10);
    process.stdout.write(`\nWhere the time went, the slowest ten:\n${slowest.map(({ name, ms }) => `${seconds(ms).padStart(9)}  ${name}\n`).join("")}`);
    process.stdout.write(`\n${this.failed ? "Failed" : "All checks passed"} in ${seconds(Date.now() - this.#started)}.\n`);
  }

  /** @param {string} name @param {number} started */
  #done(name, started) {
    this.#pieces.push({ name, ms: Date.now() - started });
    this.#say(name, started);
  }

  /** @param {string} name @param {number} started */
  #say(name, started) {
    process.stdout.write(`── ${name}: ok, ${seconds(Date.now() - started)} ──\n`);
  }
}

/** @param {number} ms */
function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`;
}
