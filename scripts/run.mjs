/**
 * The driver behind `npm start`, `npm run build`, `npm test` and the other npm commands.
 *
 * Each begins with the set-up it needs, so that a clean clone needs no step before it. What follows is started by absolute
 * path (`paths.mjs`). A failure ends in one line that says what to do, or in the failing program's own words above it.
 */
import { existsSync } from "node:fs";
import path from "node:path";
import { buildAddon, cargoEnvironment } from "./build.mjs";
import { bringHosts } from "./hosts.mjs";
import { packAll as pack } from "./pack.mjs";
import { extension, node22, piCli, programOf, root } from "./paths.mjs";
import { collect, show } from "./proc.mjs";
import { publishAll as publish } from "./publish.mjs";
import { Failure, needCargo, setUp } from "./setup.mjs";
import { buildViewer, canBuildViewer } from "./viewer.mjs";

/** A build that takes longer than this shows itself when all the user wants is to start Pi. */
const PATIENCE_MS = 1500;

/** No deeper: below stand the other Pis, with node_modules of their own. */
const testFiles = ["__test__/*.test.mjs", "__test__/*/*.test.mjs"];

const [verb = "", ...rest] = process.argv.slice(2);
const verbs = { bench, build, context, start, strategies, test, kill, pack, publish, rehearse };

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
 * What is asked of it in figures, measured with the addon that tests use.
 * @param {string[]} args
 */
async function bench(args) {
  await setUp();
  await buildAddon({ revealAfterMs: PATIENCE_MS });
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

/** @param {string} what @param {string[]} args */
async function comparison(what, args) {
  await setUp();
  await buildAddon({ revealAfterMs: PATIENCE_MS });
  const node = ["--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", "--disable-warning=ExperimentalWarning"];
  return show(node22, [...node, path.join(root, "bench", what, "run.mjs"), ...args]);
}

/** Everything a change must pass. The first step that fails is the last. */
async function test() {
  const started = Date.now();
  const cargo = (/** @type {string[]} */ ...args) => show("cargo", args, { cwd: root, env: cargoEnvironment() });
  const node = (/** @type {string[]} */ ...args) => show(node22, args, { cwd: root });
  const typesScript = path.join(root, "scripts", "check-types.mjs");

  await step("set-up", () => setUp());
  await step("build the addon", () => buildAddon({ revealAfterMs: 0 }));
  await step("build the viewer", () => buildViewer());
  await step("cargo fmt", () => cargo("fmt", "--check"));
  await step("cargo clippy", () => cargo("clippy", "--profile", "fast", "--all-targets", "--", "-D", "warnings"));
  await step("cargo test", () => cargo("test", "--profile", "fast"));
  await step("tsc", () => node(programOf("typescript", "tsc"), "-p", "tsconfig.json"));
  if (existsSync(typesScript)) await step("index.d.ts", () => node(typesScript));
  await step("the other Pis", () => bringHosts());
  await step("node --test", () => node("--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", "--test", "--test-reporter=spec", ...testFiles));

  process.stdout.write(`\nAll steps passed in ${seconds(started)}.\n`);
  return 0;
}

/**
 * One step of the tests, with its name before and its time after.
 * @param {string} name
 * @param {() => Promise<unknown>} run resolves with an exit code, or with anything else for success
 */
async function step(name, run) {
  process.stdout.write(`\n── ${name} ──\n`);
  const started = Date.now();
  const code = await run();
  if (typeof code === "number" && code !== 0) throw new Failure(`\nFAILED: ${name} (exit code ${code}, after ${seconds(started)})`);
  process.stdout.write(`── ${name}: ok, ${seconds(started)} ──\n`);
}

/** @param {number} since */
function seconds(since) {
  return `${((Date.now() - since) / 1000).toFixed(1)} s`;
}
