/**
 * A compaction on the real Pi: the summarizer's prompts, the model's context afterwards, and that nothing is left out or repeated, whatever
 * happens to the model calls.
 */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { blockOf, drillDownIds, statistics } from "../support/block.mjs";
import { copyWithoutEngine } from "../support/copies.mjs";
import { filler, markersIn } from "../support/history.mjs";
import { aProject, eventually, temporaryFolder } from "../support/project.mjs";
import { SessionFile, textIn } from "../support/session-file.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../../demo/model-server.mjs").Received} Received */

/**
 * Asserts that the block covers exactly the messages before the kept tail, each once and in order: by the store's edges, and by its own
 * words.
 * @param {Project} project
 * @param {SessionFile} session
 * @param {string} block
 */
function assertCovers(project, session, block) {
  const compacted = session.compactedBy();
  assert.ok(compacted.length > 0);
  assert.deepEqual(project.inStore((store) => store.entriesUnder(session.id, drillDownIds(block))), compacted);
  const { covers, missing } = statistics(block);
  assert.deepEqual({ covers, missing }, { covers: compacted.length, missing: "none" });
}

/**
 * The request's messages as role and text.
 * @param {Received} request
 */
const spoken = ({ messages }) => messages.map(({ role, text }) => ({ role, text }));

/** @param {any} entry of a session file */
const said = ({ message }) => ({ role: message.role, text: textIn(message) });

/** @param {Received} request */
function blockIn(request) {
  const block = blockOf(request);
  assert.ok(block, "the request begins with the block");
  return block;
}

/** Pi's settings for a session. */
const settings = ({ keepRecentTokens = 200, lcm = {} } = {}) => ({ compaction: { keepRecentTokens }, lcm: { leafChunkTokens: 4000, ...lcm } });

/** The numbers of summaries. @param {Project} project */
const written = (project) => project.inStore((store) => ({ leaves: store.count("summaries WHERE depth = 0"), condensed: store.count("summaries WHERE depth > 0") }));

test("a Pi compacts one session after the other", async (t) => {
  // Without a cache, a summarizer's prompt has everything it gets.
  const project = await aProject(t, { cost: { input: 1, output: 4, cacheRead: 0, cacheWrite: 0 }, settings: settings({ keepRecentTokens: 4000, lcm: { background: false } }) });
  /** @param {string} name of the session, and of what is said in it @param {number} exchanges */
  const talk = (name, exchanges, words = 60) => {
    const history = project.history(name);
    history.talk(exchanges, { words, name });
    return history;
  };
  const history = project.history("whole");
  history.talk(30, { name: "early" });
  history.assistant("", [{ id: "call_1", name: "read", arguments: { path: "src/ledger.ts" } }]);
  const ledger = `head0000x\n${filler("file", 2000)}\nmiddle0000x\n${filler("more", 2000)}`;
  history.toolResult("call_1", "read", ledger);
  mkdirSync(path.join(project.cwd, "src"));
  writeFileSync(path.join(project.cwd, "src", "ledger.ts"), ledger);
  history.abandoned(() => history.talk(5, { name: "aside" }));
  history.bash("echo shown0000x", "shown0001x");
  history.bash("echo hidden0000x", "hidden0001x", { excludeFromContext: true });
  history.talk(60, { name: "late" });
  const file = history.write(project.sessionDir);
  const pi = project.startPi(["--session", file]);

  await t.test("a compaction replaces the history by a block", async (t) => {
    await pi.prompt("What comes before the compaction?");
    const answer = await pi.request("compact", { customInstructions: "mind the ledger" });
    await pi.prompt("What comes after it?");
    const session = await project.session(pi);
    const [before, after] = project.turns;
    const block = blockIn(after);

    await t.test("the summarizer got every visible message before the kept tail, and no other", () => {
      const shown = markersIn(project.summaryCalls.map(({ messages }) => messages));
      const compacted = session.compactedBy().map((id) => session.entry(id));
      // Only head and tail of the file are shown.
      const expected = markersIn(compacted).filter((marker) => marker !== "middle0000x");
      assert.deepEqual(shown, expected);
      assert.ok(expected.includes("head0000x") && expected.includes("shown0001x"));
      const kept = markersIn(session.keptBy());
      assert.ok(kept.length > 0);
      for (const left of ["aside0000x", "hidden0000x", "hidden0001x", ...kept]) assert.ok(!shown.includes(left), left);
    });

    await t.test("the user's instructions are in every prompt", () => {
      for (const call of project.summaryCalls) assert.match(call.messages[0].text, /mind the ledger/);
    });

    await t.test("the next request has only the system prompt, the block and the kept tail", () => {
      const [first, ...rest] = spoken(after);
      assert.equal(first.role, "user");
      const kept = session.keptBy().map(said);
      assert.ok(kept.length > 1);
      assert.deepEqual(rest, [...kept, { role: "user", text: "What comes after it?" }]);
      assert.equal(after.system, before.system);
      assert.match(after.system, /<lcm>\n[^<]+\n<\/lcm>/);
    });

    await t.test("the block covers each message before the kept tail exactly once, by the edges", () => {
      assertCovers(project, session, block);
      assert.equal(statistics(block).degraded, 0);
    });

    await t.test("Pi stored the block and the costs of all calls", () => {
      assert.equal(session.lastCompaction.summary, block);
      assert.equal(answer.summary, block);
      assert.equal(session.lastCompaction.fromHook, true);
      const paid = project.summaryCalls.reduce((sum, { raw }) => sum + Math.ceil(Buffer.byteLength(raw) / 4), 0);
      assert.equal(session.lastCompaction.usage.input, paid);
    });

    await t.test("the user was told the cost once", async () => {
      await pi.waitFor(() => pi.ui("notify").length > 0);
      const notices = pi.ui("notify").map(({ message }) => message);
      assert.equal(notices.length, 1);
      const { covers, summaries } = statistics(block);
      const calls = project.summaryCalls.length;
      const numbers = new RegExp(`^LCM: ${covers} messages in ${summaries} summaries, ${summaries} new, [\\d,]+ → about [\\d,]+ tokens, ${calls} model calls, `);
      assert.match(notices[0], numbers);
    });
  });

  await t.test("a long history is condensed, and later compactions build on the earlier ones", async (t) => {
    // With more room the block would show the leaves themselves.
    project.configure(settings({ lcm: { maxSummaryTokens: 1000 } }));
    await project.resume(pi, talk("long", 130));
    // A summary's sources are identified by its prompt, so it repeats none of their markers. All are of one size, whichever model call
    // comes first: it decides how many of them the block has room for.
    project.script.summary = ({ index }) => ({ text: `Stretch ${index}\n${filler("stretch", 80)}` });
    const before = written(project);
    await pi.prompt("one");
    await pi.request("compact");
    const first = await project.session(pi);
    const firstBlock = first.lastCompaction.summary;

    await t.test("summaries that do not fit together are condensed", () => {
      const { leaves, condensed } = written(project);
      assert.ok(leaves - before.leaves > 6);
      assert.ok(condensed > before.condensed);
      assert.equal(statistics(firstBlock).depth, 1);
      assert.match(firstBlock, /### High-Level Summary\n\[s-[^]+### Recent Activity\n\[s-/);
      assertCovers(project, first, firstBlock);
    });

    await t.test("the next compaction only summarizes new messages", async () => {
      const before = project.summaryCalls.length;
      for (const n of [1, 2, 3, 4, 5, 6]) await pi.prompt(`fresh000${n}x ${filler(`fresh ${n}`, 150)}`);
      await pi.request("compact");
      const session = await project.session(pi);
      const asked = project.summaryCalls.slice(before);
      assert.equal(asked.filter(({ messages }) => !messages[0].text.startsWith("These are summaries")).length, 1);
      // The messages just before may be named for orientation; the stretch itself is inside the fence.
      const stretch = asked[0].messages[0].text.split(/^<history-/m)[1];
      assert.deepEqual(markersIn(stretch).filter((marker) => marker.startsWith("long")), []);
      assert.ok(markersIn(stretch).includes("fresh0001x"));
      assertCovers(project, session, session.lastCompaction.summary);
      assert.ok(session.compactedBy().length > first.compactedBy().length);
    });
  });

  await t.test("when every model call fails the block still covers everything", async (t) => {
    project.configure(settings({ lcm: { modelRetries: 1 } }));
    const history = talk("fire", 120);
    history.user("never touch ledger0000x again");
    history.talk(3, { name: "tail" });
    await project.resume(pi, history);
    project.script.summary = () => ({ status: 500, errorBody: "the model is on fire" });
    await pi.request("compact");
    await pi.prompt("Go on.");
    const session = await project.session(pi);
    const block = blockIn(project.lastTurn);

    await t.test("with marked extracts that are smaller than their sources", () => {
      assertCovers(project, session, block);
      const ids = drillDownIds(block);
      assert.equal(statistics(block).degraded, ids.length);
      const compacted = session.compactedBy().map((id) => JSON.stringify(session.entry(id).message.content)).join("");
      assert.ok(block.length < compacted.length / 2, `${block.length} of ${compacted.length}`);
      for (const id of ids) {
        const [{ state, model }] = project.inStore((store) => store.rows("SELECT state, model FROM summaries WHERE id = ?", store.summary(id)));
        assert.deepEqual({ state, model }, { state: "degraded", model: null });
      }
    });

    await t.test("the provider was not called again and again", () => {
      assert.ok(project.summaryCalls.length > 0);
      assert.ok(project.summaryCalls.length <= 10, `${project.summaryCalls.length} calls`);
    });

    await t.test("the user was told once", async () => {
      await pi.waitFor(() => pi.ui("notify").length > 0);
      const notices = pi.ui("notify");
      assert.equal(notices.length, 1);
      assert.match(notices[0].message, /of them without a model, to be replaced later \(.*the model is on fire\)$/);
      assert.equal(notices[0].notifyType, "warning");
    });

    await t.test("when the model is back, the extracts are replaced and still nothing is missing", async () => {
      project.script.summary = ({ index }) => ({ text: `Stretch ${index}\n${filler(`stretch ${index}`, 20)}` });
      await pi.prompt(`${filler("later", 300)}`);
      await pi.request("compact");
      const healed = await project.session(pi);
      assertCovers(project, healed, healed.lastCompaction.summary);
      assert.equal(statistics(healed.lastCompaction.summary).degraded, 0);
    });
  });

  await t.test("an abort stops a compaction, keeps finished summaries, and the session continues", async (t) => {
    const answered = 2;
    project.configure(settings());
    await project.resume(pi, talk("stopped", 100));
    project.script.summary = ({ index }) => (project.summaryCalls.length <= answered ? { text: `Finished ${index}\nIn time.` } : { hang: true });
    const before = written(project);
    await pi.prompt("before");
    const { entries } = await project.session(pi);
    const compacting = assert.rejects(pi.request("compact"), /cancelled/i);
    await eventually(() => {
      assert.equal(written(project).leaves, before.leaves + answered);
      assert.ok(project.summaryCalls.length > answered);
    });
    await pi.request("abort");
    await compacting;

    await t.test("the running calls are dropped and no new one starts", async () => {
      await eventually(() => assert.ok(project.summaryCalls.slice(answered).every(({ abandoned }) => abandoned)));
      assert.ok(project.summaryCalls.length <= answered + 4);
    });

    await t.test("the session is unchanged and continues", async () => {
      assert.deepEqual((await project.session(pi)).entries, entries);
      await pi.prompt("after");
      assert.equal(spoken(project.lastTurn).at(-1)?.text, "after");
      assert.equal(blockOf(project.lastTurn), undefined);
    });

    await t.test("the finished summaries are complete, and the next compaction uses them", async () => {
      assert.deepEqual(project.inStore((store) => store.brokenSummaries()), []);
      project.script.summary = ({ index }) => ({ text: `Second try ${index}\n${filler(`try ${index}`, 40)}` });
      const calls = project.summaryCalls.length;
      await pi.request("compact");
      const session = await project.session(pi);
      assertCovers(project, session, session.lastCompaction.summary);
      const { leaves, condensed } = written(project);
      assert.equal(project.summaryCalls.length - calls, leaves - before.leaves - answered + condensed - before.condensed);
    });
  });

  await t.test("an overflowing context is compacted, and the turn is sent again", async (t) => {
    const errorBody = "This model's maximum context length is 9000 tokens, however you requested 9001.";
    // More than Pi's own prompt entries, which count as kept too: otherwise the question itself would be compacted.
    project.configure(settings({ keepRecentTokens: 4000 }));
    await project.resume(pi, talk("full", 120, 30));
    project.script.turns = [{ status: 400, errorBody }, { text: "Now it fits." }];
    await pi.prompt("Too much?");
    const session = await project.session(pi);
    assertCovers(project, session, blockIn(project.lastTurn));
    assert.equal(spoken(project.lastTurn).at(-1)?.text, "Too much?");
    assert.equal(textIn(session.entries.at(-1).message), "Now it fits.");
  });

  await t.test("a short session is compacted by Pi itself", async (t) => {
    project.configure(settings());
    await project.resume(pi, talk("short", 4, 100));
    project.script.turns = [{ text: "Pi's own summary." }];
    const { summary } = await pi.request("compact");
    assert.match(summary, /Pi's own summary\./);
    assert.equal(project.summaryCalls.length, 0);
    assert.equal((await project.session(pi)).lastCompaction.fromHook ?? false, false);
    assert.deepEqual(pi.ui("notify"), []);
  });

  let again = pi;
  await t.test("a Pi killed during a compaction leaves complete summaries, and the next one continues from them", async (t) => {
    const killed = await project.resume(pi, talk("killed", 80));
    const before = written(project);
    project.script.summary = () => (project.summaryCalls.length === 1 ? { text: "Finished\nIn time." } : { hang: true });
    const compacting = assert.rejects(pi.request("compact"), /SIGKILL/);
    await eventually(() => assert.equal(written(project).leaves, before.leaves + 1));
    await pi.kill("SIGKILL");
    await compacting;
    assert.deepEqual(project.inStore((store) => store.brokenSummaries()), []);

    project.script.summary = undefined;
    const calls = project.summaryCalls.length;
    again = project.startPi(["--session", killed]);
    await again.request("compact");
    const session = await project.session(again);
    assertCovers(project, session, session.lastCompaction.summary);
    assert.match(session.lastCompaction.summary, /Finished\n In time\./);
    assert.equal(project.summaryCalls.length - calls, drillDownIds(session.lastCompaction.summary).length - 1);
  });

  await t.test("a later start shows the same block without new calls", async () => {
    const calls = project.summaryCalls.length;
    await again.request("switch_session", { sessionPath: file });
    await again.prompt("And now?");
    assert.equal(blockIn(project.lastTurn), new SessionFile(file).lastCompaction.summary);
    assert.equal(project.summaryCalls.length, calls);
  });
});

test("every prompt for a summary has the standing instructions, those of a project only if it is trusted, and the user's own words", async (t) => {
  const project = await aProject(t, { settings: settings({ lcm: { compactInstructions: "Keep ticket numbers." } }) });
  writeFileSync(path.join(project.cwd, "AGENTS.md"), "# Work\n\n## Compact Instructions\nKeep all ports.\n\n## Tests\nBe quick.\n");
  const prompts = path.join(project.agentDir, "lcm-prompts");
  mkdirSync(prompts);
  for (const [n, flag] of ["--approve", "--no-approve"].entries()) {
    const isWhole = n === 1;
    writeFileSync(path.join(prompts, "leaf.md"), `Write a haiku. {{words}} {{before}} {{focus}} {{fence}} ${isWhole ? "{{history}}" : ""}`);
    const pi = project.startPi([flag]);
    const history = project.history(`019a4f00-0000-7000-8000-00000000000${n}`);
    history.talk(150, { words: 60, name: flag.slice(2) });
    await project.resume(pi, history);
    await pi.request("compact");
    const asked = project.summaryCalls.map(({ messages }) => messages.at(-1)?.text ?? "");
    assert.ok(asked.length > 2);
    for (const prompt of asked) {
      const wishes = ["Keep ticket numbers.", "Keep all ports.", "Be quick."].filter((wish) => prompt.includes(wish));
      assert.deepEqual(wishes, flag === "--approve" ? ["Keep ticket numbers.", "Keep all ports."] : ["Keep ticket numbers."]);
    }
    assert.equal(asked[0].startsWith("Write a haiku."), isWhole);
    const lacks = pi.ui("notify").filter(({ message }) => message.includes("leaf.md lacks {{history}}; the built-in prompt is used"));
    assert.equal(lacks.length, isWhole ? 0 : 1);
    await pi.stop();
  }
});

test("the extension answers Pi's automatic compaction too, in print mode", async (t) => {
  const project = await aProject(t, { contextWindow: 64_000 });
  const history = project.history();
  history.talk(100, { words: 60, contextTokens: 60_000 });
  const file = history.write(project.sessionDir);
  const { code, stdout } = await project.runPi(["--session", file, "-p", "Go on."]);
  assert.deepEqual({ code, stdout }, { code: 0, stdout: "Understood.\n" });
  const session = new SessionFile(file);
  assertCovers(project, session, blockIn(project.lastTurn));
  const [first, ...rest] = spoken(project.lastTurn);
  assert.ok(first.text.includes("<summary>"));
  assert.deepEqual(rest, [...session.keptBy().map(said), { role: "user", text: "Go on." }]);
});

test("without its engine the extension leaves compaction to Pi, and says why", async (t) => {
  const project = await aProject(t, { script: { turns: [{ text: "Pi's own summary." }, { text: "Pi's own summary." }] } });
  const history = project.history();
  history.talk(40);
  const pi = project.startPi(["--session", history.write(project.sessionDir)], copyWithoutEngine(temporaryFolder(t)));
  const { summary } = await pi.request("compact");
  assert.match(summary, /Pi's own summary\./);
  const notices = pi.ui("notify");
  assert.equal(notices.length, 1);
  assert.match(notices[0].message, /\.node.*missing.*npm run build/);
  assert.equal(notices[0].notifyType, "error");
});
