/** The models that are called if settings name models from Pi's `models.json`. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
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
 * Compacts a new history. Returns the calls, the authors of the summaries, and the notifications.
 * @param {Place} place
 * @param {Pi} pi
 */
async function compacted({ project, defaultDir }, pi) {
  const [calls, notices, begun] = [project.summaryCalls.length, pi.ui("notify").length, Date.now()];
  const history = project.history(randomUUID());
  // With the same words as before, the summaries would exist already.
  history.talk(30, { name: `mark${calls}` });
  await pi.request("switch_session", { sessionPath: history.write(project.sessionDir) });
  await pi.request("compact");
  // Meanwhile, older sessions are offered for import.
  const shown = () => pi.ui("notify").slice(notices).filter(({ message }) => !message.includes("/lcm import"));
  await pi.waitFor(() => shown().length > 0);
  const store = new Store(defaultDir);
  const authors = store.rows("SELECT DISTINCT model FROM summaries WHERE created_at >= ?", begun);
  store.close();
  const made = project.summaryCalls.slice(calls);
  const [asked, keys] = [made.map(({ body }) => body.model), made.map(({ headers }) => headers.authorization)];
  return { asked, keys, authors: authors.map(({ model }) => model), shown: shown() };
}

for (const host of hostsFor()) {
  test(`models of the settings, on ${host.name}`, async (t) => {
    const place = await aPlace(t, host, { lcm: { compactionModels: ["nobody/nothing", "second/nothing", "anthropic/claude-haiku-4-5", "second/small/of-2026", "demo/demo-model"] } });
    addProviders(place);
    await place.rpc(async (pi) => {
      await t.test("the first one that Pi knows and has a key for is called; the others are skipped silently", async () => {
        const { asked, keys, authors, shown } = await compacted(place, pi);
        assert.deepEqual([...new Set(asked)], ["small/of-2026"]);
        assert.deepEqual([...new Set(keys)], ["Bearer the-second-key"]);
        assert.deepEqual(authors, ["second/small/of-2026"]);
        assert.deepEqual(shown.map(({ notifyType }) => notifyType), ["info"]);
      });

      await t.test("one that answers with an error is replaced by the session's own, and nothing is missing", async () => {
        place.global({ compactionModels: ["second/small/of-2026"], leafPassConcurrency: 1, modelRetries: 0 });
        place.project.script.summary = ({ body }) =>
          body.model === "demo-model" ? { text: "Talk\nMuch was said." } : { status: 500, errorBody: "out of order" };
        const { asked, authors, shown } = await compacted(place, pi);
        assert.equal(asked[0], "small/of-2026");
        assert.ok(asked.includes("demo-model"));
        assert.deepEqual(authors, ["demo/demo-model"]);
        assert.deepEqual(shown.map(({ notifyType }) => notifyType), ["info"]);
        assert.match(shown[0].message, /^LCM: 5\d messages in \d+ summar/);
      });
    });
  });

  test(`a variable with models separated by commas overrides the settings, on ${host.name}`, async (t) => {
    const place = await aPlace(t, host, { lcm: { compactionModels: ["demo/demo-model"] } });
    addProviders(place);
    await place.rpc(async (pi) => {
      const { asked, authors } = await compacted(place, pi);
      assert.deepEqual([...new Set(asked)], ["small/of-2026"]);
      assert.deepEqual(authors, ["second/small/of-2026"]);
    }, { env: { LCM_COMPACTION_MODELS: " nobody/nothing, second/small/of-2026 " } });
  });
}

/** Prices of a common model, of one that is good enough for summaries, and lower ones. */
const [DEAR, CHEAP, GIVEN, FREE] = [[3, 15, 0.3, 3.75], [1, 5, 0.1, 1.25], [0.01, 0.05, 0, 0], [0, 0, 0, 0]].map(([input, output, cacheRead, cacheWrite]) => ({ input, output, cacheRead, cacheWrite }));

for (const host of hostsFor()) {
  test(`without a named model that has a key, on ${host.name}`, async (t) => {
    const models = [{ id: "demo-small", cost: CHEAP }, { id: "demo-tiny", contextWindow: 8_000, cost: CHEAP }, { id: "demo-3b", cost: GIVEN }, { id: "demo-small-batch", cost: GIVEN }, { id: "demo-free", cost: FREE }];
    const place = await aPlace(t, host, { cost: DEAR, models });
    const file = path.join(place.project.agentDir, "models.json");
    const { providers } = JSON.parse(readFileSync(file, "utf8"));
    // From another provider, which the user has not chosen.
    providers.second = { ...providers.demo, models: [{ ...providers.demo.models[0], id: "demo-gift", cost: GIVEN }] };
    writeFileSync(file, JSON.stringify({ providers }));

    await place.rpc(async (pi) => {
      await t.test("the cheapest capable model of the session's provider is called, and the user learns it once", async () => {
        const { asked, authors, shown } = await compacted(place, pi);
        assert.deepEqual([...new Set(asked)], ["demo-small"]);
        assert.deepEqual(authors, ["demo/demo-small"]);
        assert.equal(shown.filter(({ message }) => message.includes("demo/demo-small writes the summaries")).length, 1);
        const again = await compacted(place, pi);
        assert.deepEqual([[...new Set(again.asked)], again.shown.length], [["demo-small"], 1]);
      });

      await t.test("the session's own is called if the setting is `session`", async () => {
        place.global({ compactionModels: ["session"] });
        const { asked, shown } = await compacted(place, pi);
        assert.deepEqual([...new Set(asked)], ["demo-model"]);
        assert.equal(shown.length, 1);
      });

      await t.test("the session's own is called at its place in the list", async () => {
        place.global({ compactionModels: ["nobody/nothing", "session", "second/demo-gift"] });
        const { asked, shown } = await compacted(place, pi);
        assert.deepEqual([[...new Set(asked)], shown.length], [["demo-model"], 1]);
      });
    });
  });
}
