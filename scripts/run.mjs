/**
 * The driver behind `npm start`, `npm run build`, `npm test` and the other npm commands.
 *
 * Each starts with the setup it needs, so that a fresh clone needs no earlier step. Programs are started by absolute path (`paths.mjs`). A
 * failure ends in one line with a remedy, or in the failing program's own output.
 */
import path from "node:path";
import { PATIENCE_MS, buildAddon, cargoEnvironment } from "./build.mjs";
import { check } from "./check.mjs";
import { runChecks } from "./checks.mjs";
import { fuzz } from "./fuzz.mjs";
import { packAll as pack } from "./pack.mjs";
import { extension, node22, piCli, root } from "./paths.mjs";
import { collect, show } from "./proc.mjs";
import { publishAll as publish } from "./publish.mjs";
import { Failure, needCargo, setUp } from "./setup.mjs";
import { buildViewer, canBuildViewer } from "./viewer.mjs";

const [verb = "", ...rest] = process.argv.slice(2);
const verbs = { bench, boards, build, check, context, live, start, strategies, survival, test, "test:all": testAll, fuzz, kill, pack, publish, rehearse };

try {
  if (!(verb in verbs)) throw new Failure(`usage: node scripts/run.mjs ${Object.keys(verbs).join(" | ")}`);
  process.exitCode = await verbs[/** @type {keyof typeof verbs} */ (verb)](rest);
} catch (error) {
  if (!(error instanceof Failure)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}

/** Builds the addon, which needs no npm packages, and the page for `/lcm export --html` if they are installed. */
async function build() {
  await needCargo();
  const file = await buildAddon({ revealAfterMs: 0 });
  process.stdout.write(`Built ${path.relative(root, file)}\n`);
  if (canBuildViewer()) process.stdout.write(`Built ${path.relative(root, await buildViewer())}\n`);
  else process.stdout.write("The page of /lcm export --html was left out: `npm ci` brings what it is made with.\n");
  return 0;
}

/**
 * Starts Pi with the extension: the user's own if a model is configured, the demo otherwise.
 * @param {string[]} args the user's arguments to Pi; `--demo` is ours
 */
async function start(args) {
  await setUp();
  await buildAddon({ revealAfterMs: PATIENCE_MS });
  await buildViewer();
  if (!process.stdin.isTTY || !process.stdout.isTTY) return show(node22, [path.join(root, "demo", "play.mjs")]);

  const forPi = args.filter((arg) => arg !== "--demo");
  const interactiveDemo = path.join(root, "demo", "interactive.mjs");
  if (args.includes("--demo")) return show(node22, [interactiveDemo, ...forPi]);
  if (!(await modelIsConfigured())) {
    const env = { ...process.env, DEMO_REASON: "Pi has no model configured here, so npm start is the demo." };
    return show(node22, [interactiveDemo, ...forPi], { env });
  }
  return show(node22, [piCli(), "-e", extension, ...forPi]);
}

/** Asks Pi itself, which knows every way to configure a model. */
async function modelIsConfigured() {
  const env = { ...process.env, PI_OFFLINE: "1" };
  const { stdout } = await collect(node22, [piCli(), "--list-models"], { env });
  return !stdout.startsWith("No models available");
}

/** Kills Pi at random moments. @param {string[]} args how often, and a seed */
async function kill(args) {
  await setUp();
  await buildAddon({ revealAfterMs: PATIENCE_MS });
  return show(node22, ["--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", path.join(root, "scripts", "kill.mjs"), ...args]);
}

/** Runs the release workflow. @param {string[]} args its jobs, none for all */
async function rehearse(args) {
  await setUp();
  return show(node22, [path.join(root, "scripts", "rehearse.mjs"), ...args]);
}

/**
 * Measures the required figures with the addon as shipped.
 * @param {string[]} args
 */
async function bench(args) {
  await setUp();
  await buildAddon({ revealAfterMs: PATIENCE_MS, kind: "shipped" });
  // The largest sessions need more memory than Node's default.
  const node = ["--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", "--disable-warning=ExperimentalWarning", "--max-old-space-size=8192", "--expose-gc"];
  return show(node22, [...node, path.join(root, "bench", "run.mjs"), ...args], { env: cargoEnvironment() });
}

/** Compares ways to compact. @param {string[]} args */
function strategies(args) {
  return comparison("strategies", args);
}

/** Compares ways to keep a context. @param {string[]} args */
function context(args) {
  return comparison("context", args);
}

/** Has a real model work, with the extension and without. @param {string[]} args */
function live(args) {
  return comparison("live", args);
}

/** Measures what survives compactions. @param {string[]} args */
function survival(args) {
  return comparison("survival", args);
}

/** Measures search on public boards. @param {string[]} args */
function boards(args) {
  return comparison("boards", args);
}

/** @param {string} what @param {string[]} args */
async function comparison(what, args) {
  await setUp();
  await buildAddon({ revealAfterMs: PATIENCE_MS });
  const node = ["--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", "--disable-warning=ExperimentalWarning"];
  return show(node22, [...node, path.join(root, "bench", what, "run.mjs"), ...args]);
}

/** The checks that a change must pass. @param {string[]} args see `runChecks` */
function test(args) {
  return runChecks({ everything: false, args });
}

/** Every behavior on every host, which a release must pass. @param {string[]} args */
function testAll(args) {
  return runChecks({ everything: true, args });
}
