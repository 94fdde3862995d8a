/** What `/lcm context` says about Pi alone, and what `simulate` says of a session of Pi alone, beside the same session on the real Pi. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { live } from "../../bench/context/live.mjs";
import { SHAPES } from "../../bench/context/shapes.mjs";
import { dollars } from "../../bench/model.mjs";
import { hostOf } from "../../scripts/hosts.mjs";
import { ask } from "../support/cli.mjs";
import { temporaryFolder } from "../support/project.mjs";

const MODEL = { provider: "anthropic", id: "claude-opus-5-5" };
const host = hostOf("1.6.0");

for (const [window, compactions] of /** @type {const} */ ([[1_000_000, false], [64_000, true]])) {
  test(`the cost with Pi alone is within a tenth of really running it, window ${window}`, { skip: !host }, async (t) => {
    const model = { ...MODEL, overrides: { [MODEL.id]: { contextWindow: window } } };
    const of = (/** @type {object} */ settings) => live({ model, shape: SHAPES.bulky, requests: 80, facts: 0, idle: 0, pi: host?.pi ?? "", settings });
    const [alone, ours] = [await of({}), await of({ lcm: {} })];
    const cost = (/** @type {import("../../bench/context/live.mjs").Lived} */ { requests, prices }) => requests.reduce((sum, { usage, model: id }) => sum + dollars(usage, prices[id]), 0);
    const really = cost(alone);
    const [, said] = /with Pi alone about \$([\d.]+)/.exec(ours.context) ?? [];
    assert.equal(alone.requests.some(({ kind }) => kind === "summary"), compactions);
    const isNear = (/** @type {number} */ one, /** @type {number} */ other, most = 0.1) => assert.ok(Math.abs(one / other - 1) < most, `${one} instead of ${other.toFixed(2)}`);
    isNear(Number(said), really);
    const folder = temporaryFolder(t);
    const file = path.join(folder, "session.jsonl");
    writeFileSync(file, alone.recorded);
    writeFileSync(path.join(folder, "settings.json"), JSON.stringify({ compaction: { reserveTokens: 1_000_000 - window + 16_384 } }));
    const { sessions } = await ask({ cwd: folder, agentDir: folder }, "simulate", file, "--model", "claude-opus-5.5");
    isNear(sessions[0].alone, really);
    // On a busy machine, summaries are ready later, and so are folds.
    isNear(sessions[0].ours, cost(ours), 0.15);
  });
}
