/**
 * What a user does with the package, done with the real Pi and the real npm: install, update, remove, try it without
 * installing, install a folder. The registry is one on loopback, and has what `npm run pack:all` makes.
 *
 * The main Pi is tried with one npm; in `npm run test:all` each Pi with one, and each npm with one Pi. With INSTALL_MATRIX=full
 * each is tried with each.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { before, describe, test } from "node:test";
import { allHosts, hosts, hostsFor } from "../../scripts/hosts.mjs";
import { platformTriple, root } from "../../scripts/paths.mjs";
import { addonOf, PACKAGE } from "../../scripts/platforms.mjs";
import { collect } from "../../scripts/proc.mjs";
import { assertAgreement } from "../support/agreement.mjs";
import { copyWithoutEngine } from "../support/copies.mjs";
import { assertToldOnce, databaseFile, warnings } from "../support/faults.mjs";
import { aLaterRelease, aRelease, aUser, bringNpms, installedIn, npms, runsOn } from "../support/installing.mjs";
import { eventually, temporaryFolder } from "../support/project.mjs";
import { aRegistry } from "../support/registry.mjs";
import { heard } from "../support/seats.mjs";

/** @typedef {import("../support/installing.mjs").Release} Release */
/** @typedef {import("../support/project.mjs").Project} Project */

const SOURCE = `npm:${PACKAGE}`;
const NEXT = "99.0.0";

const inFull = process.env.INSTALL_MATRIX === "full";
const pairs = (inFull ? hosts : hostsFor(hosts)).flatMap((host) => npms.map((npm) => ({ host, npm })));
const possible = pairs.filter(({ host, npm }) => runsOn(npm, host));
/** Of the Pis the one on its oldest Node, with the npm of its time. */
const versions = [...new Set(allHosts.map(({ version }) => version))];
const chosen = possible.filter(({ host, npm }) => {
  const oldest = allHosts.find(({ version }) => version === host.version);
  return inFull || (host === oldest && npms.indexOf(npm) === versions.indexOf(host.version));
});

/** Why an engine may be missing, and what stands in the user's npm settings then. */
const lacks = /** @type {const} */ ([["is not in the registry", ""], ["is left out", "omit=optional\n"]]);

/** @type {Release} */
let release;
/** @type {Release} */
let later;

before(async (t) => {
  await bringNpms(chosen.map(({ npm }) => npm));
  const folder = temporaryFolder(/** @type {import("node:test").TestContext} */ (t));
  release = await aRelease(folder);
  later = await aLaterRelease(folder, NEXT);
});

for (const { host, npm } of pairs.filter((pair) => !possible.includes(pair))) {
  test(`${host.name}, npm ${npm}`, { skip: "this npm does not run on this Node" });
}
if (chosen.length < possible.length) {
  test(`${possible.length - chosen.length} more pairs of a Pi and an npm`, { skip: "they are tried with INSTALL_MATRIX=full" });
}

for (const { host, npm } of chosen) {
  describe(`${host.name}, npm ${npm}`, { concurrency: 2 }, () => {
    test("the history outlives an update and a removal", async (t) => {
      const registry = await aRegistry(t);
      registry.add(release.engine, release.main);
      const { project, pi } = await aUser(t, { host, npm, registry });

      await pi("install", SOURCE);
      assert.equal(installedIn(await pi("list")).version, release.version);
      await say(project, "first");
      await eventually(() => assertAgreement(project));

      registry.add(later.engine, later.main);
      await pi("update", SOURCE);
      assert.equal(installedIn(await pi("list")).version, NEXT);
      await say(project, "second", "--continue");
      await eventually(() => assertAgreement(project));

      const kept = digest(databaseFile(project));
      await pi("remove", SOURCE);
      assert.equal(installedIn(await pi("list")), undefined);
      await say(project, "third", "--continue");
      assert.equal(digest(databaseFile(project)), kept, "removing the package touches no history");

      await pi("install", SOURCE);
      await say(project, "fourth", "--continue");
      await eventually(() => assertAgreement(project));
    });

    for (const [why, npmrc] of lacks) {
      const name = `an engine that ${why} is told of, and what is told helps`;
      if (npmrc && host.version === "0.74.2") {
        test(name, { skip: "this Pi lets npm install globally, where npm leaves nothing out" });
        continue;
      }
      test(name, async (t) => {
        const registry = await aRegistry(t);
        registry.add(release.main);
        if (npmrc) registry.add(release.engine);
        const { project, pi, home } = await aUser(t, { host, npm, registry, npmrc });

        await pi("install", SOURCE);
        await assertOff(project, new RegExp(`${addonOf(platformTriple())}, .* is missing: run \`pi install ${SOURCE}\` again.* optional packages`));

        if (!npmrc) registry.add(release.engine);
        const file = path.join(home, ".npmrc");
        writeFileSync(file, readFileSync(file, "utf8").replace(npmrc, ""));
        await pi("install", SOURCE);
        await say(project, "afterwards", "--continue");
        await eventually(() => assertAgreement(project));
      });
    }

    test("it can be tried without being installed", async (t) => {
      const registry = await aRegistry(t);
      registry.add(release.engine, release.main);
      const { project, pi } = await aUser(t, { host, npm, registry, npmrc: "loglevel=silent\n" });
      await say(project, "just once", "-e", SOURCE);
      await eventually(() => assertAgreement(project));
      assert.equal(installedIn(await pi("list")), undefined);
    });

    test("sources are installed as they are, from a folder and from git; they tell how to build the engine", async (t) => {
      const folder = path.join(temporaryFolder(t), "sources");
      mkdirSync(folder);
      copyWithoutEngine(folder);
      for (const name of ["package-lock.json", ".npmrc"]) copyFileSync(path.join(root, name), path.join(folder, name));
      await commitAll(folder);
      const { project, pi, home } = await aUser(t, { host, npm, registry: await aRegistry(t) });

      await pi("install", folder);
      await assertOff(project, new RegExp(`${addonOf(platformTriple())}, .* is missing: run \`npm run build\` in ${folder}\\.`));
      await pi("remove", folder);

      // Pi clones from addresses of servers only: git finds the folder at one.
      const address = `git.invalid/someone/${PACKAGE}`;
      writeFileSync(path.join(home, ".gitconfig"), `[url "file://${folder}"]\n\tinsteadOf = https://${address}\n`);
      await pi("install", `git:${address}`);
      await assertOff(project, new RegExp(`${addonOf(platformTriple())}, .* is missing: run \`npm run build\` in .*${address}\\.`));
    });
  });
}

/**
 * Says something in print mode and hears the answer; in between nothing may go wrong.
 * @param {Project} project
 * @param {string} text
 * @param {...string} args
 */
async function say(project, text, ...args) {
  const { code, stdout } = await project.runPi(["-p", ...args, text]);
  assert.deepEqual({ code, stdout: stdout.split("\n").at(-2) }, { code: 0, stdout: heard(text) });
}

/**
 * The user is told once, and Pi works.
 * @param {Project} project
 * @param {RegExp} sentence
 */
async function assertOff(project, sentence) {
  const pi = project.startPi();
  await pi.prompt("without");
  assertToldOnce(pi, sentence);
  assert.match(warnings(pi)[0], /^pi-lossless-context is off: /);
  await pi.stop();
  await say(project, "in print mode", "--continue");
}

/** Makes a repository of a folder. @param {string} folder */
async function commitAll(folder) {
  const identity = ["-c", "user.name=Somebody", "-c", "user.email=somebody@git.invalid"];
  for (const args of [["init", "--quiet"], ["add", "--all"], [...identity, "commit", "--quiet", "--message=All of it"]]) {
    const { code, stderr } = await collect("git", args, { cwd: folder });
    assert.equal(code, 0, stderr);
  }
}

/** @param {string} file */
const digest = (file) => createHash("sha256").update(readFileSync(file)).digest("hex");
