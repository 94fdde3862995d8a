/** What `/lcm context` says about Pi alone, beside the same session on Pi alone. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { dollars, live } from "../../bench/context/live.mjs";
import { SHAPES } from "../../bench/context/shapes.mjs";
import { hostOf } from "../../scripts/hosts.mjs";

const MODEL = { provider: "anthropic", id: "claude-opus-5-5" };
const host = hostOf("1.6.0");

for (const [window, compactions] of /** @type {const} */ ([[1_000_000, false], [64_000, true]])) {
  test(`the cost with Pi alone is within a tenth of really running it, window ${window}`, { skip: !host }, async () => {
    const model = { ...MODEL, overrides: { [MODEL.id]: { contextWindow: window } } };
    const of = (/** @type {object} */ settings) => live({ model, shape: SHAPES.bulky, requests: 80, facts: 0, idle: 0, pi: host?.pi ?? "", settings });
    const [alone, ours] = [await of({}), await of({ lcm: {} })];
    const really = alone.requests.reduce((sum, { usage, model: id }) => sum + dollars(usage, alone.prices[id]), 0);
    const [, said] = /with Pi alone about \$([\d.]+)/.exec(ours.context) ?? [];
    assert.equal(alone.requests.some(({ kind }) => kind === "summary"), compactions);
    assert.ok(Math.abs(Number(said) / really - 1) < 0.1, `${said} instead of ${really.toFixed(2)}`);
  });
}
