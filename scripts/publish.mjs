/**
 * `npm run publish:all`: publishes the packages in `dist/`, which must be complete.
 *
 * Engines and viewer go first, so that no user gets a main package without its engine. Packages that the registry has are skipped: an
 * interrupted run can be started again.
 */
import { existsSync } from "node:fs";
import path from "node:path";
import { dist, ownManifest } from "./pack.mjs";
import { PACKAGE, packageOf, platforms, VIEWER } from "./platforms.mjs";
import { collect } from "./proc.mjs";
import { callersNpm, Failure, npm } from "./setup.mjs";

/**
 * @param {string[]} options of `npm publish`, such as `--provenance`
 * @param {string} [folder]
 */
export async function publishAll(options, folder = dist) {
  const { version } = ownManifest();
  const { GITHUB_REF_TYPE: kind, GITHUB_REF_NAME: tag } = process.env;
  if (kind === "tag" && tag !== `v${version}`) throw new Failure(`Nothing was published: the tag is ${tag}, and this is version ${version}.`);
  const names = [...platforms.map(({ name }) => packageOf(name)), VIEWER, PACKAGE];
  const missing = names.map((name) => `${name}-${version}.tgz`).filter((file) => !existsSync(path.join(folder, file)));
  if (missing.length > 0) throw new Failure(`Nothing was published, since these are missing in ${folder}: ${missing.join(", ")}.`);
  for (const name of names) {
    const isThere = await isPublished(`${name}@${version}`);
    if (!isThere) await npm(["publish", path.join(folder, `${name}-${version}.tgz`), "--access", "public", ...options], folder);
    process.stdout.write(`${name} ${version}: ${isThere ? "was there already" : "published"}\n`);
  }
  return 0;
}

/** @param {string} spec */
async function isPublished(spec) {
  const { command, args, shell } = callersNpm();
  const { stdout } = await collect(command, [...args, "view", spec, "version", "--silent"], { shell });
  return stdout.trim() !== "";
}
