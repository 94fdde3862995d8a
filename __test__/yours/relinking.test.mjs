/**
 * `/lcm relink` on the real Pi: a folder is moved, and its history comes along, summaries included, without a model call; and
 * worktrees of a repository share one where that is wanted.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { renameSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsByVersion, hostsFor } from "../../scripts/hosts.mjs";
import { databaseOf, echo } from "../support/faults.mjs";
import { aProject } from "../support/project.mjs";
import { databasesIn } from "../support/store.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */

/** What the store says of messages and summaries. @param {Project} project @param {string} database */
function said(project, database) {
  return project.inStore(
    (store) => ({
      messages: store.rows("SELECT lower(hex(lineage)) AS lineage FROM messages WHERE role <> 'system'").map(({ lineage }) => lineage),
      summaries: store.rows("SELECT lower(hex(hash)) AS hash FROM summaries ORDER BY hash").map(({ hash }) => hash),
    }),
    database,
  );
}

for (const host of hostsFor(hostsByVersion)) {
  test(`the history of a moved folder is found again in the new one, on ${host.name}`, async (t) => {
    const project = await aProject(t, { script: { otherwise: echo }, host });
    const pi = project.startPi();
    for (let turn = 0; turn < 8; turn++) await pi.prompt(`quokka number ${turn} ${"and so it goes on ".repeat(30)}`);
    await pi.request("compact");
    await pi.stop();
    const old = databaseOf(project);
    const before = said(project, old);
    assert.ok(before.messages.length >= 16 && before.summaries.length > 0);
    const [from, calls] = [project.cwd, project.summaryCalls.length];
    renameSync(from, `${from}-moved`);
    project.cwd = `${from}-moved`;

    const lost = await project.runPi(["-p", "/lcm stats"]);
    assert.match(lost.stdout, /This project +0 messages/);
    const wrong = await project.runPi(["-p", "/lcm relink /nowhere/at/all"]);
    assert.match(wrong.stdout, /^no history of \/nowhere\/at\/all lies in [^]*there are those of /);
    const { stdout } = await project.runPi(["-p", `/lcm relink ${from}`]);
    assert.match(stdout, /is part of this project's now: 1 session, \d+ messages \(\d+ new\), \d+ summar/);
    assert.ok(stdout.includes(path.join(project.storeDir, old)), stdout);
    const after = said(project, databaseOf(project));
    assert.deepEqual(after.summaries, before.summaries);
    const known = new Set(after.messages);
    assert.deepEqual(before.messages.filter((lineage) => !known.has(lineage)), []);
    assert.equal(project.summaryCalls.length, calls, "no model was asked");
    assert.deepEqual(said(project, old), before, "the old one stays");

    project.script.turns = [{ toolCalls: [{ id: "g", name: "lcm_grep", arguments: { query: "quokka number 3", session: "project" } }] }];
    await project.runPi(["-p", "look for it"]);
    assert.match(project.lastTurn.raw, /quokka number 3/);
    const doctor = await project.runPi(["-p", "/lcm doctor"]);
    assert.match(doctor.stdout, /All is as it must be\./);
  });
}

test("while another Pi works in the old folder, its history is left to that", async (t) => {
  const project = await aProject(t, { script: { otherwise: echo } });
  const pi = project.startPi();
  await pi.prompt("hello");
  const from = project.cwd;
  project.cwd = project.sessionDir;
  const { stdout } = await project.runPi(["-p", `/lcm relink ${from}`]);
  assert.match(stdout, /^another Pi works in /);
  await pi.stop();
});

/** Why there can be no repository here, or undefined. */
const noGit = (() => {
  try {
    execFileSync("git", ["--version"], { stdio: "ignore" });
    return undefined;
  } catch {
    return "git is not installed, and makes the worktree of this test";
  }
})();

test("worktrees share a history with projectIdentity = git, and a change of it is told of", { skip: noGit }, async (t) => {
  const project = await aProject(t, { script: { otherwise: echo } });
  const main = project.cwd;
  const git = (/** @type {string[]} */ ...args) => execFileSync("git", ["-C", main, "-c", "user.name=t", "-c", "user.email=t@example.org", ...args], { stdio: "ignore" });
  git("init", "-q");
  git("commit", "-q", "--allow-empty", "-m", "first");
  const tree = `${main}-tree`;
  git("worktree", "add", "-q", tree);
  project.cwd = tree;
  await project.runPi(["-p", "said in the tree alone"]);
  project.env.LCM_PROJECT_IDENTITY = "git";
  const pi = project.startPi();
  const notices = () => pi.ui("notify").map(({ message }) => message);
  await pi.waitFor(() => notices().some((message) => message.includes("/lcm relink")));
  assert.ok(notices()[0].includes(`that of ${tree} lies in `), notices()[0]);
  await pi.prompt(`/lcm relink ${tree}`);
  await pi.prompt("said in both");
  await pi.stop();
  project.cwd = main;
  const { stdout } = await project.runPi(["-p", "/lcm stats"]);
  assert.match(stdout, /This project +4 messages, 2 sessions/);
  assert.deepEqual(databasesIn(project.storeDir).length, 2);
});
