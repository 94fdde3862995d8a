/**
 * Installing the package with the real Pi and the real npm: install, update, remove, try it without installing, install a folder. The
 * registry runs on loopback and has the output of `npm run pack:all`.
 *
 * `npm test` runs the main Pi with one npm; `npm run test:all` runs each Pi with one npm, and each npm with one Pi. INSTALL_MATRIX=full
 * runs all pairs.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { before, describe, test } from "node:test";
import { allHosts, hosts, hostsFor } from "../../scripts/hosts.mjs";
import { platformTriple, root } from "../../scripts/paths.mjs";
import { addonOf, PACKAGE, packageOf } from "../../scripts/platforms.mjs";
import { collect } from "../../scripts/proc.mjs";
import { assertAgreement } from "../support/agreement.mjs";
import { copyWithoutEngine } from "../support/copies.mjs";
import { assertWarnedOnce, databaseFile, warnings } from "../support/faults.mjs";
import { aBorrowedEngine, aLaterRelease, aRelease, aUser, bringNpms, npms, placeIn } from "../support/installing.mjs";
import { eventually, temporaryFolder } from "../support/project.mjs";
import { aRegistry } from "../support/registry.mjs";
import { heard } from "../support/seats.mjs";

/** @typedef {import("../support/installing.mjs").Release} Release */
/** @typedef {import("../../scripts/pack.mjs").Packed} Packed */
/** @typedef {import("../support/project.mjs").Project} Project */

const SOURCE = `npm:${PACKAGE}`;
const NEXT = "99.0.0";

const inFull = process.env.INSTALL_MATRIX === "full";
const pairs = (inFull ? hosts : hostsFor()).flatMap((host) => npms.map((npm) => ({ host, npm })));
/** Each Pi with the npm of its time. */
const chosen = pairs.filter(({ host, npm }) => inFull || npms.indexOf(npm) === allHosts.indexOf(host));

/** @type {Release} */
let release;
/** @type {Release} */
let later;
/** The first release's engine, for tests that do not care about its content. @type {Packed} */
let borrowed;

before(async (t) => {
  await bringNpms(chosen.map(({ npm }) => npm));
  const folder = temporaryFolder(/** @type {import("node:test").TestContext} */ (t));
  release = await aRelease(folder);
  later = aLaterRelease(folder, release, NEXT);
  borrowed = aBorrowedEngine(folder, release.version);
});

if (chosen.length < pairs.length) {
  test(`${pairs.length - chosen.length} more pairs of a Pi and an npm`, { skip: "they are tried with INSTALL_MATRIX=full" });
}

for (const { host, npm } of chosen) {
  describe(`${host.name}, npm ${npm}`, { concurrency: 2 }, () => {
    test("the history survives an update, a removal and a missing engine, whose remedy works", async (t) => {
      const registry = await aRegistry(t);
      registry.add(release.main);
      const { project, pi, npmrc } = await aUser(t, { host, npm, registry, usual: "installed" });
      await pi("install", SOURCE);
      const place = placeIn(await pi("list")) ?? "";
      assert.equal(versionAt(place), release.version);
      await assertOff(project, new RegExp(`${addonOf(platformTriple())}, .* is missing: run \`pi install ${SOURCE}\` again.* optional packages`));

      registry.add(release.engine);
      await pi("install", SOURCE);
      await say(project, "first", "--continue");
      await eventually(() => assertAgreement(project));

      registry.add(later.engine, later.main);
      await pi("update", SOURCE);
      assert.equal(versionAt(place), NEXT);
      await say(project, "second", "--continue");
      await eventually(() => assertAgreement(project));

      const kept = digest(databaseFile(project));
      await pi("remove", SOURCE);
      assert.deepEqual([packagesOf(project), existsSync(place)], [[], false]);

      npmrc("omit=optional\n");
      await pi("install", SOURCE);
      assert.ok(existsSync(place) && !existsSync(engineBeside(place)), "npm has omitted the engine");
      await say(project, "third", "--continue");
      assert.equal(digest(databaseFile(project)), kept, "without an engine the history is unchanged");

      npmrc("");
      await pi("install", SOURCE);
      await say(project, "fourth", "--continue");
      await eventually(() => assertAgreement(project));
    });

    test("the package can be tried without installing it", async (t) => {
      const registry = await aRegistry(t);
      registry.add(borrowed, release.main);
      const { project, npmrc } = await aUser(t, { host, npm, registry, usual: "tried" });
      npmrc("loglevel=silent\n");
      await say(project, "just once", "-e", SOURCE);
      await eventually(() => assertAgreement(project));
      assert.deepEqual(packagesOf(project), []);
    });

    test("sources are installed as they are: a folder with its engine, and from git without one, with build instructions", async (t) => {
      const folder = path.join(temporaryFolder(t), "sources");
      mkdirSync(folder);
      copyWithoutEngine(folder);
      for (const name of ["package-lock.json", ".npmrc"]) copyFileSync(path.join(root, name), path.join(folder, name));
      await commitAll(folder);
      const { project, pi, home } = await aUser(t, { host, npm, registry: await aRegistry(t), usual: "sources" });
      const without = readFileSync(settingsOf(project));

      await pi("install", root);
      await say(project, "with the sources");
      await eventually(() => assertAgreement(project));
      writeFileSync(settingsOf(project), without);

      // Pi clones from server addresses only: git maps one to the folder.
      const address = `git.invalid/someone/${PACKAGE}`;
      writeFileSync(path.join(home, ".gitconfig"), `[url "file://${folder}"]\n\tinsteadOf = https://${address}\n`);
      await pi("install", `git:${address}`);
      await assertOff(project, new RegExp(`${addonOf(platformTriple())}, .* is missing: run \`npm run build\` in .*${address}\\.`));
    });
  });
}

/**
 * Sends a message in print mode and checks the answer; nothing may fail in between.
 * @param {Project} project
 * @param {string} text
 * @param {...string} args
 */
async function say(project, text, ...args) {
  const { code, stdout } = await project.runPi(["-p", ...args, text]);
  assert.deepEqual({ code, stdout: stdout.split("\n").at(-2) }, { code: 0, stdout: heard(text) });
}

/**
 * Asserts that the user is told once, and that Pi works.
 * @param {Project} project
 * @param {RegExp} sentence
 */
async function assertOff(project, sentence) {
  const pi = project.startPi();
  await pi.prompt("without");
  assertWarnedOnce(pi, sentence);
  assert.match(warnings(pi)[0], /^pi-lossless-context is off: /);
  await pi.stop();
}

/** The file of Pi's settings. @param {Project} project */
const settingsOf = ({ agentDir }) => path.join(agentDir, "settings.json");

/** The installed packages in Pi's settings. @param {Project} project @returns {string[]} */
const packagesOf = (project) => JSON.parse(readFileSync(settingsOf(project), "utf8")).packages ?? [];

/** @param {string} place a package's folder */
const versionAt = (place) => JSON.parse(readFileSync(path.join(place, "package.json"), "utf8")).version;

/** Makes a git repository of a folder. @param {string} folder */
async function commitAll(folder) {
  const identity = ["-c", "user.name=Somebody", "-c", "user.email=somebody@git.invalid"];
  for (const args of [["init", "--quiet"], ["add", "--all"], [...identity, "commit", "--quiet", "--message=All of it"]]) {
    const { code, stderr } = await collect("git", args, { cwd: folder });
    assert.equal(code, 0, stderr);
  }
}

/** The engine's folder. @param {string} place the package's */
const engineBeside = (place) => path.join(path.dirname(place), packageOf(platformTriple()));

/** @param {string} file */
const digest = (file) => createHash("sha256").update(readFileSync(file)).digest("hex");
