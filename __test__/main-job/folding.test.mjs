/**
 * Folds on the real Pi: at the fold point, the extension compacts by itself between two turns. It uses ready summaries, so nothing waits.
 *
 * The sessions of a project have the same texts: the first one's summaries are ready in all of them.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hosts, hostsFor } from "../../scripts/hosts.mjs";
import { asked } from "../commands/asking.mjs";
import { assertAgreement } from "../support/agreement.mjs";
import { settled } from "../support/ahead.mjs";
import { blockOf, drillDownIds, statistics } from "../support/block.mjs";
import { aProject, eventually } from "../support/project.mjs";
import { assertGrowing } from "../support/requests.mjs";
import { SessionFile, textIn } from "../support/session-file.mjs";
import { noTerminal } from "../support/terminal.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */

/** Pi compacts beyond 200,000 - 10,000 tokens. */
const CONTEXT = { contextWindow: 200_000, compaction: { reserveTokens: 10_000, keepRecentTokens: 1_500 } };
/** Without a cache each request pays for the whole context, and summaries cost next to nothing: a fold pays at once. */
const UNCACHED = { input: 1, output: 4, cacheRead: 0, cacheWrite: 0 };
const SMALL = { id: "demo-small", cost: { input: 0.01, output: 0.04, cacheRead: 0, cacheWrite: 0 } };
const LEAN = { compactionModels: ["demo/demo-small"], leafChunkTokens: 2000 };

/**
 * @param {import("node:test").TestContext} t
 * @param {import("../../scripts/hosts.mjs").Host} host
 */
function aLongProject(t, host) {
  const { contextWindow, compaction } = CONTEXT;
  return aProject(t, { host, contextWindow, cost: UNCACHED, models: [SMALL], settings: { compaction, lcm: LEAN } });
}

/** A session with long texts and a tail. @param {Project} project @param {string} id @param {string} [name] the prefix of its texts */
function longSession(project, id, name = "mark") {
  const history = project.history(id);
  history.talk(3, { words: 5_000, name: `long ${name}` });
  history.talk(33, { words: 100, name });
  return history;
}

/** @param {SessionFile} session */
const compactions = (session) => session.entries.filter(({ type }) => type === "compaction");

/** The user's messages on the session's branch. @param {SessionFile} session */
const prompts = (session) => session.branch().filter(({ message }) => message?.role === "user").map(({ message }) => message.content[0].text);

/** @param {string} command */
const bash = (command) => ({ text: "Let me look.", toolCalls: [{ name: "bash", arguments: { command } }] });

/** A command that runs until it is told to end. */
const lengthy = bash("until [ -e go ]; do sleep 0.05; done; rm go; echo slowly");

/** @param {Project} project */
const endIt = (project) => writeFileSync(path.join(project.cwd, "go"), "");

/** Waits until the needed summaries are ready. @param {Project} project */
async function ready(project) {
  await eventually(() => assert.ok(project.summaryCalls.length >= 5));
  return settled(project);
}

/**
 * Asserts that the block covers all compacted messages, each once.
 *
 * @param {Project} project
 * @param {SessionFile} session
 * @param {string} block
 */
function assertCovers(project, session, block) {
  assert.equal(statistics(block).missing, "none");
  assert.deepEqual(project.inStore((store) => store.entriesUnder(session.id, drillDownIds(block))), session.compactedBy());
}

for (const host of hosts) {
  test(`/compact folds what Pi keeps, at the end of the next turn, on ${host.name}`, async (t) => {
    const project = await aProject(t, { host, contextWindow: 200_000, settings: { compaction: { reserveTokens: 10_000, keepRecentTokens: 20_000 } } });
    const history = project.history("small");
    history.talk(20, { words: 150 });
    const pi = project.startPi(["--session", history.write(project.sessionDir)]);
    await pi.waitFor(() => pi.status("lcm")?.startsWith("LCM: 40 msgs"));
    await pi.prompt("/lcm compact --dry-run");
    assert.match(pi.ui("notify").at(-1)?.message ?? "", /\n\nPi refuses it now: since the last one there are about [\d,]+ tokens, and it keeps 20,000 /);
    await assert.rejects(pi.request("compact"), /session too small/);
    assert.match(pi.ui("notify").at(-1)?.message ?? "", /Summaries of what is older .* When a turn ends after that, they replace it/);
    await eventually(() => assert.ok(project.summaryCalls.length > 0, "summaries are written"));
    await settled(project);
    await pi.prompt("Where are we?");
    await pi.prompt("And now?");
    const session = await project.session(pi);
    const [compaction, ...others] = compactions(session);
    assert.ok(compaction && others.length === 0, `${others.length + 1} compactions`);
    assert.equal(blockOf(project.turns[project.turns.length - 1]), compaction.summary);
    assertCovers(project, session, compaction.summary);

    // So soon after, another would free next to nothing. The answer comes with the summaries that it needs.
    await assert.rejects(pi.request("compact"), /session too small/);
    const isLeftOut = () => pi.ui("notify").some(({ message }) => /: nothing was compacted, as it would free fewer than 4,000 tokens$/.test(message));
    for (let left = 5; left > 0 && !isLeftOut(); left--) {
      await settled(project);
      await pi.prompt("And then?");
    }
    assert.ok(isLeftOut());
    assert.equal(compactions(await project.session(pi)).length, 1);
    await pi.stop();
  });
}

test("/compact folds what Pi keeps even if no model answers, as any compaction does", async (t) => {
  const project = await aProject(t, { contextWindow: 200_000, settings: { compaction: { reserveTokens: 10_000, keepRecentTokens: 20_000 } } });
  const history = project.history("unanswered");
  history.talk(20, { words: 150 });
  const pi = project.startPi(["--session", history.write(project.sessionDir)]);
  await pi.waitFor(() => pi.status("lcm")?.startsWith("LCM: 40 msgs"));
  project.script.summary = () => ({ status: 400, errorBody: "no such model" });
  await assert.rejects(pi.request("compact"), /session too small/);
  await eventually(() => assert.ok(project.summaryCalls.length > 0, "summaries are tried"));
  await settled(project);
  await pi.prompt("Where are we?");
  const [compaction] = compactions(await project.session(pi));
  assert.match(compaction?.summary ?? "", /mark/);
  await pi.stop();
});

for (const host of hosts) {
  test(`/lcm compact while the agent works says that it waits, on ${host.name}`, async (t) => {
    const project = await aProject(t, { host });
    const pi = project.startPi();
    project.script.turns = [lengthy, { text: "Done." }];
    const run = pi.prompt("Take your time.");
    await pi.waitFor(() => pi.events.some(({ type }) => type === "tool_execution_start"));
    const compaction = pi.request("prompt", { message: "/lcm compact" }).catch(() => {});
    await eventually(() => assert.equal(pi.ui("notify").at(-1)?.message, "The agent is working: the compaction follows when its run ends."));
    endIt(project);
    await run;
    await compaction;
    await pi.stop();
  });

  test(`a fold at the end of print mode waits for its summaries, on ${host.name}`, async (t) => {
    const project = await aLongProject(t, host);
    const history = longSession(project, "print");
    const file = history.write(project.sessionDir);
    await project.runPi(["--session", file, "-p", "Where are we?"]);
    const session = new SessionFile(file);
    assert.equal(compactions(session).length, 1);
    await project.runPi(["--session", file, "-p", "And now?"]);
    assert.equal(blockOf(project.turns[project.turns.length - 1]), compactions(session)[0].summary);
    assert.equal(compactions(new SessionFile(file)).length, 1);
  });
}

for (const host of hostsFor()) {
  test(`on ${host.name} the history is folded when it pays`, async (t) => {
    const project = await aLongProject(t, host);
    const pi = project.startPi(["--session", longSession(project, "first").write(project.sessionDir)]);

    await t.test("once, without an interruption and without a model call", async () => {
      await pi.waitFor(() => pi.status("lcm")?.startsWith("LCM: 72 msgs"));
      await pi.prompt("Where are we?");
      const written = await ready(project);
      assert.equal(compactions(await project.session(pi)).length, 0, "nothing is compacted before it is ready");

      project.script.turns = [bash("echo one"), bash("echo two"), { text: "Both are there." }];
      const from = project.turns.length;
      await pi.prompt("Look twice.");
      await pi.prompt("And now?");
      assert.equal(project.summaryCalls.length, written, "no summary is requested");
      const session = await project.session(pi);
      const [compaction, ...others] = compactions(session);
      assert.ok(compaction && others.length === 0, `${others.length + 1} compactions`);
      assert.equal(compaction.fromHook, true);

      const requests = project.turns.slice(from);
      assert.equal(requests.length, 4);
      const blocks = requests.map(blockOf);
      assert.deepEqual(blocks.map(Boolean), [false, true, true, true]);
      assert.equal(blocks.at(-1), compaction.summary);
      assertCovers(project, session, compaction.summary);
      assertGrowing(requests.slice(1));
      const results = requests[2].messages.filter(({ role }) => role === "tool").map(({ text }) => text.trim());
      assert.deepEqual(results, ["one", "two"]);
      const chain = session.branch().map(({ type, message }) => message?.role ?? type).filter((what) => what !== "system");
      assert.deepEqual(chain.slice(-7), ["toolResult", "compaction", "assistant", "toolResult", "assistant", "user", "assistant"]);
      const notices = pi.ui("notify").map(({ message }) => message).filter((message) => message.startsWith("LCM: "));
      assert.equal(notices.length, 1, notices.join("\n"));
      const said = /^LCM: folded: \d+ messages in \d+ summaries, \d+ new, ([\d,]+) → about ([\d,]+) tokens$/.exec(notices[0]) ?? assert.fail(notices[0]);
      await pi.request("prompt", { message: "/lcm context" });
      const shown = await eventually(() => /: ([\d,]+) tokens became ([\d,]+), /.exec(pi.ui("notify").at(-1)?.message ?? "") ?? assert.fail());
      const [[before, after], [counted, left]] = [said, shown].map((sizes) => sizes.slice(1).map((size) => Number(size.replace(",", ""))));
      assert.equal(before, counted);
      // The scripted server counts the characters of the JSON; an estimate is about its texts.
      assert.ok(Math.abs(after - left) < left / 4, `${after} and ${left}`);
      await eventually(() => assertAgreement(project));
      await eventually(() => assert.match(pi.status("lcm") ?? "", /^LCM: \d+ msgs \| \d+ summaries/));
      await pi.request("prompt", { message: "/lcm doctor" });
      await eventually(() => assert.match(pi.ui("notify").at(-1)?.message, /^Everything is in order\.$/m));
    });

    await t.test("messages sent meanwhile arrive, once and in order", async () => {
      await project.resume(pi, longSession(project, "second"));
      await pi.waitFor(() => pi.status("lcm")?.startsWith("LCM: 72 msgs"));
      project.script.turns = [lengthy, { text: "Done." }];
      const run = pi.prompt("Take your time.");
      await pi.waitFor(() => pi.events.some(({ type }) => type === "tool_execution_start"));
      await pi.request("steer", { message: "Steered." });
      await pi.request("follow_up", { message: "Followed up." });
      endIt(project);
      const isDone = (/** @type {any} */ { type, message }) => type === "message_end" && textIn(message) === "Understood.";
      await pi.waitFor(() => pi.events.filter(isDone).length === 1);
      await pi.request("prompt", { message: "At once.", streamingBehavior: "followUp" });
      await run;
      await eventually(async () => {
        assert.deepEqual(prompts(await project.session(pi)).slice(-4), ["Take your time.", "Steered.", "Followed up.", "At once."]);
      });
      await eventually(async () => assert.equal((await pi.request("get_state")).isStreaming, false));
      const session = await project.session(pi);
      const results = session.branch().filter(({ message }) => message?.role === "toolResult").map(({ message }) => message.content[0].text.trim());
      assert.deepEqual(results, ["slowly"]);
      await eventually(() => assertAgreement(project));
      await pi.stop();
    });

    await t.test("in print mode", async () => {
      const history = longSession(project, "third");
      const stored = () => eventually(() => assert.ok(project.inStore((store) => store.entries(history.id)).length > history.entries.length));
      project.script.turns = [async () => (await stored(), bash("echo there")), { text: "There." }, { text: "Bye." }];
      const file = history.write(project.sessionDir);
      await project.runPi(["--session", file, "-p", "Look.", "And now?"]);
      const session = new SessionFile(file);
      assert.deepEqual(prompts(session).slice(-2), ["Look.", "And now?"]);
      assert.equal(compactions(session).length, 1);
      assert.equal(blockOf(project.lastTurn), session.lastCompaction.summary);
      assertCovers(project, session, session.lastCompaction.summary);
    });

    await t.test("in the TUI, while the user types", { skip: noTerminal }, async () => {
      const file = longSession(project, "fourth").write(project.sessionDir);
      const terminal = project.openTerminal(["--session", file]);
      await terminal.waitFor((screen) => screen.includes("LCM: 72 msgs"), "the footer");
      project.script.turns = [lengthy, { text: "Slow but done." }];
      await terminal.send("Take your time.");
      await terminal.waitFor((screen) => screen.includes("until ["), "the tool");
      terminal.type("half a sentence");
      await terminal.waitFor((screen) => screen.includes("half a sentence"), "what is typed");
      await settled(project);
      endIt(project);
      await terminal.waitFor((screen) => screen.includes("Slow but done."), "the end of the run");
      await terminal.waitFor((screen) => screen.includes("folded: "), "what it came to");
      await terminal.waitFor((screen) => screen.includes("half a sentence"), "what was typed is in the editor");
      terminal.press("enter");
      await eventually(() => assert.equal(project.lastTurn.messages.at(-1)?.text, "half a sentence"));
      const session = new SessionFile(file);
      assert.equal(blockOf(project.lastTurn), session.lastCompaction.summary);
      assert.equal(compactions(session).length, 1);
    });
  });
}

test("a long prompt after a fold does not count as what the fold has left", async (t) => {
  const project = await aLongProject(t, hosts[hosts.length - 1]);
  const pi = project.startPi(["--session", longSession(project, "pasted").write(project.sessionDir)]);
  await pi.waitFor(() => pi.status("lcm")?.startsWith("LCM: 72 msgs"));
  await pi.prompt("Where are we?");
  await ready(project);
  await pi.prompt("And now?");
  assert.equal(compactions(await project.session(pi)).length, 1);
  await pi.prompt(`Look at this: ${"a long line of a log\n".repeat(5_000)}`);
  const { folds, foldPoint } = await asked(pi, "/lcm context");
  assert.ok(folds[0].after > 0 && folds[0].after < 20_000, JSON.stringify(folds));
  assert.equal(foldPoint.carried, folds[0].after);
});

test("nothing is folded if that is unwanted or nothing is ready", async (t) => {
  const project = await aLongProject(t, hosts[hosts.length - 1]);
  const pi = project.startPi(["--session", longSession(project, "late", "late").write(project.sessionDir)]);
  const compacted = async () => compactions(await project.session(pi)).length;

  await t.test("the agent does not wait for a slow model", async () => {
    await pi.waitFor(() => pi.status("lcm")?.startsWith("LCM: 72 msgs"));
    project.script.summary = () => ({ hang: true });
    const underWay = () => eventually(() => assert.ok(project.summaryCalls.length > 0, "summaries are being written"));
    project.script.turns = [bash("echo one"), async () => (await underWay(), bash("echo two")), { text: "Well." }];
    await pi.prompt("Look twice.");
    assert.equal(project.turns.length, 3);
    assert.equal(await compacted(), 0);
  });

  for (const lcm of [{ context: "full" }, { background: false }]) {
    const shown = JSON.stringify(lcm);
    await t.test(`with ${shown} the extension starts nothing`, async () => {
      project.configure({ lcm: { ...LEAN, ...lcm } });
      await project.resume(pi, longSession(project, shown.replace(/\W+/g, "-"), "own"));
      await pi.waitFor(() => pi.status("lcm")?.startsWith("LCM: 72 msgs"));
      await pi.prompt("Where are we?");
      await pi.prompt("And now?");
      assert.equal(project.summaryCalls.length, 0);
      assert.equal(await compacted(), 0);
      const { cost, foldPoint } = await asked(pi, "/lcm context");
      assert.ok(cost.requests === 2 && cost.paid > cost.withPiAlone, "the tools count against the extension");
      assert.equal(foldPoint, null);
    });
  }
});

test("a summary that no model manages does not hold up a fold", async (t) => {
  const project = await aLongProject(t, hosts[hosts.length - 1]);
  const pi = project.startPi(["--session", longSession(project, "held").write(project.sessionDir)]);
  await pi.waitFor(() => pi.status("lcm")?.startsWith("LCM: 72 msgs"));
  project.script.summary = ({ messages }) => ({ text: messages[messages.length - 1].text.slice(-4000) });
  const folded = async () => compactions(await project.session(pi));
  for (let left = 6; left > 0 && (await folded()).length === 0; left--) {
    await pi.prompt("Where are we?");
    await settled(project);
  }
  const [compaction] = await folded();
  assert.match(compaction?.summary ?? "", /\b[1-9]\d* degraded/);
  await pi.stop();
});

test("a compaction by Pi keeps as much as a fold, and with context: full as much as Pi", async (t) => {
  const compaction = { keepRecentTokens: 20_000 };
  const project = await aProject(t, { settings: { compaction } });
  const pi = project.startPi();
  for (const [context, least, most] of /** @type {[string, number, number][]} */ ([["lean", 4_000, 6_000], ["full", 20_000, 22_000]])) {
    project.configure({ compaction, lcm: { context, background: false } });
    const history = project.history(context);
    history.talk(30, { words: 400, name: context });
    await project.resume(pi, history);
    await pi.request("compact");
    await pi.prompt("And now?");
    const block = blockOf(project.lastTurn);
    assert.ok(block && statistics(block).missing === "none");
    const raw = project.lastTurn.messages.filter(({ text }) => !text.includes(block));
    const tokens = raw.reduce((sum, { text }) => sum + text.length / 4, 0);
    assert.ok(tokens >= least && tokens < most, `${tokens} tokens are raw with ${context}`);
  }
});
