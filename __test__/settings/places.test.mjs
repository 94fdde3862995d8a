/**
 * Sources of settings, their precedence, and invalid values, by their effect in Pi and not by the loader's result. Each session reads them
 * again, so one Pi is enough for most of it.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { existsSync, realpathSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { everything, hostsFor } from "../../scripts/hosts.mjs";
import { eventually } from "../support/project.mjs";
import { databasesIn } from "../support/store.mjs";
import { aPlace } from "./starting.mjs";

/** @typedef {import("./starting.mjs").Place} Place */
/** @typedef {import("./starting.mjs").Start} Start */
/** @typedef {import("../../demo/rpc.mjs").Pi} Pi */

/** Names of the store folders used below, and names that would appear if `~` or `$HOME` were not expanded. */
const NAMES = ["absolute-store", "global-store", "project-store", "variable-store", "~", "$HOME"];

/** Everything in the folders where a history could be. @param {Place} place */
function stores({ project, home, defaultDir }) {
  const named = [home, project.agentDir, project.cwd].flatMap((base) => NAMES.map((name) => path.join(base, name)));
  return [defaultDir, ...named].filter((dir) => existsSync(dir)).sort();
}

/** The notifications to the user. @param {Pi} pi */
const notices = (pi) => pi.ui("notify").map(({ message }) => message);

/**
 * A session to compact: the same each time, except for its words.
 * @param {Place} place
 * @param {string} name
 */
function aLongOne({ project }, name) {
  const history = project.history(randomUUID());
  history.talk(30, { words: 60, name });
  return history.write(project.sessionDir);
}

for (const host of hostsFor()) {
  // A Pi that does not ask about trust has no flag for it either.
  const trusted = ["--approve"];

  test(`a session has the settings of the files at its start, the project's before the global ones, on ${host.name}`, async (t) => {
    const place = await aPlace(t, host);
    const { project, home, defaultDir } = place;
    const { agentDir, cwd } = project;
    /** @type {[string, string, () => void][]} */
    const cases = [
      ["into Pi's agent folder by default", defaultDir, () => {}],
      ["into the folder of an absolute path", path.join(agentDir, "absolute-store"), () => place.global({ dbDir: path.join(agentDir, "absolute-store") })],
      ["into one below the home folder, for a path with ~", path.join(home, "global-store"), () => place.global({ dbDir: "~/global-store" })],
      ["into one below the agent folder, for a relative path in the global settings", path.join(agentDir, "global-store"), () => place.global({ dbDir: "global-store" })],
      ["into one below the project, for a relative path in the project's settings", path.join(cwd, "project-store"), () => place.local({ dbDir: "./project-store", nonsense: 1 })],
    ];
    await place.rpc(async (pi) => {
      for (const [at, [sentence, dir, change]] of cases.entries()) {
        await t.test(`the history goes ${sentence}`, async () => {
          change();
          if (at > 0) await pi.request("new_session");
          await pi.prompt("hello");
          await eventually(() => assert.equal(databasesIn(dir).length, 1, `a database in ${dir}`));
          assert.deepEqual(stores(place), cases.slice(0, at + 1).map(([, dir]) => dir).sort(), "and nowhere else");
        });
      }

      await t.test("an unknown setting is reported with its file", () => {
        const [notice, ...rest] = notices(pi).filter((message) => message.startsWith("pi-lossless-context: "));
        assert.deepEqual(rest, []);
        assert.ok(notice.includes(`nonsense in ${path.join(cwd, ".pi", "settings.json")} is not a setting`), notice);
      });

      await t.test("the chunk size has its effect", async () => {
        /** Compacts a history of a fixed size. Returns the number of calls. @param {string} name */
        const calls = async (name) => {
          const before = project.summaryCalls.length;
          await pi.request("switch_session", { sessionPath: aLongOne(place, name) });
          const from = notices(pi).length;
          await pi.prompt("/lcm compact");
          await pi.waitFor(() => notices(pi).slice(from).some((message) => /^LCM: 5\d messages in \d+ summar/.test(message)));
          return project.summaryCalls.length - before;
        };
        place.local({});
        place.global({ leafChunkTokens: 500 });
        const fine = await calls("fine");
        place.local({ leafChunkTokens: 2000 });
        const coarse = await calls("coarse");
        assert.ok(fine > 2 * coarse && coarse > 1, `${fine}, ${coarse}`);
      });
    }, { args: trusted });
  });

  test(`a folder that can't be used is replaced by another one, on ${host.name}`, async (t) => {
    const place = await aPlace(t, host, { lcm: { dbDir: "/proc/lcm" } });
    const other = path.join(place.home, "global-store");
    const { stdout } = await place.run(["-p", "/lcm stats", `/lcm settings dbDir=${other}`]);
    assert.match(stdout, /^failed to create the folder \/proc\/lcm [^\n]+\nSaved in [^\n]+: dbDir = \S+global-store \(global\)\n$/);
    place.global({ dbDir: "/proc/lcm" });
    await place.rpc(async (pi) => {
      await pi.prompt(`/lcm settings dbDir=${other}`);
      await pi.waitFor(() => notices(pi).some((message) => message.startsWith("Saved in ")));
      await pi.prompt("hello");
      await eventually(() => assert.equal(databasesIn(other).length, 1));
    });
  });

  test(`variables override everything, and print mode does not report invalid ones, on ${host.name}`, async (t) => {
    const place = await aPlace(t, host, { lcm: { dbDir: "global-store", leafChunkTokens: "many" } });
    place.local({ dbDir: "project-store", leafChunkTokens: 500 });
    const env = { LCM_DB_DIR: "~/variable-store", LCM_LEAF_CHUNK_TOKENS: "100000", LCM_MAX_DEPTH: "-1" };
    const { stdout } = await place.run([...trusted, "--session", aLongOne(place, "printed"), "-p", "/lcm compact", "hello"], { env });
    assert.match(stdout, /^LCM: 5\d messages in 1 summary\b[^\n]*\nUnderstood\.\n$/);
    assert.deepEqual(stores(place), [path.join(place.home, "variable-store")]);
    assert.equal(databasesIn(path.join(place.home, "variable-store")).length, 1);
  });

  test(`invalid settings are named in one notification, and those of an untrusted project are not read, on ${host.name}`, async (t) => {
    const lcm = { leafChunkTokens: "many", leafChunkToken: 1000, dbDir: 7, status: "no" };
    const env = { LCM_MAX_DEPTH: "-1", LCM_STATUSES: "0", LCM_DEBUG_MODE: "perhaps" };
    const names = [...Object.keys(lcm), ...Object.keys(env)];
    const place = await aPlace(t, host, { lcm });
    place.local({ dbDir: "project-store", nonsense: 1 });
    await place.rpc(async (pi) => {
      await pi.prompt("hello");
      await pi.waitFor(() => pi.status("lcm"));
      const [{ message, notifyType }, ...rest] = pi.ui("notify");
      assert.deepEqual(rest, []);
      assert.equal(notifyType, "warning");
      for (const name of names) assert.equal(message.split(`- ${name} `).length, 2, `${name} in ${message}`);
      assert.ok(message.includes(`${names.length} settings`), "an untrusted project's settings are not even reported");
      // Nor may an untrusted project disable the extension.
      place.local({ enabled: false });
      const shown = pi.ui("setStatus").length;
      await pi.request("new_session");
      await pi.prompt("hello");
      await pi.waitFor(() => pi.ui("setStatus").slice(shown).some(({ statusText }) => statusText?.startsWith("LCM: 2 msgs")));
    }, { env });
    assert.deepEqual(stores(place), [place.defaultDir], "the defaults apply");
    assert.deepEqual(databasesIn(place.defaultDir), place.filesIn(place.defaultDir));
    assert.equal(databasesIn(place.defaultDir).length, 1);
  });

  test(`json mode does not report invalid settings, and reads a project's settings only if Pi trusts it, on ${host.name}`, async (t) => {
    /** @type {[string, Record<string, unknown>, Start][]} */
    const ways = [
      ["where the user has trusted the project before", {}, {}],
      ["where all projects are trusted", { defaultProjectTrust: "always" }, {}],
      ["but not where trust is refused once", {}, { args: ["--no-approve"] }],
    ];
    // The extension only asks Pi, so all ways are alike to it.
    const tried = everything ? ways : ways.slice(0, 1);
    for (const [where, settings, start] of tried) {
      await t.test(where, async (t) => {
        const place = await aPlace(t, host, { settings, lcm: { leafChunkTokens: "many" } });
        const { agentDir, cwd } = place.project;
        place.local({ dbDir: "project-store" });
        if (!settings.defaultProjectTrust) writeFileSync(path.join(agentDir, "trust.json"), JSON.stringify({ [realpathSync(cwd)]: true }));
        const { stdout } = await place.run(["--mode", "json", "-p", "hello"], { ...start, env: { LCM_MAX_DEPTH: "-1" } });
        const lines = stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
        assert.ok(lines.some(({ type }) => type === "agent_end"));
        assert.ok(!stdout.includes("pi-lossless-context"));
        assert.deepEqual(stores(place), [start.args ? place.defaultDir : path.join(cwd, "project-store")]);
      });
    }
  });
}
