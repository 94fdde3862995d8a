/**
 * Where settings may stand, which of them counts, and what becomes of those that cannot be right: seen in what Pi does with
 * them, not in what the loader says.
 */
import assert from "node:assert/strict";
import { existsSync, realpathSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsByVersion, hostsFor } from "../../scripts/hosts.mjs";
import { databasesIn } from "../support/store.mjs";
import { aPlace, asksForTrust, ownHosts } from "./starting.mjs";

/** @typedef {import("./starting.mjs").Place} Place */
/** @typedef {import("./starting.mjs").Start} Start */

/**
 * Says a word in print mode, and looks where its history went.
 * @param {Place} place
 * @param {string} dir where it should be
 * @param {Start} [start]
 */
async function assertStoredIn(place, dir, start) {
  const { project, home, defaultDir } = place;
  const { stdout } = await place.run(["-p", "hello"], start);
  assert.equal(stdout, "Understood.\n");
  assert.equal(databasesIn(dir).length, 1, `a database in ${dir}`);
  const places = [defaultDir, ...[home, project.agentDir, project.cwd].flatMap((base) => NAMES.map((name) => path.join(base, name)))];
  assert.deepEqual(places.filter((other) => !dir.startsWith(other) && existsSync(other)), [], "and nowhere else");
}

const NAMES = ["global-store", "project-store", "variable-store", "~", "$HOME"];

for (const host of hostsFor(hostsByVersion)) {
  // A Pi that does not ask takes no flag for it either.
  const trusted = asksForTrust(host) ? ["--approve"] : [];

  test(`where the history goes, on ${host.name}`, { concurrency: 3 }, async (t) => {
    // What is read from them is the same everywhere; how they are found, and trusted, is Pi's.
    const everywhere = true;
    /** @type {[string, (place: Place) => Promise<void>, boolean?][]} */
    const cases = [
      ["into Pi's agent folder where nothing is said", (place) => assertStoredIn(place, place.defaultDir), everywhere],
      ["into the folder of an absolute path", async (place) => {
        const dir = path.join(place.project.agentDir, "global-store", "of", "many");
        place.global({ dbDir: dir });
        await assertStoredIn(place, dir);
      }],
      ["into one below the home folder, for a path with ~", (place) => {
        place.global({ dbDir: "~/global-store" });
        return assertStoredIn(place, path.join(place.home, "global-store"));
      }],
      ["into one below the agent folder, for a relative path in the global settings", (place) => {
        place.global({ dbDir: "global-store" });
        return assertStoredIn(place, path.join(place.project.agentDir, "global-store"));
      }],
      ["into one below the project, for a relative path in the project's settings, which count before the global ones", (place) => {
        place.global({ dbDir: "global-store" });
        place.local({ dbDir: "./project-store" });
        return assertStoredIn(place, path.join(place.project.cwd, "project-store"), { args: trusted });
      }, everywhere],
      ["where a variable says, which counts before all", (place) => {
        place.global({ dbDir: "global-store" });
        place.local({ dbDir: "project-store" });
        return assertStoredIn(place, path.join(place.home, "variable-store"), { args: trusted, env: { LCM_DB_DIR: "~/variable-store" } });
      }, everywhere],
      ["below the project, for a relative path in a variable", (place) =>
        assertStoredIn(place, path.join(place.project.cwd, "variable-store"), { env: { LCM_DB_DIR: "variable-store" } })],
    ];
    const tried = cases.filter(([_sentence, _check, everywhere]) => everywhere || ownHosts.includes(host));
    await Promise.all(tried.map(([sentence, check]) => t.test(sentence, async (t) => check(await aPlace(t, host)))));
  });

  if (asksForTrust(host)) {
    test(`settings of a project are read if the user trusts it, on ${host.name}`, async (t) => {
      const place = await aPlace(t, host);
      const { project } = place;
      const local = path.join(project.cwd, "project-store");
      place.local({ dbDir: "project-store", nonsense: 1 });
      /** What the user is told, once the session is open. @param {Start} [start] */
      const told = (start) =>
        place.rpc(async (pi) => {
          await pi.waitFor(() => pi.status("lcm"));
          return pi.ui("notify").map(({ message }) => message);
        }, start);

      assert.deepEqual(await told(), [], "what a stranger's project wants is not even told of");
      assert.deepEqual(await told({ args: ["--no-approve"] }), []);
      assert.equal(databasesIn(place.defaultDir).length, 1);
      assert.ok(!existsSync(local));
      // Nor may a stranger's project switch us off.
      place.local({ enabled: false });
      assert.deepEqual(await told(), []);

      place.local({ dbDir: "project-store", nonsense: 1 });
      const [notice, ...rest] = await told({ args: ["--approve"] });
      assert.deepEqual(rest, []);
      assert.ok(notice.includes(`nonsense in ${path.join(project.cwd, ".pi", "settings.json")} is no setting`), notice);
      assert.equal(databasesIn(local).length, 1);

      writeFileSync(path.join(project.agentDir, "trust.json"), JSON.stringify({ [realpathSync(project.cwd)]: true }));
      assert.equal((await told()).length, 1, "a decision that was saved");
    });

    test(`or if all projects are trusted, on ${host.name}`, async (t) => {
      const place = await aPlace(t, host, { settings: { defaultProjectTrust: "always" } });
      place.local({ dbDir: "project-store" });
      await assertStoredIn(place, path.join(place.project.cwd, "project-store"));
    });
  }

  test(`settings that cannot be right, on ${host.name}`, async (t) => {
    const lcm = { leafChunkTokens: "many", leafChunkToken: 1000, dbDir: 7, status: "no" };
    const env = { LCM_MAX_DEPTH: "-1", LCM_STATUSES: "0", LCM_DEBUG_MODE: "perhaps" };
    const names = [...Object.keys(lcm), ...Object.keys(env)];
    const place = await aPlace(t, host, { lcm });

    await t.test("are named in one notification, all of them, and the defaults hold", async () => {
      await place.rpc(async (pi) => {
        await pi.prompt("hello");
        await pi.waitFor(() => pi.status("lcm"));
        const [{ message, notifyType }, ...rest] = pi.ui("notify");
        assert.deepEqual(rest, []);
        assert.equal(notifyType, "warning");
        for (const name of names) assert.equal(message.split(`- ${name} `).length, 2, `${name} in ${message}`);
        assert.ok(message.includes(`${names.length} settings`));
      }, { env });
      assert.deepEqual(databasesIn(place.defaultDir), place.filesIn(place.defaultDir));
      assert.equal(databasesIn(place.defaultDir).length, 1);
    });

    await t.test("and say nothing where there is nobody to be told", async () => {
      const { stdout } = await place.run(["-p", "hello"], { env });
      assert.equal(stdout, "Understood.\n");
      const json = await place.run(["--mode", "json", "-p", "hello"], { env });
      const lines = json.stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
      assert.ok(lines.some(({ type }) => type === "agent_end"));
      assert.ok(!json.stdout.includes("pi-lossless-context"));
    });
  });
}

for (const host of ownHosts) {
  test("the strongest setting says how finely is summarised", async (t) => {
    const place = await aPlace(t, host, { lcm: { leafChunkTokens: 500 } });
    const { project } = place;
    /** Compacts a copy of one and the same history; how many calls that takes. @param {Start} [start] */
    const calls = async (start) => {
      const before = project.summaryCalls.length;
      const history = project.history(`019a4f00-0000-7000-8000-00000000000${project.sessions().length}`);
      history.talk(30, { words: 60, name: `run${"abcdef"[project.sessions().length]}` });
      const { stdout } = await place.run(["--session", history.write(project.sessionDir), "-p", "/lcm compact"], start);
      assert.match(stdout, /^LCM: 5\d messages in \d+ summar/);
      return project.summaryCalls.length - before;
    };
    const fine = await calls();
    place.local({ leafChunkTokens: 2000 });
    const middle = await calls({ args: ["--approve"] });
    const coarse = await calls({ args: ["--approve"], env: { LCM_LEAF_CHUNK_TOKENS: "100000" } });
    assert.equal(coarse, 1);
    assert.ok(fine > 2 * middle && middle > coarse, `${fine}, ${middle}, ${coarse}`);
  });
}
