/**
 * The user or another extension takes the extension's tools away, on the real Pi: the model is promised nothing that it can't do. Nothing is
 * folded, and what Pi's own compactions leave in the context says what happened without pointing to tools.
 */
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { extension, root } from "../../scripts/paths.mjs";
import { settled } from "../support/ahead.mjs";
import { blockOf, drillDownIds, statistics } from "../support/block.mjs";
import { filler } from "../support/history.mjs";
import { aProject } from "../support/project.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../../demo/rpc.mjs").Pi} Pi */

const inSupport = (/** @type {string} */ name) => path.join(root, "__test__", "support", name);
const [acting, narrowing] = ["acting.mjs", "narrowing.mjs"].map(inSupport);

/** Low enough for a session of a test: a fold comes as soon as it frees 4,000 tokens. */
const LCM = { foldAt: 1, maxSummaryTokens: 1_000, leafChunkTokens: 2_000, minMessagesForCompaction: 1, compactionModels: ["demo/demo-model"] };

/** A summary as models write it. */
const SUMMARY = { text: "A stretch of the work\nThe ledger was closed in May.\n\nExpand for details about: the ledger" };

/** How the tools are taken away. @type {{ how: string, args?: string[], extensions?: string[], at?: string }[]} */
const WAYS = [
  { how: "with --tools", args: ["--tools", "read,bash"] },
  { how: "with --exclude-tools", args: ["--exclude-tools", "lcm_expand"] },
  { how: "at the start by an extension", extensions: [extension, narrowing], at: "session_start" },
  { how: "before each run by an extension before ours", extensions: [narrowing, extension], at: "before_agent_start" },
  { how: "before each run by an extension after ours", extensions: [extension, narrowing], at: "before_agent_start" },
];

/** The sections of the system prompt that Pi has recorded. @param {Project} project */
const sections = (project) => project.sessions()[0].entries.flatMap(({ message }) => (message?.role === "system" ? Object.keys(message.sections ?? {}) : []));

/** Grows the context far beyond the fold point, and gives a fold time. @param {Project} project @param {Pi} pi */
async function grow(project, pi) {
  project.script.turns = ["alpha", "beta", "gamma", "delta"].map((name) => ({ text: filler(name, 3_000) }));
  for (const prompt of ["Begin.", filler("question", 2_000), "Go on.", "And on."]) await pi.prompt(prompt);
  for (const prompt of ["Is it done?", "And now?", "Is it?", "Well?"]) {
    // A fold uses summaries that are ready.
    await settled(project);
    await pi.prompt(prompt);
  }
}

for (const host of hostsFor("1.6.0").filter(({ version }) => version !== "0.87.1")) {
  for (const { how, args = [], extensions = [extension], at } of WAYS) {
    test(`without the tool that looks up, taken away ${how}, on ${host.name}`, async (t) => {
      const project = await aProject(t, { host, keepRecentTokens: 1_500, extensions: [...extensions, acting], settings: { lcm: LCM } });
      if (at) project.env.NARROW_AT = at;
      project.script.summary = () => SUMMARY;
      const pi = project.startPi(args);
      await grow(project, pi);
      assert.ok(!project.lastTurn.toolNames.includes("lcm_expand"));
      const compactions = async () => (await project.session(pi)).entries.filter(({ type }) => type === "compaction").length;
      assert.equal(await compactions(), 0, "nothing is folded");
      for (const { system } of project.turns) assert.doesNotMatch(system, /lcm_|Lossless/);
      assert.ok(!sections(project).includes("lcm"));

      await pi.request("compact");
      await pi.prompt("What was that?");
      assert.equal(await compactions(), 1);
      const block = blockOf(project.lastTurn) ?? "";
      assert.equal(statistics(block).missing, "none", block.slice(0, 500));
      assert.match(block, /The ledger was closed in May\./);
      assert.doesNotMatch(block, /lcm_|Drill-Down|Expand for details|\[s-[0-9a-f]{10}\]/);

      project.script.turns = [{ text: filler("aside", 300) }];
      await pi.prompt("Something else.");
      await pi.prompt("/act tree-summary What was that?");
      await pi.prompt("Back again.");
      const { summary } = (await project.session(pi)).entries.find(({ type }) => type === "branch_summary");
      assert.ok(statistics(summary).covers > 0, summary.slice(0, 500));
      assert.doesNotMatch(summary, /lcm_|Drill-Down|Expand for details|\[s-[0-9a-f]{10}\]/);
      assert.ok(JSON.stringify(project.lastTurn.body).includes(JSON.stringify(summary).slice(1, -1)), "the model sees it");
    });
  }

  /** @type {[string, Record<string, unknown>][]} */
  const there = [["declared to the model", {}], ["called by scripts alone", { defaultTools: ["+codemode"], codemode: { mode: "only" } }]];
  for (const [how, own] of there) {
    test(`tools that are ${how} are promised, and the same talk is folded, on ${host.name}`, async (t) => {
      const project = await aProject(t, { host, keepRecentTokens: 1_500, settings: { lcm: LCM, ...own } });
      project.script.summary = () => SUMMARY;
      const pi = project.startPi();
      await grow(project, pi);
      const { toolNames, system } = project.lastTurn;
      assert.equal(toolNames.includes("lcm_expand"), !("codemode" in own));
      assert.match(system, /lcm_grep with words you expect in it/);
      assert.ok(sections(project).includes("lcm"));
      const block = blockOf(project.lastTurn) ?? "";
      assert.equal(statistics(block).missing, "none", "the history is folded");
      const [id] = drillDownIds(block);
      const code = `return await tools.lcm_expand({ summary_id: "${id}" });`;
      project.script.turns = [{ toolCalls: ["codemode" in own ? { name: "codemode", arguments: { code } } : { name: "lcm_expand", arguments: { summary_id: id } }] }];
      await pi.prompt("Look it up.");
      assert.match(project.lastTurn.messages.findLast(({ role }) => role === "tool")?.text ?? "", /Begin\./);
    });
  }
}
