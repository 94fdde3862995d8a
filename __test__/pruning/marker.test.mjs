/**
 * The cache marker for Anthropic's format on the real Pi: the last stub carries it, or the block if there is no stub, and the cache
 * finds what precedes each change.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { Meter, PRICES } from "../../bench/context/meter.mjs";
import { CacheMarker } from "../../shim/marker.js";
import { aProject } from "../support/project.mjs";

/** Answers are so expensive that a change pays early. */
const COST = { input: 1, output: 4_000, cacheRead: 0.1, cacheWrite: 1.25 };
const REQUESTS = 24;

/** @param {import("../../demo/model-server.mjs").Received} request @returns {any[]} */
const blocksOf = ({ body: { system, tools, messages } }) => [...system, ...tools, ...messages.flatMap((/** @type {any} */ { content }) => content)];

/** @param {any} block */
const isStub = (block) => block.type === "tool_result" && JSON.stringify(block.content).includes("left out to save context");

/** The markers that Pi does not set: all but those before the messages and at the very end. @param {any[]} blocks */
const ours = (blocks) => blocks.filter((block, at) => block.cache_control && ["tool_result", "text"].includes(block.type) && at > 0 && at < blocks.length - 1);

for (const host of hostsFor()) {
  test(`on ${host.name} the cache finds what precedes a change`, async (t) => {
    const project = await aProject(t, { host, api: "anthropic", contextWindow: 128_000, cost: COST, settings: { lcm: {} } });
    const pi = project.startPi();
    const call = (/** @type {number} */ n) => ({ id: `call_${n}`, name: "bash", arguments: { command: `seq -f 'result ${n} line %g' 1 700` } });
    project.script.turns = [...Array.from({ length: REQUESTS }, (_, n) => ({ text: `Looking at ${n}.`, toolCalls: [call(n)] })), { text: "Done." }];
    await pi.prompt("Look at all of it.");
    const requests = project.turns.map(blocksOf);
    const first = requests.findIndex((blocks) => blocks.some(isStub));
    assert.ok(first > 0 && first < requests.length - 2, "there are stubs in the middle of the turn");
    for (const [at, blocks] of requests.entries()) {
      const stub = blocks.findLast(isStub);
      const [marked, ...more] = ours(blocks);
      assert.ok(more.length === 0 && Boolean(marked) === Boolean(stub), `request ${at}`);
      assert.ok(blocks.filter(({ cache_control }) => cache_control).length <= 4);
    }
    const meter = new Meter(PRICES.list);
    const readings = project.turns.map((request) => meter.read(request, ""));
    const changed = readings.filter(({ again }) => again > 0);
    assert.ok(changed.length > 0);
    for (const { cached, found } of changed.slice(1)) assert.ok(found > cached / 2, `${found} of ${cached} tokens are found`);
  });

  test(`on ${host.name} a full context is sent unchanged`, async (t) => {
    const project = await aProject(t, { host, api: "anthropic", settings: { lcm: { context: "full" } } });
    const history = project.history();
    history.talk(30);
    const pi = project.startPi(["--session", history.write(project.sessionDir)]);
    await pi.request("compact");
    await pi.prompt("Go on.");
    assert.deepEqual(ours(blocksOf(project.lastTurn)), []);
    await pi.request("prompt", { message: "/lcm settings context=lean" });
    await pi.prompt("And now?");
    const { messages } = project.lastTurn.body;
    assert.ok(messages[0].content[0].cache_control, "the block is marked");
    assert.equal(ours(blocksOf(project.lastTurn)).length, 1);
  });
}

test("with an Anthropic login the first of two markers in the system prompt is removed, and there are at most four", () => {
  const cache_control = { type: "ephemeral", ttl: "1h" };
  const marked = (/** @type {string} */ text) => ({ type: "text", text, cache_control });
  const result = (/** @type {string} */ content) => ({ role: "user", content: [{ type: "tool_result", tool_use_id: "a", content }] });
  const stub = "[read {} gave 9 lines; left out to save context. All of it: lcm_expand {}]";
  const messages = [result(stub), { role: "assistant", content: [{ type: "text", text: "So." }] }, { role: "user", content: [marked("Go on.")] }];
  const payload = { system: [marked("You are"), marked("an agent")], tools: [{ name: "read", cache_control }], messages };
  const before = structuredClone(payload);
  const sent = new CacheMarker().mark(payload, false);
  assert.deepEqual(sent.system, [{ type: "text", text: "You are" }, marked("an agent")]);
  assert.deepEqual(sent.messages[0].content[0].cache_control, cache_control);
  assert.deepEqual(payload, before, "Pi's own payload is not changed");
  assert.equal(new CacheMarker().mark({ ...payload, system: [marked("one"), marked("two"), marked("three")], messages }, false), undefined);
  for (const other of [undefined, {}, { messages }, { system: "text", messages }, { ...payload, messages: [] }, { ...payload, tools: {} }, { ...payload, messages: [null] }]) assert.equal(new CacheMarker().mark(other, true), undefined);
  // Anthropic's newest models get a message without content after the last one.
  const effort = { role: "system", content: [], output_config: { effort: "high" } };
  assert.deepEqual(new CacheMarker().mark({ ...payload, messages: [...messages, effort] }, false).messages[0].content[0].cache_control, cache_control);
});
