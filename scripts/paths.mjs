/**
 * Absolute paths.
 *
 * The driver, the demo and the tests start Node 22, Pi and the addon from here and never through PATH: the lock file determines what runs,
 * whatever the machine has installed. Nothing here checks that a file exists; `setup.mjs` does.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { addonOf } from "./platforms.mjs";

/** The repository. */
export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");

/** The extension, as `pi -e` takes it. */
export const extension = path.join(root, "index.js");

/**
 * A path below `node_modules`.
 * @param {...string} parts
 */
export const inModules = (...parts) => path.join(root, "node_modules", ...parts);

/**
 * The binary of the npm package `node`.
 * @param {string} modules the `node_modules` it belongs to
 */
export const nodeIn = (modules) => path.join(modules, "node", "bin", process.platform === "win32" ? "node.exe" : "node");

/** Node 22, from the npm package `node`; Pi needs it, whichever Node runs this script. */
export const node22 = nodeIn(inModules());

/**
 * A program of an npm package, as its package.json names it.
 * @param {string} name the package
 * @param {string} command the key in its `bin`
 * @returns {string} the script's absolute path, to be started with `node22`
 */
export function programOf(name, command) {
  const manifest = JSON.parse(readFileSync(inModules(name, "package.json"), "utf8"));
  return inModules(name, manifest.bin[command]);
}

/** Pi's command line. */
export const piCli = () => programOf("@earendil-works/pi-coding-agent", "pi");

/** The name in platform packages and addons, such as `linux-x64-gnu`. */
export function platformTriple() {
  const { platform, arch } = process;
  if (platform === "win32") return `win32-${arch}-msvc`;
  if (platform !== "linux") return `${platform}-${arch}`;
  return `linux-${arch}-${isMusl() ? "musl" : "gnu"}`;
}

/** Whether this Linux uses musl: Node's report only has a version for glibc. */
function isMusl() {
  const report = /** @type {{ header: { glibcVersionRuntime?: string } }} */ (process.report.getReport());
  return !report.header.glibcVersionRuntime;
}

/** The path where `index.js` looks for the addon in a source tree. */
export const addon = () => path.join(root, addonOf(platformTriple()));
