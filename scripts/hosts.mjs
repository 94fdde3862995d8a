/**
 * The Pis that the tests run on, and how to install those that are not npm packages of the repository.
 *
 * Each of the others has a folder in `__test__/hosts/` that pins it; `add-host.mjs` makes one. A stamp next to the packages records their
 * source, so that a second run does nothing. Can also run by itself: `node scripts/hosts.mjs`.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { inModules, node22, root } from "./paths.mjs";
import { Failure, npm } from "./setup.mjs";
import { bringTarball } from "./tarballs.mjs";

/** Pi's package on npm. */
export const PACKAGE = "@earendil-works/pi-coding-agent";

const folder = path.join(root, "__test__", "hosts");

/** A pinned Pi: its tarball is used as it is, since its bundle needs only the packages in the folder's lock file. @typedef {{ version: string, integrity: string }} Pinned */

/** @type {Pinned[]} */
// The script for publishing runs without tests.
const pinned = (existsSync(folder) ? readdirSync(folder) : []).filter((name) => existsSync(path.join(folder, name, "package.json"))).map((name) => JSON.parse(readFileSync(path.join(folder, name, "package.json"), "utf8")).pi);

/** The newest Pi that npm can install with all its parts, a development dependency; `npm start` runs it too. @type {string} */
export const MAIN = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")).devDependencies[PACKAGE];

/** The folder of a pinned Pi. @param {string} version */
export const folderOf = (version) => path.join(folder, `pi-${version}`);

/**
 * A Pi and the Node it runs on.
 * @typedef {object} Host
 * @property {string} name
 * @property {string} version Pi's
 * @property {string} node
 * @property {string} pi its script
 */

/** From the oldest to the newest. @type {Host[]} */
export const allHosts = [MAIN, ...pinned.map(({ version }) => version)].sort((a, b) => a.localeCompare(b, "en", { numeric: true })).map((version) => {
  const modules = version === MAIN ? inModules() : path.join(folderOf(version), "node_modules");
  return { name: `Pi ${version}`, version, node: node22, pi: path.join(modules, PACKAGE, "dist", "bundle", "cli.js") };
});

/** The versions in `TEST_HOSTS`, such as `0.87.1,1.5.2`; without it, all of them. */
const chosen = (process.env.TEST_HOSTS ?? "").split(",").map((version) => version.trim()).filter(Boolean);

/** The hosts to test. */
export const hosts = allHosts.filter(({ version }) => chosen.length === 0 || chosen.includes(version));

/** Whether every behavior runs on every host, as in `npm run test:all`, or on a covering choice, as in `npm test`. */
export const everything = process.env.TEST_SUITE === "all";

/** The host with a version of Pi, whether or not it is tested. @param {string} version */
export const hostOf = (version) => allHosts.find((host) => host.version === version);

/**
 * The hosts for a behavior: all of them in `npm run test:all`, or if TEST_HOSTS is set; in `npm test` the main one, and those that the test
 * names because Pi differs there.
 * @param {...string} also more versions
 */
export function hostsFor(...also) {
  if (everything || chosen.length > 0) return hosts;
  return hosts.filter(({ version }) => version === MAIN || also.includes(version));
}

/** Installs the missing ones. */
export async function bringHosts() {
  const unknown = chosen.filter((version) => !allHosts.some((host) => host.version === version));
  if (unknown.length > 0) throw new Failure(`TEST_HOSTS names ${unknown.join(", ")}, which is not among ${allHosts.map(({ version }) => version).join(", ")}.`);
  for (const one of pinned) if (hosts.some(({ version }) => version === one.version)) await bring(one);
}

/** @param {Pinned} pinned */
async function bring({ version, integrity }) {
  const modules = path.join(folderOf(version), "node_modules");
  const stamp = path.join(modules, ".complete");
  const wanted = createHash("sha256").update(readFileSync(path.join(folderOf(version), "package-lock.json"))).update(integrity).digest("base64");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  process.stderr.write(`Bringing Pi ${version} …\n`);
  await npm(["ci", "--loglevel=error"], folderOf(version));
  await bringTarball(`${PACKAGE}@${version}`, integrity, path.join(modules, PACKAGE));
  writeFileSync(stamp, wanted);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    await bringHosts();
    process.stdout.write(hosts.map(({ name, node, pi }) => `${name}: ${path.relative(root, node)} ${path.relative(root, pi)}\n`).join(""));
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}
