/**
 * Damage inside the database or in the files beside it: found at a start, found while Pi runs, or never to be found since
 * SQLite makes these files anew. The damaged database is kept, the user hears of it once, and Pi goes on.
 */
import assert from "node:assert/strict";
import { copyFileSync, existsSync, openSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync, writeSync } from "node:fs";
import { describe, test } from "node:test";
import { assertAgreement } from "../support/agreement.mjs";
import { assertToldOnce, assertWhole, databaseFile, databaseOf, doctor, echo, leave, talk, toldSomething, warnings } from "../support/faults.mjs";
import { aProject, eventually } from "../support/project.mjs";
import { DatabaseSync } from "../support/store.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */

/** A project with a long session, stored and put away. @param {import("node:test").TestContext} t */
async function withHistory(t) {
  const project = await aProject(t, { script: { otherwise: echo } });
  const history = project.history();
  history.talk(150, { words: 60 });
  history.write(project.sessionDir);
  await project.runPi(["--continue", "-p", "before"]);
  return { project, file: databaseFile(project) };
}

/**
 * Overwrites pages of the database, each as a whole.
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

describe("a page of the database is damaged", { concurrency: 3 }, () => {
  test("one that a session's start reads: the history goes on beside it", async (t) => {
    const { project, file } = await withHistory(t);
    spoil(file, "name LIKE '%entries%' AND pagetype = 'leaf'");
    const before = readFileSync(file);
    const told = /\.db is damaged: .*malformed; the history goes to \S+-2\.db instead, made anew from Pi's session files \(\/lcm import brings the older ones\), and this is told until you move that away$/;

    const pi = project.startPi(["--continue"]);
    await talk(project, pi, "meanwhile");
    await eventually(() => assertAgreement(project, undefined, databaseOf(project, "-2")));
    assertToldOnce(pi, told);
    await leave(pi);
    assert.ok(before.equals(readFileSync(file)), "it is left as it is");
    await assertWhole(project, { name: databaseOf(project, "-2"), told });
  });

  test("one that is met when something is stored: the user hears what helps, and it helps", async (t) => {
    const { project, file } = await withHistory(t);
    spoil(file, "name = 'messages' AND pagetype = 'leaf'");

    const pi = project.startPi(["--continue"]);
    await talk(project, pi, "meanwhile");
    await toldSomething(pi);
    await talk(project, pi, "and on");
    assertToldOnce(pi, /\.db is damaged \(\/lcm doctor says what helps\): .*malformed$/);
    const advice = await doctor(pi);
    assert.match(advice, /quit Pi, move \S+\.db away \(and -wal and -shm beside it\), start Pi again in this session/);
    await leave(pi);

    for (const ending of ["", "-wal", "-shm"]) if (existsSync(file + ending)) renameSync(file + ending, `${file}.old${ending}`);
    await assertWhole(project);
  });

  test("one that is met when the model asks for it: the model and the user hear of it", async (t) => {
    const { project, file } = await withHistory(t);
    const pi = project.startPi(["--continue"]);
    await talk(project, pi, "at first");
    await eventually(() => assertAgreement(project));
    spoil(file, "name = 'messages' AND pagetype = 'leaf'");

    project.script.turns = [{ toolCalls: [{ name: "lcm_grep", arguments: { query: "mark0001x" } }] }];
    await pi.prompt("Look it up.");
    const answer = project.lastTurn.messages.findLast(({ role }) => role === "tool");
    assert.match(answer?.text ?? "", /is damaged \(\/lcm doctor says what helps\)/);
    await toldSomething(pi);
    await talk(project, pi, "and on");
    assertToldOnce(pi, /\.db is damaged \(\/lcm doctor says what helps\): .*malformed$/);
    await leave(pi);
  });
});

/** @type {Record<string, (log: string, index: string) => void>} what happens to the log and to the index of it */
const accidents = {
  "the log is cut in the middle": (log) => truncateSync(log, Math.floor(readFileSync(log).length / 2)),
  "the log is garbage from the middle on": (log) => change(log, (bytes) => bytes.fill(0x5a, bytes.length / 2)),
  "the log's header is garbage": (log) => change(log, (bytes) => bytes.fill(0x5a, 0, 32)),
  "the log is gone": (log) => rmSync(log),
  "the log's index is garbage": (_log, index) => change(index, (bytes) => bytes.fill(0x5a)),
  "the log's index is cut": (_log, index) => truncateSync(index, 100),
  "the log's index is gone": (_log, index) => rmSync(index),
};

describe("Pi was killed, and", { concurrency: 3 }, () => {
  for (const [what, befall] of Object.entries(accidents)) {
    test(`${what}: the next start makes up for it`, async (t) => {
      const project = await aProject(t, { script: { otherwise: echo } });
      await project.runPi(["-p", "before"]);
      const file = databaseFile(project);
      const pi = project.startPi(["--continue"]);
      for (const text of ["one", "two", "three"]) await talk(project, pi, text);
      await eventually(() => assertAgreement(project));
      await pi.kill("SIGKILL");
      befall(`${file}-wal`, `${file}-shm`);
      await assertWhole(project);
    });
  }
});

/**
 * @param {string} file
 * @param {(bytes: Buffer) => void} how
 */
function change(file, how) {
  const bytes = readFileSync(file);
  how(bytes);
  writeFileSync(file, bytes);
}
