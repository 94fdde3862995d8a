/** The models that write summaries: those of the settings in their order, then the session's own, of any kind. */
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

/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../support/project.mjs").Pi} Pi */

const providers = fileURLToPath(new URL("./providers.mjs", import.meta.url));

/**
 * A Pi with models of all kinds; the session's own is `demo/demo-model`.
 * @param {import("node:test").TestContext} t
 * @param {import("../../scripts/hosts.mjs").Host} host
 */
async function aChoice(t, host) {
  const project = await aProject(t, { host, extensions: [extension, providers] });
  const login = { club: { type: "oauth", access: "club-token", refresh: "club-refresh", expires: Date.now() + 86_400_000 } };
  writeFileSync(path.join(project.agentDir, "auth.json"), JSON.stringify(login));
  // Each session must find an empty store.
  project.storeIn("store");
  return { project, pi: project.startPi() };
}

/**
 * Compacts a new session, whose summaries should come from `compactionModels`.
 * @param {{ project: Project, pi: Pi }} choice
 * @param {string[]} compactionModels
 * @param {{ lcm?: object, model?: { provider: string, modelId: string }, answered?: object, summary?: import("../support/project.mjs").Script["summary"] }} [more] `answered`: what differs in the last answer
 */
async function compactedBy({ project, pi }, compactionModels, { lcm = {}, model, answered, summary } = {}) {
  const name = `session-${project.sessions().length}`;
  project.storeIn(name, { compactionModels, ...lcm });
  const history = project.history(name);
  history.talk(30);
  Object.assign(history.entries.at(-1).message, answered);
  if (model) history.entry("model_change", model);
  await project.resume(pi, history);
  project.script.summary = summary;
  await pi.request("compact");
  await pi.prompt("and now?");
  const { lastCompaction } = await project.session(pi);
  assert.match(lastCompaction.summary, /covers 5\d messages, none missing, 0 degraded/);
  assert.equal(blockOf(project.lastTurn), lastCompaction.summary);
  const models = project.inStore((store) => store.rows("SELECT DISTINCT model FROM summaries").map(({ model }) => model));
  return { models, usage: lastCompaction.usage };
}

/** The authorizations that the server got, once each, in either format. @param {Project} project */
function authorizations(project) {
  return [...new Set(project.summaryCalls.map(({ headers }) => headers.authorization ?? `Bearer ${headers["x-api-key"]}`))];
}

for (const host of hostsFor()) {
  test(host.name, async (t) => {
    const choice = await aChoice(t, host);
    const { project, pi } = choice;

    await t.test("models that Pi does not know, or has no key for, are skipped for the session's own, and the user learns it", async () => {
      const { models } = await compactedBy(choice, ["nobody/nothing", "anthropic/claude-haiku-4-5", "club/other"]);
      assert.deepEqual(models, ["demo/demo-model"]);
      assert.ok(project.summaryCalls.length > 0);
      assert.deepEqual(pi.ui("notify").map(({ notifyType }) => notifyType).sort(), ["info", "warning"]);
    });

    await t.test("a provider of another extension is called in that extension's way", async () => {
      const { models, usage } = await compactedBy(choice, ["homemade/homemade-model"]);
      assert.deepEqual(models, ["homemade/homemade-model"]);
      assert.equal(project.summaryCalls.length, 0);
      assert.equal(usage.input % 7, 0);
    });

    await t.test("a provider with a login is called with the login's token", async () => {
      const { models } = await compactedBy(choice, ["club/club-model"]);
      assert.deepEqual(models, ["club/club-model"]);
      assert.deepEqual(authorizations(project), ["Bearer club-token"]);
    });

    await t.test("a plain provider is called with its key", async () => {
      const { models } = await compactedBy(choice, []);
      assert.deepEqual(models, ["demo/demo-model"]);
      assert.deepEqual(authorizations(project), ["Bearer no-key-needed"]);
    });

    // Last, because the model is skipped for a while afterwards.
    await t.test("a failing model is replaced by the next, and not called forever", async () => {
      /** @type {import("../support/project.mjs").Script["summary"]} */
      const summary = ({ body }) => (body.model === "club-model" ? { status: 500 } : { text: `Talk\n${filler("talk", 40)}` });
      const { models } = await compactedBy(choice, ["club/club-model"], { summary, lcm: { leafChunkTokens: 500, modelRetries: 0 } });
      assert.deepEqual(models, ["demo/demo-model"]);
      const asked = project.summaryCalls.map(({ body }) => body.model);
      const [failed, answered] = ["club-model", "demo-model"].map((name) => asked.filter((model) => model === name).length);
      assert.ok(failed === 1 && answered >= 8, asked.join());
    });
  });
}

// Virtual models came with Pi 1.0.
for (const host of hosts.filter(({ version }) => version === "1.5.2")) {
  test(`for a virtual model, the last answer's model is called, on ${host.name}`, async (t) => {
    const choice = await aChoice(t, host);
    const model = { provider: "router", modelId: "auto" };
    // If Pi no longer knows that model, it routes the calls.
    for (const answered of [{}, { provider: "gone" }]) {
      const { models } = await compactedBy(choice, [], { model, answered });
      assert.deepEqual(models, ["demo/demo-model"]);
      assert.ok(choice.project.summaryCalls.length > 0);
    }
  });
}
