/**
 * The model's context after a compaction, on the real Pi: all kinds of entries in Pi's tree, the user's instructions, and quotes; and the
 * context after leaving a branch with a summary.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import path from "node:path";
import { hostsFor } from "../../scripts/hosts.mjs";
import { extension, root } from "../../scripts/paths.mjs";
import { blockOf, drillDownIds, statistics } from "../support/block.mjs";
import { filler, markersIn } from "../support/history.mjs";
import { aProject } from "../support/project.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../support/session-file.mjs").SessionFile} SessionFile */

/** @param {string} block @param {string} heading */
const section = (block, heading) => block.split(`### ${heading}\n`)[1]?.split("\n\n###")[0];

/**
 * Checks the request after a compaction: it begins with the block, which covers exactly the compacted messages, by the edges; then come
 * the kept messages, no tool result first.
 *
 * @param {Project} project
 * @param {SessionFile} session
 * @param {string[]} [edited] entries that the model saw in an edited form, in order
 */
function afterCompaction(project, session, edited = []) {
  const request = project.lastTurn;
  const block = blockOf(request);
  assert.ok(block, "the request begins with the block");
  assert.equal(block, session.lastCompaction.summary);
  const compacted = session.compactedBy();
  const under = project.inStore((store) => store.entriesUnder(session.id, drillDownIds(block)));
  // The edited text is a separate message, which no entry shows.
  assert.deepEqual(under.map((id) => (id.startsWith("message ") ? edited.shift() : id)), compacted);
  const { covers, missing } = statistics(block);
  assert.deepEqual({ covers, missing }, { covers: compacted.length, missing: "none" });
  assert.notEqual(request.messages[1]?.role, "tool");
  return { block, request, said: JSON.stringify(request.messages) };
}

/** The text between the fences of the summarizer's prompts. @param {Project} project */
const shown = (project) => project.summaryCalls.map(({ messages }) => messages[0].text.split(/^<history-\w+>$/m)[1] ?? "").join("\n");

test("the block covers compacted entries of any kind", async (t) => {
  const project = await aProject(t, { settings: { lcm: { leafChunkTokens: 4000 } } });
  const pi = project.startPi();

  await t.test("the user's instructions are answered in the block, even if all summaries exist", async () => {
    const history = project.history("focus");
    history.talk(60, { words: 60, name: "focus" });
    await project.resume(pi, history);
    project.script.summary = ({ index, messages }) =>
      messages[0].text.includes("asked for one thing in particular") ? { text: "Of the ledger: closed in May." } : { text: `Stretch ${index}\n${filler(`${index}`, 30)}` };
    await pi.prompt("one");
    await pi.request("compact");
    const calls = project.summaryCalls.length;
    await pi.prompt(`two ${filler("two", 400)}`);
    await pi.request("compact", { customInstructions: "what became of the ledger" });
    const fresh = project.summaryCalls.slice(calls);
    await pi.prompt("three");
    const { block } = afterCompaction(project, await project.session(pi));
    assert.equal(section(block, "Focus"), " Of the ledger: closed in May.\n Expand for details about: all of it");
    const asked = fresh.filter(({ messages }) => messages[0].text.includes("asked for one thing in particular"));
    assert.equal(asked.length, 1);
    assert.ok(asked[0].messages[0].text.includes("what became of the ledger"));
    const titles = [...block.matchAll(/^- s-[^"]*"(.*)"$/gm)].map(([, title]) => title);
    assert.deepEqual([...asked[0].messages[0].text.matchAll(/^\[[0-9a-f]{8} D0 [^\]]*\]\n(.*)$/gm)].map(([, title]) => title), titles);
    assert.equal(titles.length, drillDownIds(block).length);
    const session = await project.session(pi);
    const paid = fresh.reduce((sum, { raw }) => sum + Math.ceil(Buffer.byteLength(raw) / 4), 0);
    assert.equal(session.lastCompaction.usage.input, paid);
  });

  await t.test("the user's rules are quoted word for word, and only if they were said", async () => {
    const quotes = 'Quotes:\nrule: "Never touch the ledger by hand."\nrule: "Never touch the ledger by foot."\ntask: "write the importer"';
    const history = project.history("quotes");
    history.user("Never touch the\nledger by  hand. Then write the importer, please.");
    history.talk(130, { words: 60 });
    await project.resume(pi, history);
    project.script.summary = ({ index }) => ({ text: `Stretch ${index}\n${filler(`${index}`, 60)}\n\n${quotes}` });
    await pi.request("compact");
    await pi.prompt("Go on.");
    const session = await project.session(pi);
    const { block } = afterCompaction(project, session);
    assert.equal(section(block, "Constraints and Open Tasks"), '- rule: "Never touch the ledger by hand."\n- task: "write the importer"');
    const { summaries } = session.lastCompaction.details;
    assert.ok(summaries.some((/** @type {any} */ { depth, quotes: kept }) => depth > 0 && kept.length === 2), "they are carried upwards");
    assert.ok(!block.includes("by foot"));
  });

  await t.test("what the user ticks off or takes back stands no longer, and a later word about the rest stands beside it", async () => {
    const history = project.history("ticked");
    history.user("Never push to the main branch. Don't use lodash. TODO: fix the login bug. TODO: update the changelog.");
    history.talk(60, { words: 60 });
    history.user("The login bug is fixed. lodash is fine now. Changelog: check. The main branch must always be green.");
    history.talk(60, { words: 60 });
    await project.resume(pi, history);
    project.script.summary = ({ index }) => ({ text: `Stretch ${index}\n${filler(`${index}`, 60)}` });
    await pi.request("compact");
    await pi.prompt("Go on.");
    const { block } = afterCompaction(project, await project.session(pi));
    assert.deepEqual(section(block, "Constraints and Open Tasks")?.split("\n"), [
      '- rule: "The main branch must always be green."',
      '- rule: "lodash is fine now."',
      '- rule: "Never push to the main branch."',
      '- task: "TODO: update the changelog."; later: "Changelog: check."',
      '- replaced rule: "Don\'t use lodash."',
    ]);
  });

  await t.test("messages that Pi compacted itself are summarized like all others", async () => {
    const history = project.history("compacted");
    const behind = history.talk(20, { name: "behind" });
    const kept = history.user("kept0000x by Pi");
    history.entry("compaction", {
      summary: "Pi's own words of old.", firstKeptEntryId: kept, tokensBefore: 9000,
      details: { readFiles: ["old/read.ts"], modifiedFiles: ["old/changed.ts"] },
    });
    history.talk(20, { name: "late" });
    await project.resume(pi, history);
    await pi.request("compact");
    await pi.prompt("Go on.");
    const session = await project.session(pi);
    const { block, said } = afterCompaction(project, session);
    const read = shown(project);
    for (const marker of [...behind, "kept0000x", "late0000x"]) assert.ok(read.includes(marker), marker);
    assert.ok(!said.includes("Pi's own words of old."));
    assert.match(section(block, "Files"), /^<modified-files>\n old\/changed\.ts \(m-[0-9a-f]{10}\)\n<\/modified-files>\n<read-files>\n old\/read\.ts \(m-[0-9a-f]{10}\)\n<\/read-files>$/);
  });

  await t.test("edits, failed attempts, left branches and user commands are summarized as the model saw them", async () => {
    const history = project.history("edits");
    history.talk(10, { name: "edits" });
    const hidden = history.user("hidden0000x by an edit");
    const replaced = history.user("replaced0000x by an edit");
    history.entry("context_edit", { targetId: hidden, replacement: null });
    history.entry("context_edit", { targetId: replaced, replacement: { content: "instead0000x of it" } });
    const { message: answer } = history.entries.find(({ message }) => message?.role === "assistant");
    history.message({ ...answer, content: [{ type: "text", text: "aborted0000x half" }], stopReason: "aborted" });
    history.message({ ...answer, content: [], stopReason: "error", errorMessage: "overloaded" });
    history.user("again0000x");
    history.entry("branch_summary", { fromId: hidden, summary: "elsewhere0000x was tried", details: { readFiles: [], modifiedFiles: ["left.ts"] } });
    history.bash("echo shown0000x", "output0000x");
    history.bash("echo secret0000x", "private0000x", { excludeFromContext: true });
    history.talk(10, { name: "late" });
    await project.resume(pi, history);
    await pi.request("bash", { command: "echo kept0000x" });
    await pi.request("bash", { command: "echo unseen0000x", excludeFromContext: true });
    await pi.request("compact");
    await pi.prompt("Go on.");
    const session = await project.session(pi);
    const { block, said } = afterCompaction(project, session, [replaced]);
    const read = shown(project);
    for (const marker of ["instead0000x", "aborted0000x", "again0000x", "elsewhere0000x", "shown0000x", "output0000x"]) assert.ok(read.includes(marker), marker);
    for (const marker of ["hidden0000x", "replaced0000x", "secret0000x", "private0000x", "unseen0000x"]) {
      assert.ok(!read.includes(marker) && !said.includes(marker), marker);
    }
    assert.match(read, /assistant [^\n]*stopped or failed half way\]\naborted0000x half/);
    assert.ok(said.includes("kept0000x") !== read.includes("kept0000x"), "it is there once: raw or in a summary");
    assert.match(section(block, "Files"), /left\.ts/);
  });

  await t.test("a turn larger than the kept tail is split, and its beginning is in the block", async () => {
    project.configure({ compaction: { keepRecentTokens: 2500 } });
    const history = project.history("split");
    history.talk(20, { name: "split" });
    history.user("request0000x: read them all");
    for (let n = 0; n < 12; n++) {
      const call = `call_${n}`;
      history.assistant(`step000${n % 10}x`, [{ id: call, name: "read", arguments: { path: `src/file${n}.ts` } }]);
      history.toolResult(call, "read", filler(call, 300));
    }
    history.assistant("all0000x read");
    await project.resume(pi, history);
    await pi.request("compact");
    await pi.prompt("Go on.");
    const session = await project.session(pi);
    const { said, block } = afterCompaction(project, session);
    const [first] = session.keptBy();
    assert.equal(first.message.role, "assistant", "the turn was split");
    assert.ok(shown(project).includes("request0000x"));
    assert.match(section(block, "Where It Stands"), /^Last request, answered \(m-[0-9a-f]{10}\):\n> request0000x: read them all\n/);
    assert.equal(said.split("request0000x").length, 2, "it is there once");
    assert.ok(said.includes("all0000x"));
    assert.match(section(block, "Files"), /^<read-files>\n src\/file\d+\.ts \(m-[0-9a-f]{10}, deleted on disk since you saw it\)\n/);
  });
});

for (const host of hostsFor()) {
  test(`leaving a branch with a summary uses the extension's summary, ${host.name}`, async (t) => {
    const acting = path.join(root, "__test__", "support", "acting.mjs");
    const project = await aProject(t, { host, extensions: [extension, acting], script: { summary: ({ index }) => ({ text: `Stretch ${index}\nwhat was tried.` }) } });
    const pi = project.startPi();
    await pi.prompt("first");
    for (const n of [1, 2, 3]) await pi.prompt(`tried000${n}x ${filler(`${n}`, 300)}`);
    const before = project.turns.length;
    await pi.prompt("/act tree-summary first");
    assert.equal(project.turns.length, before, "Pi's own summary was not requested");
    assert.deepEqual(markersIn(shown(project)), ["tried0001x", "tried0002x", "tried0003x"]);
    await pi.prompt("elsewhere now");
    const session = await project.session(pi);
    const summary = session.branch().find(({ type }) => type === "branch_summary");
    assert.equal(summary.fromHook, true);
    assert.match(summary.summary, /^## Branch Left Behind .*\n.* covers 7 messages, none missing, 0 degraded\n/);
    assert.ok(project.lastTurn.messages.some(({ text }) => text.includes(summary.summary)), "the model got it");
    assert.equal(project.inStore((store) => store.entriesUnder(session.id, drillDownIds(summary.summary))).length, 7);
  });
}
