/**
 * Failing providers: every way in which a provider fails, on the real Pi. The table in docs/models.md has the results; `UPDATE_DOCS=1` writes
 * it.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { everything, hostsFor } from "../../scripts/hosts.mjs";
import { root } from "../../scripts/paths.mjs";
import { fires, hasty, underFire } from "../support/fires.mjs";
import { aProject } from "../support/project.mjs";

/** @typedef {import("node:test").TestContext} TestContext */
/** @typedef {import("../../scripts/hosts.mjs").Host} Host */
/** @typedef {import("../support/fires.mjs").Fire} Fire */
/** @typedef {Map<Fire, { reason: string, block: string }>} Outcomes */

/** Everything runs on this Pi; on others, the failures that depend most on Pi's version. */
const THOROUGH = "0.87.1";
const page = path.join(root, "docs", "models.md");

/** Whether to also try failures that differ only in a value, and every failure in both formats. */
const all = everything || Boolean(process.env.UPDATE_DOCS);

/** The wire formats, by the provider whose model speaks it. @type {Record<string, "openai" | "anthropic">} */
const formats = { demo: "openai", claude: "anthropic" };

for (const host of hostsFor()) {
  test(host.name, async (t) => {
    const outcomes = await allFires(t, host);
    if (host.version === THOROUGH) await t.test("docs/models.md has these results", () => documented(outcomes));
  });
}

/**
 * Runs all failures in one Pi, each in its own session.
 * @param {TestContext} t
 * @param {Host} host
 * @returns {Promise<Outcomes>} the results in the first format
 */
async function allFires(t, host) {
  /** @type {Outcomes} */
  const outcomes = new Map();
  const project = await aProject(t, { host, api: "openai", settings: { lcm: hasty } });
  define(project);
  // Pi's library for OpenAI's format reports itself that it can't parse a stream.
  project.noise = /^$|^Could not parse message into JSON: |^From chunk: /;
  const pi = project.startPi();
  for (const [provider, format] of Object.entries(formats)) {
    const tried = triedIn(host, format);
    if (tried.length === 0) continue;
    await t.test(`in ${format}'s format`, async () => {
      for (const fire of tried) {
        try {
          const outcome = await underFire(project, pi, fire, provider);
          assert.ok(project.summaryCalls.length > 0 && project.summaryCalls.every(({ api }) => api === format));
          if (fire.once) assert.equal(project.summaryCalls.length, 1);
          if (format === "openai") outcomes.set(fire, outcome);
        } catch (error) {
          throw new Error(`${fire.name}: ${error instanceof Error ? error.message : error}`, { cause: error });
        }
      }
    });
  }
  return outcomes;
}

/** Adds a provider with the other format. @param {import("../support/project.mjs").Project} project */
function define({ agentDir, server }) {
  const file = path.join(agentDir, "models.json");
  const { demo } = JSON.parse(readFileSync(file, "utf8")).providers;
  const claude = { ...demo, baseUrl: server.url, api: "anthropic-messages" };
  writeFileSync(file, JSON.stringify({ providers: { demo, claude } }));
}

/**
 * @param {Host} host
 * @param {"openai" | "anthropic"} format
 * @returns {Fire[]}
 */
function triedIn(host, format) {
  if (host.version !== THOROUGH) return format === "openai" ? fires.filter((_, at) => [4, 9, 12, 20].includes(at)) : [];
  return fires.filter(({ worded, like }) => all || (format === "openai" ? !like : worded));
}

/** Compares the page's table, without the failures that differ from another only in a value. @param {Outcomes} outcomes */
function documented(outcomes) {
  /** @type {Map<string, string[]>} */
  const failures = new Map();
  for (const [fire, { reason, block }] of outcomes) {
    assert.match(block, fire.harmless ? /^32 of 32 messages, by the model$/ : /^32 of 32 messages, by extracts$/, fire.name);
    if (fire.like) continue;
    const message = reason.replace(/^demo\/demo-model: /, "");
    failures.set(message, [...(failures.get(message) ?? []), fire.name]);
  }
  const rows = [["message", "failure"], ["---", "---"], ...[...failures].map(([message, names]) => [message, names.join("; ")])];
  const table = rows.map((cells) => `| ${cells.join(" | ")} |`).join("\n");
  const [, before, known, after] = /^([^]*<!-- fire -->\n)([^]*?)(\n<!-- \/fire -->[^]*)$/.exec(readFileSync(page, "utf8")) ?? [];
  assert.ok(before && after, "the page has a place for the table");
  if (process.env.UPDATE_DOCS) return writeFileSync(page, `${before}${table}${after}`);
  assert.equal(known, table, "UPDATE_DOCS=1 writes the table");
}
