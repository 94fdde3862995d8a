/** Who is asked for summaries when the settings name models that Pi knows from its models.json. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsByVersion, hostsFor } from "../../scripts/hosts.mjs";
import { Store } from "../support/store.mjs";
import { aPlace } from "./starting.mjs";

/** @typedef {import("./starting.mjs").Place} Place */

/** A second provider. @param {Place} place */
function addProviders({ project: { agentDir } }) {
  const file = path.join(agentDir, "models.json");
  const { providers } = JSON.parse(readFileSync(file, "utf8"));
  const { demo } = providers;
  const small = { ...demo.models[0], id: "small/of-2026", name: "A small one" };
  providers.second = { ...demo, apiKey: "the-second-key", models: [small] };
  writeFileSync(file, JSON.stringify({ providers }));
}

/**
 * Compacts a history; who was asked in which order, who is named as the author, and what the user was told.
 * @param {Place} place
 * @param {Record<string, string>} [env]
 * @returns {Promise<{ asked: string[], authors: string[], told: { message: string, notifyType: string }[] }>}
 */
async function compacted(place, env) {
  const { project } = place;
  addProviders(place);
  const history = project.history();
  history.talk(30);
  const file = history.write(project.sessionDir);
  const told = await place.rpc(async (pi) => {
    await pi.request("compact");
    await pi.waitFor(() => pi.ui("notify").length > 0);
    return pi.ui("notify");
  }, { args: ["--session", file], env });
  const store = new Store(place.defaultDir);
  const authors = store.rows("SELECT DISTINCT model FROM summaries").map(({ model }) => model);
  store.close();
  const asked = project.summaryCalls.map(({ body }) => body.model);
  return { asked, authors, told: told.map(({ message, notifyType }) => ({ message, notifyType })) };
}

for (const host of hostsFor(hostsByVersion)) {
  test(`models that the settings name, on ${host.name}`, { concurrency: 3 }, async (t) => {
    await Promise.all([
      t.test("the first that Pi knows and has a key for is asked; the others are passed over without a word", async (t) => {
        const place = await aPlace(t, host, { lcm: { compactionModels: ["nobody/nothing", "second/nothing", "anthropic/claude-haiku-4-5", "second/small/of-2026", "demo/demo-model"] } });
        const { asked, authors, told } = await compacted(place);
        assert.ok(asked.length > 0 && asked.every((model) => model === "small/of-2026"), asked.join());
        assert.deepEqual(authors, ["second/small/of-2026"]);
        assert.deepEqual(place.project.summaryCalls.map(({ headers }) => headers.authorization).filter((key) => key !== "Bearer the-second-key"), []);
        assert.deepEqual(told.map(({ notifyType }) => notifyType), ["info"]);
      }),

      t.test("one that answers with an error gives way to the session's own, and nothing is missing", async (t) => {
        const place = await aPlace(t, host, { lcm: { compactionModels: ["second/small/of-2026"], leafPassConcurrency: 1, modelRetries: 0 } });
        place.project.script.summary = ({ body }) =>
          body.model === "demo-model" ? { text: "Talk\nMuch was said." } : { status: 500, errorBody: "out of order" };
        const { asked, authors, told } = await compacted(place);
        assert.equal(asked[0], "small/of-2026");
        assert.ok(asked.includes("demo-model"));
        assert.deepEqual(authors, ["demo/demo-model"]);
        assert.deepEqual(told.map(({ notifyType }) => notifyType), ["info"]);
        assert.match(told[0].message, /^LCM: 5\d messages in \d+ summar/);
      }),

      t.test("a variable names them with commas between, and counts before the settings", async (t) => {
        const place = await aPlace(t, host, { lcm: { compactionModels: ["demo/demo-model"] } });
        const { asked, authors } = await compacted(place, { LCM_COMPACTION_MODELS: " nobody/nothing, second/small/of-2026 " });
        assert.deepEqual([...new Set(asked)], ["small/of-2026"]);
        assert.deepEqual(authors, ["second/small/of-2026"]);
      }),
    ]);
  });
}
