/**
 * The Pis that the tests run on, and how to install those that are not npm packages of the repository.
 *
 * Each has a folder in `__test__/hosts/` whose lock file pins its packages. A stamp next to the packages records their source, so that a
 * second run does nothing. Can also run by itself: `node scripts/hosts.mjs`.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { inModules, node22, root } from "./paths.mjs";
import { Failure, npm } from "./setup.mjs";
import { bringTarball } from "./tarballs.mjs";

const PACKAGE = "@earendil-works/pi-coding-agent";

/**
 * Pi's tarball if it is used as it is: its bundle only needs the packages in the folder's lock file.
 * @type {Record<string, string>} the integrity by version
 */
const TARBALLS = {
  "0.87.1": "sha512-m8ArJUtVcQMSe1lLE/Ei7vX/JV7O39sWmWBsXV2NOU70F0qCp8GubA24pT3LnwTmM6LL2xV80/h6sQg85n69ew==",
  "1.6.0": "sha512-zX1BVEsshx7A2MRuQ6jfr3RJGWw4Wn+vLq5ZfmlvS1RskhRmByaSZVXH/zcwRrWHO7qPgs98pNCbPOEti/t0fQ==",
};

/** The `node_modules` of a Pi with its own folder. @param {string} version */
const modulesOf = (version) => path.join(root, "__test__", "hosts", `pi-${version}`, "node_modules");

/**
 * A Pi and the Node it runs on.
 * @typedef {object} Host
 * @property {string} name
 * @property {string} version Pi's
 * @property {string} node
 * @property {string} pi its script
 */

/** @type {Host[]} */
export const allHosts = ["0.87.1", "1.5.2", "1.6.0"].map((version) => {
  const modules = version in TARBALLS ? modulesOf(version) : inModules();
  return { name: `Pi ${version}`, version, node: node22, pi: path.join(modules, PACKAGE, "dist", "bundle", "cli.js") };
});

/** The versions in `TEST_HOSTS`, such as `0.87.1,1.5.2`; without it, all of them. */
const chosen = (process.env.TEST_HOSTS ?? "").split(",").map((version) => version.trim()).filter(Boolean);

/** The hosts to test. */
export const hosts = allHosts.filter(({ version }) => chosen.length === 0 || chosen.includes(version));

/** The newest Pi that npm can install with all its parts; `npm start` runs it too. */
export const MAIN = "1.5.2";

/** Whether every behavior runs on every host, as in `npm run test:all`, or on a covering choice, as in `npm test`. */
export const everything = process.env.TEST_SUITE === "all";

/** The host with a version of Pi, whether or not it is tested. @param {string} version */
export const hostOf = (version) => allHosts.find((host) => host.version === version);

/**
 * The hosts for a behavior: all of them in `npm run test:all`, or if TEST_HOSTS is set; in `npm test` the main one, and those that the test
 * names because Pi differs there. `docs/tests.md` shows the choice.
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
  for (const { version } of hosts) if (version in TARBALLS) await bring(version);
}

/** @param {string} version */
async function bring(version) {
  const modules = modulesOf(version);
  const folder = path.dirname(modules);
  const stamp = path.join(modules, ".complete");
  const wanted = createHash("sha256").update(readFileSync(path.join(folder, "package-lock.json"))).update(TARBALLS[version]).digest("base64");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  process.stderr.write(`Bringing Pi ${version} …\n`);
  await npm(["ci", "--loglevel=error"], folder);
  await bringTarball(`${PACKAGE}@${version}`, TARBALLS[version], path.join(modules, PACKAGE));
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
