/**
 * Threads on the real Pi: where the provider keeps the conversation, a request brings only what is new, except after a fold.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { settled } from "../support/ahead.mjs";
import { blockOf } from "../support/block.mjs";
import { aProject } from "../support/project.mjs";

const SMALL = { id: "demo-small", cost: { input: 0.01, output: 0.04, cacheRead: 0, cacheWrite: 0 } };

/** @param {string} command */
const bash = (command) => ({ text: "Let me look.", toolCalls: [{ name: "bash", arguments: { command } }] });

/** A model whose provider keeps the conversation: a request that continues the last one brings only what is new. */
const THREADED = { id: "threaded", reasoning: true, thinkingLevelMap: { off: null, minimal: null }, compat: { forceAdaptiveThinking: true, supportsMidConvoEffort: true, supportsMessageThreads: true } };

for (const host of hostsFor("1.6.0").filter(({ version }) => version !== "0.87.1")) {
  for (const writer of ["demo/demo-small", "session"]) {
    test(`on ${host.name} a session with threads sends the whole conversation only after folds; ${writer} summarizes`, async (t) => {
      const cost = { input: 1, output: 4, cacheRead: 0.1, cacheWrite: 1.25 };
      const lcm = { foldAt: 16_000, leafChunkTokens: 2_000, maxSummaryTokens: 3_000, compactionModels: [writer] };
      const settings = { compaction: { reserveTokens: 10_000, keepRecentTokens: 1_500 }, lcm, defaultThinkingLevel: "low" };
      const project = await aProject(t, { host, thinking: "bound", contextWindow: 200_000, cost, models: [THREADED, SMALL], rules: { threads: true }, settings });
      const pi = project.startPi(["--model", "demo/threaded"]);
      /** @type {any[]} */
      let folds = [];
      for (let part = 0; folds.length < 3; part++) {
        assert.ok(part < 30, `${folds.length} folds`);
        project.script.turns = [bash(`seq ${part}000 ${part + 1}500`), { toolCalls: [{ name: "lcm_grep", arguments: { query: `part ${part}` } }] }, { text: `Part ${part} is done.` }];
        await pi.prompt(`Do part ${part}.`);
        await settled(project);
        folds = (await project.session(pi)).entries.filter(({ type }) => type === "compaction");
      }
      await pi.prompt("And now?");
      const blocks = project.turns.map(blockOf);
      assert.equal(new Set(blocks).size, 4);
      assert.equal(project.summaryCalls.some(({ isInSession }) => isInSession), writer === "session");
      assert.deepEqual(project.turns.map(({ judged }) => judged.thread), blocks.map((block, at) => (at > 0 && block === blocks[at - 1] ? "continue" : "create")));
    });
  }
}
