/**
 * Early compaction on the real Pi: once the context is fuller than `compactAt` the extension compacts by itself, between two
 * turns where Pi can do that, after the run elsewhere; from what is ready, so that nobody waits.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hosts, hostsFor } from "../../scripts/hosts.mjs";
import { assertAgreement } from "../support/agreement.mjs";
import { settled } from "../support/ahead.mjs";
import { blockOf, drillDownIds, statistics } from "../support/block.mjs";
import { aProject, eventually } from "../support/project.mjs";
import { assertGrowing } from "../support/requests.mjs";
import { noTerminal } from "../support/terminal.mjs";

/** @typedef {Awaited<ReturnType<typeof aProject>>} Project */
/** @typedef {import("../support/session-file.mjs").SessionFile} SessionFile */

/** Pi compacts beyond 90,000 - 10,000 tokens, the extension beyond 30,000. */
const PI = { contextWindow: 90_000, settings: { compaction: { reserveTokens: 10_000, keepRecentTokens: 3_000 } } };

/**
 * A session whose context is beyond `compactAt`.
 * @param {import("node:test").TestContext} t
 * @param {import("../../scripts/hosts.mjs").Host} host
 * @param {object} [lcm] more settings
 */
async function longSession(t, host, lcm = {}) {
  const own = { compactAt: { "demo/demo-model": 30_000, "*": "off" }, compactionModels: ["demo/demo-model"], ...lcm };
  const project = await aProject(t, { host, ...PI, settings: { ...PI.settings, lcm: own } });
  const history = project.history();
  history.talk(95, { words: 100 });
  return { project, file: history.write(project.sessionDir) };
}

/** Does this Pi take entries between two turns? @param {import("../../scripts/hosts.mjs").Host} host */
const isBetweenTurns = ({ version }) => version !== "0.74.2";

/** @param {SessionFile} session */
const compactions = (session) => session.entries.filter(({ type }) => type === "compaction");

/** @param {string} command */
const bash = (command) => ({ text: "Let me look.", toolCalls: [{ name: "bash", arguments: { command } }] });

/** Waits until what is needed is summarised. @param {Project} project */
async function ready(project) {
  await eventually(() => assert.ok(project.summaryCalls.length >= 5));
  return settled(project);
}

/** The block stands for all that was compacted, each message once. @param {Project} project @param {SessionFile} session @param {string} block */
function assertCovers(project, session, block) {
  assert.equal(statistics(block).missing, "none");
  assert.deepEqual(project.inStore((store) => store.entriesUnder(session.id, drillDownIds(block))), session.compactedBy());
}

for (const host of hostsFor(hosts, "Pi 0.74.2, Node 20")) {
  test(`on ${host.name} the context is compacted once, without stopping anything and without a model call`, async (t) => {
    const { project, file } = await longSession(t, host);
    const pi = project.startPi(["--session", file]);
    await pi.prompt("Where are we?");
    const written = await ready(project);
    assert.equal(compactions(await project.session(pi)).length, 0, "nothing is compacted before it is ready");

    project.script.turns = [bash("echo one"), bash("echo two"), { text: "Both are there." }];
    const from = project.turns.length;
    await pi.prompt("Look twice.");
    await pi.prompt("And now?");
    assert.equal(project.summaryCalls.length, written, "no model is asked for a summary");
    const session = await project.session(pi);
    const [compaction, ...others] = compactions(session);
    assert.ok(compaction && others.length === 0, `${others.length + 1} compactions`);
    assert.equal(compaction.fromHook, true);

    const requests = project.turns.slice(from);
    assert.equal(requests.length, 4);
    const blocks = requests.map(blockOf);
    const compactedFrom = isBetweenTurns(host) ? 1 : 3;
    assert.deepEqual(blocks.map(Boolean), blocks.map((_, at) => at >= compactedFrom));
    assert.equal(blocks.at(-1), compaction.summary);
    assertCovers(project, session, compaction.summary);
    if (isBetweenTurns(host)) {
      // With the next prompt the model hears of its memory, once in a project's life.
      assertGrowing(requests.slice(1, 3));
      const results = requests[2].messages.filter(({ role }) => role === "tool").map(({ text }) => text.trim());
      assert.deepEqual(results, ["one", "two"]);
      const chain = session.branch().map(({ type, message }) => message?.role ?? type).filter((what) => what !== "system");
      assert.deepEqual(chain.slice(-7), ["toolResult", "compaction", "assistant", "toolResult", "assistant", "user", "assistant"]);
    }
    const told = pi.ui("notify").map(({ message }) => message).filter((message) => message.startsWith("LCM: "));
    assert.equal(told.length, 1, told.join("\n"));
    assert.match(told[0], /^LCM: compacted early: \d+ messages in \d+ summaries \(\d+ new\), [\d,]+ → about [\d,]+ tokens$/);
    await eventually(() => assertAgreement(project));
    await eventually(() => assert.match(pi.status("lcm") ?? "", /^LCM: \d+ msgs \| \d+ summaries/));
    await pi.request("prompt", { message: "/lcm doctor" });
    await eventually(() => assert.match(pi.ui("notify").at(-1)?.message, /^All is as it must be\.$/m));
  });

  test(`on ${host.name} what is said meanwhile arrives, once and in order`, async (t) => {
    const { project, file } = await longSession(t, host);
    const pi = project.startPi(["--session", file]);
    await pi.prompt("Where are we?");
    await ready(project);
    project.script.turns = [bash("sleep 0.5; echo slowly"), { text: "Done." }];
    const run = pi.prompt("Take your time.");
    await pi.waitFor(() => pi.events.some(({ type }) => type === "tool_execution_start"));
    await pi.request("steer", { message: "Steered." });
    await pi.request("follow_up", { message: "Followed up." });
    // An older Pi compacts as soon as the run has ended.
    const isDone = (/** @type {any} */ { type, message }) => type === "message_end" && message.content?.[0]?.text === "Understood.";
    await pi.waitFor(() => pi.events.filter(isDone).length === 2);
    await pi.request("prompt", { message: "At once.", streamingBehavior: "followUp" });
    await run;
    await eventually(async () => {
      const said = (await project.session(pi)).branch().filter(({ message }) => message?.role === "user").map(({ message }) => message.content[0].text);
      assert.deepEqual(said.slice(-4), ["Take your time.", "Steered.", "Followed up.", "At once."]);
    });
    await eventually(async () => assert.equal((await pi.request("get_state")).isStreaming, false));
    // An older Pi that is given something to do again compacts after that.
    await eventually(async () => assert.equal(compactions(await project.session(pi)).length, 1));
    const session = await project.session(pi);
    const results = session.branch().filter(({ message }) => message?.role === "toolResult").map(({ message }) => message.content[0].text.trim());
    assert.deepEqual(results.slice(-1), ["slowly"]);
    await eventually(() => assertAgreement(project));
  });

  test(`on ${host.name} in print mode`, async (t) => {
    const { project, file } = await longSession(t, host);
    project.script.turns = [{ text: "In the middle." }, async () => (await ready(project), bash("echo there")), { text: "There." }, { text: "Bye." }];
    await project.runPi(["--session", file, "-p", "Where are we?", "Look.", "And now?"]);
    const session = await project.session();
    const said = session.branch().filter(({ message }) => message?.role === "user").map(({ message }) => message.content[0].text);
    assert.deepEqual(said.slice(-3), ["Where are we?", "Look.", "And now?"]);
    // An older Pi goes on with the next question as soon as one is answered: there is no moment in between.
    if (!isBetweenTurns(host)) return;
    assert.equal(compactions(session).length, 1);
    assert.equal(blockOf(project.lastTurn), session.lastCompaction.summary);
    assertCovers(project, session, session.lastCompaction.summary);
  });

  test(`on ${host.name} in the TUI, while somebody types`, { skip: noTerminal }, async (t) => {
    const { project, file } = await longSession(t, host);
    const terminal = project.openTerminal(["--session", file]);
    await terminal.waitFor((screen) => screen.includes("LCM: "), "the footer");
    await terminal.send("Where are we?");
    await terminal.waitFor((screen) => screen.includes("Understood."), "the answer");
    await ready(project);
    project.script.turns = [bash("sleep 0.5; echo slowly"), { text: "Slow but done.", delayMs: 300 }];
    await terminal.send("Take your time.");
    await terminal.waitFor((screen) => screen.includes("sleep 0.5"), "the tool");
    terminal.type("half a sentence");
    await terminal.waitFor((screen) => screen.includes("Slow but done."), "the end of the run");
    await terminal.waitFor((screen) => screen.includes("compacted early: "), "what it came to");
    await terminal.waitFor((screen) => screen.includes("half a sentence"), "what was typed is in the editor");
    terminal.press("enter");
    await eventually(() => assert.equal(project.lastTurn.messages.at(-1)?.text, "half a sentence"));
    const session = await project.session();
    assert.equal(blockOf(project.lastTurn), session.lastCompaction.summary);
    assert.equal(compactions(session).length, 1);
  });
}

test("the agent does not wait for a model that takes its time", async (t) => {
  const { project, file } = await longSession(t, hosts[hosts.length - 1]);
  project.script.summary = () => ({ text: "Late.", delayMs: 30_000 });
  const pi = project.startPi(["--session", file]);
  project.script.turns = [bash("echo one"), bash("echo two"), { text: "Well." }];
  await pi.prompt("Look twice.");
  assert.ok(project.summaryCalls.length > 0, "summaries are being written");
  assert.equal(project.turns.length, 3);
  assert.equal(compactions(await project.session(pi)).length, 0);
});

test("without work ahead, switched off, or beyond Pi's own threshold, the extension begins nothing", async (t) => {
  for (const lcm of [{ background: false }, { compactAt: "off" }, { compactAt: { "other/model": 0.1 } }]) {
    const { project, file } = await longSession(t, hosts[hosts.length - 1], lcm);
    const pi = project.startPi(["--session", file]);
    await pi.prompt("Where are we?");
    await pi.prompt("And now?");
    assert.equal(compactions(await project.session(pi)).length, 0, JSON.stringify(lcm));
    await project.stopAll();
  }
  const { project, file } = await longSession(t, hosts[hosts.length - 1]);
  const pi = project.startPi(["--session", file]);
  await pi.prompt("Where are we?");
  await ready(project);
  project.script.turns = [{ ...bash("echo one"), usage: { input: 80_500, output: 10 } }, { text: "Well." }];
  await pi.prompt("Something large");
  const session = await project.session(pi);
  assert.equal(compactions(session).length, 1);
  assert.ok(pi.events.some(({ type, reason }) => type === "compaction_start" && reason === "threshold"), "it is Pi's own");
});
