/**
 * The Pis that the tests run on, each with its Node, and how to install those that are not npm packages of the repository.
 *
 * Each has a folder in `__test__/hosts/` whose lock file pins its packages. A stamp next to the packages records their source, so that a
 * second run does nothing. Can also run by itself: `node scripts/hosts.mjs`.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { inModules, node22, nodeIn, root } from "./paths.mjs";
import { Failure, needNode, npm } from "./setup.mjs";
import { bringTarball } from "./tarballs.mjs";

const PACKAGE = "@earendil-works/pi-coding-agent";

/**
 * Pi's tarball if it is used as it is: its bundle only needs the packages in the folder's lock file.
 * @type {Record<string, string>} the integrity by version
 */
const TARBALLS = {
  "1.5.2": "sha512-mUWI04rqF1Vd/m1q+Ps1XeWsTXEVvRUnsmRa83I3Dzua0Tx5bYS93imeqtIfrXf7PkkaR6ERz+AuQhIJlom5yA==",
};

/** The `node_modules` of a Pi with its own folder. @param {string} version */
const modulesOf = (version) => path.join(root, "__test__", "hosts", `pi-${version}`, "node_modules");

/** Pi's script in a `node_modules`. @param {string} modules @param {...string} script */
const piIn = (modules, ...script) => path.join(modules, PACKAGE, "dist", ...script);

/**
 * A Pi and the Node it runs on.
 * @typedef {object} Host
 * @property {string} name
 * @property {string} version Pi's
 * @property {string} node
 * @property {string} pi its script
 * @property {string} [idle] the event with which it reports that it is idle, if not `agent_settled`
 */

/** @type {Host[]} */
export const allHosts = [
  { name: "Pi 0.74.2, Node 20", version: "0.74.2", node: nodeIn(modulesOf("0.74.2")), pi: piIn(modulesOf("0.74.2"), "cli.js"), idle: "agent_end" },
  { name: "Pi 0.74.2, Node 22", version: "0.74.2", node: node22, pi: piIn(modulesOf("0.74.2"), "cli.js"), idle: "agent_end" },
  { name: "Pi 0.87.1, Node 22", version: "0.87.1", node: node22, pi: piIn(inModules(), "bundle", "cli.js") },
  { name: "Pi 1.5.2, Node 22", version: "1.5.2", node: node22, pi: piIn(modulesOf("1.5.2"), "bundle", "cli.js") },
];

/** The versions in `TEST_HOSTS`, such as `0.87.1,1.5.2`; without it, all of them. */
const chosen = (process.env.TEST_HOSTS ?? "").split(",").map((version) => version.trim()).filter(Boolean);

/** The hosts to test. */
export const hosts = allHosts.filter(({ version }) => chosen.length === 0 || chosen.includes(version));

/** The newest Pi that npm can install with all its dependencies; it is also the one that `npm start` runs. */
export const MAIN = "0.87.1";

/** Whether every behavior runs on every host, as in `npm run test:all`, or on a covering choice, as in `npm test`. */
export const everything = process.env.TEST_SUITE === "all";

/** One host for each version of Pi, for tests that do not depend on Node. */
export const hostsByVersion = [...new Map(hosts.map((host) => [host.version, host])).values()];

/** The host with a version of Pi, whether or not it is tested. @param {string} version */
export const hostOf = (version) => allHosts.findLast((host) => host.version === version);

/**
 * The hosts for a behavior: all of them in `npm run test:all`, or if TEST_HOSTS is set; in `npm test` the main one, and those that the test
 * names because Pi differs there. `docs/tests.md` shows the choice.
 * @param {Host[]} from
 * @param {...string} also the beginnings of the names of more hosts, such as `Pi 0.74.2` or `Pi 0.74.2, Node 20`
 */
export function hostsFor(from, ...also) {
  if (everything || chosen.length > 0) return from;
  return from.filter(({ name, version }) => version === MAIN || also.some((beginning) => name.startsWith(beginning)));
}

/** Installs the missing ones. */
export async function bringHosts() {
  const unknown = chosen.filter((version) => !allHosts.some((host) => host.version === version));
  if (unknown.length > 0) throw new Failure(`TEST_HOSTS names ${unknown.join(", ")}, which is not among ${[...new Set(allHosts.map(({ version }) => version))].join(", ")}.`);
  for (const version of new Set(hosts.map((host) => host.version))) {
    if (existsSync(path.dirname(modulesOf(version)))) await bring(version);
  }
}

/** @param {string} version */
async function bring(version) {
  const modules = modulesOf(version);
  const folder = path.dirname(modules);
  const stamp = path.join(modules, ".complete");
  const wanted = createHash("sha256").update(readFileSync(path.join(folder, "package-lock.json"))).update(TARBALLS[version] ?? "").digest("base64");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  process.stderr.write(`Bringing Pi ${version} …\n`);
  await npm(["ci", "--loglevel=error"], folder);
  if (TARBALLS[version]) await bringTarball(`${PACKAGE}@${version}`, TARBALLS[version], path.join(modules, PACKAGE));
  if (existsSync(path.join(modules, "node"))) await needNode(modules, `the Node of Pi ${version}`);
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
