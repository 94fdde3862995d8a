/**
 * The setup that all commands share: cargo, the npm packages and Node 22.
 *
 * If only the user can install something, the setup ends in one sentence that names it and the remedy.
 */
import { existsSync, statSync } from "node:fs";
import path from "node:path";
import { inModules, nodeIn, root } from "./paths.mjs";
import { collect, show } from "./proc.mjs";

/** A failure whose message is for the user, without a stack. */
export class Failure extends Error {}

/** Installs what is missing, and stays silent otherwise. */
export async function setUp() {
  await needCargo();
  if (packagesAreStale()) await installPackages();
  await needNode(inModules(), "Node 22");
}

/** Checks that cargo runs. */
export async function needCargo() {
  const { code, stderr } = await collect("cargo", ["--version"]);
  if (code === 0) return;
  if (code !== 127) throw new Failure(`cargo is there but does not run (${stderr.trim().split("\n")[0]}): \`rustup default stable\` usually mends it.`);
  throw new Failure("cargo was not found: install Rust with rustup (https://rustup.rs), open a new shell, and run this again.");
}

/** npm leaves its own lock file in node_modules when an installation is complete. */
function packagesAreStale() {
  const installed = inModules(".package-lock.json");
  if (!existsSync(installed)) return true;
  return statSync(installed).mtimeMs < statSync(path.join(root, "package-lock.json")).mtimeMs;
}

async function installPackages() {
  process.stderr.write("Installing the npm packages (about 350 MB, once) …\n");
  // Warnings are hidden: npm warns for each host package that it needs Node 22, which is one of these packages.
  await npm(["ci", "--loglevel=error"], root);
}

/**
 * Runs the caller's npm, as in their own shell.
 * @param {string[]} args
 * @param {string} cwd
 * @param {{ quiet?: boolean }} [options] `quiet`: shows the output only if it fails
 */
export async function npm(args, cwd, { quiet = false } = {}) {
  const { command, args: first, shell } = callersNpm();
  const options = { cwd, env: innerEnvironment(), shell };
  const all = [...first, ...args];
  const { code, stderr } = quiet ? await collect(command, all, options) : { code: await show(command, all, options), stderr: "" };
  if (code === 0) return;
  process.stderr.write(stderr);
  throw new Failure(`npm ${args[0]} failed with exit code ${code}: its output is above.`);
}

/** The npm of the user who started this, with the Node it runs on, so that its version and settings apply. */
export function callersNpm() {
  const { npm_execpath: script, npm_node_execpath: node = process.execPath } = process.env;
  if (script?.endsWith(".js")) return { command: node, args: [script], shell: false };
  // On Windows npm is a batch file, which only a shell can start.
  return { command: "npm", args: [], shell: process.platform === "win32" };
}

/**
 * The environment of an npm inside an npm: the outer one passes its options as npm_config_*, and these few would change the installation.
 */
function innerEnvironment() {
  const env = { ...process.env };
  for (const option of ["ignore_scripts", "omit", "global", "prefix"]) delete env[`npm_config_${option}`];
  return env;
}

/**
 * Checks the binary of the npm package `node`, which its install script downloads; npm may be configured not to run it.
 * @param {string} modules the `node_modules` it belongs to
 * @param {string} name its name in messages
 */
export async function needNode(modules, name) {
  const node = nodeIn(modules);
  if (await runs(node)) return;
  process.stderr.write(`Fetching ${name} …\n`);
  await show(process.execPath, ["installArchSpecificPackage.js"], { cwd: path.join(modules, "node"), env: innerEnvironment() });
  if (await runs(node)) return;
  throw new Failure(
    `${name} is missing because npm did not run the install script of the package \`node\`: allow it, delete ${modules}, and run this again.`,
  );
}

/** @param {string} node */
async function runs(node) {
  if (!existsSync(node)) return false;
  const { code } = await collect(node, ["--version"]);
  return code === 0;
}
