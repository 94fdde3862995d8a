/**
 * Finds the native engine for this platform, and says what to do where there is none.
 *
 * Nothing is loaded before it is asked for: a factory that throws keeps Pi from starting.
 */

import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { messageOf } from "./pi.js";

/** @typedef {import("../index.d.ts").Native} Native */

const require = createRequire(import.meta.url);

/** The engine, once it is loaded. @type {Native | undefined} */
let loaded;

/**
 * The engine, for scripts: `const { Engine } = loadEngine()`.
 *
 * @returns {Native}
 * @throws {Error} a sentence that names the missing file and the remedy
 */
export function loadEngine() {
  loaded ??= load();
  return loaded;
}

/** @returns {Native} */
function load() {
  const file = `pi-lossless-context.${platform()}.node`;
  const remedy = "reinstall the package, or run `npm run build` in its folder";
  const place = require.resolve("../package.json");
  const { version } = require("../package.json");
  if (!fs.existsSync(path.join(path.dirname(place), file))) {
    throw new Error(`${file}, the engine for this platform, is missing: ${remedy}`);
  }
  /** @type {Native} */
  let native;
  try {
    native = require(`../${file}`);
  } catch (error) {
    throw new Error(`${file} can't be loaded (${messageOf(error)}): ${remedy}`);
  }
  const found = native.version?.();
  if (found !== version) {
    throw new Error(`${file} is of version ${found}, but this is version ${version}: ${remedy}`);
  }
  return native;
}

/** The part of the addon's file name that tells platforms apart: `linux-x64-gnu`, `darwin-arm64`, … */
function platform() {
  const { platform, arch } = process;
  if (platform === "win32") return `${platform}-${arch}-msvc`;
  if (platform !== "linux") return `${platform}-${arch}`;
  return `${platform}-${arch}-${libc()}`;
}

/** The C library that this Node was made for: its file names the loader near its beginning. */
function libc() {
  try {
    const file = fs.openSync(process.execPath, "r");
    const head = Buffer.alloc(4096);
    fs.readSync(file, head);
    fs.closeSync(file);
    const [, loader] = /\/ld-(musl|linux)/.exec(head.toString("latin1")) ?? [];
    if (loader) return loader === "musl" ? "musl" : "gnu";
  } catch {
    // A report knows it too.
  }
  return libcOfReport();
}

/** The same where the file does not say, at several milliseconds of the user's start. */
function libcOfReport() {
  const { report: reporter } = /** @type {any} */ (process);
  // A report asks the name server about every connection that is open, and Pi would have to wait for that.
  const before = reporter?.excludeNetwork;
  if (reporter) reporter.excludeNetwork = true;
  const report = reporter?.getReport();
  if (reporter) reporter.excludeNetwork = before ?? false;
  return report?.header?.glibcVersionRuntime ? "gnu" : "musl";
}
