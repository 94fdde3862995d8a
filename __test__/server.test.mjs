/**
 * The scripted model server judges requests as today's providers do: bound reasoning, tool calls and their results, cache markers, message
 * threads, the prompt cache.
 */
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { startModelServer } from "../demo/model-server.mjs";
import { hostsFor } from "../scripts/hosts.mjs";
import { aProject } from "./support/project.mjs";

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

test("tools in the input are tools", async (t) => {
  const { server, ask } = await aServer(t);
  const tools = [{ type: "function", name: "read" }];
  for (const body of [{ tools, input: [user("Hello.")] }, { input: [{ type: "additional_tools", role: "developer", tools }, user("Hello.")] }]) {
    await ask("responses", { model: "demo-model", ...body });
    assert.deepEqual(server.requests.at(-1)?.toolNames, ["read"]);
  }
});

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

test("sealed reasoning that does not fit is removed from an OpenAI request, and listed", async (t) => {
  const { ask } = await aServer(t);
  /** @type {any} */
  const body = { model: "gpt-6.2-sol", reasoning: { effort: "low" }, include: ["reasoning.encrypted_content"], input: [user("Hello.")] };
  for (const text of ["Go on.", "And then?", "So?"]) body.input.push(...(await ask("responses", body)).answer.output, user(text));
  assert.deepEqual((await ask("responses", body)).judged?.seen, 3);
  const ids = body.input.filter((/** @type {any} */ { type }) => type === "reasoning").map((/** @type {any} */ { id }) => id);
  body.input.splice(3, 1, user("Stop."));
  const { answer, judged } = await ask("responses", body);
  assert.deepEqual(answer.input_transformations, ids.slice(1).map((/** @type {string} */ id) => ({ type: "reasoning", id, action: "removed", reason: "prefix_mismatch" })));
  assert.deepEqual([judged?.result, judged?.seen, judged?.dropped], ["ok", 1, 2]);
  assert.equal((await ask("responses", { ...body, model: "gpt-6.1-sol" })).judged?.dropped, 0);
});

test("a model that can't stop thinking refuses to, and thinks if nothing is said", async (t) => {
  const { ask } = await aServer(t);
  const disabled = { thinking: { type: "disabled" } };
  assert.equal((await ask("anthropic", anthropic(disabled))).status, 200);
  assert.match((await ask("anthropic", anthropic({ model: "claude-opus-5-5", ...disabled }))).answer.error.message, /^"thinking.type.disabled" is not supported for this model/);
  const told = await ask("anthropic", anthropic({ model: "claude-opus-5-5", thinking: undefined }));
  assert.deepEqual(told.answer.content.map((/** @type {any} */ { type }) => type), ["thinking", "text"]);
  for (const [model, effort, status] of [["gpt-6.2-sol", "none", 400], ["gpt-6.2-sol", "minimal", 400], ["gpt-6.2-sol", "low", 200], ["gpt-6.1-sol", "none", 200]]) {
    assert.equal((await ask("responses", { model, reasoning: { effort }, input: [] })).status, status, `${model} ${effort}`);
  }
});

test("thinking that reaches the limit leaves nothing for the answer", async (t) => {
  const { ask } = await aServer(t, { reply: { text: "Yes.", thinkTokens: 1_000 } });
  const told = async (/** @type {number} */ max_tokens) => {
    const { answer } = await ask("anthropic", anthropic({ max_tokens }));
    return [answer.stop_reason, answer.content.at(-1).type, answer.usage.output_tokens];
  };
  assert.deepEqual(await told(1_000), ["max_tokens", "thinking", 1_000]);
  assert.deepEqual((await told(1_100)).slice(0, 2), ["end_turn", "text"]);
  const { answer } = await ask("responses", { model: "m", reasoning: { effort: "low" }, max_output_tokens: 500, input: [] });
  assert.deepEqual([answer.status, answer.incomplete_details, answer.output.length], ["incomplete", { reason: "max_output_tokens" }, 1]);
});

test("some servers don't know the role developer", async (t) => {
  const body = { model: "m", messages: [{ role: "developer", content: "Be brief." }, user("Hello.")] };
  const { ask } = await aServer(t);
  assert.equal((await ask("openai", body)).status, 200);
  const { ask: refusing } = await aServer(t, { rules: { developerRole: false } });
  assert.equal((await refusing("openai", body)).answer.error.message, "Unexpected message role.");
});

test("a thread is continued with what is new, once, and with the same settings", async (t) => {
  const body = anthropic();
  const { ask: without } = await aServer(t);
  assert.match((await without("anthropic", { ...body, thread: { type: "create" } })).answer.error.message, /^thread: Extra inputs are not permitted/);

  const { server, ask } = await aServer(t, { rules: { threads: true } });
  const { answer } = await ask("anthropic", { ...body, thread: { type: "create" } });
  const next = (/** @type {string} */ previous_message_id, more = {}) => ask("anthropic", { model: body.model, max_tokens: 4_000, thinking: body.thinking, messages: [user("Go on.")], thread: { type: "continue", previous_message_id }, ...more });
  const codeOf = async (/** @type {ReturnType<typeof next>} */ asked) => (await asked).answer.error.details?.error_code;
  assert.equal(await codeOf(next("unknown")), "thread_not_found");
  assert.equal(await codeOf(next(answer.id, { thinking: DROP })), "thread_fingerprint_mismatch");
  const second = await next(answer.id);
  assert.deepEqual([second.status, second.judged?.seen], [200, 1]);
  assert.deepEqual(server.requests.at(-1)?.messages.map(({ text }) => text), ["Hello.", "Yes.", "Go on."]);
  assert.equal(await codeOf(next(answer.id)), "thread_already_continued");
});

/** A block with a cache marker. @param {string} text @param {object} [more] */
const marked = (text, more) => ({ type: "text", text, cache_control: { type: "ephemeral", ...more } });

test("the prompt cache reads what a marker has written, until it expires", async (t) => {
  let now = 0;
  const { ask } = await aServer(t, { cache: { now: () => now } });
  const words = "word ".repeat(400);
  const usageOf = async (/** @type {any[]} */ content, more = {}) => {
    const { usage } = (await ask("anthropic", { model: "m", max_tokens: 100, messages: [{ role: "user", content }], ...more })).answer;
    return { read: usage.cache_read_input_tokens, written: usage.cache_creation_input_tokens, input: usage.input_tokens };
  };
  const first = await usageOf([marked(words)]);
  assert.ok(first.written > 500 && first.read === 0 && first.input < 50, JSON.stringify(first));
  assert.deepEqual(await usageOf([marked(words)]), { ...first, read: first.written, written: 0 });
  const longer = await usageOf([{ type: "text", text: words }, marked(words)]);
  assert.equal(longer.read, first.written, "a prefix is found without its marker");
  assert.ok(Math.abs(longer.written - first.written) < 5);

  now += 299_999;
  assert.equal((await usageOf([marked(words)], { max_tokens: 1 })).read, first.written, "a request that only keeps it alive");
  now += 299_999;
  assert.equal((await usageOf([marked(words)])).read, first.written);
  now += 300_000;
  assert.equal((await usageOf([marked(words)])).read, 0, "it has expired");
  await usageOf([marked(words, { ttl: "1h" })]);
  now += 3_599_999;
  assert.ok((await usageOf([marked(words)])).read > 0, "an hour");
});

test("the prompt cache looks back twenty blocks from a marker", async (t) => {
  const { ask } = await aServer(t);
  const texts = (/** @type {number} */ n) => Array.from({ length: n }, (_, at) => ({ type: "text", text: `block ${at}` }));
  const read = async (/** @type {any[]} */ content) => (await ask("anthropic", { model: "m", max_tokens: 100, messages: [{ role: "user", content }] })).answer.usage.cache_read_input_tokens;
  await read([...texts(4), marked("block 4")]);
  assert.ok((await read([...texts(23), marked("the end")])) > 0, "19 blocks before the marker");
  assert.equal(await read([...texts(25), marked("another end")]), 0);
  assert.ok((await read([...texts(4), marked("block 4"), ...texts(30), marked("a third end")])) > 0, "there is another marker");
});

const edited = path.join(import.meta.dirname, "support", "edited.mjs");

/** A task of three tool calls. @returns {Reply[]} */
const task = () => [...[1, 2, 3].map((n) => ({ text: `Step ${n}.`, toolCalls: [{ name: "bash", arguments: { command: `echo ${n}` } }] })), { text: "Done." }];

/** What the model sees in the requests of the task if nothing has changed: all that it has thought. */
const ALL_SEEN = [0, 1, 2, 3].map((seen) => ["ok", seen, 0]);

/** @param {import("./support/project.mjs").Project} project */
const judged = ({ turns }) => turns.map(({ judged: { result, seen, dropped } }) => [result, seen, dropped]);

/** Models of Pi's own catalog whose thinking is bound, by provider. @type {Record<string, string>} */
const CATALOG = {
  anthropic: "claude-opus-5-5",
  opencode: "claude-opus-5-5",
  openrouter: "anthropic/claude-opus-5.5",
  "vercel-ai-gateway": "anthropic/claude-opus-5.5",
  "cloudflare-ai-gateway": "claude-opus-5-5",
  "github-copilot": "claude-opus-5.5",
  openai: "gpt-6.2-sol",
};

/** The providers that drop thinking which does not fit. */
const DROPPING = ["anthropic", "opencode", "openrouter", "openai"];

for (const host of hostsFor("1.6.0").filter(({ version }) => version !== "0.87.1")) {
  test(`${host.name} returns reasoning unchanged in each format`, async (t) => {
    for (const api of /** @type {const} */ (["anthropic", "responses"])) {
      const project = await aProject(t, { host, thinking: "bound", api, extensions: [] });
      project.script.turns = task();
      await project.startPi().prompt("Count to three.");
      assert.deepEqual(judged(project), ALL_SEEN, api);
    }
  });

  test(`${host.name} continues a thread`, async (t) => {
    const models = [{ id: "threaded", compat: { forceAdaptiveThinking: true, supportsMessageThreads: true } }];
    const project = await aProject(t, { host, thinking: "bound", models, rules: { threads: true }, extensions: [] });
    project.script.turns = task();
    await project.startPi(["--model", "demo/threaded"]).prompt("Count to three.");
    assert.deepEqual(judged(project), ALL_SEEN);
    assert.deepEqual(project.turns.map(({ body, judged: { thread } }) => [thread, body.messages.length]), ["create", "continue", "continue", "continue"].map((thread) => [thread, 1]));
    assert.deepEqual(project.lastTurn.messages.map(({ role }) => role), ["user", ...[1, 2, 3].flatMap(() => ["assistant", "tool"])]);
  });

  test(`${host.name} reaches the models of its own catalog; a context edit costs them their thinking, or the session`, async (t) => {
    // Pi 1.5.2 does not know it yet.
    const catalog = Object.entries(CATALOG).filter(([, model]) => host.version !== "1.5.2" || !model.startsWith("gpt-6.2"));
    for (const extensions of [[], [edited]]) {
      const project = await aProject(t, { host, catalog: Object.keys(CATALOG), extensions, settings: { defaultThinkingLevel: "low" } });
      project.refusals = extensions.length > 0 ? /^bound$/ : /^$/;
      Object.assign(project.env, { CLOUDFLARE_ACCOUNT_ID: "account", CLOUDFLARE_GATEWAY_ID: "gateway" });
      const pi = project.startPi();
      for (const [provider, modelId] of catalog) {
        await pi.request("new_session");
        await pi.request("set_model", { provider, modelId });
        Object.assign(project.script, { turns: task() });
        project.server.requests.length = 0;
        await pi.prompt("Count to three.");
        assert.ok(project.turns.every(({ body }) => body.model === modelId));
        // The first thinking stands before the edit.
        const last = DROPPING.includes(provider) ? ["ok", 1, 2] : ["bound", 0, 0];
        assert.deepEqual(judged(project), extensions.length === 0 ? ALL_SEEN : [...ALL_SEEN.slice(0, 3), last], provider);
      }
    }
  });
}
