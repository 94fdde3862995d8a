/**
 * Others at the same database: a program that reads on and on, one that keeps the lock for writing, and several Pis that
 * start at the same instant.
 */
import assert from "node:assert/strict";
import { existsSync, statSync } from "node:fs";
import { describe, test } from "node:test";
import { hostOf, hostsByVersion, hostsFor } from "../../scripts/hosts.mjs";
import { assertAgreement } from "../support/agreement.mjs";
import { assertNothingGone, assertToldOnce, assertWhole, databaseFile, echo, leave, storedIn, talk, toldSomething, warnings } from "../support/faults.mjs";
import { filler } from "../support/history.mjs";
import { aProject, eventually } from "../support/project.mjs";
import { DatabaseSync } from "../support/store.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */

/**
 * Another program with the database open: this one.
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
const ROUNDS = 2;

// Most of them wait for a lock.
describe("at the same database", { concurrency: 4 }, () => {
  test("another program reads on and on: the log grows, nothing else happens, and the next start puts it away", async (t) => {
    const project = await aProject(t, { host: hostOf("1.5.2"), script: { otherwise: echo } });
    const pi = project.startPi();
    await talk(project, pi, "before");
    await eventually(() => assertAgreement(project));
    const reader = intrude(t, project, "BEGIN", "SELECT count(*) FROM messages");
    // More than SQLite lets the log grow to when nobody reads.
    const limit = 257 * 8192;
    const log = `${databaseFile(project)}-wal`;
    for (let n = 0; statSync(log).size <= limit && n < 200; n++) await talk(project, pi, `meanwhile ${n} ${filler(`read${n}`, 1500)}`);
    assert.ok(statSync(log).size > limit, "the log could not be put away");
    await eventually(() => assertAgreement(project));
    await leave(pi);
    assertAgreement(project);
    assert.deepEqual(warnings(pi), []);
    assert.ok(existsSync(log), "it lies there as long as somebody reads");
    reader.close();
    await assertWhole(project);
  });

  test("another program keeps the lock for writing while messages are stored: the user hears of it, and then they are stored", async (t) => {
    const project = await aProject(t, { script: { otherwise: echo } });
    const pi = project.startPi();
    await talk(project, pi, "before");
    await eventually(() => assertAgreement(project));
    const before = storedIn(project);
    const writer = intrude(t, project, "BEGIN IMMEDIATE");
    for (const text of ["one", "two", "three"]) await talk(project, pi, text);
    await toldSomething(pi);
    await talk(project, pi, "and on");
    assertToldOnce(pi, /^pi-lossless-context: the history could not be stored, and will be tried again: another program holds \S+\.db \(let it finish, or end it\): database is locked$/);
    writer.exec("ROLLBACK");
    await eventually(async () => {
      await talk(project, pi, "and now?");
      assertAgreement(project);
    });
    assertToldOnce(pi, /another program/);
    assertNothingGone(before, storedIn(project));
    await leave(pi);
    writer.close();
    await assertWhole(project);
  });

  test("another program keeps the lock for writing while Pi starts: the user hears of it, and then all is stored", async (t) => {
    const project = await aProject(t, { script: { otherwise: echo } });
    await project.runPi(["-p", "before"]);
    const writer = intrude(t, project, "BEGIN IMMEDIATE");
    const pi = project.startPi(["--continue"]);
    await talk(project, pi, "meanwhile");
    await toldSomething(pi);
    assertToldOnce(pi, /another program holds \S+\.db \(let it finish, or end it\): database is locked\. Until that is mended nothing is stored, and Pi compacts in its own way\.$/);
    writer.exec("ROLLBACK");
    await eventually(async () => {
      await talk(project, pi, "and now?");
      assertAgreement(project);
    });
    assertToldOnce(pi, /another program/);
    await leave(pi);
    writer.close();
    await assertWhole(project);
  });

  test("another program keeps the lock for writing until Pi has ended: the next start makes up for it", async (t) => {
    const project = await aProject(t, { script: { otherwise: echo } });
    const pi = project.startPi();
    await talk(project, pi, "before");
    await eventually(() => assertAgreement(project));
    const writer = intrude(t, project, "BEGIN IMMEDIATE");
    for (const text of ["one", "two", "three", "four"]) await talk(project, pi, text);
    await leave(pi);
    writer.close();
    await assertWhole(project);
  });

  for (const host of hostsFor(hostsByVersion)) {
    test(`Pi ${host.version}: three Pis start a project at the same instant, and each stores its session`, async (t) => {
      for (let round = 0; round < ROUNDS; round++) {
        const project = await aProject(t, { host, script: { otherwise: echo } });
        const runs = await Promise.all(["one", "two", "three"].map((text) => project.runPi(["-p", text])));
        assert.deepEqual(runs.map(({ code, stdout }) => ({ code, stdout })), ["one", "two", "three"].map((text) => ({ code: 0, stdout: `Heard: ${text}\n` })));
        assert.equal(project.sessions().length, 3);
        assertAgreement(project);
        assert.ok(!existsSync(`${databaseFile(project)}-wal`) || statSync(`${databaseFile(project)}-wal`).size === 0, "the log is put away");
        if (round === ROUNDS - 1) await assertWhole(project);
      }
    });
  }
});
