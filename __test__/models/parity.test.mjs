/**
 * The engine's own model calls equal Pi's: the same history is compacted once in each way, and everything that the model server or the user
 * sees is compared.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { everything, hostsFor, MAIN } from "../../scripts/hosts.mjs";
import { aProject } from "../support/project.mjs";

/** @typedef {import("../../demo/model-server.mjs").Received} Received */
/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../support/project.mjs").Pi} Pi */

/** Fields that only Pi's requests have: the engine's answers are not streamed. */
const STREAMING = ["stream", "stream_options"];

/** Headers about the client, the machine and the transport. */
const CARRYING = /^(user-agent|accept|accept-encoding|accept-language|connection|content-length|host|sec-fetch-mode|x-stainless-.*|anthropic-dangerous-direct-browser-access)$/;

const cost = { input: 0.3, output: 1.7, cacheRead: 0.07, cacheWrite: 0.4 };

/** Models of different kinds, with the distinctive part of their definition, and a provider that Pi knows by its name. @type {Record<string, any>} */
const models = {
  "openai-completions": { api: "openai-completions" },
  "openai-completions, thinking": { api: "openai-completions", reasoning: true, thinkingLevelMap: { off: "none", low: "low" } },
  "openai-completions, always thinking": { api: "openai-completions", reasoning: true, thinkingLevelMap: { off: null, minimal: null } },
  "openai-completions, OpenAI's own": { provider: "openai", api: "openai-completions", reasoning: true, thinkingLevelMap: { off: "none" } },
  "openai-completions, that says its role": { api: "openai-completions", reasoning: true, compat: { supportsDeveloperRole: true } },
  "openai-completions, older": { api: "openai-completions", reasoning: true, compat: { maxTokensField: "max_tokens", supportsStore: false, supportsDeveloperRole: false } },
  "anthropic-messages": { api: "anthropic-messages" },
  "anthropic-messages, thinking": { api: "anthropic-messages", reasoning: true },
  "anthropic-messages, always thinking": { api: "anthropic-messages", reasoning: true, thinkingLevelMap: { off: null }, compat: { forceAdaptiveThinking: true } },
  "anthropic-messages, with headers": { api: "anthropic-messages", headers: { "x-team": "blue" } },
};

for (const host of hostsFor("0.87.1", "1.6.0")) {
  test(host.name, async (t) => {
    // `npm test` runs every kind of model on the main Pi; on others one per format, and one whose instructions differ.
    const few = ["openai-completions, thinking", ...Object.values(models).map(({ api }) => api)];
    const tried = Object.entries(models).filter(([name]) => everything || host.version === MAIN || few.includes(name));
    const project = await aProject(t, { host });
    define(project.agentDir, project.server.url, tried);
    // Each compaction must find an empty store.
    project.storeIn("store");
    const pi = project.startPi();
    for (const [name] of tried) await t.test(`${name}: called directly or through Pi, requests and results are the same`, (t) => compare(t, project, pi, name));
  });
}

/**
 * @param {import("node:test").TestContext} t
 * @param {Project} project
 * @param {Pi} pi
 * @param {string} model
 */
async function compare(t, project, pi, model) {
  const direct = await compacted(project, pi, model, true);
  const pis = await compacted(project, pi, model, false);

  assert.ok(direct.requests.length >= 3);
  assert.ok(direct.requests.every(({ api }) => models[model].api.startsWith(api)), "in the model's format");
  assert.ok(direct.requests.every(({ streaming }) => !streaming), "asked straight");
  assert.ok(pis.requests.every(({ streaming }) => streaming), "asked through Pi");

  const { provider, compat } = models[model];
  const isDeveloper = provider === "openai" || compat?.supportsDeveloperRole === true;
  if (!isDeveloper) pis.requests = pis.requests.map((request) => ({ ...request, body: withSystem(request.body) }));
  assert.deepEqual(direct.requests.map(bodyOf), pis.requests.map(bodyOf));
  assert.deepEqual(direct.requests.filter(({ body }) => body.messages.some(isForDeveloper) !== isDeveloper), []);
  assert.deepEqual(direct.requests.map(headersOf), pis.requests.map(headersOf));
  assert.equal(direct.compaction.summary, pis.compaction.summary);
  assert.deepEqual(direct.stored, pis.stored);
  assert.ok(direct.stored.every(({ usage }) => usage.cost.total > 0));
  const usage = usageOf(direct.compaction.usage);
  assert.deepEqual(usage, usageOf(pis.compaction.usage));

  const [first] = direct.requests;
  t.diagnostic(`${direct.requests.length} requests, alike but for ${differences(direct.requests, pis.requests).join(", ")}`);
  t.diagnostic(`fields: ${Object.keys(first ? bodyOf(first) : {}).join(", ")}; headers: ${Object.keys(headersOf(first)).join(", ")}`);
  if (usage) t.diagnostic(`usage: ${JSON.stringify(usage)}`);
}

/** The provider of a kind of model. @param {string} name */
const providerOf = (name) => models[name].provider ?? `demo-${Object.keys(models).indexOf(name)}`;

/**
 * Defines models of these kinds in Pi, each with its own provider.
 * @param {string} agentDir
 * @param {string} url
 * @param {[string, any][]} kinds
 */
function define(agentDir, url, kinds) {
  const file = path.join(agentDir, "models.json");
  const { demo } = JSON.parse(readFileSync(file, "utf8")).providers;
  const [model] = demo.models;
  const providers = kinds.map(([name, { api, headers, provider: _, ...properties }]) => {
    const baseUrl = api === "openai-completions" ? `${url}/v1` : url;
    return [providerOf(name), { ...demo, api, baseUrl, ...(headers && { headers }), models: [{ ...model, cost, ...properties }] }];
  });
  writeFileSync(file, JSON.stringify({ providers: { demo, ...Object.fromEntries(providers) } }));
}

/**
 * Compacts the same history with a new store.
 * @param {Project} project
 * @param {Pi} pi
 * @param {string} model
 * @param {boolean} directModelCalls
 */
async function compacted(project, pi, model, directModelCalls) {
  const name = `${providerOf(model)}-${directModelCalls ? "direct" : "pi"}`;
  project.storeIn(name, { leafChunkTokens: 500, directModelCalls });
  const history = project.history(name);
  history.talk(12);
  history.user("grüße, 你好, 🙈: “read” it\n\tplease");
  history.assistant("Reading.", [{ id: "call_1", name: "read", arguments: { path: "notes.md" } }]);
  history.toolResult("call_1", "read", "line one\nline two \\ \"quoted\"");
  history.assistant("It has two lines.");
  history.talk(6, { name: "later" });
  history.entry("model_change", { provider: providerOf(model), modelId: "demo-model" });
  await project.resume(pi, history);
  project.script.summary = summaryOf;
  await pi.request("compact");
  const compaction = (await project.session(pi)).lastCompaction;
  const requests = project.summaryCalls.toSorted((one, other) => (textOf(one) < textOf(other) ? -1 : 1));
  const stored = project.inStore((store) =>
    store
      .rows("SELECT hex(hash) AS hash, text, hex(packed) AS packed, model, extras FROM summaries ORDER BY hash")
      .map(({ extras, ...summary }) => ({ ...summary, usage: usageOf(store.extras(extras).usage) })),
  );
  return { compaction, requests, stored };
}

/** The answer and its cost depend only on the question. @param {Received} request */
function summaryOf(request) {
  const words = textOf(request);
  const text = `Summary ${createHash("sha256").update(words).digest("hex").slice(0, 8)}\nWhat happened was summarized.`;
  return { text, usage: { input: words.length % 997, output: 10 + (words.length % 7), cacheRead: words.length % 13 } };
}

/** Each question has a random fence around the history. @param {string} text */
const withoutFences = (text) => text.replace(/(\b(?:history|before)-|\[)[0-9a-f]{8}\b/g, "$1…");

/** @param {Received} request */
const textOf = ({ messages }) => withoutFences(messages.map(({ text }) => text).join("\n"));

/** @param {Received} request */
const bodyOf = ({ body }) => JSON.parse(withoutFences(JSON.stringify(body)), (key, value) => (STREAMING.includes(key) ? undefined : value));

/** @param {any} message */
const isForDeveloper = ({ role }) => role === "developer";

/**
 * Before 1.6.0, Pi instructs reasoning models in the role `developer` on any server, which many refuse. The engine does as 1.6.0 does.
 * @param {any} body
 */
const withSystem = (body) => ({ ...body, messages: body.messages.map((/** @type {any} */ message) => (isForDeveloper(message) ? { ...message, role: "system" } : message)) });

/** @param {Received | undefined} request */
const headersOf = (request) => Object.fromEntries(Object.entries(request?.headers ?? {}).filter(([key]) => !CARRYING.test(key)).sort());

/**
 * The fields that all versions of Pi report. The last digits of a price depend on the order of its additions.
 * @param {any} usage
 */
function usageOf(usage) {
  if (!usage) return undefined;
  const { input, output, cacheRead, cacheWrite, totalTokens } = usage;
  const cost = Object.fromEntries(["input", "output", "cacheRead", "cacheWrite", "total"].map((part) => [part, Number(usage.cost[part].toFixed(12))]));
  return { input, output, cacheRead, cacheWrite, totalTokens, cost };
}

/**
 * @param {Received[]} ours
 * @param {Received[]} theirs
 */
function differences(ours, theirs) {
  const fields = new Set([...ours, ...theirs].flatMap(({ body }) => Object.keys(body)));
  const said = (/** @type {any} */ body, /** @type {string} */ field) => withoutFences(JSON.stringify(body?.[field]) ?? "");
  const differs = (/** @type {string} */ field) => ours.some(({ body }, at) => said(body, field) !== said(theirs[at]?.body, field));
  return [...fields].filter(differs).map((field) => `${field} (${JSON.stringify(ours[0]?.body[field])} / ${JSON.stringify(theirs[0]?.body[field])})`);
}
