/**
 * Models under fire: every way in which a provider fails, on the real Pi, asked straight from the engine and through Pi's own
 * call. The table in docs/models.md is what comes out here; `UPDATE_DOCS=1` writes it.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsByVersion, hostsFor } from "../../scripts/hosts.mjs";
import { writeAgentDir } from "../../demo/model-server.mjs";
import { root } from "../../scripts/paths.mjs";
import { fires, hasty, underFire } from "../support/fires.mjs";
import { aProject } from "../support/project.mjs";

/** @typedef {import("node:test").TestContext} TestContext */
/** @typedef {import("../../scripts/hosts.mjs").Host} Host */
/** @typedef {{ directModelCalls: boolean, api: "openai" | "anthropic" }} Way */

/** Everything is tried on this one; on the others, what depends on Pi's version most. */
const THOROUGH = "0.87.1";
const page = path.join(root, "docs", "models.md");

/** @type {Record<string, Way>} */
const ways = {
  "asked straight": { directModelCalls: true, api: "openai" },
  "asked through Pi": { directModelCalls: false, api: "openai" },
  "asked straight, Anthropic's format": { directModelCalls: true, api: "anthropic" },
  "asked through Pi, Anthropic's format": { directModelCalls: false, api: "anthropic" },
};

for (const host of hostsFor(hostsByVersion)) {
  test(host.name, { concurrency: 4 }, async (t) => {
    const thorough = host.version === THOROUGH;
    const tried = Object.keys(ways).filter((name) => thorough || name === "asked through Pi");
    /** @type {Map<string, Map<string, { told: string, block: string }>>} */
    const outcomes = new Map();
    await Promise.all(tried.map((name) => t.test(name, async (t) => void outcomes.set(name, await allFires(t, host, ways[name])))));
    if (thorough && outcomes.size === tried.length) await t.test("docs/models.md says what came out", () => documented(outcomes));
  });
}

/**
 * One Pi, a session for each failure.
 * @param {TestContext} t
 * @param {Host} host
 * @param {Way} way
 */
async function allFires(t, host, { directModelCalls, api }) {
  const settings = { lcm: { ...hasty, directModelCalls }, compaction: { keepRecentTokens: 200 }, retry: { enabled: false } };
  const project = await aProject(t, { host });
  writeAgentDir(project.agentDir, { url: project.server.url, api, settings });
  // The library by which Pi speaks OpenAI's format says so itself when it can't parse a stream.
  if (api === "openai" && !directModelCalls) project.noise = /^$|^Could not parse message into JSON: |^From chunk: /;
  const pi = project.startPi();
  const outcomes = new Map();
  for (const fire of host.version === THOROUGH ? fires : fires.filter((_, at) => [3, 9, 12, 20].includes(at))) {
    try {
      outcomes.set(fire.name, await underFire(project, pi, fire));
    } catch (error) {
      throw new Error(`${fire.name}: ${error instanceof Error ? error.message : error}`, { cause: error });
    }
  }
  assert.ok(project.summaryCalls.every(({ streaming }) => streaming === !directModelCalls));
  return outcomes;
}

/** @param {Map<string, Map<string, { told: string, block: string }>>} outcomes */
function documented(outcomes) {
  const [straight, through] = Object.keys(ways).map((name) => outcomes.get(name));
  assert.ok(straight && through);
  const rows = fires.map(({ name }) => {
    const [one, other] = [straight.get(name), through.get(name)];
    assert.equal(one?.block, other?.block, name);
    return [name, one?.told, other?.told, one?.block];
  });
  const heads = [["what the model does", "what the user is told, asked straight", "the same through Pi", "what the block covers, and whose words they are"], ["---", "---", "---", "---"]];
  const table = [...heads, ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
  const said = readFileSync(page, "utf8");
  const [, before, after] = /^([^]*<!-- fire -->\n)[^]*?(\n<!-- \/fire -->[^]*)$/.exec(said) ?? [];
  assert.ok(before && after, "the page has a place for the table");
  if (process.env.UPDATE_DOCS) writeFileSync(page, `${before}${table}${after}`);
  else assert.deepEqual(said.slice(before.length, -after.length).split("\n"), table.split("\n"), "UPDATE_DOCS=1 writes the table anew");
}
