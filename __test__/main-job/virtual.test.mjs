/**
 * Virtual models on the real Pi: the user selects a name, and another extension decides for each request which model answers. The extension
 * calculates with the one that answers.
 */
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { extension, root } from "../../scripts/paths.mjs";
import { asked } from "../commands/asking.mjs";
import { settled } from "../support/ahead.mjs";
import { blockOf, statistics } from "../support/block.mjs";
import { filler } from "../support/history.mjs";
import { aProject } from "../support/project.mjs";

const routing = path.join(root, "__test__", "support", "routing.mjs");

/** Prices in another proportion than those that are assumed for a model without any. */
const COST = { input: 3, output: 12, cacheRead: 1.5, cacheWrite: 3 };
/** Cheap enough to write the summaries. */
const SMALL = { id: "demo-small", cost: { input: 0.01, output: 0.04, cacheRead: 0, cacheWrite: 0 } };
const LCM = { maxSummaryTokens: 1_000, leafChunkTokens: 2_000, minMessagesForCompaction: 1 };

/**
 * The same talk with either model: what `/lcm context` says before and after a fold, without the block, and what is sent and stored.
 * @param {import("../support/project.mjs").Project} project
 * @param {string} model
 */
async function talked(project, model) {
  const pi = project.startPi(["--model", model]);
  const long = filler("once", 3_000);
  project.script.otherwise = () => ({ text: long });
  for (const prompt of ["Begin.", "Go on."]) await pi.prompt(prompt);
  const early = await asked(pi, "/lcm context");
  for (const prompt of ["And on.", "And on.", "And on.", "And on.", "And on."]) {
    // A fold uses summaries that are ready.
    await settled(project);
    await pi.prompt(prompt);
  }
  const { block, ...late } = await asked(pi, "/lcm context");
  const writers = [...new Set(project.summaryCalls.map(({ body }) => body.model))];
  const { entries } = await project.session(pi);
  await pi.stop();
  return { said: { early, late, writers }, shown: blockOf(project.lastTurn), entries };
}

for (const host of hostsFor("1.6.0").filter(({ version }) => version !== "0.87.1")) {
  test(`a virtual model counts as the one that answers, on ${host.name}`, async (t) => {
    const [physical, virtual] = await Promise.all(["demo/demo-model", "router/auto"].map(async (model) => {
      // The comparison is about prices and sizes, which thinking would make differ from session to session.
      const project = await aProject(t, { host, thinking: "none", extensions: [extension, routing], contextWindow: 150_000, cost: COST, models: [SMALL], keepRecentTokens: 1_500, settings: { lcm: LCM } });
      return talked(project, model);
    }));
    const isAuto = (/** @type {any} */ { type, provider, modelId }) => type === "model_change" && provider === "router" && modelId === "auto";
    assert.ok(virtual.entries.some(isAuto), "it is the session's model");
    assert.ok(virtual.entries.every(({ message }) => message?.role !== "assistant" || message.model === "demo-model"));
    assert.deepEqual(virtual.said, physical.said);
    const { early, late, writers } = virtual.said;
    assert.deepEqual([early.window, early.cost.isStandIn, writers], [150_000, false, ["demo-small"]]);
    assert.ok(late.folds.length > 0, "it is folded");
    assert.equal(statistics(virtual.shown ?? "").missing, "none");
  });
}
