/**
 * `/lcm backup` and `/lcm purge` on the real Pi: the copy exists, and the purged text is gone from the store's files, in every mode and
 * with every kind of confirmation.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { databaseFile, echo } from "../support/faults.mjs";
import { aProject, eventually } from "../support/project.mjs";
import { heard } from "../support/seats.mjs";
import { jsonOf } from "../support/session-file.mjs";
import { DatabaseSync } from "../support/store.mjs";
import { noTerminal } from "../support/terminal.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */

const secret = "quokka7741";
/** The index omits the prefix that a word shares with its neighbor. */
const end = "okka7741";
const telling = `the pass phrase is ${secret} and stays so`;

/**
 * Writes a session in which a secret was sent and repeated.
 * @param {Project} project
 * @param {string} [first] the message before
 * @param {string} [id]
 */
function writeSecret(project, first = "hello there", id) {
  const history = project.history(id);
  for (const said of [first, telling, "and so it goes on"]) {
    history.user(said);
    history.assistant(heard(said));
  }
  return history.write(project.sessionDir);
}

/** A project with such a session, for Pi to continue. @param {import("node:test").TestContext} t @param {any} [options] */
async function aSecret(t, options = {}) {
  const project = await aProject(t, { script: { otherwise: echo }, ...options });
  writeSecret(project);
  assert.equal(saying(project).length, 2);
  return project;
}

/** Ids of the entries in Pi's own file that contain it. @param {Project} project */
function saying(project) {
  const [session] = project.sessions();
  return session.entries.filter((entry) => jsonOf(entry)?.includes(secret)).map(({ id }) => id);
}

/** Asserts that neither the store's files nor its index contain it. @param {Project} project */
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

/** Asserts that it stays away when the session is opened again and its file imported. @param {Project} project */
async function assertStaysAway(project) {
  const [session] = project.sessions();
  const { stdout } = await project.runPi(["-p", "-c", "/lcm doctor", `/lcm import ${session.file}`, "what now?"]);
  assert.match(stdout, /2 messages purged[^]*Everything is in order\.[^]*Heard: what now\?/);
  assertGone(project);
  assert.equal(saying(project).length, 2, "Pi's own file is Pi's");
}

for (const host of hostsFor()) {
  test(`in print mode --yes purges, and without it the effect is described, on ${host.name}`, async (t) => {
    const project = await aSecret(t, { host });
    const [one, other] = saying(project);
    const asked = await project.runPi(["-p", "-c", "/lcm backup", `/lcm purge ${one}`]);
    const [, backup] = /copied to (.*\.bak): [^]*whole/.exec(asked.stdout) ?? [];
    assert.ok(backup, asked.stdout);
    assert.ok(readFileSync(backup).length > 10_000);
    if (process.platform !== "win32") assert.equal(statSync(backup).mode & 0o777, 0o600);
    assert.match(asked.stdout, new RegExp(`\nThis would permanently remove: 1 message[^]*/lcm purge ${one} --yes removes it`));
    assert.equal(project.inStore((store) => store.count("messages WHERE kind = 4")), 0);

    const { stdout } = await project.runPi(["-p", "-c", ...[one, other].map((entry) => `/lcm purge ${entry} --yes`)]);
    const answers = stdout.split(/^(?=Permanently removed)/m);
    assert.equal(answers.length, 2, stdout);
    for (const answer of answers) {
      assert.match(answer, /^Permanently removed: 1 message[^]*The database and its log contain nothing of it/);
      for (const named of [backup, project.sessions()[0].file, "the open session"]) assert.ok(answer.includes(named), `${named} in ${answer}`);
    }
    const { stdout: inTheFork } = await project.runPi(["-p", "--fork", project.sessions()[0].file, "in the fork"]);
    assert.equal(inTheFork, "Heard: in the fork\n");
    assertGone(project);
    await assertStaysAway(project);
  });
}

test("in rpc mode", async (t) => {
  const project = await aSecret(t);
  /** @type {any[]} */
  const asked = [];
  let answer = false;
  const pi = project.startPi(["-c"], undefined, (dialog) => {
    asked.push(dialog);
    return answer;
  });
  const removed = () => pi.ui("notify").filter(({ message }) => message.startsWith("Permanently removed"));

  await t.test("the user is asked, and a no cancels", async () => {
    for (const [at, entry] of saying(project).entries()) {
      answer = false;
      await pi.prompt(`/lcm purge ${entry}`);
      assert.match(asked.at(-1).title, /^Permanently remove 1 message/);
      assert.match(asked.at(-1).message, /^This would permanently remove/);
      assert.equal(removed().length, at);
      answer = true;
      await pi.prompt(`/lcm purge ${entry}`);
      await pi.waitFor(() => removed().length > at);
    }
    assert.equal(asked.length, 4);
    await eventually(() => assertGone(project));
  });

  await t.test("a session is purged by its id, and its fork does not bring it back", async () => {
    const file = writeSecret(project, "hello once more", "019a4f00-0000-7001-8000-000000000000");
    // With the ids and times of the other session, its messages would be versions of those.
    const later = readFileSync(file, "utf8").replaceAll(/"timestamp":(\d+)/g, (_, time) => `"timestamp":${Number(time) + 3_600_000}`);
    writeFileSync(file, later);
    await pi.prompt(`/lcm import ${file}`);
    await pi.waitFor(() => pi.ui("notify").some(({ message }) => message.includes("6 messages new")));
    await pi.prompt("/lcm purge 019a4f00-0000-7001 --yes");
    const { message } = await pi.waitFor(() => removed()[2]);
    assert.match(message, /^Permanently removed: 6 messages of/);
    await pi.request("switch_session", { sessionPath: file });
    await pi.request("clone");
    await pi.prompt("in the fork");
    const fork = await project.session(pi);
    assert.equal(fork.header.parentSession, file);
    assert.ok(fork.entries.some((entry) => jsonOf(entry)?.includes(secret)), "Pi's own file is Pi's");
    await pi.stop();
    const bytes = readFileSync(databaseFile(project));
    assert.ok(bytes.includes("hello there") && !bytes.includes(end) && !bytes.includes("once more"));
  });
});

for (const host of hostsFor()) {
  test(`everything that contains a text is purged after the places are shown, on ${host.name}`, async (t) => {
    const project = await aSecret(t, { host });
    /** @type {any[]} */
    const asked = [];
    const pi = project.startPi(["-c"], undefined, (dialog) => asked.push(dialog) > 0);
    await pi.prompt(`/lcm purge --text "${secret}"`);
    const removed = () => pi.ui("notify").find(({ message }) => message.startsWith("Permanently removed"));
    const { message } = await pi.waitFor(removed);
    assert.match(asked[0].title, /^Permanently remove 2 messages/);
    assert.match(asked[0].message, /The text is in: message text \(2\)\./);
    assert.match(message, /The database and its log contain nothing of it/);
    await pi.stop();
    assertGone(project);
    await assertStaysAway(project);
  });
}

test("a preview that is longer than the screen says that the question follows", { skip: noTerminal }, async (t) => {
  const project = await aSecret(t);
  const terminal = project.openTerminal(["-c"], { cols: 80, rows: 14 });
  await terminal.waitFor((screen) => /LCM: 6 msgs/.test(screen), "the footer");
  await terminal.send(`/lcm purge ${saying(project)[0]}`);
  await terminal.waitFor((screen) => screen.includes("esc: on to the question"), "how it goes on");
  terminal.press("escape");
  await terminal.waitFor((screen) => screen.includes("Permanently remove 1 message"), "the question");
  terminal.press("enter");
  await terminal.waitFor((screen) => screen.includes("Nothing was removed."), "that nothing was done");
});

test("in the TUI the user is asked, and the session continues", { skip: noTerminal }, async (t) => {
  const project = await aSecret(t);
  const terminal = project.openTerminal(["-c"]);
  await terminal.waitFor((screen) => /LCM: 6 msgs/.test(screen), "the footer");
  for (const [at, entry] of saying(project).entries()) {
    await terminal.send(`/lcm purge ${entry}`);
    await terminal.waitFor((screen) => screen.includes("Permanently remove 1 message"), "the question");
    await terminal.waitFor((screen) => /^ *m-[0-9a-f]{10} (user|assistant|toolResult) \d{4}-\d\d-\d\d \d\d:\d\d: \S/m.test(screen), "what would be removed");
    if (at === 0) {
      // A second Enter does not confirm.
      terminal.press("enter");
      await terminal.waitFor((screen) => screen.includes("Nothing was removed."), "that nothing was done");
      await terminal.send(`/lcm purge ${entry}`);
      await terminal.waitFor((screen) => screen.lastIndexOf("Permanently remove 1 message") > screen.lastIndexOf("Nothing was removed."), "the question again");
    }
    terminal.press("down");
    await terminal.waitFor((screen) => /[>→❯] Yes, permanently/.test(screen), "the other answer chosen");
    terminal.press("enter");
    await terminal.waitFor((screen) => screen.includes("Permanently removed"), "the answer");
    await terminal.waitFor((screen) => screen.includes(`LCM: ${5 - at} msgs`), "the footer without it");
  }
  await terminal.send("still there?");
  await terminal.waitFor((screen) => screen.includes("Heard: still there?"), "an answer");
  await terminal.send("/quit");
  await terminal.exit;
  await eventually(() => assertGone(project));
});

test("an exported session in which a call was purged goes on in Pi", async (t) => {
  const project = await aProject(t);
  // Reasoning that is bound to what was purged is refused once, and left out from then on.
  project.refusals = /^bound$/;
  const call = (/** @type {string} */ words) => ({ name: "bash", arguments: { command: `echo ${words} | wc -w` } });
  project.script.turns = [{ text: "Both.", toolCalls: [call(`${secret} one`), call("two")] }, { text: "Two and one." }];
  const pi = project.startPi();
  await pi.prompt("Count the words.");
  await pi.prompt(`/lcm purge --text "${secret}" --yes`);
  await pi.waitFor(() => pi.ui("notify").some(({ message }) => message.startsWith("Permanently removed")));
  await pi.prompt("/lcm export --jsonl purged.jsonl");
  await pi.waitFor(() => pi.ui("notify").some(({ message }) => message.includes("purged.jsonl")));
  await pi.stop();
  const file = path.join(project.cwd, "purged.jsonl");
  assert.ok(!readFileSync(file, "utf8").includes(end));
  const again = project.startPi(["--session", file]);
  await again.prompt("What was it?");
  const { messages } = project.turns[project.turns.length - 1];
  const calls = messages.flatMap(({ toolCalls }) => toolCalls.map(({ arguments: given }) => given));
  assert.deepEqual(calls, [{}, {}]);
  assert.equal(messages.filter(({ role }) => role === "tool").length, 2);
  await again.stop();
});
