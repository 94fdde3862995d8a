/**
 * Reasoning that is bound to what stands before it, on models of Pi's own catalog: whatever the extension changes, no request is refused,
 * and what the model thinks afterwards stays valid. A change that the extension can't see is repaired in the same run.
 */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { extension } from "../../scripts/paths.mjs";
import { settled } from "../support/ahead.mjs";
import { blockOf } from "../support/block.mjs";
import { copyWithoutEngine } from "../support/copies.mjs";
import { filler } from "../support/history.mjs";
import { aProject, temporaryFolder } from "../support/project.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */

/** A model behind a provider that refuses what does not fit, one that drops it, and one whose reasoning is not checked. */
const MODELS = [
  { provider: "vercel-ai-gateway", modelId: "anthropic/claude-opus-5.5" },
  { provider: "cloudflare-ai-gateway", modelId: "claude-opus-5-5" },
  { provider: "github-copilot", modelId: "claude-opus-5.5" },
  { provider: "anthropic", modelId: "claude-opus-5-5" },
  { provider: "anthropic", modelId: "claude-opus-4-5" },
];

/** Low enough for a session of a test: a fold comes as soon as it frees 4,000 tokens. */
const LCM = { foldAt: 1, maxSummaryTokens: 1_000, leafChunkTokens: 2_000 };

/** @param {string} command */
const bash = (command) => ({ text: "Let me look.", toolCalls: [{ name: "bash", arguments: { command } }] });

/** Two tool calls and an answer. */
const task = () => [bash("echo one"), bash("echo two"), { text: "Both are there." }];

/** A long text, which a fold takes out of the context. @param {string} name */
const long = (name) => ({ text: filler(name, 3_000) });

/** @param {Project} project @param {number} [from] */
const results = ({ turns }, from = 0) => turns.slice(from).map(({ judged }) => judged.result);

/**
 * A session that was begun with the extension, whose tools its reasoning is bound to.
 * @param {import("node:test").TestContext} t
 * @param {import("../../scripts/hosts.mjs").Host} host
 */
async function begun(t, host) {
  const settings = { defaultThinkingLevel: "low", defaultProvider: "vercel-ai-gateway", defaultModel: "anthropic/claude-opus-5.5" };
  const project = await aProject(t, { host, catalog: ["vercel-ai-gateway"], settings });
  const pi = project.startPi();
  project.script.turns = task();
  await pi.prompt("Look twice.");
  const { sessionFile } = await pi.request("get_state");
  await pi.stop();
  return { project, sessionFile };
}

for (const host of hostsFor("0.87.1", "1.6.0")) {
  // Pi 0.87.1 has older models.
  const models = host.version === "0.87.1" ? MODELS.slice(-1) : MODELS;
  test(`bound reasoning on ${host.name}`, async (t) => {
    const catalog = [...new Set(models.map(({ provider }) => provider))];
    const project = await aProject(t, { host, catalog, keepRecentTokens: 1_500, settings: { defaultThinkingLevel: "low", lcm: LCM } });
    Object.assign(project.env, { CLOUDFLARE_ACCOUNT_ID: "account", CLOUDFLARE_GATEWAY_ID: "gateway" });

    for (const { provider, modelId } of models) {
      await t.test(`${provider}, ${modelId}`, async () => {
        const begin = async (/** @type {string[]} */ args, loading = /** @type {null | undefined} */ (undefined)) => {
          const pi = project.startPi(args, loading);
          await pi.request("set_model", { provider, modelId });
          return pi;
        };
        // Begun without the extension, whose tools change the beginning of the prompt.
        const before = await begin([], null);
        project.script.turns = [...task(), long("alpha"), long("beta")];
        for (const prompt of ["Look twice.", filler("question", 2_000), "And more."]) await before.prompt(prompt);
        const { sessionFile } = await before.request("get_state");
        await before.stop();
        assert.ok(results(project).every((result) => result === "ok"));

        project.server.requests.length = 0;
        const pi = await begin(["--session", sessionFile]);
        project.script.turns = task();
        await pi.prompt("Look again.");
        // A fold may have come just before.
        await pi.request("compact").catch(({ message }) => assert.match(message, /Already compacted/));
        project.script.turns = [...task(), long("gamma"), long("delta"), long("epsilon"), long("zeta")];
        for (const prompt of ["Once more.", filler("more", 2_000), "Go on.", "And on.", "And on."]) await pi.prompt(prompt);
        await settled(project);
        const isFolded = async () => {
          const compactions = (await project.session(pi)).entries.filter(({ type }) => type === "compaction");
          return compactions.slice(1).some(({ summary }) => summary === blockOf(project.lastTurn));
        };
        // On a busy machine the summaries, and so the fold, come later.
        for (let more = 0; more < 2 || (more < 8 && !(await isFolded())); more++) {
          project.script.turns = task();
          await pi.prompt(`Look again, number ${more}.`);
        }
        assert.deepEqual(new Set(results(project)), new Set(["ok"]));
        assert.equal(project.turns.filter(({ judged }) => judged.dropped > 0).length, 0, "nothing is sent in vain");
        assert.ok(await isFolded(), "the last request shows a fold's block");
        // A fold may have come just before the last request.
        assert.ok(project.turns.slice(-4).some(({ judged }) => judged.seen > 0), "what the model has thought since is there");
        assert.deepEqual(pi.ui("notify").filter(({ message }) => /reasoning/.test(message)), []);
        await pi.stop();
        project.server.requests.length = 0;
        rmSync(sessionFile);
      });
    }
  });

  if (host.version !== "0.87.1") test(`a refused request is repaired once, on ${host.name}`, async (t) => {
    const edited = path.join(import.meta.dirname, "..", "support", "edited.mjs");
    const project = await aProject(t, { host, catalog: ["vercel-ai-gateway"], extensions: [extension, edited], settings: { defaultThinkingLevel: "low" } });
    project.refusals = /^bound$/;
    const pi = project.startPi(["--model", "vercel-ai-gateway/anthropic/claude-opus-5.5"]);
    project.script.turns = [bash("echo one"), bash("echo two"), bash("echo three"), { text: "Three." }];
    await pi.prompt("Count.");
    project.script.turns = task();
    await pi.prompt("Look again.");
    assert.deepEqual(results(project), ["ok", "ok", "ok", "bound", "ok", "ok", "ok", "ok"]);
    assert.equal(project.lastTurn.judged.seen, 3, "what came after the repair");
    const notices = pi.ui("notify").filter(({ message }) => /earlier reasoning/.test(message));
    assert.equal(notices.length, 1);
    const session = await project.session(pi);
    assert.ok(session.entries.some(({ message }) => message?.content?.[0]?.type === "thinking"), "the session keeps it");

    await t.test("also after a restart", async () => {
      await pi.stop();
      const again = project.startPi(["--session", session.file, "--model", "vercel-ai-gateway/anthropic/claude-opus-5.5"]);
      await again.prompt("And now?");
      assert.equal(project.lastTurn.judged.result, "ok");
    });
  });

  if (host.version !== "0.87.1") test(`a session goes on without an engine, whose tools it had, on ${host.name}`, async (t) => {
    const { project, sessionFile } = await begun(t, host);
    const again = project.startPi(["--session", sessionFile], copyWithoutEngine(temporaryFolder(t), "missing"));
    await again.prompt("And now?");
    await again.prompt("And then?");
    assert.deepEqual(results(project), ["ok", "ok", "ok", "ok", "ok"]);
  });

  if (host.version !== "0.87.1") test(`a session goes on when the extension is switched off, on ${host.name}`, async (t) => {
    const { project, sessionFile } = await begun(t, host);
    project.env.LCM_ENABLED = "0";
    const again = project.startPi(["--session", sessionFile]);
    await again.prompt("And now?");
    await again.prompt("And then?");
    assert.deepEqual(results(project), ["ok", "ok", "ok", "ok", "ok"]);
    assert.ok(!project.lastTurn.toolNames.includes("lcm_grep"));
  });
}
