/**
 * Summaries written within the session if that costs less: the request is the session's last one, byte for byte, with one more message, in
 * both wire formats.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { LastRequest } from "../../shim/last-request.js";
import { MAIN, hosts, hostsFor } from "../../scripts/hosts.mjs";
import { filler } from "../support/history.mjs";
import { aProject, eventually } from "../support/project.mjs";

/** @typedef {import("../../demo/model-server.mjs").Received} Received */
/** @typedef {import("../support/project.mjs").Script} Script */

/**
 * A session that is compacted after a prompt, with the calls for summaries.
 * @param {import("node:test").TestContext} t
 * @param {{ api: "openai" | "anthropic", host?: import("../../scripts/hosts.mjs").Host, cost?: { input: number, output: number, cacheRead: number, cacheWrite: number }, summary?: Script["summary"] }} options
 */
async function compacted(t, { summary, ...options }) {
  const project = await aProject(t, { ...options, thinking: "none", settings: { lcm: { compactionModels: [], leafChunkTokens: 4_000, background: false } } });
  project.script.summary = summary;
  const pi = project.startPi(["--session", longTalk(project)]);
  await pi.prompt("And now?");
  const { lastTurn } = project;
  await pi.request("compact");
  const { lastCompaction } = await project.session(pi);
  assert.match(lastCompaction.summary, /none missing, 0 degraded/);
  return { lastTurn, calls: project.summaryCalls };
}

/** A session of several stretches. @param {import("../support/project.mjs").Project} project @returns {string} its file */
function longTalk(project) {
  const history = project.history();
  for (let turn = 0; turn < 12; turn++) {
    history.user(`Question ${turn}: ${filler(`question ${turn}`, 30)}`);
    history.assistant(`Answer ${turn}: ${filler(`answer ${turn}`, 300)}`);
  }
  return history.write(project.sessionDir);
}

/** A request without the question at its end and the limit of the answer. @param {Received} request */
function withoutQuestion({ body: { max_tokens: _, max_completion_tokens: __, ...body } }) {
  const { messages } = body;
  const { content, ...last } = messages.at(-1);
  const isOwn = content.length === 1;
  return { ...body, messages: isOwn ? messages.slice(0, -1) : messages.with(-1, { ...last, content: content.slice(0, -1) }) };
}

for (const host of hostsFor()) {
  for (const api of /** @type {const} */ (["openai", "anthropic"])) {
    test(`${host.name}, ${api}: the question comes after what the provider has cached`, async (t) => {
      const { lastTurn, calls } = await compacted(t, { host, api });
      const within = calls.filter(({ isInSession }) => isInSession);
      assert.ok(within.length > 0, "a summary is requested within the session");
      const { max_tokens: most, max_completion_tokens: mostOfNewer, ...body } = lastTurn.body;
      for (const call of within) {
        assert.deepEqual(withoutQuestion(call), body);
        assert.ok((call.body.max_tokens ?? call.body.max_completion_tokens ?? 0) <= (most ?? mostOfNewer ?? 0));
      }
      const stretches = within.map(({ messages }) => messages[0].text);
      assert.ok(stretches.some((text) => /Question 0: .*\n[^]*Answer 0: /.test(text)), "the first stretch is identified by its words");
    });
  }
}

/** A model that always thinks, whose requests set the effort of each answer, and whose provider has threads. */
const always = { id: "always", reasoning: true, thinkingLevelMap: { off: null, minimal: null }, compat: { forceAdaptiveThinking: true, supportsMidConvoEffort: true, supportsMessageThreads: true } };

for (const host of hostsFor("1.6.0").filter(({ version }) => version !== "0.87.1")) {
  test(`${host.name}: a question sets its own effort, and the agent's thread survives it`, async (t) => {
    const lcm = { compactionModels: [], leafChunkTokens: 4_000, leafPassConcurrency: 1, background: false };
    const project = await aProject(t, { host, thinking: "bound", models: [always], rules: { threads: true }, settings: { lcm, defaultThinkingLevel: "high" } });
    const pi = project.startPi(["--model", "demo/always", "--session", longTalk(project)]);
    await pi.prompt("And now?");
    const { lastTurn } = project;
    project.script.summary = () => (project.summaryCalls.length > 1 ? { hang: true } : { text: "Talk\nMuch was said." });
    const compaction = pi.request("compact").catch(() => {});
    await eventually(() => assert.equal(project.summaryCalls.length, 2));
    await pi.request("abort");
    await compaction;
    await pi.prompt("Go on.");

    const [question] = project.summaryCalls;
    const marker = (/** @type {string} */ effort) => ({ role: "system", content: [], output_config: { effort } });
    assert.ok(project.summaryCalls.every(({ isInSession }) => isInSession));
    assert.deepEqual([lastTurn, question, project.lastTurn].map(({ body }) => body.messages.at(-1)), [marker("high"), marker("low"), marker("high")]);
    const { thinking, output_config, system, tools, messages } = question.body;
    assert.deepEqual({ thinking, output_config, system, tools }, Object.fromEntries(["thinking", "output_config", "system", "tools"].map((name) => [name, lastTurn.body[name]])));
    assert.deepEqual(messages.slice(0, -2), lastTurn.body.messages.slice(0, -2));
    assert.deepEqual(project.turns.map(({ judged: { result, thread } }) => [result, thread]), [["ok", "create"], ["ok", "continue"]]);
  });
}

const main = hosts.findLast(({ version }) => version === MAIN);

test("a model that continues its work is called outside the session", { skip: !main }, async (t) => {
  const summary = (/** @type {Received} */ { isInSession }) => (isInSession ? { toolCalls: [{ name: "bash", arguments: { command: "ls" } }] } : { text: "Summary\nWhat happened was summarized." });
  const { calls } = await compacted(t, { host: main, api: "anthropic", summary });
  const within = calls.filter(({ isInSession }) => isInSession).length;
  assert.ok(within >= 1 && calls.length > within, `${within} of ${calls.length}`);
});

test("if cached tokens cost as much as others, the model is called outside the session", { skip: !main }, async (t) => {
  const { calls } = await compacted(t, { host: main, api: "openai", cost: { input: 1, output: 4, cacheRead: 0, cacheWrite: 0 } });
  assert.ok(calls.length > 0 && calls.every(({ isInSession }) => !isInSession));
});

test("a stretch must be in the cached last request unchanged", () => {
  const model = { provider: "p", id: "m", api: "anthropic-messages" };
  const message = (/** @type {string} */ role, /** @type {any} */ content) => ({ message: { role, content } });
  const said = [message("user", "Look at \"a\"."), message("assistant", [{ type: "thinking", thinking: "Hm." }, { type: "text", text: "I do." }]), message("toolResult", []), message("user", [{ type: "text", text: "And b?" }]), message("toolResult", [])];
  const entries = new Map(said.map((entry, at) => [`e${at}`, { ...entry, type: "message", id: `e${at}`, parentId: at > 0 ? `e${at - 1}` : null }]));
  const messages = [{ role: "user", content: "Look at \"a\"." }, { role: "assistant", content: [{ type: "text", text: "I do." }] }, { role: "user", content: [{ type: "text", text: "And b?" }] }];
  const answered = { payload: { tools: [], messages }, model: "p/m", from: "e0", leafId: "e3", timestamp: Date.now() };
  const tokens = (/** @type {object} */ changed = {}, stretch = /** @type {{ first: string, last: string, effort?: string }} */ ({ first: "e0", last: "e2" }), asked = model) => {
    return new LastRequest(/** @type {any} */ ({ getEntry: (/** @type {string} */ id) => entries.get(id) }), { ...answered, ...changed }).cachedTokens(asked, stretch);
  };
  assert.equal(tokens(), Math.ceil(JSON.stringify(answered.payload).length / 4));
  assert.equal(tokens({ tokens: 77 }), 77, "as the provider counts");
  assert.ok(tokens({}, { first: "e1", last: "e3" }));
  assert.equal(tokens({ leafId: "e4" }, { first: "e4", last: "e4" }), null, "nothing identifies it");
  const adaptive = (/** @type {string} */ effort) => ({ thinking: { type: "adaptive" }, output_config: { effort } });
  const marked = { ...adaptive("low"), messages: [...messages, { role: "system", content: [], output_config: { effort: "high" } }] };
  const thinking = (/** @type {object} */ more, /** @type {string | undefined} */ effort) => tokens({ payload: { ...answered.payload, ...more } }, { first: "e0", last: "e2", effort }) !== null;
  for (const more of [{ thinking: { type: "enabled" } }, { reasoning_effort: "low" }, adaptive("low"), marked]) assert.ok(!thinking(more, undefined), "the model would think first");
  for (const more of [{ thinking: { type: "enabled" } }, { reasoning_effort: "high" }, adaptive("high")]) assert.ok(!thinking(more, "low"), "the model would think longer");
  for (const more of [{ reasoning_effort: "low" }, { reasoning: { effort: "low" } }, adaptive("low"), marked]) assert.ok(thinking(more, "low"), "it thinks anyway");
  const rewritten = messages.with(1, { role: "assistant", content: [{ type: "text", text: "I did." }] });
  assert.equal(tokens({ payload: { tools: [], messages: rewritten } }), null, "rewritten by another extension");
  assert.equal(tokens({ payload: { tools: [], messages: messages.toReversed() } }), null, "in another order");
  assert.equal(tokens({ from: "e1" }), null, "its beginning was folded");
  assert.equal(tokens({ leafId: "e1" }), null, "its end was said later");
  assert.equal(tokens({ timestamp: Date.now() - 3_700_000 }), null, "the cache expired");
  assert.equal(tokens({ model: "p/other" }), null);
  assert.equal(tokens({}, undefined, { ...model, api: "google-generative-ai" }), null);
});

test("a request that keeps the cache warm is not the session's last one", { skip: !main }, async (t) => {
  const cost = { input: 5, output: 25, cacheRead: 0.05, cacheWrite: 10 };
  // Pi warms a cache ten seconds before it expires.
  const models = [{ id: "warmed", promptCache: { short: 11 } }];
  const settings = { compaction: { reserveTokens: 10_000, keepRecentTokens: 200 }, lcm: { compactionModels: [], background: false, context: "full" } };
  const project = await aProject(t, { host: main, api: "anthropic", thinking: "none", contextWindow: 60_000, cost, models, settings });
  const pi = project.startPi(["--model", "demo/warmed", "--session", longTalk(project)]);
  // While the tool runs, the cache is warmed; after that, Pi compacts before the next request.
  const warmed = path.join(project.cwd, "warmed");
  project.script.turns = [{ toolCalls: [{ name: "bash", arguments: { command: `until [ -e ${warmed} ]; do sleep 0.1; done` } }], usage: { input: 51_000, output: 10 } }];
  const isWarmed = eventually(() => assert.ok(project.server.requests.some(({ kind }) => kind === "warming")));
  await Promise.all([pi.prompt("And now?"), isWarmed.then(() => writeFileSync(warmed, ""))]);
  const [question] = project.summaryCalls;
  assert.ok(question.isInSession && question.body.max_tokens > 1000);
  assert.match((await project.session(pi)).lastCompaction.summary, /none missing, 0 degraded/);
});
