/**
 * `/lcm backup` and `/lcm purge` on the real Pi: the copy is there, and what was purged is nowhere in the files of the store,
 * whoever agreed to it and however Pi talks with its user.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsByVersion, hostsFor } from "../../scripts/hosts.mjs";
import { databaseFile, echo } from "../support/faults.mjs";
import { aProject, eventually } from "../support/project.mjs";
import { jsonOf } from "../support/session-file.mjs";
import { DatabaseSync } from "../support/store.mjs";
import { noTerminal } from "../support/terminal.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */

const secret = "quokka7741";
/** The index cuts off what a word has in common with its neighbour. */
const end = "okka7741";
const telling = `the pass phrase is ${secret} and stays so`;

/** A project in whose one session a secret was told and heard. @param {import("node:test").TestContext} t @param {any} [options] */
async function aSecret(t, options = {}) {
  const project = await aProject(t, { script: { otherwise: echo }, ...options });
  for (const said of [["hello there"], ["-c", telling], ["-c", "and so it goes on"]]) await project.runPi(["-p", ...said]);
  assert.equal(saying(project).length, 2);
  return project;
}

/** Ids of the entries in Pi's own file that hold it. @param {Project} project */
function saying(project) {
  const [session] = project.sessions();
  return session.entries.filter((entry) => jsonOf(entry)?.includes(secret)).map(({ id }) => id);
}

/** The files of the store do not hold it, and no word of its index. @param {Project} project */
function assertGone(project) {
  const file = databaseFile(project);
  for (const ending of ["", "-wal", "-shm"]) {
    if (existsSync(file + ending)) assert.ok(!readFileSync(file + ending).includes(end), `X.db${ending} holds it`);
  }
  const database = new DatabaseSync(file);
  try {
    database.exec("CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, messages_fts, row)");
    const words = database.prepare("SELECT term FROM temp.words").all().map(({ term }) => String(term));
    assert.ok(words.length > 3 && !words.some((word) => word.includes("okka")), words.join());
    assert.equal(database.prepare("SELECT count(*) AS n FROM messages WHERE kind = 4").get()?.n, 2);
  } finally {
    database.close();
  }
}

/** It stays away when the session is opened again, and its file imported. @param {Project} project */
async function assertStaysAway(project) {
  const { stdout } = await project.runPi(["-p", "-c", "/lcm doctor"]);
  assert.match(stdout, /2 of them purged[^]*All is as it must be\./);
  const [session] = project.sessions();
  await project.runPi(["-p", `/lcm import ${session.file}`]);
  await project.runPi(["-p", "-c", "what now?"]);
  assertGone(project);
  assert.equal(saying(project).length, 2, "Pi's own file is Pi's");
}

for (const host of hostsFor(hostsByVersion)) {
  test(`in print mode --yes purges, and without it is told what would be, on ${host.name}`, async (t) => {
    const project = await aSecret(t, { host });
    const [one, other] = saying(project);
    const copied = await project.runPi(["-p", "-c", "/lcm backup"]);
    const [, backup] = /copied to (.*\.bak): [^]*whole/.exec(copied.stdout) ?? [];
    assert.ok(backup, copied.stdout);
    assert.ok(readFileSync(backup).length > 10_000);
    if (process.platform !== "win32") assert.equal(statSync(backup).mode & 0o777, 0o600);

    const asked = await project.runPi(["-p", "-c", `/lcm purge ${one}`]);
    assert.match(asked.stdout, new RegExp(`^This would remove for good: 1 message[^]*/lcm purge ${one} --yes does it`));
    assert.equal(project.inStore((store) => store.count("messages WHERE kind = 4")), 0);
    for (const entry of [one, other]) {
      const { stdout } = await project.runPi(["-p", "-c", `/lcm purge ${entry} --yes`]);
      assert.match(stdout, /^Removed for good: 1 message[^]*Nothing of it is left in the database/);
      for (const named of [backup, project.sessions()[0].file, "the session that is open"]) assert.ok(stdout.includes(named), `${named} in ${stdout}`);
    }
    assertGone(project);
    await assertStaysAway(project);
  });
}

test("in rpc mode the user is asked, and a no is a no", async (t) => {
  const project = await aSecret(t);
  /** @type {any[]} */
  const asked = [];
  let answer = false;
  const pi = project.startPi(["-c"], undefined, (dialog) => {
    asked.push(dialog);
    return answer;
  });
  for (const entry of saying(project)) {
    answer = false;
    await pi.prompt(`/lcm purge ${entry}`);
    assert.match(asked.at(-1).title, /^Remove 1 message for good\?/);
    assert.match(asked.at(-1).message, /^This would remove for good/);
    assert.ok(!pi.ui("notify").some(({ message }) => message.startsWith("Removed")) || entry !== saying(project)[0]);
    answer = true;
    await pi.prompt(`/lcm purge ${entry}`);
    await pi.waitFor(() => pi.ui("notify").at(-1)?.message.startsWith("Removed for good"));
  }
  assert.equal(asked.length, 4);
  await pi.stop();
  assertGone(project);
  await assertStaysAway(project);
});

test("in the TUI the user is asked, and work goes on", { skip: noTerminal }, async (t) => {
  const project = await aSecret(t);
  const terminal = project.openTerminal(["-c"]);
  await terminal.waitFor((screen) => /LCM: 6 msgs/.test(screen), "the footer");
  for (const [at, entry] of saying(project).entries()) {
    await terminal.send(`/lcm purge ${entry}`);
    await terminal.waitFor((screen) => screen.includes("Remove 1 message for good?"), "the question");
    if (at === 0) {
      // A second Enter is no agreement.
      terminal.press("enter");
      await terminal.waitFor((screen) => screen.includes("Nothing was removed."), "that nothing was done");
      await terminal.send(`/lcm purge ${entry}`);
      await terminal.waitFor((screen) => screen.lastIndexOf("Remove 1 message for good?") > screen.lastIndexOf("Nothing was removed."), "the question again");
    }
    terminal.press("down");
    await terminal.waitFor((screen) => /[>→❯] Yes, for good/.test(screen), "the other answer chosen");
    terminal.press("enter");
    await terminal.waitFor((screen) => screen.includes("Removed for good"), "the answer");
    await terminal.waitFor((screen) => screen.includes(`LCM: ${5 - at} msgs`), "the footer without it");
  }
  await terminal.send("still there?");
  await terminal.waitFor((screen) => screen.includes("Heard: still there?"), "an answer");
  await terminal.send("/quit");
  await terminal.exit;
  await eventually(() => assertGone(project));
  await assertStaysAway(project);
});

test("a session is purged by its id, and a fork of it does not bring it back", async (t) => {
  const project = await aSecret(t);
  const [session] = project.sessions();
  const { stdout } = await project.runPi(["-p", `/lcm purge ${session.id.slice(0, 18)} --yes`]);
  assert.match(stdout, /^Removed for good: [67] messages of/);
  await project.runPi(["-p", "--fork", session.file, "in the fork"]);
  const bytes = readFileSync(path.join(databaseFile(project)));
  assert.ok(!bytes.includes(end) && !bytes.includes("goes on"));
});
