/**
 * The engine asks a plain model itself, in Pi's place: the same history is compacted once in each way, and everything that
 * the model server or the user gets to see of it is compared.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { everything, hosts, hostsFor, MAIN } from "../../scripts/hosts.mjs";
import { aProject } from "../support/project.mjs";

/** @typedef {import("../../demo/model-server.mjs").Received} Received */

/** All that a request of ours lacks, or says differently: its answer comes in one piece. */
const STREAMING = ["stream", "stream_options"];

/** How the clients call themselves, and how they carry a body; Pi's kits say much about the machine besides. */
const CARRYING = /^(user-agent|accept|accept-encoding|accept-language|connection|content-length|host|sec-fetch-mode|x-stainless-.*|anthropic-dangerous-direct-browser-access)$/;

/** Pi 0.74 asks for this always, as `anthropic-beta`; it means nothing where a model is not to think. */
const THINKING_BETA = "interleaved-thinking-2025-05-14";

const cost = { input: 0.3, output: 1.7, cacheRead: 0.07, cacheWrite: 0.4 };

/** Models of different kinds, and the part of their definition that makes them so. @type {Record<string, any>} */
const models = {
  "openai-completions": { api: "openai-completions" },
  "openai-completions, thinking": { api: "openai-completions", reasoning: true, thinkingLevelMap: { off: "none", low: "low" } },
  "openai-completions, older": { api: "openai-completions", reasoning: true, compat: { maxTokensField: "max_tokens", supportsStore: false, supportsDeveloperRole: false } },
  "anthropic-messages": { api: "anthropic-messages" },
  "anthropic-messages, thinking": { api: "anthropic-messages", reasoning: true },
  "anthropic-messages, with headers": { api: "anthropic-messages", headers: { "x-team": "blue" } },
};

for (const host of hostsFor(hosts, "Pi 0.74.2, Node 20")) {
  test(host.name, { concurrency: 2 }, async (t) => {
    // In npm test another Pi is asked in each format, and with every kind of model the main one.
    const tried = Object.entries(models).filter(([name]) => everything || host.version === MAIN || name === models[name].api);
    const asked = tried.map(([name, model]) => t.test(`${name}: asked straight or through Pi, it sees and gives the same`, (t) => compare(t, host, model)));
    await Promise.all(asked);
  });
}

/**
 * @param {import("node:test").TestContext} t
 * @param {import("../../scripts/hosts.mjs").Host} host
 * @param {any} model
 */
async function compare(t, host, model) {
  const project = await aProject(t, { host, script: { summary: summaryOf }, settings: { lcm: { leafChunkTokens: 500 } } });
  define(project.agentDir, project.server.url, model);
  const direct = await compacted(project, "direct", true);
  const pis = await compacted(project, "pi", false);

  assert.ok(direct.requests.length >= 3);
  assert.ok(direct.requests.every(({ streaming }) => !streaming), "asked straight");
  assert.ok(pis.requests.every(({ streaming }) => streaming), "asked through Pi");

  assert.deepEqual(direct.requests.map(bodyOf), pis.requests.map(bodyOf));
  assert.deepEqual(direct.requests.map(headersOf), pis.requests.map(headersOf));
  assert.equal(direct.compaction.summary, pis.compaction.summary);
  assert.deepEqual(direct.stored, pis.stored);
  assert.ok(direct.stored.every(({ usage }) => usage.cost.total > 0));
  // Pi 0.74 has no place for it.
  const usage = usageOf(direct.compaction.usage);
  assert.deepEqual(usage, usageOf(pis.compaction.usage));

  const [first] = direct.requests;
  t.diagnostic(`${direct.requests.length} requests, alike but for ${differences(direct.requests, pis.requests).join(", ")}`);
  t.diagnostic(`fields: ${Object.keys(first ? bodyOf(first) : {}).join(", ")}; headers: ${Object.keys(headersOf(first)).join(", ")}`);
  if (usage) t.diagnostic(`usage: ${JSON.stringify(usage)}`);
}

/**
 * Gives the project's model other properties.
 * @param {string} agentDir
 * @param {string} url
 * @param {any} model
 */
function define(agentDir, url, { api, headers, ...properties }) {
  const file = path.join(agentDir, "models.json");
  const { providers } = JSON.parse(readFileSync(file, "utf8"));
  const baseUrl = api === "openai-completions" ? `${url}/v1` : url;
  const [model] = providers.demo.models;
  const demo = { ...providers.demo, api, baseUrl, ...(headers && { headers }), models: [{ ...model, cost, ...properties }] };
  writeFileSync(file, JSON.stringify({ providers: { demo } }));
}

/**
 * Compacts one and the same history, with a store of its own.
 * @param {import("../support/project.mjs").Project} project
 * @param {string} name
 * @param {boolean} directModelCalls
 */
async function compacted(project, name, directModelCalls) {
  const file = path.join(project.agentDir, "settings.json");
  const settings = JSON.parse(readFileSync(file, "utf8"));
  writeFileSync(file, JSON.stringify({ ...settings, lcm: { ...settings.lcm, directModelCalls } }));
  project.storeDir = `${path.dirname(project.storeDir)}${path.sep}store-${name}`;
  const history = project.history();
  history.talk(20);
  history.user("grüße, 你好, 🙈: “read” it\n\tplease");
  history.assistant("Reading.", [{ id: "call_1", name: "read", arguments: { path: "notes.md" } }]);
  history.toolResult("call_1", "read", "line one\nline two \\ \"quoted\"");
  history.assistant("It has two lines.");
  history.talk(10, { name: "later" });
  const already = project.server.requests.length;
  const pi = project.startPi(["--session", history.write(project.sessionDir)]);
  await pi.request("compact");
  const compaction = (await project.session(pi)).lastCompaction;
  await pi.stop();
  const requests = project.server.requests.slice(already).filter(({ kind }) => kind === "summary");
  requests.sort((one, other) => (textOf(one) < textOf(other) ? -1 : 1));
  const stored = project.inStore((store) =>
    store
      .rows("SELECT hex(hash) AS hash, text, hex(packed) AS packed, model, beside FROM summaries ORDER BY hash")
      .map(({ beside, ...summary }) => ({ ...summary, usage: usageOf(store.beside(beside).usage) })),
  );
  return { compaction, requests, stored };
}

/** Depends on nothing but the question, as does what it costs. @param {Received} request */
function summaryOf(request) {
  const words = textOf(request);
  const text = `Summary ${createHash("sha256").update(words).digest("hex").slice(0, 8)}\nWhat happened was summarised.`;
  return { text, usage: { input: words.length % 997, output: 10 + (words.length % 7), cacheRead: words.length % 13 } };
}

/** Each question has a fence of its own around the history. @param {string} text */
const withoutFences = (text) => text.replace(/\bhistory-[0-9a-f]{8}\b/g, "history-…");

/** @param {Received} request */
const textOf = ({ messages }) => withoutFences(messages.map(({ text }) => text).join("\n"));

/** @param {Received} request */
const bodyOf = ({ body }) => JSON.parse(withoutFences(JSON.stringify(body)), (key, value) => (STREAMING.includes(key) ? undefined : value));

/** @param {Received | undefined} request */
const headersOf = (request) => Object.fromEntries(Object.entries(request?.headers ?? {}).filter(([key, value]) => !CARRYING.test(key) && value !== THINKING_BETA).sort());

/**
 * What all versions of Pi report. The last digits of a price depend on the order in which it is added up.
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
