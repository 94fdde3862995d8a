/**
 * The packages of `npm run pack:all` and `npm run publish:all`; and that the release workflow has the same platforms and calls existing
 * scripts.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import { before, test } from "node:test";
import { glibcOf } from "../../scripts/engines.mjs";
import { everything } from "../../scripts/hosts.mjs";
import { manifestOf, packMain, packPlatform, packViewer } from "../../scripts/pack.mjs";
import { addon, node22, root } from "../../scripts/paths.mjs";
import { addonOf, PACKAGE, packageOf, platforms, VIEWER } from "../../scripts/platforms.mjs";
import { collect } from "../../scripts/proc.mjs";
import { temporaryFolder } from "../support/project.mjs";
import { aRegistry } from "../support/registry.mjs";

/** @typedef {import("../../scripts/pack.mjs").Packed} Packed */
/** @typedef {import("../../scripts/platforms.mjs").Platform} Platform */

const own = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
const license = path.join(root, "LICENSE");

/** The platforms to pack: one that names a libc and one that does not, or all. The others differ only in `manifestOf`. */
const tried = everything ? platforms : [platforms[0], platforms[platforms.length - 1]];
const others = platforms.filter((platform) => !tried.includes(platform));

/** The tarballs' folder. @type {string} */
let folder;
/** @type {Packed} */
let main;
/** @type {Packed} */
let viewer;
/** In the order of `tried`. @type {Packed[]} */
let engines;

before(async (t) => {
  folder = temporaryFolder(/** @type {import("node:test").TestContext} */ (t));
  [main, viewer, ...engines] = await Promise.all([packMain(folder), packViewer(folder), ...tried.map((platform) => packPlatform(platform, license, folder))]);
});

test("the main package has neither engine nor viewer, names their packages, and is small", async () => {
  const { manifest, tarball, unpacked } = main;
  const { files, packed } = await contentsOf(tarball);
  assert.deepEqual(packed, manifest);
  assert.deepEqual(packed.optionalDependencies, Object.fromEntries([...platforms.map(({ name }) => packageOf(name)), VIEWER].map((name) => [name, own.version])));
  for (const key of ["private", "dependencies", "devDependencies", "peerDependencies", "scripts"]) assert.equal(packed[key], undefined, key);
  for (const name of ["index.js", "index.d.ts", "shim/loader.js", "bin/pi-lcm.js", "README.md", "LICENSE", "CHANGELOG.md"]) assert.ok(files.includes(name), name);
  assert.deepEqual(files.filter((name) => /\.(node|html)$/.test(name)), []);
  assert.ok(unpacked <= 200_000, `${unpacked} bytes`);
});

test("the viewer's package has only the page", async () => {
  const { files, packed } = await contentsOf(viewer.tarball);
  assert.deepEqual(packed, viewer.manifest);
  assert.deepEqual([packed.name, packed.version], [VIEWER, own.version]);
  assert.deepEqual(files.sort(), ["LICENSE", "package.json", "viewer.html"]);
});

test("an engine's package is for its platform only and has only the engine", async () => {
  for (const platform of platforms) {
    /** @type {Record<string, any>} */
    const { name, version, main, os, cpu, libc } = manifestOf(platform);
    assert.deepEqual([name, version, main], [packageOf(platform.name), own.version, addonOf(platform.name)]);
    assert.deepEqual([os, cpu, libc], [[platform.os], [platform.cpu], platform.libc && [platform.libc]]);
  }
  for (const [at, { name }] of tried.entries()) {
    const { files, packed } = await contentsOf(engines[at].tarball);
    assert.deepEqual(packed, manifestOf(tried[at]));
    assert.deepEqual(files.sort(), ["LICENSE", "package.json", addonOf(name)].sort());
  }
});

test("the required glibc is read from the engine", { skip: process.platform !== "linux" && "engines of this system ask for none" }, () => {
  const found = glibcOf(addon());
  assert.match(found ?? "", /^2\.\d+$/);
  assert.equal(glibcOf(license), undefined);
});

test("engines and viewer are published before the main package, and published ones are skipped", async (t) => {
  const registry = await aRegistry(t);
  // An interrupted run has published these.
  registry.add(engines[0], ...others.map(standInFor));
  const before = registry.published.length;

  renameSync(main.tarball, `${main.tarball}.later`);
  const early = await publish(registry, folder);
  assert.equal(early.code, 1);
  assert.match(early.stderr, new RegExp(`Nothing was published.*: ${PACKAGE}-${own.version}\\.tgz\\.`));
  renameSync(`${main.tarball}.later`, main.tarball);

  const wrong = await publish(registry, folder, { GITHUB_REF_TYPE: "tag", GITHUB_REF_NAME: "v0.0.0" });
  assert.match(wrong.stderr, /Nothing was published: the tag is v0\.0\.0/);

  const { code, stdout, stderr } = await publish(registry, folder, { GITHUB_REF_TYPE: "tag", GITHUB_REF_NAME: `v${own.version}` });
  assert.equal(code, 0, stderr);
  for (const { name } of [tried[0], ...others]) assert.match(stdout, new RegExp(`^${packageOf(name)} ${own.version}: was there already$`, "m"));
  const now = [...tried.slice(1).map(({ name }) => packageOf(name)), VIEWER, PACKAGE];
  assert.deepEqual(registry.published.slice(before), now.map((name) => `${name}@${own.version}`));
});

test("the release builds every platform on its own system", () => {
  const workflow = readFileSync(path.join(root, ".github", "workflows", "release.yml"), "utf8");
  const rows = [...workflow.matchAll(/\{ platform: ([\w-]+), runner: ([\w.-]+)/g)].map(([, platform, runner]) => [platform, runner]);
  assert.deepEqual(rows.map(([platform]) => platform), platforms.map(({ name }) => name));
  const systems = { darwin: "macos", linux: "ubuntu", win32: "windows" };
  for (const [at, [, runner]] of rows.entries()) assert.equal(runner.split("-")[0], systems[/** @type {keyof typeof systems} */ (platforms[at].os)]);
});

test("the workflows call existing scripts", () => {
  const folder = path.join(root, ".github", "workflows");
  const calls = readdirSync(folder).flatMap((name) => [...readFileSync(path.join(folder, name), "utf8").matchAll(/npm run ([\w:]+)|bash (\S+)|(__test__\S+)/g)]);
  assert.ok(calls.length >= 5, `${calls.length} calls`);
  for (const [call, script, ...files] of calls) {
    if (script) assert.ok(own.scripts[script], call);
    for (const file of files.filter(Boolean)) assert.ok(existsSync(path.join(root, file)), call);
  }
});

test("no lock file names a registry", () => {
  for (const folder of [".", "__test__/hosts/pi-0.87.1", "__test__/hosts/pi-1.6.0"]) {
    assert.doesNotMatch(readFileSync(path.join(root, folder, "package-lock.json"), "utf8"), /"resolved"|https?:\/\/registry/, folder);
  }
});

/**
 * @param {string} tarball
 * @returns {Promise<{ files: string[], packed: Record<string, any> }>}
 */
async function contentsOf(tarball) {
  const tar = async (/** @type {string[]} */ ...args) => (await collect("tar", args, { cwd: path.dirname(tarball) })).stdout;
  const names = (await tar("-tzf", path.basename(tarball))).split("\n").filter(Boolean);
  const packed = JSON.parse(await tar("-xzOf", path.basename(tarball), "package/package.json"));
  return { files: names.map((name) => name.trim().replace(/^package\//, "")), packed };
}

/**
 * A placeholder for the package of a platform that is already published; its tarball only has to exist.
 * @param {Platform} platform
 * @returns {Packed}
 */
function standInFor(platform) {
  const tarball = path.join(folder, `${packageOf(platform.name)}-${own.version}.tgz`);
  writeFileSync(tarball, "");
  return { manifest: manifestOf(platform), tarball, unpacked: 0 };
}

/**
 * Runs `npm run publish:all` with a registry that accepts everyone.
 * @param {Awaited<ReturnType<typeof aRegistry>>} registry
 * @param {string} folder
 * @param {Record<string, string>} [env]
 */
async function publish(registry, folder, env) {
  const npmrc = path.join(folder, "npmrc");
  writeFileSync(npmrc, `registry=${registry.url}\n${registry.url.replace("http:", "")}:_authToken=any\ncache=${path.join(folder, "cache")}\n`);
  const settings = { npm_config_userconfig: npmrc, npm_config_loglevel: "error" };
  const script = `import { publishAll } from ${JSON.stringify(path.join(root, "scripts", "publish.mjs"))};
    await publishAll([], ${JSON.stringify(folder)}).catch((error) => { console.error(error.message); process.exitCode = 1; });`;
  return collect(node22, ["--input-type=module", "--eval", script], { cwd: folder, env: { ...process.env, ...settings, ...env } });
}
