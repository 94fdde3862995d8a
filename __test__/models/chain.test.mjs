/**
 * Who writes the summaries: the models of the settings in their order, then the session's own, of whatever kind they are.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { hosts, hostsFor } from "../../scripts/hosts.mjs";
import { extension } from "../../scripts/paths.mjs";
import { blockOf } from "../support/block.mjs";
import { filler } from "../support/history.mjs";
import { aProject } from "../support/project.mjs";

/** @typedef {import("node:test").TestContext} TestContext */
/** @typedef {import("../../scripts/hosts.mjs").Host} Host */

const providers = fileURLToPath(new URL("./providers.mjs", import.meta.url));

/**
 * A project whose summaries are to come from `compactionModels`; the session's own model is `demo/demo-model`.
 * @param {TestContext} t
 * @param {Host} host
 * @param {string[]} compactionModels
 * @param {{ lcm?: object, args?: string[], script?: import("../support/project.mjs").Script }} [more]
 */
async function compactedBy(t, host, compactionModels, { lcm = {}, args = [], script } = {}) {
  const settings = { lcm: { compactionModels, ...lcm } };
  const project = await aProject(t, { host, settings, script, extensions: [extension, providers] });
  const history = project.history();
  history.talk(30);
  const login = { club: { type: "oauth", access: "club-token", refresh: "club-refresh", expires: Date.now() + 86_400_000 } };
  writeFileSync(path.join(project.agentDir, "auth.json"), JSON.stringify(login));
  const pi = project.startPi(["--session", history.write(project.sessionDir), ...args]);
  await pi.request("compact");
  await pi.prompt("and now?");
  const { lastCompaction } = await project.session(pi);
  assert.match(lastCompaction.summary, /covers 5\d messages, none missing, 0 degraded/);
  assert.equal(blockOf(project.lastTurn), lastCompaction.summary);
  const models = project.inStore((store) => store.rows("SELECT DISTINCT model FROM summaries").map(({ model }) => model));
  return { project, pi, models, usage: lastCompaction.usage };
}

/** Who was asked on the server, once each. @param {import("../support/project.mjs").Project} project */
function authorizations(project) {
  return [...new Set(project.summaryCalls.map(({ headers }) => headers.authorization))];
}

for (const host of hostsFor(hosts)) {
  test(host.name, { concurrency: 2 }, async (t) => {
    await Promise.all([
      t.test("models that Pi does not know, or has no key for, give way to the session's own without a word", async (t) => {
        const { project, pi, models } = await compactedBy(t, host, ["nobody/nothing", "anthropic/claude-haiku-4-5", "club/other"]);
        assert.deepEqual(models, ["demo/demo-model"]);
        assert.ok(project.summaryCalls.length > 0);
        assert.deepEqual(pi.ui("notify").map(({ notifyType }) => notifyType), ["info"]);
      }),

      t.test("a provider of another extension is asked in that extension's way", async (t) => {
        const { project, models, usage } = await compactedBy(t, host, ["homemade/homemade-model"]);
        assert.deepEqual(models, ["homemade/homemade-model"]);
        assert.equal(project.summaryCalls.length, 0);
        if (host.version !== "0.74.2") assert.equal(usage.input % 7, 0);
      }),

      t.test("a provider that the user has logged in to is asked through Pi, with the login's token", async (t) => {
        const { project, models } = await compactedBy(t, host, ["club/club-model"]);
        assert.deepEqual(models, ["club/club-model"]);
        assert.deepEqual(authorizations(project), ["Bearer club-token"]);
        assert.ok(project.summaryCalls.every(({ streaming }) => streaming));
      }),

      t.test("a plain provider with a key is asked straight from the engine", async (t) => {
        const { project, models } = await compactedBy(t, host, []);
        assert.deepEqual(models, ["demo/demo-model"]);
        assert.deepEqual(authorizations(project), ["Bearer no-key-needed"]);
        assert.ok(project.summaryCalls.every(({ streaming }) => !streaming));
      }),

      t.test("and through Pi where the user wants that", async (t) => {
        const { project } = await compactedBy(t, host, [], { lcm: { directModelCalls: false } });
        assert.ok(project.summaryCalls.length > 0 && project.summaryCalls.every(({ streaming }) => streaming));
      }),

      t.test("a model that fails gives way to the next, and is not asked for ever", async (t) => {
        /** @type {import("../support/project.mjs").Script} */
        const script = {
          summary: ({ body }) => (body.model === "club-model" ? { status: 500 } : { text: `Talk\n${filler("talk", 40)}` }),
        };
        const { project, models } = await compactedBy(t, host, ["club/club-model"], { script, lcm: { leafChunkTokens: 500, modelRetries: 0 } });
        assert.deepEqual(models, ["demo/demo-model"]);
        const asked = project.summaryCalls.map(({ body }) => body.model);
        const [failed, answered] = ["club-model", "demo-model"].map((name) => asked.filter((model) => model === name).length);
        // Four are asked at once, so a few more than the three that are enough.
        assert.ok(failed >= 3 && failed <= 6 && answered >= 8, asked.join());
      }),
    ]);
  });
}

// Virtual models came with Pi 1.0.
for (const host of hosts.filter(({ version }) => version === "1.5.2")) {
  test(`a virtual model is asked through Pi, which routes it, on ${host.name}`, async (t) => {
    const { project, models } = await compactedBy(t, host, [], { args: ["--model", "router/auto"] });
    assert.deepEqual(models, ["demo/demo-model"]);
    assert.ok(project.summaryCalls.length > 0 && project.summaryCalls.every(({ streaming }) => streaming));
  });
}
