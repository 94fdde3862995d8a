/**
 * The scripted model server judges requests as today's providers do: bound reasoning, tool calls and their results, cache markers, message
 * threads, the prompt cache.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startModelServer } from "../demo/model-server.mjs";

/** @typedef {import("node:test").TestContext} TestContext */
/** @typedef {import("../demo/model-server.mjs").Reply} Reply */

const PATHS = { anthropic: "/v1/messages", openai: "/v1/chat/completions", responses: "/responses" };
const DROP = { type: "adaptive", block_binding: { prefix_mismatch_behavior: "drop_block" } };

/**
 * A server, and how to ask it.
 * @param {TestContext} t
 * @param {Omit<Parameters<typeof startModelServer>[0], "reply"> & { reply?: Reply }} [options]
 */
async function aServer(t, { reply = { text: "Yes." }, ...options } = {}) {
  const server = await startModelServer({ reply: () => reply, ...options });
  t.after(server.close);
  /** @param {keyof typeof PATHS} api @param {object} body */
  const ask = async (api, body) => {
    const response = await fetch(server.url + PATHS[api], { method: "POST", body: JSON.stringify(body) });
    return { status: response.status, answer: /** @type {any} */ (await response.json()), judged: server.requests.at(-1)?.judged };
  };
  return { server, ask };
}

/** @param {string} content */
const user = (content) => ({ role: "user", content });

/** @param {object} [more] */
const anthropic = (more) => ({ model: "demo-model", max_tokens: 4_000, system: "You are a model.", thinking: { type: "adaptive" }, messages: [user("Hello.")], ...more });

/**
 * A conversation of three turns in which the model has thought each time.
 * @param {(body: object) => Promise<{ answer: any }>} ask
 * @param {object} [more]
 */
async function thoughtThrice(ask, more) {
  /** @type {any} */
  const body = anthropic(more);
  for (const text of ["Go on.", "And then?", "So?"]) {
    const { answer } = await ask(body);
    body.messages = [...body.messages, { role: "assistant", content: answer.content }, user(text)];
  }
  return body;
}

test("bound thinking fits as long as nothing before it has changed, whatever its form", async (t) => {
  const { server, ask } = await aServer(t);
  const body = await thoughtThrice((body) => ask("anthropic", body));
  const marked = structuredClone(body);
  marked.system = [{ type: "text", text: marked.system, cache_control: { type: "ephemeral" } }];
  marked.messages[2].content = [{ type: "text", text: "Go on.", cache_control: { type: "ephemeral" } }];
  const { status, judged } = await ask("anthropic", marked);
  assert.deepEqual([status, judged?.seen, judged?.dropped], [200, 3, 0]);
  assert.deepEqual(server.refused, []);
});

test("thinking after a change is refused, or dropped where the request asks for it; what is thought later fits again", async (t) => {
  const { server, ask } = await aServer(t);
  const body = await thoughtThrice((body) => ask("anthropic", body));
  body.messages[2] = user("Stop.");
  const refused = await ask("anthropic", body);
  assert.deepEqual([refused.status, refused.answer.error.message], [400, "messages.3.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."]);
  assert.deepEqual([refused.judged?.result, refused.judged?.path, server.refused.length], ["bound", "messages.3.content.0", 1]);

  body.thinking = DROP;
  const dropped = await ask("anthropic", body);
  const paths = ["messages.3.content.0", "messages.5.content.0"];
  assert.deepEqual(dropped.answer.input_transformations, paths.map((path) => ({ type: "thinking_dropped", path, reason: "prefix_mismatch" })));
  assert.deepEqual([dropped.judged?.seen, dropped.judged?.dropped], [1, 2]);

  body.messages.push({ role: "assistant", content: dropped.answer.content }, user("And now?"));
  assert.deepEqual([(await ask("anthropic", body)).judged?.seen], [2]);
});

for (const [what, change] of /** @type {[string, (body: any) => void][]} */ ([
  ["the system prompt", (body) => (body.system += " Be brief.")],
  ["the tools", (body) => body.tools.push({ name: "read" })],
  ["an earlier message that is gone", (body) => body.messages.splice(0, 2)],
])) {
  test(`thinking is bound to ${what}`, async (t) => {
    const { ask } = await aServer(t);
    const body = await thoughtThrice((body) => ask("anthropic", body), { tools: [{ name: "bash" }] });
    change(body);
    assert.equal((await ask("anthropic", body)).status, 400);
  });
}

test("what a model or account does not check is seen whatever has changed", async (t) => {
  const models = ["claude-opus-4-8", "anthropic/claude-opus-5", "claude-sonnet-5-20260115", "anthropic/claude-sonnet-4.6", "claude-haiku-4-5", "claude-opus-5-fast"];
  const checking = ["claude-opus-5-5", "anthropic/claude-sonnet-5.5", "claude-haiku-5-5", "claude-fable-5-1", "~anthropic/claude-opus-latest"];
  for (const [model, rules, status] of /** @type {[string, object, number][]} */ ([...models.map((model) => [model, {}, 200]), ...checking.map((model) => [model, {}, 400]), ["claude-opus-5-5", { account: "old" }, 200], ["claude-opus-5-5", { binds: () => false }, 200]])) {
    const { ask } = await aServer(t, { rules });
    const body = await thoughtThrice((body) => ask("anthropic", body), { model });
    body.messages[0] = user("Changed.");
    const answered = await ask("anthropic", body);
    assert.deepEqual([answered.status, answered.judged?.seen], [status, status === 200 ? 3 : 0], `${model} ${JSON.stringify(rules)}`);
  }
});

test("a call without a result and a result without a call are refused in each format", async (t) => {
  const { ask } = await aServer(t);
  const use = { role: "assistant", content: [{ type: "tool_use", id: "a", name: "bash", input: {} }] };
  const result = { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: "ok" }] };
  const call = { role: "assistant", tool_calls: [{ id: "a", type: "function", function: { name: "bash", arguments: "{}" } }] };
  const output = { role: "tool", tool_call_id: "a", content: "ok" };
  const item = { type: "function_call", call_id: "a", name: "bash", arguments: "{}" };
  const given = { type: "function_call_output", call_id: "a", output: "ok" };
  /** @type {[keyof typeof PATHS, object, any, any, any][]} */
  const wires = [["anthropic", anthropic(), "messages", use, result], ["openai", { model: "demo-model" }, "messages", call, output], ["responses", { model: "demo-model" }, "input", item, given]];
  for (const [api, body, field, asked, answered] of wires) {
    const outcome = async (/** @type {object[]} */ ...messages) => (await ask(api, { ...body, [field]: [user("Hello."), ...messages] })).judged?.result;
    assert.equal(await outcome(asked, answered, user("And?")), "ok", api);
    assert.equal(await outcome(asked, user("And?")), "unpaired", api);
    assert.equal(await outcome(answered, user("And?")), "unpaired", api);
  }
});

test("more than four cache markers are refused", async (t) => {
  const { ask } = await aServer(t);
  const text = { type: "text", text: "Hello.", cache_control: { type: "ephemeral" } };
  const asked = (/** @type {number} */ n) => ask("anthropic", anthropic({ messages: [{ role: "user", content: Array(n).fill(text) }] }));
  assert.equal((await asked(4)).status, 200);
  assert.match((await asked(5)).answer.error.message, /^A maximum of 4 blocks with cache_control may be provided. Found 5/);
});
