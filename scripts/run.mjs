/**
 * The driver behind `npm start`, `npm run build`, `npm test` and the other npm commands.
 *
 * Each begins with the set-up it needs, so that a clean clone needs no step before it. What follows is started by absolute
 * path (`paths.mjs`). A failure ends in one line that says what to do, or in the failing program's own words above it.
 */
import path from "node:path";
import { buildAddon, cargoEnvironment } from "./build.mjs";
import { check } from "./check.mjs";
import { runChecks } from "./checks.mjs";
import { fuzz } from "./fuzz.mjs";
import { packAll as pack } from "./pack.mjs";
import { extension, node22, piCli, root } from "./paths.mjs";
import { collect, show } from "./proc.mjs";
import { publishAll as publish } from "./publish.mjs";
import { Failure, needCargo, setUp } from "./setup.mjs";
import { buildViewer, canBuildViewer } from "./viewer.mjs";

/** A build that takes longer than this shows itself when all the user wants is to start Pi. */
const PATIENCE_MS = 1500;

const [verb = "", ...rest] = process.argv.slice(2);
const verbs = { bench, boards, build, check, context, start, strategies, survival, test, "test:all": testAll, fuzz, kill, pack, publish, rehearse };

try {
  if (!(verb in verbs)) throw new Failure(`usage: node scripts/run.mjs ${Object.keys(verbs).join(" | ")}`);
  process.exitCode = await verbs[/** @type {keyof typeof verbs} */ (verb)](rest);
} catch (error) {
  if (!(error instanceof Failure)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}

/** The addon, for which the npm packages are not needed, and where they are the page of `/lcm export --html`. */
async function build() {
  await needCargo();
  const file = await buildAddon({ revealAfterMs: 0 });
  process.stdout.write(`Built ${path.relative(root, file)}\n`);
  if (canBuildViewer()) process.stdout.write(`Built ${path.relative(root, await buildViewer())}\n`);
  else process.stdout.write("The page of /lcm export --html was left out: `npm ci` brings what it is made with.\n");
  return 0;
}

/**
 * Pi with the extension: the user's own where there is a model to talk to, the demo otherwise.
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

/** Asks Pi itself, which knows every way in which a model can be configured. */
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

/** Plays the release workflow. @param {string[]} args its jobs, none for all */
async function rehearse(args) {
  await setUp();
  return show(node22, [path.join(root, "scripts", "rehearse.mjs"), ...args]);
}

/**
 * What is asked of it in figures, measured with the addon as users get it.
 * @param {string[]} args
 */
async function bench(args) {
  await setUp();
  await buildAddon({ revealAfterMs: PATIENCE_MS, kind: "shipped" });
  // The largest sessions fill more than Node allows itself.
  const node = ["--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", "--disable-warning=ExperimentalWarning", "--max-old-space-size=8192", "--expose-gc"];
  return show(node22, [...node, path.join(root, "bench", "run.mjs"), ...args], { env: cargoEnvironment() });
}

/** Ways to compact, compared. @param {string[]} args */
function strategies(args) {
  return comparison("strategies", args);
}

/** Ways to keep a context, compared. @param {string[]} args */
function context(args) {
  return comparison("context", args);
}

/** What outlives compactions. @param {string[]} args */
function survival(args) {
  return comparison("survival", args);
}

/** What search finds on public boards. @param {string[]} args */
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

/** What a change must pass. @param {string[]} args see `runChecks` */
function test(args) {
  return runChecks({ everything: false, args });
}

/** Every behavior on every host, which a release must pass. @param {string[]} args */
function testAll(args) {
  return runChecks({ everything: true, args });
}
