/**
 * `npm run pack:all`: builds the tarballs that this machine can, in `dist/`, ready to be published.
 *
 * The main package has neither engine nor viewer: it names their packages as optional dependencies. Only the packed package.json has these
 * names: in the repository's own they would have to be in the lock file, and no clone could run `npm ci` before its version is published.
 * `-- NAME …` packs only these (`main`, `viewer`, or platforms), and fails if one can't be built.
 */
import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { buildEngine, glibcOf, Unavailable } from "./engines.mjs";
import { root } from "./paths.mjs";
import { addonOf, OLDEST_GLIBC, PACKAGE, packageOf, platforms, VIEWER } from "./platforms.mjs";
import { Failure, npm } from "./setup.mjs";
import { buildViewer } from "./viewer.mjs";

/** @typedef {import("./platforms.mjs").Platform} Platform */

/**
 * A packed package.
 * @typedef {object} Packed
 * @property {Record<string, any>} manifest
 * @property {string} tarball its file
 * @property {number} unpacked bytes
 */

/** Size limits of the main package, and of the download for a platform. */
const MAIN_LIMIT = { unpacked: 200_000 };
const VIEWER_LIMIT = { unpacked: 220_000 };
const PLATFORM_LIMIT = { packed: 6_500_000 };

/** The folder for the tarballs. */
export const dist = path.join(root, "dist");

/** The fields that every package has. */
const SHARED = /** @type {const} */ (["version", "license", "engines"]);

/** The package.json of the repository. @returns {Record<string, any>} */
export const ownManifest = () => JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));

/** @param {string[]} names none for all */
export async function packAll(names) {
  const unknown = names.filter((name) => !["main", "viewer"].includes(name) && !platforms.some((platform) => platform.name === name));
  if (unknown.length > 0) throw new Failure(`There is no platform ${unknown.join(", ")}: there are main, viewer, ${platforms.map(({ name }) => name).join(", ")}.`);
  const isWanted = (/** @type {string} */ name) => names.length === 0 || names.includes(name);
  rmSync(dist, { recursive: true, force: true });
  if (isWanted("main")) report(await packMain(dist), MAIN_LIMIT);
  if (isWanted("viewer")) report(await packViewer(dist), VIEWER_LIMIT);
  /** @type {string[]} */
  const missing = [];
  for (const platform of platforms.filter(({ name }) => isWanted(name))) {
    const reason = await packEngine(platform);
    if (reason) missing.push(`${platform.name}: ${reason}`);
  }
  if (missing.length === 0) return 0;
  process.stdout.write(`\nNot built on this machine; .github/workflows/release.yml builds them all:\n${missing.map((line) => `  ${line}\n`).join("")}`);
  return names.length === 0 ? 0 : 1;
}

/**
 * @param {Platform} platform
 * @returns {Promise<string | undefined>} why this machine can't build it
 */
async function packEngine(platform) {
  try {
    const engine = await buildEngine(platform);
    const glibc = glibcOf(engine);
    if (platform.libc === "glibc" && Number(glibc?.split(".")[1]) > Number(OLDEST_GLIBC.split(".")[1])) {
      throw new Failure(`The engine for ${platform.name} asks for glibc ${glibc}; it must do with ${OLDEST_GLIBC}.`);
    }
    report(await packPlatform(platform, engine, dist), PLATFORM_LIMIT, glibc);
  } catch (error) {
    if (error instanceof Unavailable) return error.message;
    throw error;
  }
}

/**
 * The package that users name.
 * @param {string} folder for the tarball
 */
export async function packMain(folder) {
  const { scripts, devDependencies, allowScripts, private: _, ...own } = ownManifest();
  const optionalDependencies = Object.fromEntries([...platforms.map(({ name }) => packageOf(name)), VIEWER].map((name) => [name, own.version]));
  return pack({ ...own, ...repository(), optionalDependencies }, folder, (stage) => {
    for (const name of own.files) cpSync(path.join(root, name), path.join(stage, name), { recursive: true });
  });
}

/**
 * The viewer's package.
 * @param {string} folder for the tarball
 */
export async function packViewer(folder) {
  const page = await buildViewer();
  const description = `The page that ${PACKAGE} exports sessions to. It is installed by ${PACKAGE}, and does nothing alone.`;
  return pack({ name: VIEWER, description, ...shared(), files: ["viewer.html", "LICENSE"] }, folder, (stage) => {
    for (const file of [page, path.join(root, "LICENSE")]) copyFileSync(file, path.join(stage, path.basename(file)));
  });
}

/**
 * An engine's package.
 * @param {Platform} platform
 * @param {string} engine the shared library
 * @param {string} folder for the tarball
 */
export async function packPlatform(platform, engine, folder) {
  return pack(manifestOf(platform), folder, (stage) => {
    copyFileSync(engine, path.join(stage, addonOf(platform.name)));
    copyFileSync(path.join(root, "LICENSE"), path.join(stage, "LICENSE"));
  });
}

/** The package.json of an engine's package. @param {Platform} platform */
export function manifestOf({ name, os, cpu, libc }) {
  return {
    name: packageOf(name),
    description: `The engine of ${PACKAGE} for ${name}. It is installed by ${PACKAGE}, and does nothing alone.`,
    ...shared(),
    main: addonOf(name),
    files: [addonOf(name), "LICENSE"],
    os: [os],
    cpu: [cpu],
    ...(libc ? { libc: [libc] } : {}),
  };
}

/** The shared fields of every package. */
function shared() {
  const own = ownManifest();
  return { ...Object.fromEntries(SHARED.map((key) => [key, own[key]])), ...repository() };
}

/** The sources' address, which npm checks for a package with provenance; only a workflow knows it. */
function repository() {
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: name } = process.env;
  return server && name ? { repository: { type: "git", url: `git+${server}/${name}.git` } } : {};
}

/**
 * @param {Record<string, any>} manifest
 * @param {string} folder for the tarball
 * @param {(stage: string) => void} fill adds all other files
 * @returns {Promise<Packed>}
 */
async function pack(manifest, folder, fill) {
  const stage = path.join(folder, `.${manifest.name}-${manifest.version}`);
  mkdirSync(stage, { recursive: true });
  try {
    fill(stage);
    writeFileSync(path.join(stage, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
    await npm(["pack", "--silent", "--pack-destination", path.resolve(folder)], stage, { quiet: true });
    return { manifest, tarball: path.join(folder, `${manifest.name}-${manifest.version}.tgz`), unpacked: sizeOf(stage) };
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

/** @param {string} folder @returns {number} bytes of all files in it */
function sizeOf(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.reduce((sum, entry) => sum + statSync(path.join(entry.parentPath, entry.name)).size, 0);
}

/**
 * @param {Packed} made
 * @param {{ packed?: number, unpacked?: number }} limit bytes
 * @param {string} [glibc]
 */
function report({ tarball, unpacked }, limit, glibc) {
  const packed = statSync(tarball).size;
  const name = path.relative(root, tarball);
  process.stdout.write(`${name}: ${packed} bytes, unpacked ${unpacked}${glibc ? `, glibc ${glibc}` : ""}\n`);
  if (packed <= (limit.packed ?? packed) && unpacked <= (limit.unpacked ?? unpacked)) return;
  throw new Failure(`${name} is too large: at most ${limit.packed ?? limit.unpacked} bytes are allowed${limit.packed ? "" : " unpacked"}.`);
}
