/** Who is asked for summaries when the settings name models that Pi knows from its models.json. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsByVersion, hostsFor } from "../../scripts/hosts.mjs";
import { Store } from "../support/store.mjs";
import { aPlace } from "./starting.mjs";

/** @typedef {import("./starting.mjs").Place} Place */
/** @typedef {import("../../demo/rpc.mjs").Pi} Pi */

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
 * Compacts a history of its own; which calls that took, who is named as the author, and what the user was told.
 * @param {Place} place
 * @param {Pi} pi
 */
async function compacted({ project, defaultDir }, pi) {
  const [calls, notices, begun] = [project.summaryCalls.length, pi.ui("notify").length, Date.now()];
  const history = project.history(randomUUID());
  // Of what was said before in the same words, the summaries would be there already.
  history.talk(30, { name: `mark${calls}` });
  await pi.request("switch_session", { sessionPath: history.write(project.sessionDir) });
  await pi.request("compact");
  // What was said before we were here is offered for import meanwhile.
  const told = () => pi.ui("notify").slice(notices).filter(({ message }) => !message.includes("/lcm import"));
  await pi.waitFor(() => told().length > 0);
  const store = new Store(defaultDir);
  const authors = store.rows("SELECT DISTINCT model FROM summaries WHERE created_at >= ?", begun);
  store.close();
  const made = project.summaryCalls.slice(calls);
  const [asked, keys] = [made.map(({ body }) => body.model), made.map(({ headers }) => headers.authorization)];
  return { asked, keys, authors: authors.map(({ model }) => model), told: told() };
}

for (const host of hostsFor(hostsByVersion)) {
  test(`models that the settings name, on ${host.name}`, async (t) => {
    const place = await aPlace(t, host, { lcm: { compactionModels: ["nobody/nothing", "second/nothing", "anthropic/claude-haiku-4-5", "second/small/of-2026", "demo/demo-model"] } });
    addProviders(place);
    await place.rpc(async (pi) => {
      await t.test("the first that Pi knows and has a key for is asked; the others are passed over without a word", async () => {
        const { asked, keys, authors, told } = await compacted(place, pi);
        assert.deepEqual([...new Set(asked)], ["small/of-2026"]);
        assert.deepEqual([...new Set(keys)], ["Bearer the-second-key"]);
        assert.deepEqual(authors, ["second/small/of-2026"]);
        assert.deepEqual(told.map(({ notifyType }) => notifyType), ["info"]);
      });

      await t.test("one that answers with an error gives way to the session's own, and nothing is missing", async () => {
        place.global({ compactionModels: ["second/small/of-2026"], leafPassConcurrency: 1, modelRetries: 0 });
        place.project.script.summary = ({ body }) =>
          body.model === "demo-model" ? { text: "Talk\nMuch was said." } : { status: 500, errorBody: "out of order" };
        const { asked, authors, told } = await compacted(place, pi);
        assert.equal(asked[0], "small/of-2026");
        assert.ok(asked.includes("demo-model"));
        assert.deepEqual(authors, ["demo/demo-model"]);
        assert.deepEqual(told.map(({ notifyType }) => notifyType), ["info"]);
        assert.match(told[0].message, /^LCM: 5\d messages in \d+ summar/);
      });
    });
  });

  test(`a variable names models with commas between, and counts before the settings, on ${host.name}`, async (t) => {
    const place = await aPlace(t, host, { lcm: { compactionModels: ["demo/demo-model"] } });
    addProviders(place);
    await place.rpc(async (pi) => {
      const { asked, authors } = await compacted(place, pi);
      assert.deepEqual([...new Set(asked)], ["small/of-2026"]);
      assert.deepEqual(authors, ["second/small/of-2026"]);
    }, { env: { LCM_COMPACTION_MODELS: " nobody/nothing, second/small/of-2026 " } });
  });
}
