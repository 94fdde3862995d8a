/**
 * The environment of a user who installs the package: a Pi, an npm, and a registry that has this package. Everything that npm writes (its
 * cache, its global folder, Pi's packages) is in the project's temporary folder.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { constants, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { runPi } from "../../demo/rpc.mjs";
import { manifestOf, packMain } from "../../scripts/pack.mjs";
import { addon, platformTriple, root } from "../../scripts/paths.mjs";
import { addonOf, PACKAGE, platforms } from "../../scripts/platforms.mjs";
import { bringTarball } from "../../scripts/tarballs.mjs";
import { echo } from "./faults.mjs";
import { aProject } from "./project.mjs";

/** @typedef {import("node:test").TestContext} TestContext */
/** @typedef {import("../../scripts/hosts.mjs").Host} Host */
/** @typedef {import("../../scripts/pack.mjs").Packed} Packed */
/** @typedef {Awaited<ReturnType<typeof import("./registry.mjs").aRegistry>>} Registry */

/** The npms, one per major version, with the hashes of their tarballs, which contain all dependencies. */
const NPMS = /** @type {const} */ ({
  "10.9.9": "sha512-1g+6jLQvaIuB4zwvHL7yrXuXcWZwDsCtBX8bbWDqbvJSSr9nPiDDWTHNgwXR27iIcTTW7v3A57hDW9RYv2W4Yg==",
  "11.21.2": "sha512-7HPApk+AflMUavSseL1Pm6CnYqMIHk53x+KmuhqmTDqPkjPMgxIpTPcTqsE91EKNw4gFBJV9fnXiSdGm1DXq9A==",
  "12.2.0": "sha512-ZsJjKpTnlmSXOLLXiU1xDCzC4Wlok4IwZmh/aw2KUuXytU7q6qMv/cUT7MoeSf95Slwuw/lRXYefGzGCspHPNQ==",
});

/** @typedef {keyof typeof NPMS} Npm */

export const npms = /** @type {Npm[]} */ (Object.keys(NPMS));

/** @param {Npm} version */
const npmFolder = (version) => path.join(root, "target", "npm", version);

/** Downloads the missing ones. @param {Npm[]} wanted */
export async function bringNpms(wanted) {
  for (const version of new Set(wanted)) {
    if (!existsSync(npmFolder(version))) await bringTarball(`npm@${version}`, NPMS[version], npmFolder(version));
  }
}

/** This machine's platform, for which the tests' addon was built. */
const here = platforms.find(({ name }) => name === platformTriple());

/** A release: the main package and this platform's engine. @typedef {{ version: string, main: Packed, engine: Packed }} Release */

/**
 * The release of this tree, with the tests' engine.
 * @param {string} folder for the tarballs
 * @returns {Promise<Release>}
 */
export async function aRelease(folder) {
  assert.ok(here, `there are packages for ${platformTriple()}`);
  const main = await packMain(folder);
  const engine = wrap(manifestOf(here), folder, (stage) => copyFileSync(addon(), path.join(stage, addonOf(here.name)), constants.COPYFILE_FICLONE));
  return { version: main.manifest.version, main, engine };
}

/**
 * A release that differs from another only in its version. The engine's version is compiled in, so the package wraps this tree's engine and
 * overrides it.
 * @param {string} folder for the tarballs
 * @param {Release} release
 * @param {string} version
 * @returns {Release}
 */
export function aLaterRelease(folder, { main: { manifest, tarball } }, version) {
  const engines = Object.keys(manifest.optionalDependencies).map((name) => [name, version]);
  const main = wrap({ ...manifest, version, optionalDependencies: Object.fromEntries(engines) }, folder, (stage) => {
    tar("-xzf", path.relative(stage, tarball), stage, "--strip-components=1");
  });
  return { version, main, engine: aBorrowedEngine(folder, version) };
}

/**
 * An engine's package that wraps this tree's engine in a module, for tests that do not check its content: npm would spend most of its time
 * on the bytes.
 * @param {string} folder for the tarball
 * @param {string} version
 */
export function aBorrowedEngine(folder, version) {
  assert.ok(here, `there are packages for ${platformTriple()}`);
  return wrap({ ...manifestOf(here), version, main: "borrowed.js" }, folder, (stage) => {
    const module = `module.exports = { ...require(${JSON.stringify(addon())}), version: () => "${version}" };\n`;
    writeFileSync(path.join(stage, "borrowed.js"), module);
  });
}

/**
 * Packs like npm but without compression, which takes seconds for an engine. packing.test.mjs tests npm's own packing.
 * @param {Record<string, any>} manifest
 * @param {string} folder for the tarball
 * @param {(stage: string) => void} fill adds all other files
 * @returns {Packed}
 */
function wrap(manifest, folder, fill) {
  const stage = mkdtempSync(path.join(folder, "stage-"));
  mkdirSync(path.join(stage, "package"));
  fill(path.join(stage, "package"));
  writeFileSync(path.join(stage, "package", "package.json"), JSON.stringify(manifest));
  tar("-cf", "package.tar", stage, "package");
  const tarball = path.join(stage, `${manifest.name}-${manifest.version}.tgz`);
  writeFileSync(tarball, gzipSync(readFileSync(path.join(stage, "package.tar")), { level: 0 }));
  return { manifest, tarball, unpacked: 0 };
}

/**
 * @param {string} action
 * @param {string} file relative, since some tars take the colon of `C:` for another machine's name
 * @param {string} cwd
 * @param {...string} rest
 */
function tar(action, file, cwd, ...rest) {
  const { status, stderr } = spawnSync("tar", [action, file, ...rest], { cwd, encoding: "utf8" });
  assert.equal(status, 0, stderr);
}

/**
 * A project whose Pi installs from a registry with an npm.
 * @param {TestContext} t
 * @param {{ host: Host, npm: Npm, registry: Registry, usual: string }} options `usual`: the project's name
 */
export async function aUser(t, { host, npm, registry, usual }) {
  const project = await aProject(t, { host, extensions: [], script: { otherwise: echo }, usual });
  const folder = path.dirname(project.agentDir);
  const [bin, temporary, home] = [path.join(folder, "bin"), path.join(folder, "tmp"), path.join(project.agentDir, "home")];
  for (const made of [bin, temporary, home]) mkdirSync(made, { recursive: true });
  // Pi caches a compiled extension in one place, by its path.
  const translated = path.join(os.tmpdir(), "jiti");
  mkdirSync(translated, { recursive: true });
  symlinkSync(translated, path.join(temporary, "jiti"), "junction");
  const cli = path.join(npmFolder(npm), "bin", "npm-cli.js");
  if (process.platform === "win32") writeFileSync(path.join(bin, "npm.cmd"), `@"${host.node}" "${cli}" %*\r\n`);
  else writeFileSync(path.join(bin, "npm"), `#!/bin/sh\nexec "${host.node}" "${cli}" "$@"\n`, { mode: 0o755 });
  const settings = { registry: registry.url, prefix: path.join(folder, "global"), cache: path.join(folder, "cache") };
  const lines = Object.entries({ ...settings, "update-notifier": false }).map(([name, value]) => `${name}=${value}\n`);
  /** The user's npm settings. @param {string} more lines */
  const npmrc = (more) => writeFileSync(path.join(home, ".npmrc"), lines.join("") + more);
  npmrc("");
  // Pi must only reach the registry: nothing else runs on this machine's loopback.
  project.env = { PATH: [bin, process.env.PATH].join(path.delimiter), TMPDIR: temporary, PI_OFFLINE: "" };

  /** Runs one of Pi's commands, such as `install`. @param {...string} args @returns {Promise<string>} its output */
  const pi = async (...args) => {
    const { agentDir, cwd, env } = project;
    const { code, stdout, stderr } = await runPi(args, { agentDir, cwd, env, node: host.node, pi: host.pi });
    assert.equal(code, 0, `pi ${args.join(" ")} failed:\n${stdout}${stderr}`);
    return stdout;
  };
  return { project, pi, home, npmrc };
}

/** The folder of the installed package; undefined if it is not installed. @param {string} list the output of `pi list` */
export function placeIn(list) {
  return list.split("\n").map((line) => line.trim()).find((line) => path.isAbsolute(line) && line.endsWith(PACKAGE));
}
