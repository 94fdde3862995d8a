/** Every setting has an effect on the real Pi that a test has seen: here, or in the test file named at the end. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { loadEngine } from "../../index.js";
import { hostsFor } from "../../scripts/hosts.mjs";
import { root } from "../../scripts/paths.mjs";
import { unwrap } from "../../shim/pi.js";
import { assertStored } from "../support/agreement.mjs";
import { settled } from "../support/ahead.mjs";
import { statistics } from "../support/block.mjs";
import { filler } from "../support/history.mjs";
import { OnePi } from "../support/one-pi.mjs";
import { eventually, temporaryFolder } from "../support/project.mjs";

/** @typedef {import("../support/history.mjs").History} History */
/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../support/project.mjs").Pi} Pi */
/** @typedef {import("../support/project.mjs").Script} Script */

/** Sessions with different settings, each with its own store. */
class Sessions {
  #one;
  #count = 0;

  /** @param {import("../../scripts/hosts.mjs").Host} host */
  constructor(host) {
    this.#one = new OnePi({ host });
  }

  async project() {
    const project = await this.#one.project();
    const file = path.join(project.agentDir, "models.json");
    const { providers } = JSON.parse(readFileSync(file, "utf8"));
    // The same server, but not by an address that gets one question at a time.
    providers.far ??= { ...providers.demo, baseUrl: providers.demo.baseUrl.replace("127.0.0.1", "0.0.0.0") };
    writeFileSync(file, JSON.stringify({ providers }));
    return project;
  }

  /**
   * Opens one with a history of 40 short messages, unless the test writes another.
   * @param {object} lcm settings
   * @param {{ write?: (history: History) => void, summary?: Script["summary"], compaction?: object }} [more] `compaction`: Pi's setting
   */
  async open(lcm, { write = (history) => void history.talk(20, { words: 60 }), summary, compaction = { keepRecentTokens: 200 } } = {}) {
    const project = await this.project();
    const name = `session-${++this.#count}`;
    project.configure({ compaction });
    project.storeIn(name, { compactionModels: ["session"], leafChunkTokens: 500, ...lcm });
    const history = project.history(name);
    write(history);
    const { pi } = await this.#one.sit(history);
    project.script.summary = summary;
    return { project, pi };
  }

  /** The same, compacted. @param {Parameters<Sessions["open"]>} opening */
  async compacted(...opening) {
    const { project, pi } = await this.open(...opening);
    await pi.request("compact");
    const session = await project.session(pi);
    const { fromHook, summary } = session.lastCompaction;
    return { project, pi, session, fromHook, block: /** @type {string} */ (summary), asked: project.summaryCalls.map(textOf) };
  }
}

/** The question, without what is random in it. @param {import("../../demo/model-server.mjs").Received} request */
const textOf = ({ messages }) => messages.map(({ text }) => text.replace(/\b(history|before)-[0-9a-f]{8}\b/g, "$1")).join("\n");

/** A summary too long to be joined with another without a model. @type {Script["summary"]} */
const long = ({ index }) => ({ text: `Stretch ${index}\n${filler(`stretch ${index}`, 90)}\nExpand for details about: it` });

/** @type {Record<string, (sessions: Sessions) => Promise<void>>} */
const EFFECTS = {
  redact: async (sessions) => {
    const secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    for (const redact of [true, false]) {
      const write = (/** @type {History} */ history) => (history.user(`My token is ${secret}, use it.`), void history.talk(15));
      const { project, session, asked } = await sessions.compacted({ redact }, { write });
      assert.ok(asked.length > 0);
      assert.equal(asked.some((prompt) => prompt.includes(secret)), !redact);
      await eventually(() => assertStored(project, session));
    }
  },

  condensationThreshold: async (sessions) => {
    for (const [condensationThreshold, condensed] of /** @type {const} */ ([[3, true], [50, false]])) {
      const { block } = await sessions.compacted({ condensationThreshold, maxSummaryTokens: 20_000 }, { summary: long });
      assert.equal(statistics(block).depth > 0, condensed, block);
    }
  },

  maxDepth: async (sessions) => {
    for (const maxDepth of [1, 2]) {
      const { block } = await sessions.compacted({ maxDepth, condensationThreshold: 2, maxSummaryTokens: 20_000 }, { summary: long });
      assert.equal(statistics(block).depth, maxDepth, block);
    }
  },

  maxSummaryTokens: async (sessions) => {
    const sizes = [];
    for (const maxSummaryTokens of [1_000, 8_000]) {
      const { block } = await sessions.compacted({ maxSummaryTokens }, { summary: long });
      assert.equal(statistics(block).missing, "none");
      sizes.push(block.length / 4);
    }
    assert.ok(sizes[0] <= 1_000 && sizes[1] > 1_500, `${sizes} tokens`);
  },

  minMessagesForCompaction: async (sessions) => {
    for (const [minMessagesForCompaction, ours] of /** @type {const} */ ([[30, true], [50, false]])) {
      const { fromHook } = await sessions.compacted({ minMessagesForCompaction });
      assert.equal(fromHook ?? false, ours);
    }
  },

  leafPassConcurrency: async (sessions) => {
    for (const leafPassConcurrency of [1, 3]) {
      let [running, most] = [0, 0];
      /** @type {Script["summary"]} */
      const summary = async (request) => {
        most = Math.max(most, ++running);
        // The first answer comes only when as many calls as possible have.
        await eventually(() => assert.equal(most, leafPassConcurrency));
        running--;
        return long(request);
      };
      const { asked } = await sessions.compacted({ leafPassConcurrency, compactionModels: ["far/demo-model"] }, { summary });
      assert.ok(asked.length > 3);
      assert.equal(most, leafPassConcurrency);
    }
  },

  background: async (sessions) => {
    for (const background of [true, false]) {
      const { project, pi } = await sessions.open({ background, compactionModels: ["demo/demo-model"] }, { compaction: { keepRecentTokens: 200, reserveTokens: 185_000 } });
      project.script.otherwise = () => ({ text: "Well.", usage: { input: 12_000, output: 10 } });
      await pi.prompt("Where are we?");
      if (background) await eventually(() => assert.ok(project.summaryCalls.length > 0));
      assert.equal((await settled(project)) > 0, background);
    }
  },

  foldAt: async (sessions) => {
    for (const [foldAt, folds] of /** @type {const} */ ([[1, true], [10_000_000, false]])) {
      const write = (/** @type {History} */ history) => void history.talk(20, { words: 400 });
      const { project, pi } = await sessions.open({ foldAt, leafChunkTokens: 2_000, compactionModels: ["demo/demo-model"] }, { write });
      await pi.prompt("Where are we?");
      await settled(project);
      await pi.prompt("And now?");
      const { entries } = await project.session(pi);
      assert.equal(entries.some(({ type }) => type === "compaction"), folds);
    }
  },

  modelRetries: async (sessions) => {
    for (const modelRetries of [0, 2]) {
      const { asked } = await sessions.compacted({ modelRetries, leafPassConcurrency: 1 }, { summary: () => ({ status: 503, headers: { "retry-after-ms": "1" } }) });
      const times = asked.filter((prompt) => prompt === asked[0]).length;
      assert.equal(times, 1 + modelRetries);
    }
  },

  modelTokensPerHour: async (sessions) => {
    /** @type {Script["summary"]} */
    const summary = (request) => ({ ...long(request), usage: { input: 900, output: 100 } });
    for (const [modelTokensPerHour, isReached] of /** @type {const} */ ([[1_500, true], [0, false]])) {
      const { pi, asked } = await sessions.compacted({ modelTokensPerHour, leafPassConcurrency: 1 }, { summary });
      assert.equal(asked.length === 2, isReached, `${asked.length} calls`);
      const limits = () => pi.ui("notify").filter(({ message }) => message.includes("the limit of 1,500 tokens of model calls within an hour is reached (setting `modelTokensPerHour`)"));
      await eventually(() => assert.equal(limits().length, isReached ? 1 : 0));
    }
  },

  largeFileThresholdTokens: async (sessions) => {
    const rows = Array.from({ length: 400 }, (_, n) => `row ${n} of the log says nothing`).join("\n");
    const shown = [];
    for (const largeFileThresholdTokens of [1_000, 25_000]) {
      const write = (/** @type {History} */ history) => {
        history.user("Read the log.");
        history.assistant("", [{ id: "call_1", name: "bash", arguments: { command: "cat log" } }]);
        history.toolResult("call_1", "bash", rows);
        history.talk(15);
      };
      const { asked } = await sessions.compacted({ largeFileThresholdTokens }, { write });
      shown.push(asked.join("\n").match(/row \d+ of the log/g)?.length ?? 0);
    }
    assert.ok(shown[0] > 0 && shown[1] > 2 * shown[0] && shown[1] < 400, `${shown} rows`);
  },
};

/** The test files, or what they share, with the effects of the other settings. */
const ELSEWHERE = {
  enabled: "settings/disabled.test",
  dbDir: "settings/places.test",
  projectIdentity: "yours/moving.test",
  context: "main-job/folding.test",
  compactionModels: "settings/models.test",
  leafChunkTokens: "settings/places.test",
  notes: "main-job/notes.test",
  recallOnNew: "main-job/notes.test",
  alsoRead: "yours/agents.test",
  syncTarget: "sync/in-pi.test",
  syncProject: "sync/in-pi.test",
  syncLabel: "sync/in-pi.test",
  syncRedact: "sync/in-pi.test",
  syncRecipients: "sync/in-pi.test",
  compactInstructions: "main-job/compacting.test",
  modelTimeoutSeconds: "support/fires",
  sizeBudgetMegabytes: "settings/showing.test",
  status: "settings/showing.test",
  debugMode: "settings/showing.test",
};

for (const host of hostsFor()) {
  const sessions = new Sessions(host);
  for (const [name, effect] of Object.entries(EFFECTS)) test(`${name} has its effect on ${host.name}`, () => effect(sessions));
}

test("every setting has a test of its effect", async () => {
  const nowhere = { agentDir: "/nowhere", cwd: "/nowhere", projectTrusted: false };
  const { settings } = unwrap(await loadEngine().settingsCommand(JSON.stringify({ line: "settings", sources: nowhere }))).answer;
  const names = settings.map((/** @type {{ name: string }} */ { name }) => name);
  assert.deepEqual(names.toSorted(), [...Object.keys(EFFECTS), ...Object.keys(ELSEWHERE)].sort(), "each setting needs a test in EFFECTS, or the file with one in ELSEWHERE");
  for (const [name, file] of Object.entries(ELSEWHERE)) assert.ok(readFileSync(path.join(root, "__test__", `${file}.mjs`), "utf8").includes(name), `${name} in ${file}`);
});

test("Pi's thread goes on while another program holds the settings file", async (t) => {
  const agentDir = temporaryFolder(t);
  mkdirSync(path.join(agentDir, "settings.json.lock"));
  let wentOn = false;
  setImmediate(() => (wentOn = true));
  const sources = { agentDir, cwd: agentDir, projectTrusted: false };
  const { error } = JSON.parse(await loadEngine().settingsCommand(JSON.stringify({ line: "settings maxDepth=3", sources })));
  assert.match(error.message, /is in use by another program: try again$/);
  assert.ok(wentOn);
});
