/**
 * Other programs and other Pis with the same database: a program with a long read, one that keeps the write lock, and several Pis that
 * start at the same moment.
 */
import assert from "node:assert/strict";
import { existsSync, statSync } from "node:fs";
import { describe, test } from "node:test";
import { everything, hostsFor } from "../../scripts/hosts.mjs";
import { assertAgreement } from "../support/agreement.mjs";
import { lcm } from "../support/cli.mjs";
import { assertNothingGone, assertWarnedOnce, assertWholeIn, databaseFile, echo, leave, pause, reopen, storedAgain, storedIn, talk, waitForWarning } from "../support/faults.mjs";
import { filler } from "../support/history.mjs";
import { aProject, eventually } from "../support/project.mjs";
import { DatabaseSync } from "../support/store.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../support/project.mjs").Pi} Pi */

/**
 * Opens the database as another program: this process.
 * @param {import("node:test").TestContext} t
 * @param {Project} project
 * @param {...string} statements
 */
function intrude(t, project, ...statements) {
  const database = new DatabaseSync(databaseFile(project));
  t.after(() => database.isOpen && database.close());
  for (const statement of statements) database.exec(statement);
  return database;
}

/** How often several Pis start. */
const ROUNDS = everything ? 3 : 1;

// Most of the time they wait for a lock.
describe("at the same database", { concurrency: 3 }, () => {
  for (const host of hostsFor()) {
    test(`Pi ${host.version}: Pi continues while another program has the database open`, async (t) => {
      const project = await aProject(t, { host, script: { otherwise: echo } });
      const pi = project.startPi();
      await talk(project, pi, "before");
      await eventually(() => assertAgreement(project));
      const log = `${databaseFile(project)}-wal`;

      await t.test("a long read: the log grows until the read ends, and nothing else happens", async () => {
        const reader = intrude(t, project, "BEGIN", "SELECT count(*) FROM messages");
        // More than SQLite's limit for the log without readers.
        const limit = 257 * 8192;
        for (let n = 0; statSync(log).size <= limit && n < 200; n++) await talk(project, pi, `meanwhile ${n} ${filler(`read${n}`, 1500)}`);
        assert.ok(statSync(log).size > limit, "the log could not be truncated");
        await eventually(() => assertAgreement(project));
        await reopen(project, pi);
        assert.ok(statSync(log).size > limit, "it stays during the read");
        await assertWholeIn(project, pi);
        reader.close();
        await pause(project, pi);
      });

      await t.test("a held write lock: the user is told, and then everything is stored", async () => {
        await reopen(project, pi);
        await talk(project, pi, "back");
        await eventually(() => assertAgreement(project));
        const before = storedIn(project);
        const writer = intrude(t, project, "BEGIN IMMEDIATE");
        for (const text of ["one", "two", "three"]) await talk(project, pi, text);
        await waitForWarning(pi);
        await talk(project, pi, "and on");
        assertWarnedOnce(pi, /^pi-lossless-context: the history could not be stored and will be retried: another program locks \S+\.db \(wait for it, or quit it\): database is locked$/);
        writer.close();
        await storedAgain(project, pi);
        assertWarnedOnce(pi, /another program/);
        assertNothingGone(before, storedIn(project));
        await assertWholeIn(project, pi, { from: await reopen(project, pi) });
      });
      await leave(pi);
    });

    test(`Pi ${host.version}: Pi ends and starts while another program keeps the write lock`, async (t) => {
      const project = await aProject(t, { host, script: { otherwise: echo } });
      const pi = project.startPi();
      await talk(project, pi, "before");
      await eventually(() => assertAgreement(project));
      const writer = intrude(t, project, "BEGIN IMMEDIATE");

      await t.test("it still ends", async () => {
        for (const text of ["one", "two", "three", "four"]) await talk(project, pi, text);
        await leave(pi);
      });

      await t.test("it starts, the user is told, and then everything is stored, including earlier messages", async () => {
        const next = project.startPi(["--continue"]);
        await talk(project, next, "meanwhile");
        await waitForWarning(next);
        assertWarnedOnce(next, /will be retried: another program locks \S+\.db \(wait for it, or quit it\): database is locked$/);
        writer.close();
        await storedAgain(project, next);
        assertWarnedOnce(next, /another program/);
        await assertWholeIn(project, next, { from: await reopen(project, next) });
        await leave(next);
      });
    });

    test(`Pi ${host.version}: three Pis start in a project at the same moment, and each stores its session`, async (t) => {
      for (let round = 0; round < ROUNDS; round++) {
        const project = await aProject(t, { host, script: { otherwise: echo } });
        const runs = await Promise.all(["one", "two", "three"].map((text) => project.runPi(["-p", text])));
        assert.deepEqual(runs.map(({ code, stdout }) => ({ code, stdout })), ["one", "two", "three"].map((text) => ({ code: 0, stdout: `Heard: ${text}\n` })));
        assert.equal(project.sessions().length, 3);
        assertAgreement(project);
        assert.ok(!existsSync(`${databaseFile(project)}-wal`) || statSync(`${databaseFile(project)}-wal`).size === 0, "the log is truncated");
        const { code, stdout } = await lcm(project, "doctor");
        assert.deepEqual({ code, ends: stdout.slice(stdout.lastIndexOf("\n\n")) }, { code: 0, ends: "\n\nEverything is in order.\n" });
      }
    });
  }
});
