/**
 * Full and read-only disks: Pi continues, the user is told why nothing is stored, and missed messages are stored as soon as there is room
 * again, in the same session or at the next start.
 */
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { hostsFor, hostOf, MAIN } from "../../scripts/hosts.mjs";
import { root } from "../../scripts/paths.mjs";
import { aDisk, aFolder, noDisk, noPermissions } from "../support/disks.mjs";
import { assertNothingGone, assertWarnedOnce, assertWhole, assertWholeIn, echo, leave, pause, removeLogs, reopen, storedAgain, storedIn, talk, waitForWarning } from "../support/faults.mjs";
import { filler } from "../support/history.mjs";
import { aProject, eventually } from "../support/project.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../support/project.mjs").Pi} Pi */

for (const host of hostsFor()) {
  test(`Pi ${host.version}: on a full disk Pi continues, and missed messages are stored when there is room`, { skip: noDisk }, async (t) => {
    const project = await aProject(t, { host, script: { otherwise: echo } });
    const disk = aDisk(t);
    project.storeDir = disk.folder;
    disk.fill();
    const pi = project.startPi();

    await t.test("when a project's first session starts; then there is room again", async () => {
      await talk(project, pi, "without a store");
      await waitForWarning(pi);
      assertWarnedOnce(pi, /no space left for \S+\.db \(free some on its disk\): .*\. Until this is fixed, nothing is stored and Pi compacts by itself\.$/);
      disk.makeRoom();
      await storedAgain(project, pi);
      assertWarnedOnce(pi, /no space left/);
    });

    await t.test("during a write; then there is room again", async () => {
      const from = await reopen(project, pi);
      await assertWholeIn(project, pi, { from });
      const before = storedIn(project);
      disk.fill();
      for (let n = 0; n < 4; n++) await talk(project, pi, `meanwhile ${n} ${filler(`full${n}`, 2000)}`);
      await waitForWarning(pi, from);
      await talk(project, pi, "and on");
      assertWarnedOnce(pi, /^pi-lossless-context: the history could not be stored and will be retried: no space left for \S+\.db \(free some on its disk\): database or disk is full$/, from);
      assertNothingGone(before, storedIn(project));

      disk.makeRoom();
      await storedAgain(project, pi);
      assertWarnedOnce(pi, /no space left/, from);
      await leave(pi);
    });

    await t.test("when Pi starts with a history, which stays searchable; then there is room again", async () => {
      const before = storedIn(project);
      removeLogs(project);
      disk.fill();
      const again = project.startPi(["--continue"]);
      await talk(project, again, `meanwhile ${filler("start", 5000)}`);
      await assertAnswers(project, again, "without a store");
      disk.makeRoom();
      assertNothingGone(before, storedIn(project));
      await storedAgain(project, again);
      await leave(again);
    });

    await t.test("until the next start, and in print mode", async () => {
      const before = storedIn(project);
      disk.fill();
      const { code, stdout } = await project.runPi(["--continue", "-p", `meanwhile ${filler("print", 5000)}`]);
      assert.equal(code, 0);
      assert.match(stdout, /^Heard: meanwhile [a-z ]+\n$/);
      disk.makeRoom();
      assertNothingGone(before, storedIn(project));
      await assertWhole(project);
    });
  });
}

/**
 * Asserts that the user and the model find a message.
 * @param {Project} project
 * @param {Pi} pi
 * @param {string} said
 */
async function assertAnswers(project, pi, said) {
  const from = pi.ui("notify").length;
  await pi.prompt(`/lcm search ${said}`);
  await pi.waitFor(() => pi.ui("notify").slice(from).some(({ message }) => /^m-[0-9a-f]{10} /.test(message) && message.includes(said)));
  project.script.turns = [{ toolCalls: [{ name: "lcm_grep", arguments: { query: said } }] }];
  await talk(project, pi, "look for it");
  assert.match(project.lastTurn.messages.findLast(({ role }) => role === "tool")?.text ?? "", /^m-[0-9a-f]{10} · user /m);
}

const noLimit = process.platform === "win32" ? "Windows knows no limit to a file's size" : undefined;

test("a file reaches its size limit: the user is told, and the next start recovers", { skip: noLimit }, async (t) => {
  const usual = hostOf(MAIN);
  assert.ok(usual);
  const project = await aProject(t, { host: { ...usual, node: path.join(root, "__test__", "support", "small-files.sh") }, script: { otherwise: echo } });
  project.env = { TEST_NODE: usual.node };
  const pi = project.startPi();
  for (let n = 0; n < 12; n++) await talk(project, pi, `meanwhile ${n} ${filler(`limit${n}`, 1500)}`);
  await waitForWarning(pi);
  await talk(project, pi, "and on");
  assertWarnedOnce(pi, /the history could not be stored and will be retried: the disk can't store \S+\.db \(check that it is connected, intact and not full\): disk I\/O error$/);
  await leave(pi);
  project.host = usual;
  await assertWhole(project);
});

/** @type {[string, string | undefined, (t: import("node:test").TestContext) => { folder: string, setWritable: (writable: boolean) => void }][]} */
const guarded = [
  ["a read-only disk", noDisk, aDisk],
  ["a read-only folder", noPermissions, aFolder],
];

for (const [what, skip, make] of guarded) {
  for (const host of hostsFor()) {
    test(`Pi ${host.version}: on ${what} Pi continues, and missed messages are stored when it is writable`, { skip }, async (t) => {
      const project = await aProject(t, { host, script: { otherwise: echo } });
      const folder = make(t);
      project.storeDir = folder.folder;
      folder.setWritable(false);
      const pi = project.startPi();

      await t.test("from a project's first start; then it is writable", async () => {
        await talk(project, pi, "without a store");
        await waitForWarning(pi);
        assertWarnedOnce(pi, /failed to create \S+\.db \(make it writable, or set dbDir to another folder\): .*\. Until this is fixed, nothing is stored and Pi compacts by itself\.$/);
        folder.setWritable(true);
        await storedAgain(project, pi);
        assertWarnedOnce(pi, /failed to create/);
      });

      await t.test("with a history, which stays searchable; missed messages are stored when it is writable", async () => {
        await pause(project, pi);
        const before = storedIn(project);
        removeLogs(project);
        // The system may release a file a moment after SQLite has.
        await eventually(() => folder.setWritable(false));
        const from = await reopen(project, pi);
        await talk(project, pi, "meanwhile");
        await waitForWarning(pi, from);
        await talk(project, pi, "and on");
        await assertAnswers(project, pi, "without a store");
        // The last stored request too.
        await assertAnswers(project, pi, "and now");
        assertWarnedOnce(pi, /the history could not be stored and will be retried: \S+\.db can't be written \(make it writable, or set dbDir to another folder\): /, from);
        folder.setWritable(true);
        assertNothingGone(before, storedIn(project));
        await storedAgain(project, pi);
        assertWarnedOnce(pi, /can't be written/, from);
        await assertAnswers(project, pi, "meanwhile");
        await assertWholeIn(project, pi, { from: await reopen(project, pi) });
        await leave(pi);
      });
    });
  }
}
