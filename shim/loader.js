/**
 * Finds the native engine for this platform, or says what to do if there is none.
 *
 * A source tree has its own build next to `index.js`; for an installed package, npm has chosen a platform package.
 * Nothing is loaded before it is needed: a factory that throws keeps Pi from starting.
 */

import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { messageOf } from "./pi.js";

/** @typedef {import("../index.d.ts").Native} Native */

const require = createRequire(import.meta.url);

/** The signal of a file that reaches its size limit (`ulimit -f`). */
const FILE_LIMIT = "SIGXFSZ";
// Node ignores it, but a library of Pi's ends the process if it has no other listener; with this one, only the write fails.
if (process.platform !== "win32" && !process.listeners(FILE_LIMIT).some(({ name }) => name === goOn.name)) process.on(FILE_LIMIT, goOn);

function goOn() {}

/** The page template for `/lcm export --html`: the one built next to `index.js`, or the installed one; undefined without either. */
export const viewerTemplate = installed("../viewer.html") ?? installed("pi-lossless-context-viewer/viewer.html");

/**
 * The engine, for scripts: `const { Engine } = loadEngine()`.
 *
 * @returns {Native}
 * @throws {Error} a sentence that names the missing file and the remedy
 */
export function loadEngine() {
  const place = require.resolve("../package.json");
  /** @type {{ version: string, optionalDependencies?: Record<string, string> }} */
  const manifest = require("../package.json");
  const name = platform();
  const file = `pi-lossless-context.${name}.node`;
  const engine = `pi-lossless-context-${name}`;
  const remedy = remedyFor(manifest, path.dirname(place), name, engine);
  const built = path.join(path.dirname(place), file);
  const found = fs.existsSync(built) ? built : installed(engine);
  if (!found) throw new Error(`${file}, the engine for this platform, is missing: ${remedy}`);
  /** @type {Native} */
  let native;
  try {
    native = require(found);
  } catch (error) {
    throw new Error(`${file} can't be loaded (${messageOf(error)}): ${remedy}`);
  }
  const version = native.version?.();
  if (version !== manifest.version) {
    throw new Error(`${file} has version ${version}, but this is version ${manifest.version}: ${remedy}`);
  }
  return native;
}

/** @param {string} name of a package or a file @returns {string | undefined} its file, if it is there */
function installed(name) {
  try {
    return require.resolve(name);
  } catch {
    return undefined;
  }
}

/**
 * The remedy for a missing or unusable engine.
 *
 * @param {{ optionalDependencies?: Record<string, string> }} manifest
 * @param {string} folder
 * @param {string} name the platform
 * @param {string} engine its package
 */
function remedyFor({ optionalDependencies: engines }, folder, name, engine) {
  // Only the package on npm names the engines' packages, so this is a source tree.
  if (!engines) return `run \`npm run build\` in ${folder}`;
  if (!engines[engine]) return `there is no package for ${name}: build it from source, as the README describes`;
  return "run `pi install npm:pi-lossless-context` again, with optional packages enabled (npm's setting `omit`)";
}

/** The part of the addon's file name that tells platforms apart: `linux-x64-gnu`, `darwin-arm64`, … */
function platform() {
  const { platform, arch } = process;
  if (platform === "win32") return `${platform}-${arch}-msvc`;
  if (platform !== "linux") return `${platform}-${arch}`;
  return `${platform}-${arch}-${libc()}`;
}

/** The C library of this Node: the executable names the loader near its beginning. */
function libc() {
  try {
    const file = fs.openSync(process.execPath, "r");
    const head = Buffer.alloc(4096);
    fs.readSync(file, head);
    fs.closeSync(file);
    const [, loader] = /\/ld-(musl|linux)/.exec(head.toString("latin1")) ?? [];
    if (loader) return loader === "musl" ? "musl" : "gnu";
  } catch {
    // The report is used instead.
  }
  return libcOfReport();
}

/** The C library by Node's report, which takes several milliseconds. */
function libcOfReport() {
  const { report: reporter } = /** @type {any} */ (process);
  // A report looks up the host name of every open connection, and Pi would wait for that.
  const before = reporter?.excludeNetwork;
  if (reporter) reporter.excludeNetwork = true;
  const report = reporter?.getReport();
  if (reporter) reporter.excludeNetwork = before ?? false;
  return report?.header?.glibcVersionRuntime ? "gnu" : "musl";
}
