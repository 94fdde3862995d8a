/**
 * Who writes summaries: by default a small model of the session's own provider. Catalogs are those of each Pi, and their providers are the
 * scripted server.
 */
import assert from "node:assert/strict";
import { writeFileSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { hosts, hostsFor } from "../../scripts/hosts.mjs";
import { extension } from "../../scripts/paths.mjs";
import { SMALL, cheaperModel, nameOf, usualPrices } from "../../shim/cheaper-model.js";
import { aProject, eventually, temporaryFolder } from "../support/project.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../support/project.mjs").Pi} Pi */
/** @typedef {import("../../shim/cheaper-model.js").Known} Known */

const providers = fileURLToPath(new URL("./providers.mjs", import.meta.url));

/** An extension that writes Pi's catalog. */
const LISTER = `import { writeFileSync } from "node:fs";
export default (pi) => pi.on("session_start", (_event, ctx) => writeFileSync(process.env.CATALOG, JSON.stringify(ctx.modelRegistry.getAll())));
`;

/**
 * For each provider, models of sessions and the expected ones for summaries: the first that a catalog has, or the session's own if there is
 * none. Pis that do not know a session's model are left out.
 * @type {Record<string, Record<string, string[]>>}
 */
const EXPECTED = {
  "amazon-bedrock": {
    "us.anthropic.claude-opus-5-5": ["us.anthropic.claude-haiku-5-5", "us.anthropic.claude-haiku-4-5-20251001-v1:0"],
    "global.anthropic.claude-haiku-5-5": [],
    "global.openai.gpt-6.2-sol": ["global.openai.gpt-6-luna"],
    "amazon.nova-pro-v1:0": ["amazon.nova-2-lite-v1:0"],
    "meta.llama3-3-70b-instruct-v1:0": ["meta.llama4-scout-17b-instruct-v1:0"],
  },
  anthropic: { "claude-opus-5-5": ["claude-haiku-5-5", "claude-haiku-4-5"], "claude-fable-5-2": ["claude-haiku-5-5", "claude-haiku-4-5"], "claude-haiku-5-5": [] },
  azure: { "gpt-6.2-sol": ["gpt-6-luna"] },
  "cloudflare-ai-gateway": { "claude-sonnet-5-5": ["claude-haiku-5-5", "claude-haiku-4-5"], "gpt-6.2-sol": ["gpt-6-luna"], "workers-ai/@cf/zai-org/glm-5.3": ["workers-ai/@cf/zai-org/glm-5.3-flash"] },
  deepseek: { "deepseek-v4-pro": ["deepseek-flash"], "deepseek-flash": [] },
  fireworks: { "accounts/fireworks/models/glm-5p3": ["accounts/fireworks/models/glm-5p3-flash"] },
  "github-copilot": { "claude-opus-5.5": ["claude-haiku-5.5", "claude-haiku-4.5"], "gpt-6.2-sol": ["gpt-6-luna"], "gemini-4-argon": ["gemini-3.8-flash"] },
  google: { "gemini-4-argon": ["gemini-3.5-flash-lite"], "gemini-3.5-flash-lite": [], "gemma-4-31b-it": [] },
  "google-vertex": { "gemini-4-argon": ["gemini-3.5-flash-lite"] },
  huggingface: { "zai-org/GLM-5.3": ["zai-org/GLM-5.3-Flash"], "google/gemma-3-12b-it": [] },
  meta: { "muse-wonder-1.0": ["muse-ember-1.0"] },
  minimax: { "MiniMax-M3.1-Flash": [] },
  mistral: { "mistral-large-4": ["mistral-small-2603"], "mistral-small-2603": [] },
  moonshotai: { "kimi-k3": ["kimi-k2.6"] },
  nvidia: { "nvidia/nemotron-3-nano-omni-30b-a3b-reasoning": [] },
  openai: { "gpt-6.2-sol": ["gpt-6-luna"], "gpt-6-sol": ["gpt-6-luna"], "gpt-6-luna": [], "gpt-5-nano": [] },
  "openai-codex": { "gpt-6.2-sol": ["gpt-6-luna"], "gpt-6-sol": ["gpt-6-luna"] },
  opencode: { "claude-opus-5-5": ["claude-haiku-5-5", "claude-haiku-4-5"], "gpt-6-sol": ["gpt-6-luna"], "gemini-4-argon": ["gemini-3.5-flash-lite"], "deepseek-v4.1-flash-free": [] },
  openrouter: {
    "anthropic/claude-opus-5.5": ["anthropic/claude-haiku-5.5", "anthropic/claude-haiku-4.5"],
    "~anthropic/claude-opus-latest": ["~anthropic/claude-haiku-latest"],
    "openai/gpt-6-sol": ["openai/gpt-6-luna"],
    "google/gemini-4-argon": ["google/gemini-3.5-flash-lite"],
    "z-ai/glm-5.2": ["z-ai/glm-5.3-flash"],
    "meta/muse-spark-1.3": ["meta/muse-ember", "meta/muse-glimmer-30b"],
    "openrouter/auto": [],
  },
  "qwen-token-plan": { "qwen3.8-max": ["qwen3.8-flash"] },
  radius: { "claude-opus-5-5": ["claude-haiku-5-5", "claude-haiku-4-5"], balanced: [] },
  "vercel-ai-gateway": {
    "anthropic/claude-opus-5.5": ["anthropic/claude-haiku-5.5", "anthropic/claude-haiku-4.5"],
    "anthropic/claude-opus-5.5-fast": ["anthropic/claude-haiku-5.5", "anthropic/claude-haiku-4.5"],
    "openai/gpt-6-sol": ["openai/gpt-6-luna"],
    "google/gemini-4-argon": ["google/gemini-3.5-flash-lite"],
    "alibaba/qwen4-max": ["alibaba/qwen3.8-flash"],
    "xiaomi/mimo-v2.6-pro": ["xiaomi/mimo-v2.6-flash"],
  },
  xai: { "grok-4.7": ["grok-4.3"] },
  xiaomi: { "mimo-v2.6-pro": ["mimo-v2.6-flash"] },
  zai: { "glm-5.3": ["glm-5.3-flash"] },
};

test("each name of a small model is in a catalog, and each provider's choice is the expected one", async (t) => {
  const folder = temporaryFolder(t);
  const lister = path.join(folder, "lister.mjs");
  writeFileSync(lister, LISTER);
  /** @type {Set<string>} */
  const names = new Set();
  /** @type {Set<string>} */
  const checked = new Set();
  for (const host of hosts) {
    const project = await aProject(t, { host, extensions: [lister] });
    project.env.CATALOG = path.join(folder, `${host.version}.json`);
    const pi = project.startPi();
    await pi.request("get_state");
    await pi.stop();
    /** @type {Known[]} */
    const catalog = JSON.parse(readFileSync(project.env.CATALOG, "utf8"));
    for (const model of catalog) names.add(nameOf(model));
    for (const [provider, rows] of Object.entries(EXPECTED)) {
      const find = (/** @type {string} */ id) => catalog.find((model) => model.provider === provider && model.id === id);
      for (const [id, expected] of Object.entries(rows)) {
        const own = find(id);
        if (!own) continue;
        assert.equal(cheaperModel(own, catalog)?.id, expected.find(find), `${provider}/${id} on ${host.name}`);
        checked.add(`${provider}/${id}`);
      }
    }
    for (const own of catalog) {
      const chosen = cheaperModel(own, catalog);
      if (!chosen) continue;
      assert.doesNotMatch(chosen.id, /[-:](batch|fast|free|contributor)\b/, `for ${own.provider}/${own.id} on ${host.name}`);
      assert.equal(chosen.provider, own.provider);
    }
  }
  if (hosts.length < 3) return;
  assert.deepEqual(SMALL.filter((name) => !names.has(name)), [], "names that no catalog has");
  const rows = Object.entries(EXPECTED).flatMap(([provider, choices]) => Object.keys(choices).map((id) => `${provider}/${id}`));
  assert.deepEqual(rows.filter((row) => !checked.has(row)), [], "rows that were not checked on any Pi");
});

test("prices are those of a usual call, and none if the catalog has none", () => {
  const priced = (/** @type {Known["cost"]} */ cost) => usualPrices({ provider: "p", id: "m", api: "a", cost });
  const tiers = [{ inputTokensAbove: 5_000, input: 2, output: 4 }, { inputTokensAbove: 10_000, input: 3, output: 6 }, { inputTokensAbove: 100_000, input: 9, output: 9 }];
  assert.deepEqual(priced({ input: 1, output: 2, tiers }), { input: 3, output: 6 });
  assert.deepEqual(priced({ input: 1, output: 2 }), { input: 1, output: 2 });
  for (const none of [undefined, {}, { input: 0, output: 0 }, { input: -1, output: 2 }, { input: NaN, output: 2 }]) assert.equal(priced(none), undefined);
});

/**
 * A Pi whose catalog providers are the scripted server.
 * @param {import("node:test").TestContext} t
 * @param {import("../../scripts/hosts.mjs").Host} host
 */
async function aCatalog(t, host) {
  const project = await aProject(t, { host, api: "openai", catalog: ["anthropic", "openai", "vercel-ai-gateway"], models: [{ id: "tiny", contextWindow: 1_000 }], extensions: [extension, providers] });
  // As in a shell in which other programs need it.
  project.env.ANTHROPIC_API_KEY = "a-key-in-the-environment";
  // Each session must find an empty store.
  project.storeIn("store");
  return { project, pi: project.startPi() };
}

/** What the session has shown, without offers to import the others. @param {Pi} pi @returns {string[]} */
function shownBy(pi) {
  return pi.ui("notify").map(({ message }) => message).filter((message) => !message.includes("/lcm import"));
}

/** The answer to a command. @param {Pi} pi @param {string} line */
async function answerTo(pi, line) {
  const before = shownBy(pi).length;
  await pi.request("prompt", { message: line });
  return eventually(() => shownBy(pi)[before] ?? assert.fail(line));
}

/**
 * Compacts a new session with a model, and compares who wrote its summaries with what was shown before.
 * @param {{ project: Project, pi: Pi }} catalog
 * @param {string} own the session's model, `provider/id`
 * @param {{ lcm?: object, by?: string }} [how] `by`: what answered, if the session's model is a virtual one
 */
async function compactedWith({ project, pi }, own, { lcm = {}, by = own } = {}) {
  const name = `session-${project.sessions().length}`;
  project.storeIn(name, { background: false, ...lcm });
  const history = project.history(name);
  history.entry("model_change", { provider: own.split("/", 1)[0], modelId: own.slice(own.indexOf("/") + 1) });
  history.talk(30);
  history.user("Is that all?");
  history.message({ ...history.entries.at(-2).message, provider: by.split("/", 1)[0], model: by.slice(by.indexOf("/") + 1) });
  await project.resume(pi, history);
  const [context, plan] = [await answerTo(pi, "/lcm context"), await answerTo(pi, "/lcm compact --dry-run")];
  const [, shown, price] = /^Summaries {2}by (\S+) \((.*)\)$/m.exec(context) ?? assert.fail(context);
  const [, planned] = /^ask +(\S+ \([^)]*\))/m.exec(plan.replace(/\n {11}/g, " ")) ?? assert.fail(plan);
  assert.equal(planned, `${shown} (${price})`);
  await pi.request("compact");
  const asked = [...new Set(project.summaryCalls.map(({ api, body }) => `${api} ${body.model}`))];
  const authors = project.inStore((store) => store.rows("SELECT DISTINCT model FROM summaries").map((row) => row.model));
  assert.deepEqual(authors, [shown]);
  return { asked, shown, price, notices: shownBy(pi).slice(2) };
}

for (const host of hostsFor("0.87.1", "1.6.0")) {
  test(`what the session's provider offers, on ${host.name}`, async (t) => {
    const catalog = await aCatalog(t, host);
    const isOld = host.version === "0.87.1";
    const prices = isOld ? "$1.00 in, $5.00 out per million tokens" : "$0.100 in, $0.500 out per million tokens";

    await t.test("a session with a local model sends nothing to Anthropic, although there is a key", async () => {
      const { asked, shown, price } = await compactedWith(catalog, "demo/demo-model");
      assert.deepEqual([asked, shown, price], [["openai demo-model"], "demo/demo-model", "$1.00 in, $4.00 out per million tokens"]);
      assert.deepEqual(catalog.project.server.requests.filter(({ api }) => api !== "openai"), []);
    });

    await t.test("Opus has its summaries written by Haiku, and the user learns it once", async () => {
      const haiku = isOld ? "claude-haiku-4-5" : "claude-haiku-5-5";
      const { asked, shown, price, notices } = await compactedWith(catalog, "anthropic/claude-opus-5-5");
      assert.deepEqual([asked, shown, price], [[`anthropic ${haiku}`], `anthropic/${haiku}`, prices]);
      const isNotice = (/** @type {string} */ message) => message.includes(`anthropic/${haiku} writes the summaries: the smallest capable model of the session's provider.`);
      assert.equal(notices.filter(isNotice).length, 1, notices.join("\n"));
      const again = await compactedWith(catalog, "anthropic/claude-opus-5-5");
      assert.deepEqual(again.notices.filter(isNotice), []);
    });

    await t.test("a gateway's Haiku is the one that answers at once", async () => {
      const haiku = isOld ? "anthropic/claude-haiku-4.5" : "anthropic/claude-haiku-5.5";
      const { asked, shown, price } = await compactedWith(catalog, "vercel-ai-gateway/anthropic/claude-opus-5.5");
      assert.deepEqual([asked, shown, price], [[`anthropic ${haiku}`], `vercel-ai-gateway/${haiku}`, prices]);
    });

    await t.test("GPT has them written by Luna", async () => {
      const { asked, shown } = await compactedWith(catalog, "openai/gpt-6-sol");
      assert.deepEqual([asked, shown], [["responses gpt-6-luna"], "openai/gpt-6-luna"]);
    });

    await t.test("the word `session` keeps them with the session's own model", async () => {
      const { asked, notices } = await compactedWith(catalog, "openai/gpt-6-sol", { lcm: { compactionModels: ["session"] } });
      assert.deepEqual([asked, notices.length], [["responses gpt-6-sol"], 1]);
    });

    await t.test("another provider is asked if the user names it", async () => {
      const { asked } = await compactedWith(catalog, "demo/demo-model", { lcm: { compactionModels: ["openai/gpt-6-luna"] } });
      assert.deepEqual(asked, ["responses gpt-6-luna"]);
    });

    await t.test("if no named model can be asked, the session's provider is asked, and the user learns it once", async () => {
      const lcm = { compactionModels: ["mistral/mistral-small-latest", "nobody/nothing", "demo/tiny"] };
      const { asked, notices } = await compactedWith(catalog, "openai/gpt-6-sol", { lcm });
      assert.deepEqual(asked, ["responses gpt-6-luna"]);
      const why = "no model in compactionModels can be asked (mistral/mistral-small-latest: it has no key; nobody/nothing: Pi does not know it; demo/tiny: its window of 1000 tokens is too small), so openai/gpt-6-luna writes the summaries";
      assert.equal(notices.filter((message) => message.endsWith(why)).length, 1, notices.join("\n"));
      const again = await compactedWith(catalog, "openai/gpt-6-sol", { lcm });
      assert.equal(again.notices.length, 1);
    });

    // Virtual models came with Pi 1.0.
    if (!isOld) await t.test("for a virtual model, the last answer's model decides", async () => {
      const { asked, shown } = await compactedWith(catalog, "router/auto", { by: "openai/gpt-6-sol" });
      assert.deepEqual([asked, shown], [["responses gpt-6-luna"], "openai/gpt-6-luna"]);
    });
  });
}
