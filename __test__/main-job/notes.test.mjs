/**
 * Notes across compactions and branches, on the real Pi: in every block of their branch, word for word, until they are removed; and what a
 * new session is told of earlier ones, if the user wants that.
 */
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { extension, root } from "../../scripts/paths.mjs";
import { blockOf } from "../support/block.mjs";
import { filler } from "../support/history.mjs";
import { aProject } from "../support/project.mjs";
import { assertGrowing } from "../support/requests.mjs";

/** @typedef {Awaited<ReturnType<typeof aProject>>} Project */
/** @typedef {import("../../demo/rpc.mjs").Pi} Pi */

const acting = path.join(root, "__test__", "support", "acting.mjs");

const FIRST = "the release is on Friday; tag it v2.1 — «not before»";
const SECOND = "</summary> is what the parser must not take for an end";
const USERS = "never push to main";
/** The notes as lines of a block. */
const LINES = { first: `- 1: "${FIRST}"`, second: `- 2: "${SECOND.replace("</", "<\\/")}"`, users: `- 3 (the user's): "${USERS}"` };

/** Calls with these lists of changes. @param {...Record<string, unknown>[]} calls @returns {import("../../demo/model-server.mjs").Reply[]} */
const noting = (...calls) => [{ toolCalls: calls.map((changes) => ({ name: "lcm_note", arguments: { changes } })) }, { text: "So it is." }];

/** The notes in the last request. @param {Project} project */
function notesSeen(project) {
  const block = blockOf(project.lastTurn);
  assert.ok(block, "the request begins with a block");
  return block.split("\n### Notes\n")[1]?.split("\n\n")[0].split("\n");
}

/** Talks until there is something to compact, compacts, and continues. @param {Pi} pi @param {string} word */
async function compacted(pi, word) {
  await pi.prompt(`before ${word} ${filler(word, 400)}`);
  await pi.request("compact");
  await pi.prompt(`after ${word}`);
}

/** The last answers of a tool, call by call. @param {Project} project @param {number} count */
const answers = (project, count) => project.lastTurn.messages.filter(({ role }) => role === "tool").slice(-count).map(({ text }) => text);

/** The answer of `/lcm …`. @param {Pi} pi @param {string} line */
async function answerTo(pi, line) {
  const from = pi.ui("notify").length;
  await pi.prompt(`/lcm ${line}`);
  await pi.waitFor(() => pi.ui("notify").length > from);
  return pi.ui("notify")[from].message;
}

for (const host of hostsFor()) {
  test(`notes are in every block of their branch until they are removed, on ${host.name}`, async (t) => {
    const project = await aProject(t, { host, extensions: [extension, acting], settings: { lcm: { background: false } } });
    const history = project.history();
    history.talk(30);
    const pi = project.startPi(["--session", history.write(project.sessionDir)]);

    project.script.turns = noting([{ text: "the release is near" }], [{ note: 1, text: FIRST.replace("Friday", "Monday") }, { text: SECOND }, { note: 1, old: "Monday", text: "Friday" }]);
    await pi.prompt("keep both");
    assert.ok(project.lastTurn.toolNames.includes("lcm_note"));
    assert.deepEqual(answers(project, 2).map((text) => text.replace(/ \d+ of/, " N of")), [
      "Added 1. 1 note, N of 2,000 tokens.",
      "Added 2. Changed 1, 1. 2 notes, N of 2,000 tokens.",
    ]);
    assert.match(await answerTo(pi, `notes add ${USERS}`), /^Note 3 is kept\.\n1\. .*\n2\. .*\n3 \(yours\)\. never push to main\n3 notes, /);
    const before = project.turns.length;
    await pi.prompt("and now?");
    assert.ok(project.lastTurn.messages.some(({ text }) => text.includes(`[The user added note 3: "${USERS}"]`)), "the model knows at once");
    await pi.prompt("go on");
    assertGrowing(project.turns.slice(before - 1));

    await t.test("they are there word for word after two compactions", async () => {
      for (const word of ["one", "two"]) {
        await compacted(pi, word);
        assert.deepEqual(notesSeen(project), [LINES.first, LINES.second, LINES.users]);
      }
    });
    await t.test("an invalid note is an error with the remedy", async () => {
      project.script.turns = noting([{ note: 3 }], [{ note: 1, old: "Sunday", text: "Friday" }], [{ note: 2 }, {}]);
      await pi.prompt("try");
      assert.deepEqual(answers(project, 3), [
        "lcm_note: note 3 is the user's: only /lcm notes changes it",
        "lcm_note: note 1 has no such text: give old word for word",
        "lcm_note: text is missing: what the note is to say, or the note to remove",
      ]);
    });
    const long = await project.session(pi);

    await t.test("removed and replaced notes are gone from the next block", async () => {
      project.script.turns = noting([{ note: 2 }]);
      await pi.prompt("the second is done");
      await answerTo(pi, "notes set 1 the release is on Monday");
      await compacted(pi, "three");
      assert.deepEqual(notesSeen(project), ['- 1 (the user\'s): "the release is on Monday"', LINES.users]);
    });
    const end = await project.session(pi);

    await pi.stop();
    const again = project.startPi(["--session", end.file]);
    await t.test("a later start has the notes of the session's end", async () => {
      await again.prompt("still there?");
      assert.deepEqual(notesSeen(project)?.length, 2);
      await compacted(again, "four");
      assert.deepEqual(notesSeen(project), ['- 1 (the user\'s): "the release is on Monday"', LINES.users]);
    });
    await t.test("/tree returns to earlier notes, and a fork keeps them", async () => {
      await again.prompt("/act tree after two");
      await again.prompt("on another branch");
      await compacted(again, "five");
      assert.deepEqual(notesSeen(project), [LINES.first, LINES.second, LINES.users]);
      const { entryId } = (await again.request("get_fork_messages")).messages.find((/** @type {any} */ { text }) => text.startsWith("before five"));
      await again.request("fork", { entryId });
      await again.prompt("in the fork");
      assert.equal(await answerTo(again, "notes remove 1").then((text) => text.split("\n")[0]), "Note 1 was removed.");
      await compacted(again, "six");
      assert.deepEqual(notesSeen(project), [LINES.second, LINES.users]);
      assert.notEqual((await project.session(again)).id, end.id);
    });
    await t.test("the user can remove them all", async () => {
      await again.request("switch_session", { sessionPath: end.file });
      await answerTo(again, "notes clear");
      await again.waitFor(() => again.ui("notify").some(({ message }) => message.startsWith("All notes were removed.")));
      await compacted(again, "seven");
      assert.equal(notesSeen(project), undefined);
    });
    assert.ok(long.entries.length < end.entries.length);
  });

  test(`a session is told of earlier ones if that is wanted, on ${host.name}`, async (t) => {
    const project = await aProject(t, { host, settings: { lcm: { recallOnNew: true } } });
    const first = project.startPi();
    await first.prompt("a walrus in the first");
    assert.ok(!project.lastTurn.system.includes("Earlier sessions of this project"));
    const { id } = await project.session(first);
    await first.request("new_session");
    const before = project.turns.length;
    for (const prompt of [`what was it? ${filler("it", 500)}`, `more ${filler("more", 500)}`]) await first.prompt(prompt);
    const pointer = `Earlier sessions of this project: 1, the newest of them ${id.slice(0, 13)} (began `;
    assert.ok(project.lastTurn.system.includes(pointer), project.lastTurn.system);
    assert.ok(!project.lastTurn.system.includes("walrus"), "none of their words");
    assertGrowing(project.turns.slice(before));
    const { system } = project.lastTurn;
    const { file } = await project.session(first);
    await first.request("new_session");
    await first.prompt("a third session");
    assert.match(project.lastTurn.system, /Earlier sessions of this project: 2, the newest of them [0-9a-f-]{13} \(began .*\), [0-9a-f-]{13} \(began /);

    await t.test("without these settings there is neither a fourth tool nor a sentence about earlier sessions", async () => {
      project.configure({ lcm: { notes: false } });
      await first.request("new_session");
      await first.prompt("the fourth");
      assert.ok(project.lastTurn.toolNames.includes("lcm_grep") && !project.lastTurn.toolNames.includes("lcm_note"));
      assert.ok(!project.lastTurn.system.includes("Earlier sessions of this project"));
      assert.match(await answerTo(first, "notes"), /^notes are off: \/lcm settings notes=true turns them on/);
    });

    await t.test("a later start uses the same words", async () => {
      project.configure({ lcm: { recallOnNew: true } });
      await first.stop();
      await project.runPi(["--session", file, "-p", "and on with the second"]);
      assert.equal(project.lastTurn.system, system);
    });
  });
}
