/**
 * Summaries written within the session if that costs less: the request is the session's last one, byte for byte, with one more message, in
 * both wire formats.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { LastRequest } from "../../shim/last-request.js";
import { MAIN, hosts, hostsFor } from "../../scripts/hosts.mjs";
import { filler } from "../support/history.mjs";
import { aProject } from "../support/project.mjs";

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
  const history = project.history();
  for (let turn = 0; turn < 12; turn++) {
    history.user(`Question ${turn}: ${filler(`question ${turn}`, 30)}`);
    history.assistant(`Answer ${turn}: ${filler(`answer ${turn}`, 300)}`);
  }
  const pi = project.startPi(["--session", history.write(project.sessionDir)]);
  await pi.prompt("And now?");
  const { lastTurn } = project;
  await pi.request("compact");
  const { lastCompaction } = await project.session(pi);
  assert.match(lastCompaction.summary, /none missing, 0 degraded/);
  return { lastTurn, calls: project.summaryCalls };
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

const main = hosts.findLast(({ version }) => version === MAIN);

test("a model that continues its work is called outside the session", { skip: !main }, async (t) => {
  const summary = (/** @type {Received} */ { isInSession }) => (isInSession ? { toolCalls: [{ name: "bash", arguments: { command: "ls" } }] } : { text: "What happened." });
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
  const tokens = (/** @type {object} */ changed = {}, stretch = { first: "e0", last: "e2" }, asked = model) => {
    return new LastRequest(/** @type {any} */ ({ getEntry: (/** @type {string} */ id) => entries.get(id) }), { ...answered, ...changed }).cachedTokens(asked, stretch);
  };
  assert.equal(tokens(), Math.ceil(JSON.stringify(answered.payload).length / 4));
  assert.equal(tokens({ tokens: 77 }), 77, "as the provider counts");
  assert.ok(tokens({}, { first: "e1", last: "e3" }));
  assert.equal(tokens({ leafId: "e4" }, { first: "e4", last: "e4" }), null, "nothing identifies it");
  for (const thinking of [{ thinking: { type: "enabled" } }, { reasoning_effort: "low" }]) assert.equal(tokens({ payload: { ...answered.payload, ...thinking } }), null, "the model would think first");
  const rewritten = messages.with(1, { role: "assistant", content: [{ type: "text", text: "I did." }] });
  assert.equal(tokens({ payload: { tools: [], messages: rewritten } }), null, "rewritten by another extension");
  assert.equal(tokens({ payload: { tools: [], messages: messages.toReversed() } }), null, "in another order");
  assert.equal(tokens({ from: "e1" }), null, "its beginning was folded");
  assert.equal(tokens({ leafId: "e1" }), null, "its end was said later");
  assert.equal(tokens({ timestamp: Date.now() - 3_700_000 }), null, "the cache expired");
  assert.equal(tokens({ model: "p/other" }), null);
  assert.equal(tokens({}, undefined, { ...model, api: "google-generative-ai" }), null);
});
