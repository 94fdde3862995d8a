/**
 * Damage in the database or the files next to it: found at a start, found while Pi runs, or never, since SQLite rebuilds these files. The
 * damaged database is kept, the user is told once, and Pi continues.
 */
import assert from "node:assert/strict";
import { openSync, readFileSync, rmSync, truncateSync, writeFileSync, writeSync } from "node:fs";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { assertAgreement } from "../support/agreement.mjs";
import { assertSound, assertWarnedOnce, assertWhole, assertWholeIn, databaseFile, databaseOf, doctor, echo, keep, leave, pause, reopen, talk, waitForWarning, warnings } from "../support/faults.mjs";
import { aProject, eventually } from "../support/project.mjs";
import { DatabaseSync } from "../support/store.mjs";

/**
 * Overwrites whole pages of the database.
 * @param {string} file
 * @param {string} where a condition on SQLite's table of pages, `dbstat`
 */
function spoil(file, where) {
  const database = new DatabaseSync(file, { readOnly: true });
  const pages = database.prepare(`SELECT pageno, pgsize FROM dbstat WHERE ${where}`).all();
  database.close();
  assert.ok(pages.length > 0, `there are pages where ${where}`);
  const descriptor = openSync(file, "r+");
  for (const { pageno, pgsize } of /** @type {{ pageno: number, pgsize: number }[]} */ (pages)) {
    writeSync(descriptor, Buffer.alloc(pgsize, 0x5a), 0, pgsize, (pageno - 1) * pgsize);
  }
}

/** What the user is told when the history continues in another file. */
const warning = /\.db is damaged: .*; new messages go to \S+-2\.db instead, and this session from its beginning\. \/lcm doctor --rebuild joins both$/;

for (const host of hostsFor()) {
  test(`Pi ${host.version}: a damaged page of the database is reported once, and Pi continues`, async (t) => {
    const project = await aProject(t, { host, script: { otherwise: echo } });
    const history = project.history();
    history.talk(150, { words: 60 });
    const file = databaseFile(project);
    const pi = project.startPi(["--session", history.write(project.sessionDir)]);
    await talk(project, pi, "before");
    await eventually(() => assertAgreement(project));
    await pause(project, pi);
    const bringBack = keep(project);

    await t.test("one that a session's start reads: the history continues in a new file", async () => {
      spoil(file, "name LIKE '%entries%' AND pagetype = 'leaf'");
      const before = readFileSync(file);
      const name = databaseOf(project, "-2");
      for (let starts = 0; starts < 2; starts++) {
        await assertWholeIn(project, pi, { name, warning, from: await reopen(project, pi) });
        await pause(project, pi);
        assertSound(project, name);
        assert.ok(before.equals(readFileSync(file)), "it is unchanged");
      }
    });

    await t.test("one that a tool call reads: the model and the user are told", async () => {
      bringBack();
      const from = await reopen(project, pi);
      // On so many pages that the first is not the one where new messages go.
      for (const one of ["at first", "then", "and then", "at last"]) await talk(project, pi, `${one} ${"word ".repeat(800)}`.trim());
      await eventually(() => assertAgreement(project));
      spoil(file, "name = 'messages' AND path = '/000/'");
      project.script.turns = [{ toolCalls: [{ name: "lcm_grep", arguments: { query: "mark0001x" } }] }];
      await pi.prompt("Look it up.");
      const answer = project.lastTurn.messages.findLast(({ role }) => role === "tool");
      assert.match(answer?.text ?? "", /is damaged \(\/lcm doctor --rebuild mends it\)/);
      await waitForWarning(pi, from);
      await talk(project, pi, "and on");
      // A write may need the page, too.
      for (const shown of warnings(pi, from)) assert.match(shown, /\.db is damaged(?: \(\/lcm doctor --rebuild mends it\): |: .*; new messages go to )/);
      await pause(project, pi);
    });

    await t.test("one that a write needs: new messages go to a new file, and a rebuild joins both", async () => {
      bringBack();
      // The last one, where each new message goes.
      spoil(file, "name = 'messages' AND path = (SELECT max(path) FROM dbstat WHERE name = 'messages' AND pagetype = 'leaf')");
      const from = pi.events.length;
      await pi.request("new_session");
      await talk(project, pi, "meanwhile");
      await waitForWarning(pi, from);
      await talk(project, pi, "and on");
      assertWarnedOnce(pi, warning, from);
      await eventually(() => project.inStore((store) => assert.equal(store.rows("SELECT 1 FROM messages WHERE role = 'user'").length, 2), databaseOf(project, "-2")));
      const said = pi.ui("notify").length;
      await pi.prompt("/lcm doctor --rebuild");
      const answer = () => pi.ui("notify").slice(said).find(({ message }) => message.includes(" was rebuilt: "));
      const { message } = await pi.waitFor(answer);
      assert.ok(message.startsWith(`${file} was rebuilt: 2 sessions, `), message);
      assert.equal(message.match(/\nThe old file remains: \S+\.bak/g)?.length, 2, message);
      await pi.prompt("/lcm stats");
      await pi.waitFor(() => pi.ui("notify").slice(said).find((shown) => /\nRequests +\S+ with summaries, in 2 requests since it was opened/.test(shown.message)));
      await assertWholeIn(project, pi, { from: pi.events.length });
      await leave(pi);
      await assertWhole(project);
    });
  });
}

/** @type {Record<string, (log: string, index: string) => void>} how the log and its index are damaged */
const accidents = {
  "the log is cut in the middle": (log) => truncateSync(log, Math.floor(readFileSync(log).length / 2)),
  "the log is garbage from the middle on": (log) => change(log, (bytes) => bytes.fill(0x5a, bytes.length / 2)),
  "the log's header is garbage": (log) => change(log, (bytes) => bytes.fill(0x5a, 0, 32)),
  "the log is gone": (log) => rmSync(log),
  "the log's index is garbage": (_log, index) => change(index, (bytes) => bytes.fill(0x5a)),
  "the log's index is cut": (_log, index) => truncateSync(index, 100),
  "the log's index is gone": (_log, index) => rmSync(index),
};

for (const host of hostsFor()) {
  test(`Pi ${host.version}: after Pi was killed and the files next to the database were damaged, the next start recovers`, async (t) => {
    const project = await aProject(t, { host, script: { otherwise: echo } });
    const file = databaseFile(project);
    const killed = project.startPi();
    await talk(project, killed, "in the database");
    await pause(project, killed);
    await reopen(project, killed);
    for (const text of ["one", "two", "three"]) await talk(project, killed, text);
    await eventually(() => assertAgreement(project));
    await killed.kill("SIGKILL");
    const bringBack = keep(project);

    /** The first damage affects a Pi that starts, the others a new session. @type {import("../support/project.mjs").Pi | undefined} */
    let pi;
    for (const [what, befall] of Object.entries(accidents)) {
      await t.test(what, async () => {
        if (pi) await pause(project, pi);
        bringBack();
        befall(`${file}-wal`, `${file}-shm`);
        const from = pi ? await reopen(project, pi) : 0;
        pi ??= project.startPi(["--continue"]);
        await assertWholeIn(project, pi, { from });
        assertSound(project);
      });
    }
    if (pi) await leave(pi);
  });
}

/**
 * @param {string} file
 * @param {(bytes: Buffer) => void} how
 */
function change(file, how) {
  const bytes = readFileSync(file);
  how(bytes);
  writeFileSync(file, bytes);
}
