/**
 * Builds engines for release: with the profile `dist`, for each platform that this machine can build for.
 *
 * zig links Linux engines, on any Linux: against a glibc as old as Node's own minimum, against musl, for another processor. Linking for
 * macOS and Windows needs those systems. zig and cargo-zigbuild are Python packages, pinned in `zig-requirements.txt`, and kept in
 * `target/zig`.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { cargoBuild, cargoEnvironment } from "./build.mjs";
import { root } from "./paths.mjs";
import { OLDEST_GLIBC } from "./platforms.mjs";
import { collect } from "./proc.mjs";
import { Failure, needCargo } from "./setup.mjs";

/** @typedef {import("./platforms.mjs").Platform} Platform */

/** Tools that only come with the system itself. @type {Partial<Record<NodeJS.Platform, string>>} */
const LINKED_WITH = {
  darwin: "Apple's frameworks, which only macOS has",
  win32: "Microsoft's linker and libraries, which only Windows has",
};

/** An engine that can't be built here, with the reason; this is not a failure. */
export class Unavailable extends Failure {}

const zigFolder = path.join(root, "target", "zig");

/**
 * @param {Platform} platform
 * @returns {Promise<string>} the shared library
 * @throws {Unavailable} if it can't be built here
 */
export async function buildEngine(platform) {
  if (platform.os !== process.platform) throw new Unavailable(reasonAgainst(platform));
  process.stdout.write(`\nThe engine for ${platform.name} …\n`);
  await needCargo();
  await bringStandardLibrary(platform.target);
  // With the Rust library as well, which Cargo.toml adds for tests, it would be linked without LTO.
  const args = ["rustc", "--crate-type", "cdylib", "--profile", "dist", "--lib", "--target"];
  if (platform.os !== "linux") return (await cargoBuild([...args, platform.target])).library;
  const zig = await bringZig();
  const target = platform.libc === "musl" ? platform.target : `${platform.target}.${OLDEST_GLIBC}`;
  return (await cargoBuild([...args, target], zig)).library;
}

/** @param {Platform} platform */
function reasonAgainst({ os }) {
  const needed = LINKED_WITH[os];
  return needed ? `it is linked with ${needed}` : "Linux engines are built on Linux";
}

/** @param {string} target */
async function bringStandardLibrary(target) {
  const { stdout: sysroot } = await collect("rustc", ["--print", "sysroot"], { cwd: root });
  if (existsSync(path.join(sysroot.trim(), "lib", "rustlib", target, "lib"))) return;
  const { code, stderr } = await collect("rustup", ["target", "add", target], { cwd: root });
  if (code === 127) throw new Unavailable(`Rust's standard library for ${target} is missing, and so is rustup, which would bring it`);
  if (code !== 0) throw new Unavailable(`\`rustup target add ${target}\` failed: ${lastLine(stderr)}`);
}

/** Downloads zig once. @returns {Promise<{ program: string, env: NodeJS.ProcessEnv }>} how to call cargo through it */
async function bringZig() {
  const pinned = path.join(root, "scripts", "zig-requirements.txt");
  const stamp = path.join(zigFolder, ".complete");
  const wanted = readFileSync(pinned, "utf8");
  if (!existsSync(stamp) || readFileSync(stamp, "utf8") !== wanted) {
    process.stderr.write("Fetching zig (100 MB, once) …\n");
    const args = ["-m", "pip", "install", "--quiet", "--upgrade", "--no-deps", "--require-hashes", "--target", zigFolder, "-r", pinned];
    const { code, stderr } = await collect("python3", args);
    if (code === 127) throw new Unavailable("python3 with pip was not found, which brings zig");
    if (code !== 0) throw new Unavailable(`pip could not bring zig: ${lastLine(stderr)}`);
    writeFileSync(stamp, wanted);
  }
  return {
    program: path.join(zigFolder, "bin", "cargo-zigbuild"),
    env: { ...cargoEnvironment(), CARGO_ZIGBUILD_ZIG_PATH: path.join(zigFolder, "ziglang", "zig") },
  };
}

/** @param {string} text */
function lastLine(text) {
  return text.trim().split("\n").at(-1) ?? "";
}

/**
 * The glibc that a library needs, by the names of its versioned symbols.
 * @param {string} library
 * @returns {string | undefined} such as `2.28`; undefined if it needs none
 */
export function glibcOf(library) {
  const names = readFileSync(library, "latin1").matchAll(/\bGLIBC_(\d+)\.(\d+)/g);
  const versions = [...names].map(([, major, minor]) => [Number(major), Number(minor)]);
  return versions.sort(([a, b], [c, d]) => a - c || b - d).at(-1)?.join(".");
}
