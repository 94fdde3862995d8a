/**
 * Work ahead of a compaction on the real Pi: summaries are written while the agent works, a compaction finds them ready, and
 * below the threshold, or without a model for it, nothing is spent.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hosts, hostsFor } from "../../scripts/hosts.mjs";
import { blockOf, drillDownIds, statistics } from "../support/block.mjs";
import { filler } from "../support/history.mjs";
import { settled } from "../support/ahead.mjs";
import { aProject, eventually } from "../support/project.mjs";

/** @typedef {Awaited<ReturnType<typeof aProject>>} Project */

/** Pi compacts beyond 60,000 - 10,000 tokens; work ahead begins at 0.6 of that. */
const CONTEXT = { contextWindow: 60_000, settings: { compaction: { reserveTokens: 10_000, keepRecentTokens: 3_000 } } };

/**
 * @param {import("node:test").TestContext} t
 * @param {import("../../scripts/hosts.mjs").Host} host
 * @param {{ lcm?: object, exchanges: number }} wanted
 */
async function longSession(t, host, { lcm = {}, exchanges }) {
  const own = { compactionModels: ["demo/demo-model"], ...lcm };
  const project = await aProject(t, { host, ...CONTEXT, settings: { ...CONTEXT.settings, lcm: own } });
  const history = project.history();
  history.talk(exchanges, { words: 100 });
  const pi = project.startPi(["--session", history.write(project.sessionDir)]);
  return { project, pi, history };
}

for (const host of hostsFor(hosts)) {
  test(`on ${host.name} a compaction finds ready what was written while the agent worked`, async (t) => {
    const { project, pi } = await longSession(t, host, { exchanges: 95 });
    await pi.prompt("Where are we?");
    await eventually(() => assert.ok(project.summaryCalls.length >= 5));
    const ready = await settled(project);
    const stored = project.inStore((store) => store.rows("SELECT count(*) AS n FROM summaries")[0].n);
    assert.ok(stored >= ready, `${stored} summaries of ${ready} calls`);
    assert.deepEqual(project.inStore((store) => store.rows("SELECT * FROM claims")), []);

    await pi.request("compact");
    await pi.prompt("And now?");
    const last = project.lastTurn;
    const block = blockOf(last);
    assert.ok(block);
    // What Pi keeps raw cannot be done ahead, nor the chunk that was not whole yet.
    assert.ok(project.summaryCalls.length - ready <= 1, `${project.summaryCalls.length - ready} calls at the compaction`);
    assert.equal(statistics(block).missing, "none");
    const session = await project.session(pi);
    const covered = project.inStore((store) => store.entriesUnder(session.id, drillDownIds(block)));
    assert.deepEqual(covered, session.compactedBy());
  });
}

test("Pi's own compaction for the threshold asks no model when all is ready", async (t) => {
  const { project, pi } = await longSession(t, hosts[hosts.length - 1], { exchanges: 95 });
  await pi.prompt("Where are we?");
  await eventually(() => assert.ok(project.summaryCalls.length >= 5));
  const ready = await settled(project);
  project.script.otherwise = () => ({ text: "Well.", usage: { input: 51_000, output: 10 } });
  await pi.prompt("Something large");
  await eventually(async () => assert.equal((await project.session(pi)).entries.filter(({ type }) => type === "compaction").length, 1));
  assert.equal(project.summaryCalls.length, ready);
});

test("below the threshold, or without a model for it, nothing is spent", async (t) => {
  for (const wanted of [{ exchanges: 30 }, { exchanges: 95, lcm: { background: false } }, { exchanges: 95, lcm: { compactionModels: [] } }]) {
    const { project, pi } = await longSession(t, hosts[hosts.length - 1], wanted);
    await pi.prompt("Where are we?");
    assert.equal(await settled(project), 0);
    await project.stopAll();
  }
});

test("the session's own model writes ahead if it may", async (t) => {
  const lcm = { compactionModels: [], backgroundSessionModel: true };
  const { project, pi } = await longSession(t, hosts[hosts.length - 1], { exchanges: 95, lcm });
  await pi.prompt("Where are we?");
  await eventually(() => assert.ok(project.summaryCalls.length >= 5));
});

test("leaving stops what is being written ahead, and leaves nothing half-done", async (t) => {
  const { project, pi } = await longSession(t, hosts[hosts.length - 1], { exchanges: 95 });
  project.script.summary = () => ({ text: "Late.", delayMs: 20_000 });
  await pi.prompt("Where are we?");
  await eventually(() => assert.ok(project.summaryCalls.length >= 4));
  await pi.stop();
  await eventually(() => assert.ok(project.summaryCalls.every(({ abandoned }) => abandoned)));
  assert.equal(project.inStore((store) => store.rows("SELECT count(*) AS n FROM summaries")[0].n), 0);
  assert.equal(project.summaryCalls.length, 4);
});

test("the footer tells how far a compaction is, and one line what it came to", async (t) => {
  const { project, pi } = await longSession(t, hosts[hosts.length - 1], { exchanges: 95, lcm: { background: false } });
  project.script.summary = () => ({ text: "What happened.", delayMs: 500 });
  await pi.prompt("Where are we?");
  await pi.request("compact");
  const shown = pi.ui("setStatus").map(({ statusText }) => statusText).filter(Boolean);
  assert.ok(shown.some((text) => /^LCM: compacting, \d+ of \d+ summaries \| demo-model \| \d+ s \| \$0\.\d{3}$/.test(text)), shown.join("\n"));
  await eventually(() => assert.match(pi.status("lcm") ?? "", /^LCM: \d+ msgs \| \d+ summaries/));
  const report = pi.ui("notify").map(({ message }) => message).find((message) => message.startsWith("LCM: "));
  assert.match(report ?? "", /^LCM: \d+ messages in \d+ summaries \(\d+ new\), [\d,]+ → about [\d,]+ tokens, \d+ model calls, \d+\.\d s, \$0\.\d{3}$/);
});

test("the plan of a compaction is told without a call", async (t) => {
  const { project, pi } = await longSession(t, hosts[hosts.length - 1], { exchanges: 95, lcm: { background: false } });
  // Few words would be joined without a call.
  project.script.summary = ({ index }) => ({ text: `Stretch ${index}\n${filler(`stretch ${index}`, 40)}` });
  const plan = /^No model was asked, and nothing was changed\. A compaction now would\nkeep {7}\d+ messages at the end, about [\d,]+ tokens, as they are\ncover {6}\d+ messages before that, about [\d,]+ tokens\ntake {7}0 summaries that are ready, of 0 messages\nwrite {6}(\d+) leaf summaries and (\d+) condensed, from about [\d,]+ tokens\nshow {7}a block of at most [\d,]+ tokens\nask {8}demo\/demo-model, then the session's own model$/;
  await pi.request("prompt", { message: "/lcm compact --dry-run" });
  const told = await eventually(() => {
    const message = pi.ui("notify").at(-1)?.message;
    assert.ok(message);
    return message;
  });
  const [, leaves, condensed] = plan.exec(told) ?? assert.fail(told);
  assert.equal(project.summaryCalls.length, 0);
  await pi.request("prompt", { message: "/lcm compact --dry" });
  await eventually(() => assert.match(pi.ui("notify").at(-1)?.message, /^\/lcm compact has no option --dry: it takes --dry-run alone, or words/));
  await pi.request("compact");
  assert.equal(project.summaryCalls.length, Number(leaves) + Number(condensed));
});

for (const host of hostsFor(hosts, "Pi 0.74.2, Node 20")) {
  test(`on ${host.name} in print mode a model call of Pi's that is made ahead keeps nobody from leaving`, async (t) => {
    const lcm = { compactionModels: ["demo/demo-model"], directModelCalls: false };
    const project = await aProject(t, { host, ...CONTEXT, settings: { ...CONTEXT.settings, lcm } });
    const history = project.history();
    history.talk(95, { words: 100 });
    project.script.summary = () => ({ text: "Late.", delayMs: 30_000 });
    // The second question is there for the calls to be under way.
    project.script.otherwise = () => ({ text: "Well.", delayMs: 2_000 });
    await project.runPi(["--session", history.write(project.sessionDir), "-p", "Where are we?", "And now?"]);
    assert.ok(project.summaryCalls.length > 0);
    assert.ok(project.summaryCalls.every(({ abandoned }) => abandoned));
  });
}
