/**
 * Adds a Pi to those that the tests run on: `node scripts/add-host.mjs 1.7.0`, or `latest`. Prints its version.
 *
 * It makes the folder in `__test__/hosts/` that pins the tarball and the packages that its bundle loads from outside.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { allHosts, folderOf, PACKAGE } from "./hosts.mjs";
import { collect } from "./proc.mjs";
import { callersNpm, Failure, npm } from "./setup.mjs";

/** What the bundle of some version loads from outside. */
const OUTSIDE = ["@earendil-works/chord", "jiti", "quickjs-wasi"];

try {
  const [asked = "latest"] = process.argv.slice(2);
  const { version, "dist.integrity": integrity, dependencies } = await manifestOf(asked);
  if (!allHosts.some((host) => host.version === version)) await pin(version, integrity, dependencies);
  process.stdout.write(`${version}\n`);
} catch (error) {
  if (!(error instanceof Failure)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}

/** @param {string} asked a version or tag */
async function manifestOf(asked) {
  const { command, args, shell } = callersNpm();
  const { code, stdout, stderr } = await collect(command, [...args, "view", `${PACKAGE}@${asked}`, "version", "dist.integrity", "dependencies", "--json"], { shell });
  if (code !== 0 || !stdout.trim()) throw new Failure(`npm knows no ${PACKAGE}@${asked}. ${stderr.trim().split("\n")[0]}`);
  return JSON.parse(stdout);
}

/** @param {string} version @param {string} integrity @param {Record<string, string>} all the package's dependencies */
async function pin(version, integrity, all) {
  const folder = folderOf(version);
  // A range starts with its lowest version.
  const dependencies = Object.fromEntries(OUTSIDE.filter((name) => all[name]).map((name) => [name, all[name].replace(/^[^\d]*/, "")]));
  const manifest = { private: true, description: `What Pi ${version} needs beside its own bundle; see docs/hosts.md.`, pi: { version, integrity }, dependencies };
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  await npm(["install", "--package-lock-only", "--loglevel=error"], folder, { quiet: true });
}
