/**
 * A session whose summaries a real model writes, a very small one: what must hold with any model, whatever it says. `SMALL_MODEL=1` runs
 * it, and fetches the model at first; the nightly tests do.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Dice } from "../../bench/corpus.mjs";
import { WINDOW, loadSmallModel } from "../../scripts/small-model.mjs";
import { blockOf, statistics } from "../support/block.mjs";
import { filler } from "../support/history.mjs";
import { aProject } from "../support/project.mjs";

test("a real small model writes the summaries", { skip: !process.env.SMALL_MODEL, timeout: 900_000 }, async (t) => {
  const small = await loadSmallModel();
  t.after(() => small.close());
  const project = await aProject(t, { api: "openai", contextWindow: WINDOW, settings: { compaction: { reserveTokens: 2_048, keepRecentTokens: 400 }, lcm: { background: false, modelTimeoutSeconds: 300 } } });
  project.script.summary = small.reply;
  const history = project.history();
  history.talk(3, { words: 40 });
  for (let n = 0; n < 3; n++) {
    history.assistant(`I look into data/${n}.txt.`, [{ id: `call_${n}`, name: "read", arguments: { path: `data/${n}.txt` } }]);
    history.toolResult(`call_${n}`, "read", new Dice(n).code(1_200));
  }
  history.talk(3, { words: 40, name: "later" });
  const pi = project.startPi(["--session", history.write(project.sessionDir)]);
  const prompt = (/** @type {string} */ text) => pi.prompt(text, { timeoutMs: 800_000 });

  /** Compacts, and checks what must hold. */
  const compacted = async () => {
    // Pi refuses where a fold has left too little.
    await pi.request("compact", {}, 800_000).catch(() => {});
    await prompt("and now?");
    const { summary } = (await project.session(pi)).lastCompaction;
    assert.equal(blockOf(project.lastTurn), summary);
    assert.match(summary, /none missing/);
    const session = await project.session(pi);
    const { entries, summaries } = project.inStore((store) => {
      assert.deepEqual(store.brokenSummaries(), []);
      return { entries: store.entries(session.id), summaries: store.rows("SELECT state, model FROM summaries ORDER BY id") };
    });
    const said = session.entries.filter(({ type }) => type === "message").map(({ id }) => id);
    const stored = new Set(entries.map(({ id }) => id));
    assert.deepEqual(said.filter((id) => !stored.has(id)), []);
    for (const { state, model } of summaries) if (state === "degraded") assert.equal(model, null);
    return { degraded: statistics(summary).degraded, summaries };
  };

  const first = await compacted();
  assert.ok(project.summaryCalls.length > 0 && first.summaries.length > 0);

  // Nothing that is cut off after a few tokens is a summary.
  project.script.summary = (request) => small.reply({ ...request, body: { ...request.body, max_tokens: 6, max_completion_tokens: 6 } });
  for (let n = 0; n < 5; n++) await prompt(filler(`again-${n}`, 250));
  const second = await compacted();
  assert.ok(second.degraded > 0, JSON.stringify(second));
  const added = second.summaries.slice(first.summaries.length);
  assert.deepEqual(added.filter(({ state, model }) => state !== "degraded" && model !== null), []);

  // A model that answers well heals what that one could not.
  project.script.summary = undefined;
  for (let n = 0; n < 5; n++) await prompt(filler(`last-${n}`, 250));
  assert.equal((await compacted()).degraded, 0);
});
