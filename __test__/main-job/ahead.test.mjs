/**
 * Summaries made ahead of a compaction, on the real Pi: they are made while the agent works, a compaction finds them ready, and below the
 * threshold, or without a model for them, no model is called.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hosts, hostsFor } from "../../scripts/hosts.mjs";
import { settled } from "../support/ahead.mjs";
import { blockOf, drillDownIds, statistics } from "../support/block.mjs";
import { filler } from "../support/history.mjs";
import { aProject, eventually } from "../support/project.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */

/** Pi compacts beyond 60,000 - 10,000 tokens; work ahead begins at 0.6 of that. */
const CONTEXT = { contextWindow: 60_000, compaction: { reserveTokens: 10_000, keepRecentTokens: 3_000 } };
const AHEAD = { compactionModels: ["demo/demo-model"], leafChunkTokens: 4000 };

/**
 * @param {import("node:test").TestContext} t
 * @param {import("../../scripts/hosts.mjs").Host} host
 * @param {object} [more] settings
 */
function anAheadProject(t, host, more = {}) {
  const { contextWindow, compaction } = CONTEXT;
  return aProject(t, { host, contextWindow, settings: { compaction, lcm: { ...AHEAD, ...more } } });
}

/**
 * A session in which work ahead begins. Its texts contain its name, so that no other session's summaries fit it.
 * @param {Project} project
 * @param {string} name
 */
function longSession(project, name, exchanges = 95) {
  const history = project.history(name);
  history.talk(exchanges, { words: 100, name });
  return history;
}

/** Waits until summaries are requested. @param {Project} project */
const underWay = (project, count = 5) => eventually(() => assert.ok(project.summaryCalls.length >= count));

for (const host of hostsFor()) {
  test(`on ${host.name} a compaction uses summaries that were made while the agent worked`, async (t) => {
    const project = await anAheadProject(t, host);
    const pi = project.startPi(["--session", longSession(project, "long").write(project.sessionDir)]);
    await pi.prompt("Where are we?");
    await underWay(project);
    const ready = await settled(project);
    const stored = project.inStore((store) => store.count("summaries"));
    assert.ok(stored >= ready, `${stored} summaries of ${ready} calls`);

    await pi.request("compact");
    await pi.prompt("And now?");
    const block = blockOf(project.lastTurn);
    assert.ok(block);
    // The part that Pi keeps raw and an incomplete chunk can't be done ahead.
    assert.ok(project.summaryCalls.length - ready <= 1, `${project.summaryCalls.length - ready} calls at the compaction`);
    assert.equal(statistics(block).missing, "none");
    const session = await project.session(pi);
    const covered = project.inStore((store) => store.entriesUnder(session.id, drillDownIds(block)));
    assert.deepEqual(covered, session.compactedBy());
  });
}

test("work ahead begins only where it is wanted", async (t) => {
  const project = await anAheadProject(t, hosts[hosts.length - 1]);
  const pi = project.startPi(["--session", longSession(project, "ready").write(project.sessionDir)]);

  await t.test("a compaction at Pi's threshold calls no model if everything is ready", async () => {
    await pi.prompt("Where are we?");
    await underWay(project);
    const ready = await settled(project);
    project.script.otherwise = () => ({ text: "Well.", usage: { input: 51_000, output: 10 } });
    await pi.prompt("Something large");
    await eventually(async () => assert.equal((await project.session(pi)).entries.filter(({ type }) => type === "compaction").length, 1));
    assert.equal(project.summaryCalls.length, ready);
  });

  await t.test("below the threshold, or without a model, nothing is spent", async () => {
    const without = [{ name: "short", exchanges: 30, lcm: {} }, { name: "off", lcm: { background: false } }, { name: "modelless", lcm: { context: "full", compactionModels: [] } }];
    for (const { name, exchanges, lcm } of without) {
      project.configure({ lcm: { ...AHEAD, ...lcm } });
      await project.resume(pi, longSession(project, name, exchanges));
      await pi.prompt("Where are we?");
      assert.equal(await settled(project), 0, name);
    }
  });

  await t.test("the footer shows a compaction's progress, and one line its outcome", async () => {
    const progress = /^LCM: compacting, \d+ of \d+ summaries \| demo-model \| \d+ s \| \$0\.\d{3}$/;
    project.configure({ lcm: { ...AHEAD, background: false } });
    await project.resume(pi, longSession(project, "told"));
    const isShown = () => progress.test(pi.status("lcm") ?? "");
    // The first answer names the model; the others wait until that is shown.
    project.script.summary = async (request) => {
      if (request !== project.summaryCalls[0]) await pi.waitFor(isShown);
      return { text: "What had happened." };
    };
    await pi.request("compact");
    await eventually(() => assert.match(pi.status("lcm") ?? "", /^LCM: \d+ msgs \| \d+ summaries/));
    const report = pi.ui("notify").map(({ message }) => message).find((message) => message.startsWith("LCM: "));
    assert.match(report ?? "", /^LCM: \d+ messages in \d+ summaries, \d+ new, [\d,]+ → about [\d,]+ tokens, \d+ model calls, \d+\.\d s, \$0\.\d{3}$/);
  });

  await t.test("the plan of a compaction is shown without a model call", async () => {
    await project.resume(pi, longSession(project, "planned"));
    // Short summaries would be joined without a call.
    project.script.summary = ({ index }) => ({ text: `Stretch ${index}\n${filler(`stretch ${index}`, 40)}` });
    const plan = /^No model was called, and nothing was changed\. A compaction would\nkeep {7}\d+ messages at the end, about [\d,]+ tokens, unchanged\ncover {6}\d+ messages before that, about [\d,]+ tokens\nreuse {6}0 ready summaries, covering 0 messages\nwrite {6}(\d+) leaf summaries and (\d+) condensed, from about [\d,]+ tokens\nshow {7}a block of at most [\d,]+ tokens\nask {8}demo\/demo-model \(\$1\.00 in, \$4\.00 out per million tokens\)$/;
    await pi.request("prompt", { message: "/lcm compact --dry-run" });
    const progress = await eventually(() => {
      const message = pi.ui("notify").at(-1)?.message;
      assert.ok(message);
      return message;
    });
    const [, leaves, condensed] = plan.exec(progress) ?? assert.fail(progress);
    assert.equal(project.summaryCalls.length, 0);
    await pi.request("prompt", { message: "/lcm compact --dry" });
    await eventually(() => assert.match(pi.ui("notify").at(-1)?.message, /^\/lcm compact has no option --dry: it takes --dry-run, or words/));
    await pi.request("compact");
    assert.equal(project.summaryCalls.length, Number(leaves) + Number(condensed));
  });

  await t.test("leaving stops the work ahead and leaves nothing half-done", async () => {
    project.configure({ lcm: AHEAD });
    await project.resume(pi, longSession(project, "left"));
    const before = project.inStore((store) => store.count("summaries"));
    project.script.summary = () => ({ hang: true });
    await pi.prompt("Where are we?");
    await underWay(project, 1);
    await pi.stop();
    await eventually(() => assert.ok(project.summaryCalls.every(({ abandoned }) => abandoned)));
    assert.equal(project.inStore((store) => store.count("summaries")), before);
    assert.equal(project.summaryCalls.length, 1);
  });
});

for (const host of hostsFor()) {
  test(`on ${host.name} in print mode a model call through Pi does not delay the exit`, async (t) => {
    const project = await anAheadProject(t, host);
    const file = longSession(project, "left").write(project.sessionDir);
    project.script.summary = () => ({ hang: true });
    // The second question gives the calls time to start.
    project.script.turns = [{ text: "Well." }, async () => (await underWay(project, 1), { text: "Well." })];
    await project.runPi(["--session", file, "-p", "Where are we?", "And now?"]);
    await eventually(() => assert.ok(project.summaryCalls.every(({ abandoned }) => abandoned)));
    assert.ok(project.summaryCalls.length > 0);
  });
}
