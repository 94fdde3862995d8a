/**
 * Odd values that Pi accepts, in its setting `compaction`, in models, and in what providers report: a session continues, is compacted and
 * stored as with others, and nothing hangs. What Pi refuses, Pi reports, and every message is stored all the same.
 */
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { extension, root } from "../../scripts/paths.mjs";
import { assertStored } from "../support/agreement.mjs";
import { statistics } from "../support/block.mjs";
import { OnePi } from "../support/one-pi.mjs";
import { eventually } from "../support/project.mjs";
import { textIn } from "../support/session-file.mjs";
import { ODD } from "./odd-models.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../support/project.mjs").Pi} Pi */

/** After this, Pi counts as hanging. */
const timeoutMs = 30_000;

const HUGE = Number.MAX_SAFE_INTEGER;
const WINDOW = 60_000;

/** What Pi accepts: the name of the case, the setting, and whether Pi finds something to compact. @type {[string, object, boolean][]} */
const ACCEPTED = [
  ["keepRecentTokens 0", { keepRecentTokens: 0 }, true],
  ["keepRecentTokens 1", { keepRecentTokens: 1 }, true],
  ["keepRecentTokens larger than the window", { keepRecentTokens: 10 * WINDOW }, false],
  ["keepRecentTokens huge", { keepRecentTokens: HUGE }, false],
  ["reserveTokens 0", { keepRecentTokens: 200, reserveTokens: 0 }, true],
  ["reserveTokens as large as the window", { keepRecentTokens: 200, reserveTokens: WINDOW }, true],
  ["reserveTokens huge", { keepRecentTokens: 200, reserveTokens: HUGE }, true],
  ["both 0", { keepRecentTokens: 0, reserveTokens: 0 }, true],
  ["both huge", { keepRecentTokens: HUGE, reserveTokens: HUGE }, false],
];

/** What Pi refuses at every prompt. */
const REFUSED = [
  ...[-1, 0.5, 2 ** 53, "5000", null].flatMap((value) => [{ keepRecentTokens: value }, { reserveTokens: value }]),
  { modelOverrides: { "demo/demo-model": { keepRecentTokens: -1 } } },
  { modelOverrides: { "demo/demo-model": null } },
];

/** What a provider may report. @type {import("../../demo/wire.mjs").Usage[]} */
const REPORTED = [
  { input: 25_000.5, output: 10 },
  { input: -25_000, output: -10 },
  { input: 0, output: 0 },
];

for (const host of hostsFor("1.6.0")) {
  const one = new OnePi({ host, contextWindow: WINDOW, extensions: [extension, path.join(root, "__test__", "settings", "odd-models.mjs")] });

  /**
   * A session with these settings, and what a test does in it. A Pi that hangs is replaced, so that it fails one test only.
   * @param {{ compaction: object, model?: string }} given `model`: of the other extension
   * @param {(project: Project, pi: Pi) => Promise<void>} act
   */
  const inSession = async ({ compaction, model }, act) => {
    const project = await one.project();
    project.configure({ compaction, lcm: { compactionModels: ["session"], leafChunkTokens: 500 } });
    const past = await one.past(20);
    if (model) past.entry("model_change", { provider: "odd", modelId: model });
    const { pi } = await one.sit(past);
    try {
      await act(project, pi);
    } catch (error) {
      one.gone();
      await pi.kill();
      throw error;
    }
  };

  /** Several turns, with tool calls. @param {Project} project @param {Pi} pi */
  const worked = async (project, pi, usage = { input: 25_000, output: 10 }) => {
    const look = { toolCalls: [{ name: "bash", arguments: { command: "seq 1 200" } }], usage };
    project.script.turns = [look, look, { text: "Looked.", usage }];
    project.script.otherwise = () => ({ text: "Well.", usage });
    for (const prompt of ["Look twice.", "Once more.", "And now?"]) await pi.prompt(prompt, { timeoutMs });
    assert.equal(textIn((await project.session(pi)).entries.findLast(({ type }) => type === "message")?.message), "Well.");
  };

  /** Nothing is wrong for the user but settings of Pi that can't work, and everything is in the store. @param {Project} project @param {Pi} pi */
  const assertFine = async (project, pi) => {
    const warnings = pi.ui("notify").filter(({ notifyType }) => notifyType !== "info");
    assert.ok(warnings.length <= 1);
    for (const { message } of warnings) assert.match(message, /Pi's compaction can't work in this model's window of [\d,]+ tokens: it reserves [\d,]+ \(reserveTokens\) and keeps [\d,]+ \(keepRecentTokens\)/);
    for (const { type, fromHook, summary } of (await project.session(pi)).entries) {
      if (type === "compaction") assert.deepEqual([fromHook, statistics(summary).missing, statistics(summary).degraded], [true, "none", 0]);
    }
    await eventually(async () => assertStored(project, await project.session(pi)), timeoutMs);
  };

  /** @param {Project} project @param {Pi} pi */
  const compact = async (project, pi) => {
    await pi.prompt("/lcm context", { timeoutMs });
    const failure = await pi.request("compact", {}, timeoutMs).then(() => "", ({ message }) => message);
    // If Pi has compacted by itself, nothing may be left.
    assert.match(failure, /^$|Nothing to compact|Already compacted/);
    await pi.prompt("After it", { timeoutMs });
    return (await project.session(pi)).lastCompaction !== undefined;
  };

  test(`values of compaction that Pi accepts, on ${host.name}`, async (t) => {
    for (const [name, values, compacts] of ACCEPTED) {
      for (const [where, compaction] of /** @type {const} */ ([["", values], [" for the session's model", { keepRecentTokens: 300, modelOverrides: { "demo/demo-model": values } }]])) {
        await t.test(`${name}${where}`, () => inSession({ compaction }, async (project, pi) => {
          await worked(project, pi);
          assert.equal(await compact(project, pi), compacts);
          await assertFine(project, pi);
        }));
      }
    }
  });

  test(`values of compaction that Pi refuses, on ${host.name}`, async (t) => {
    for (const compaction of REFUSED) {
      await t.test(JSON.stringify(compaction), () => inSession({ compaction }, async (project, pi) => {
        await assert.rejects(pi.prompt("Go on.", { timeoutMs }), /Invalid compaction\./);
        await assertFine(project, pi);
      }));
    }
  });

  test(`models with odd limits and prices, on ${host.name}`, async (t) => {
    for (const model of Object.keys(ODD)) {
      await t.test(model, () => inSession({ compaction: { keepRecentTokens: 200, reserveTokens: 30_000 }, model }, async (project, pi) => {
        await worked(project, pi);
        assert.ok(await compact(project, pi));
        await assertFine(project, pi);
      }));
    }
  });

  test(`odd usage that a provider reports, on ${host.name}`, async (t) => {
    for (const usage of REPORTED) {
      await t.test(JSON.stringify(usage), () => inSession({ compaction: { keepRecentTokens: 200 } }, async (project, pi) => {
        await worked(project, pi, usage);
        assert.ok(await compact(project, pi));
        await assertFine(project, pi);
      }));
    }
  });
}
