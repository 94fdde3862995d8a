/**
 * `/lcm import FOLDER` on the real Pi: a folder is moved, and its history moves with it, including summaries, without a model call;
 * and worktrees of a repository share one history if that is wanted.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { renameSync } from "node:fs";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { ask } from "../support/cli.mjs";
import { databaseOf, echo } from "../support/faults.mjs";
import { aProject } from "../support/project.mjs";
import { databasesIn } from "../support/store.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */

/** The store's messages and summaries. @param {Project} project @param {string} database */
function said(project, database) {
  return project.inStore(
    (store) => ({
      messages: store.rows("SELECT lower(hex(lineage)) AS lineage FROM messages WHERE role <> 'system'").map(({ lineage }) => lineage),
      summaries: store.rows("SELECT lower(hex(hash)) AS hash FROM summaries ORDER BY hash").map(({ hash }) => hash),
    }),
    database,
  );
}

for (const host of hostsFor()) {
  test(`the history of a moved folder is adopted in the new one, on ${host.name}`, async (t) => {
    const project = await aProject(t, { script: { otherwise: echo }, host });
    const history = project.history();
    history.talk(8);
    const pi = project.startPi(["--session", history.write(project.sessionDir)]);
    await pi.request("compact");
    await pi.stop();
    const old = databaseOf(project);
    const before = said(project, old);
    assert.ok(before.messages.length >= 16 && before.summaries.length > 0);
    const [from, calls] = [project.cwd, project.summaryCalls.length];
    renameSync(from, `${from}-moved`);
    project.cwd = `${from}-moved`;

    project.script.turns = [{ toolCalls: [{ id: "g", name: "lcm_grep", arguments: { query: "mark0004x", session: "project" } }] }];
    const { stdout } = await project.runPi(["-p", "/lcm stats", "/lcm import /nowhere/at/all", `/lcm import ${from}`, "look for it", "/lcm doctor"]);
    const [lost, wrong, found, doctor] = stdout.split(/^(?=there is no \/nowhere|1 session: |Database +ok)/m);
    assert.match(lost, /This project +0 messages/);
    assert.match(wrong, /^there is no \/nowhere\/at\/all/);
    assert.match(found, /^1 session: \d+ messages new, \d+ known already, \d+ summar/);
    assert.match(project.lastTurn.raw, /«mark0004x» please/);
    assert.match(doctor, /Everything is in order\./);
    const after = said(project, databaseOf(project));
    assert.deepEqual(after.summaries, before.summaries);
    const known = new Set(after.messages);
    assert.deepEqual(before.messages.filter((lineage) => !known.has(lineage)), []);
    assert.equal(project.summaryCalls.length, calls, "no model was called");
    assert.deepEqual(said(project, old), before, "the old one is unchanged");
  });
}

/** Why there can be no repository here; undefined if there can. */
const noGit = (() => {
  try {
    execFileSync("git", ["--version"], { stdio: "ignore" });
    return undefined;
  } catch {
    return "git is not installed, and makes the worktree of this test";
  }
})();

test("worktrees share a history with projectIdentity = git, and an import adds the one of before", { skip: noGit }, async (t) => {
  const project = await aProject(t, { script: { otherwise: echo } });
  const main = project.cwd;
  const git = (/** @type {string[]} */ ...args) => execFileSync("git", ["-C", main, "-c", "user.name=t", "-c", "user.email=t@example.org", ...args], { stdio: "ignore" });
  git("init", "-q");
  git("commit", "-q", "--allow-empty", "-m", "first");
  const tree = `${main}-tree`;
  git("worktree", "add", "-q", tree);
  project.cwd = tree;
  const old = project.startPi();
  await old.prompt("said in the tree alone");

  project.env.LCM_PROJECT_IDENTITY = "git";
  const pi = project.startPi();
  const notices = () => pi.ui("notify").map(({ message }) => message);
  await t.test("a history that another Pi has open is left to it", async () => {
    await pi.prompt(`/lcm import ${tree}`);
    await pi.waitFor(() => notices().some((message) => message.includes("another Pi is working with it")));
    await old.stop();
  });
  await pi.prompt(`/lcm import ${tree}`);
  await pi.prompt("said in both");
  await pi.stop();
  const { agentDir, storeDir, sessionDir, env } = project;
  const stats = await ask({ cwd: main, agentDir, storeDir, sessionDir, env }, "stats");
  assert.deepEqual(stats.project, { messages: 4, sessions: 2 });
  assert.equal(databasesIn(project.storeDir).length, 2);
});
