/**
 * Models that can't stop thinking: a summary costs as little thinking as they can do, has room for it, and is no extract. Tried on models
 * of Pi's own catalog and on local ones, with a server that refuses what their providers refuse, and on which a model thinks as long as
 * its effort says.
 */
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { extension, root } from "../../scripts/paths.mjs";
import { statistics } from "../support/block.mjs";
import { aProject } from "../support/project.mjs";

/** @typedef {import("../../demo/model-server.mjs").Received} Received */
/** @typedef {import("../../demo/model-server.mjs").Reply} Reply */

/** Does as a user in Pi's tree would. */
const acting = path.join(root, "__test__", "support", "acting.mjs");

/** Tokens of thinking by effort: more than an answer alone may have, and at the highest more than any room for it. */
const THOUGHT = /** @type {Record<string, number>} */ ({ low: 6_000, medium: 20_000, high: 60_000 });
/** The effort of a request that names none. */
const DEFAULT = "high";

/** Local models, as a user describes them. A server with OpenAI's format has no word for `off` unless the description gives one. */
// Before 1.6.0, Pi instructs them in the role `developer` unless the description says that they do not know it.
const compat = { supportsDeveloperRole: false };
const always = { id: "always", reasoning: true, maxTokens: 64_000, compat, thinkingLevelMap: { off: null, minimal: null } };
const models = [
  always,
  { ...always, id: "from-medium", thinkingLevelMap: { off: null, minimal: null, low: null, medium: "medium" } },
  { id: "undescribed", reasoning: true, maxTokens: 64_000, compat },
];

/**
 * Which model writes, for what effort it is asked, and what is tried first.
 * @typedef {{ model: string, effort: string, first?: string[] }} Case
 */

/** The models of Pi's catalog, by Pi. The oldest knows none that always thinks. @type {Record<string, Case[]>} */
const known = Object.fromEntries(
  [["1.5.2", "openai/gpt-6-astra"], ["1.6.0", "openai/gpt-6.2-sol"]].map(([version, model]) => [
    version,
    [
      { model: "anthropic/claude-opus-5-5", effort: "low" },
      // The catalog does not say that it always thinks.
      { model: "vercel-ai-gateway/anthropic/claude-opus-5.5", effort: "low", first: ["disabled"] },
      { model, effort: "low" },
    ],
  ]),
);

/** @type {Case[]} */
const others = [
  { model: "demo/always", effort: "low" },
  { model: "demo/from-medium", effort: "medium", first: ["medium"] },
  { model: "demo/undescribed", effort: "low", first: [DEFAULT] },
];

/** What a request asks the model to think. @param {Received} request */
function effortOf({ body }) {
  const { thinking, output_config: output, reasoning, reasoning_effort, messages, input } = body;
  if (thinking?.type === "disabled") return "disabled";
  // Some models get the effort of each answer as the conversation's last part, and a constant one as their setting.
  const end = (messages ?? input).at(-1);
  const own = end.role === "system" ? end.output_config?.effort : end.type === "configuration_update" ? end.reasoning.effort : undefined;
  return own ?? output?.effort ?? reasoning?.effort ?? reasoning_effort ?? DEFAULT;
}

/** @param {Received} request @returns {Reply} */
const summary = (request) => ({ text: "Talk\nMuch was said.", thinking: "Let me see.", thinkTokens: THOUGHT[effortOf(request)] });

for (const host of hostsFor("1.6.0")) {
  test(host.name, async (t) => {
    const project = await aProject(t, { host, api: "openai", catalog: ["anthropic", "vercel-ai-gateway", "openai"], models, rules: { developerRole: false }, extensions: [extension, acting] });
    project.refusals = /^thinking$/;
    project.storeIn("store");
    const pi = project.startPi();

    for (const { model, effort, first = [] } of [...(known[host.version] ?? []), ...others]) {
      await t.test(`${model} writes summaries with effort ${effort}`, async (t) => {
        const name = model.replaceAll("/", "-");
        project.storeIn(name, { compactionModels: [model], leafChunkTokens: 1_000, leafPassConcurrency: 1, background: false });
        const history = project.history(name);
        history.talk(30, { name });
        await project.resume(pi, history);
        project.script.summary = summary;
        await pi.request("compact");
        const { lastCompaction } = await project.session(pi);
        const calls = project.summaryCalls;
        const [efforts, answered] = [calls.map(effortOf), calls.slice(first.length)];
        const chunks = calls.length - first.length;
        t.diagnostic(`${chunks} summaries: ${calls.map((call, at) => `${efforts[at]} of ${call.body.max_tokens ?? call.body.max_completion_tokens ?? call.body.max_output_tokens} tokens`).join(", ")}`);
        assert.equal(statistics(lastCompaction.summary).degraded, 0);
        assert.ok(chunks >= 2);
        // It is found out once what the description leaves out.
        assert.deepEqual(efforts, [...first, ...answered.map(() => effort)]);
        const written = calls.reduce((all, { judged }) => all + (judged.usage?.output ?? 0), 0);
        assert.equal(lastCompaction.usage.output, written, "thinking is counted");
        assert.ok(written > chunks * THOUGHT[effort]);
      });
    }

    await t.test("the summary of a branch too", async () => {
      project.storeIn("branch", { compactionModels: ["demo/always"], background: false });
      const history = project.history("branch");
      history.user("Start.");
      history.talk(20, { name: "branch" });
      await project.resume(pi, history);
      project.script.summary = summary;
      await pi.prompt("/act tree-summary Start.");
      const left = (await project.session(pi)).branch().find(({ type }) => type === "branch_summary");
      assert.match(left.summary, /, none missing, 0 degraded\n/);
      assert.ok(project.summaryCalls.length > 0);
      assert.deepEqual(project.summaryCalls.map(effortOf).filter((effort) => effort !== "low"), []);
    });
  });
}
