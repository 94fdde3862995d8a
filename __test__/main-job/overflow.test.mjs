/**
 * Requests too long for the provider, on the real Pi: the provider's limit is lower than Pi assumes. One compaction brings the request
 * under the limit, and the turn is sent again, once.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { assertAgreement } from "../support/agreement.mjs";
import { blockOf, statistics } from "../support/block.mjs";
import { aProject, eventually } from "../support/project.mjs";

/** @typedef {import("../../demo/model-server.mjs").Received} Received */

/** The provider's limit in tokens of four bytes. */
const LIMIT = 12_000;

/** @param {Received} request */
const tokens = ({ raw }) => Math.ceil(Buffer.byteLength(raw) / 4);

/** @param {Received} request @param {number} [limit] */
const rejection = (request, limit = LIMIT) => ({ status: 400, errorBody: `This model's maximum context length is ${limit} tokens. However, you requested ${tokens(request)} tokens.` });

/**
 * A model whose assumed window is larger than the real one.
 *
 * @param {import("node:test").TestContext} t
 * @param {import("../../scripts/hosts.mjs").Host} host
 */
function believing(t, host) {
  const settings = { compaction: { keepRecentTokens: 3_000, reserveTokens: 10_000 }, lcm: { compactionModels: ["demo/demo-model"], modelRetries: 0, background: false } };
  return aProject(t, { host, contextWindow: 100_000, settings });
}

/**
 * Resumes a session in which every turn is answered by size.
 * @param {import("../support/project.mjs").Project} project
 * @param {import("../support/project.mjs").Pi} pi
 * @param {string} name
 * @param {number} exchanges
 * @param {import("../../demo/model-server.mjs").Reply[]} [turns]
 */
async function bySize(project, pi, name, exchanges, turns = []) {
  const history = project.history(name);
  history.talk(exchanges, { words: 60, name });
  await project.resume(pi, history);
  /** @type {Received[]} */
  const rejected = [];
  project.script.otherwise = (request) => {
    if (tokens(request) <= LIMIT) return turns.shift() ?? { text: "Understood." };
    rejected.push(request);
    return rejection(request);
  };
  return rejected;
}

const flood = { text: "Let me look.", toolCalls: [{ name: "bash", arguments: { command: "for i in $(seq 1 1500); do echo this is line $i of the log; done" } }] };

for (const host of hostsFor()) {
  test(`a request that the provider rejects is compacted, on ${host.name}`, async (t) => {
    const project = await believing(t, host);
    const pi = project.startPi();
    const compactions = async () => (await project.session(pi)).entries.filter(({ type }) => type === "compaction").length;

    for (const [name, summary] of /** @type {const} */ ([["flood", undefined], ["fire", () => ({ status: 500 })]])) {
      await t.test(`a tool's output that is too large is compacted, and the turn continues${summary ? ", also without a model" : ""}`, async () => {
        const rejected = await bySize(project, pi, name, 20, [flood, { text: "It went well." }]);
        project.script.summary = summary;
        await pi.prompt("Read the whole log and tell me how it went.");
        await eventually(async () => assert.match(JSON.stringify((await project.session(pi)).entries.at(-1)), /It went well\./));
        assert.equal(rejected.length, 1, "it is rejected once");
        assert.ok(project.lastTurn.index > rejected[0].index);
        const block = blockOf(project.lastTurn);
        assert.ok(block, "the model gets the block");
        assert.equal(statistics(block).missing, "none");
        assert.match(block, /Read the whole log and tell me how it went\./);
        assert.ok(tokens(project.lastTurn) <= LIMIT);
        assert.equal(await compactions(), 1);
        await eventually(() => assertAgreement(project));
        await pi.prompt("Good.");
        assert.equal(rejected.length, 1);
      });
    }

    await t.test("a history that is too long is compacted as far as needed, and its end stays raw", async () => {
      const rejected = await bySize(project, pi, "long", 90);
      await pi.prompt("Where are we?");
      await eventually(() => assert.ok(blockOf(project.lastTurn)));
      assert.equal(rejected.length, 1);
      assert.equal(project.lastTurn.messages.at(-1)?.text, "Where are we?");
      assert.ok(project.lastTurn.messages.length > 3, "there is a raw part");
      await eventually(() => assertAgreement(project));
    });

    await t.test("a request that stays too long is not retried forever", async () => {
      await bySize(project, pi, "hopeless", 40);
      project.script.otherwise = (request) => rejection(request, 100);
      await pi.prompt("Where are we?");
      await eventually(() => assert.equal(project.turns.length, 2));
      await eventually(async () => assert.equal((await pi.request("get_state")).isStreaming, false));
      assert.equal(await compactions(), 1);
      project.script.otherwise = () => ({ text: "Here again." });
      await pi.prompt("And now?");
      assert.equal(project.turns.length, 3);
      assert.equal(project.lastTurn.messages.at(-1)?.text, "And now?");
      await eventually(() => assertAgreement(project));
    });
  });
}
