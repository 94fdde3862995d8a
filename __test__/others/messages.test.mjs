/**
 * Other extensions that change messages: in the session, for the model only, or on the way to it; or whose tool returns unusual answers.
 * The store keeps what the session file has; a summary covers what the model saw.
 */
import assert from "node:assert/strict";
import { assertAgreement } from "../support/agreement.mjs";
import { filler } from "../support/history.mjs";
import { eventually } from "../support/project.mjs";
import { jsonOf } from "../support/session-file.mjs";
import { assertCovered, assertShown, beside, once, talkAndCompact } from "./beside.mjs";
import { answers } from "./extensions/odd-tool.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../support/session-file.mjs").SessionFile} SessionFile */

/** The text that the summarizer got so far. @param {Project} project */
const shownToSummarizer = (project) => project.summaryCalls.map(({ messages }) => messages.map(({ text }) => text).join("\n")).join("\n");

/** The last tool result that the model got. @param {Project} project */
const lastAnswer = (project) => project.lastTurn.messages.findLast(({ role }) => role === "tool")?.text ?? "";

/** A call of a shell command in the script. @param {string} command */
const bash = (command) => ({ toolCalls: [{ name: "bash", arguments: { command } }] });

/**
 * Asserts that the store agrees with the session file, and has one more message for each edit: the edited form.
 * @param {Project} project
 * @param {SessionFile} session
 */
function assertStoredWithEdits(project, session) {
  project.inStore((store) => {
    const expected = session.entries.map((entry) => ({ id: entry.id, parentId: entry.parentId, json: jsonOf(entry) }));
    assert.deepEqual(store.entries(session.id), expected);
    const edits = session.entries.filter(({ type }) => type === "context_edit").length;
    const messages = "SELECT message_id FROM entries e JOIN conversations c ON c.id = e.conversation_id WHERE c.session_id = ? AND message_id IS NOT NULL";
    assert.equal(new Set(store.rows(messages, session.id).map(({ message_id }) => message_id)).size, expected.filter(({ json }) => json !== null).length + edits);
    assert.deepEqual(store.rows("SELECT id FROM messages WHERE id NOT IN (SELECT message_id FROM entries WHERE message_id IS NOT NULL)"), []);
  });
}

beside("messages that another extension replaces are stored as replaced", "replacing", async (_t, begin) => {
  const { project, pi } = await begin(20);
  project.script.turns = [{ ...bash("echo the secret of the tool"), text: "The secret of the assistant." }, { text: "Done, secretly." }];
  await pi.prompt("the secret of the user");
  await eventually(() => assertAgreement(project));
  const session = await project.session(pi);
  const said = JSON.stringify(session.entries);
  assert.ok(!said.includes("secret"));
  // In two texts, one argument, one output, and the user's own words.
  assert.equal(said.split("[taken out, 秘密").length - 1, 5);

  await talkAndCompact(pi, "later");
  assertCovered(project, await project.session(pi));
  project.script.turns = [{ toolCalls: [{ name: "lcm_grep", arguments: { query: "秘密" } }] }];
  await pi.prompt("find what was taken out");
  assert.match(lastAnswer(project), /«秘密»/);
  await eventually(() => assertAgreement(project));
  project.inStore((store) => assert.ok(!JSON.stringify(store.entries(session.id)).includes("secret")));
});

beside("messages that another extension rewrites for the model are stored unchanged", "rewriting", async (_t, begin) => {
  const { project, pi } = await begin(20, (past) => {
    past.user(`the plain0000x question of the past ${filler("past", 100)}`);
    past.assistant("the plain0000x answer of the past");
  });
  project.script.turns = [bash("echo the plain0000x output"), { text: "My plain0000x words." }];
  await pi.prompt("the plain0000x question");
  await pi.prompt("again");
  for (const { raw } of project.turns) {
    assert.ok(!raw.includes("plain0000x") && raw.includes("fancy0000x question of the past") && raw.includes("added on the way"));
  }
  await eventually(() => assertAgreement(project));
  const block = await talkAndCompact(pi, "later").then(async () => assertCovered(project, await project.session(pi)));
  const shown = shownToSummarizer(project);
  assert.ok(shown.includes("the plain0000x output") && !shown.includes("fancy0000x") && !shown.includes("added on the way"));
  await pi.prompt("and now?");
  // The block may quote what the extension rewrites.
  const [{ text }] = project.lastTurn.messages;
  assert.ok(text.includes(block.replaceAll("plain0000x", "fancy0000x")), `${text}\n\nlacks\n\n${block}`);
  await eventually(() => assertAgreement(project));
  const { entries } = await project.session(pi);
  assert.ok(!JSON.stringify(entries).match(/fancy0000x|added on the way/));
});

beside("entries of another extension are stored in their places, and nothing twice", "noting", async (_t, begin, placing) => {
  const { project, pi } = await begin(20);
  await pi.prompt("one");
  const from = project.turns.length;
  await pi.prompt("now go on by yourself");
  await eventually(() => assert.ok(project.turns.length > from + 1 && project.lastTurn.raw.includes("please go on")));
  await eventually(async () => assert.equal((await pi.request("get_state")).isStreaming, false));
  await pi.prompt("two");
  await eventually(() => assertAgreement(project));
  await talkAndCompact(pi, "later");
  const session = await project.session(pi);
  assertCovered(project, session);
  await pi.prompt("three");

  const types = new Set(session.entries.map(({ type }) => type));
  for (const type of ["message", "custom", "custom_message", "label", "compaction"]) assert.ok(types.has(type), type);
  const triggered = session.entries.find(({ content, message }) => (content ?? message?.content) === "please go on");
  assert.ok(triggered, "the message that made the model continue is in the session");
  const shown = shownToSummarizer(project);
  assert.ok(shown.includes("please go on") && shown.includes("said aside after turn 1"));
  assert.ok(shown.includes("drafted after turn 1"));
  await eventually(() => assertAgreement(project));
});

beside("any tool's answer is stored, compacted and found again", "odd-tool", async (t, begin) => {
  const { project, pi } = await begin(20);
  /** @param {string} name @param {Record<string, unknown>} args */
  const call = async (name, args) => {
    project.script.turns = [{ toolCalls: [{ name, arguments: args }] }];
    await pi.prompt(`call ${name}`);
    return project.lastTurn.messages.findLast(({ role }) => role === "tool")?.text ?? "";
  };

  for (const what of Object.keys(answers)) {
    await t.test(`${what}: the session's content is stored`, async () => {
      await call("odd", { what });
      await eventually(() => assertAgreement(project));
      const results = (await project.session(pi)).entries.filter((entry) => entry.message?.toolName === "odd");
      assert.deepEqual(results.at(-1).message.content.map((/** @type {any} */ { type }) => type), answers[what].map(({ type }) => type));
    });
  }

  await t.test("they are compacted with everything else, and the summarizer gets only a part", async () => {
    await talkAndCompact(pi, "later");
    const session = await project.session(pi);
    const block = assertCovered(project, session);
    const odd = session.entries.filter((entry) => entry.message?.toolName === "odd").map(({ id }) => id);
    assert.deepEqual(session.compactedBy().filter((id) => odd.includes(id)), odd);
    const shown = project.summaryCalls.map(({ raw }) => raw).join("\n");
    for (const marker of ["bell0000x", "caption0001x", "head0000x", "tail0000x", "before0000x"]) assert.ok(shown.includes(marker), marker);
    assert.ok(!shown.includes("middle0000x") && !shown.includes("iVBORw0KGgo"));
    for (const { raw } of project.summaryCalls) assert.ok(raw.length < 45_000, `${raw.length} characters were sent at once`);
    assert.match(block, / 0 degraded$/m);
    await pi.prompt("and now?");
    assertShown(project, block);
  });

  await t.test("each is found again", async () => {
    for (const marker of ["before0000x", "after0000x", "bell0000x", "caption0001x", "middle0000x"]) {
      const found = await call("lcm_grep", { query: marker });
      assert.ok(found.includes(`«${marker}»`), found);
      const [handle] = found.match(/m-[0-9a-f]{10}/) ?? [];
      const whole = await call("lcm_expand", { summary_id: handle });
      assert.ok(marker === "middle0000x" ? whole.includes("head0000x") : whole.includes(marker), whole.slice(0, 2000));
    }
    await eventually(() => assertAgreement(project));
  });
}, { on: once });

// Last: the edited form of a message is in no session file, so from here on the store has more messages than the files.
beside("summaries cover the edited form of messages that another extension edits, and the store keeps the original", "editing", async (_t, begin) => {
  const { project, pi } = await begin(20);
  project.script.turns = [bash("for n in 1 2 3 4 5 6 7 8 9; do echo original000${n}x; done"), { text: "That was long." }];
  await pi.prompt("look at all of it");
  assert.ok(project.lastTurn.raw.includes("edited0000x") && !project.lastTurn.raw.includes("original0005x"));
  await eventually(async () => assertStoredWithEdits(project, await project.session(pi)));

  await talkAndCompact(pi, "later");
  const session = await project.session(pi);
  const block = assertCovered(project, session);
  const [result] = session.entries.filter((entry) => entry.message?.role === "toolResult");
  assert.ok(session.compactedBy().includes(result.id));
  assert.ok(JSON.stringify(result).includes("original0005x"), "Pi's own file keeps the original");
  const shown = shownToSummarizer(project);
  assert.ok(shown.includes("edited0000x: this was long"));
  assert.ok(!shown.includes("original0005x"));
  assert.ok(session.entries.some(({ type, targetId }) => type === "context_edit" && targetId === result.id));

  project.script.turns = [{ toolCalls: [{ name: "lcm_grep", arguments: { query: "original0005x" } }] }];
  await pi.prompt("but what did it say?");
  const answer = lastAnswer(project);
  assertShown(project, block);
  await eventually(async () => assertStoredWithEdits(project, await project.session(pi)));
  assert.match(answer, /toolResult bash .*original0005x/);
  const [handle] = answer.match(/m-[0-9a-f]{10}/) ?? [];
  project.script.turns = [{ toolCalls: [{ name: "lcm_expand", arguments: { summary_id: handle } }] }];
  await pi.prompt("all of it");
  assert.match(lastAnswer(project), /original0001x[^]*original0009x/);
});
