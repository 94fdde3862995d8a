/**
 * Overflow on the real Pi: a provider takes less than Pi thinks and says so. One compaction brings the request under the limit,
 * and the turn is asked again, once.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hosts, hostsFor } from "../../scripts/hosts.mjs";
import { assertAgreement } from "../support/agreement.mjs";
import { blockOf, statistics } from "../support/block.mjs";
import { aProject, eventually } from "../support/project.mjs";

/** @typedef {import("../../demo/model-server.mjs").Received} Received */

/** Tokens that the provider takes, of four bytes each. */
const LIMIT = 12_000;

/** @param {Received} request */
const tokens = ({ raw }) => Math.ceil(Buffer.byteLength(raw) / 4);

/** @param {Received} request @param {number} [limit] */
const rejection = (request, limit = LIMIT) => ({ status: 400, errorBody: `This model's maximum context length is ${limit} tokens. However, you requested ${tokens(request)} tokens.` });

/**
 * A session of a model whose window is believed to be larger than it is.
 * @param {import("node:test").TestContext} t
 * @param {import("../../scripts/hosts.mjs").Host} host
 * @param {number} exchanges
 */
async function believing(t, host, exchanges) {
  const settings = { compaction: { keepRecentTokens: 3_000, reserveTokens: 10_000 }, lcm: { compactionModels: ["demo/demo-model"], modelRetries: 0, background: false } };
  const project = await aProject(t, { host, contextWindow: 100_000, settings });
  const history = project.history();
  history.talk(exchanges, { words: 60 });
  /** @type {Received[]} */
  const rejected = [];
  /** Every turn is answered by size. @param {import("../support/project.mjs").Script["turns"] & {}} turns */
  const answering = (turns) => {
    project.script.otherwise = (request) => {
      if (tokens(request) > LIMIT) {
        rejected.push(request);
        return rejection(request);
      }
      return /** @type {any} */ (turns.shift()) ?? { text: "Understood." };
    };
  };
  return { project, pi: project.startPi(["--session", history.write(project.sessionDir)]), rejected, answering };
}

const flood = { text: "Let me look.", toolCalls: [{ name: "bash", arguments: { command: "for i in $(seq 1 1500); do echo this is line $i of the log; done" } }] };

for (const host of hostsFor(hosts)) {
  test(`on ${host.name} a tool's output that is too large leaves the context, and the turn goes on`, async (t) => {
    for (const summary of [undefined, () => ({ status: 500 })]) {
      const { project, pi, rejected, answering } = await believing(t, host, 20);
      project.script.summary = summary;
      answering([flood, { text: "It went well." }]);
      await pi.prompt("Read the whole log and tell me how it went.");
      await eventually(() => assert.equal(project.lastTurn.index > (rejected[0]?.index ?? Infinity), true));
      await eventually(async () => assert.match(JSON.stringify((await project.session(pi)).entries.at(-1)), /It went well\./));
      assert.equal(rejected.length, 1, "it is rejected once");
      const block = blockOf(project.lastTurn);
      assert.ok(block, "the model is shown the block");
      assert.equal(statistics(block).missing, "none");
      assert.match(block, /Read the whole log and tell me how it went\./);
      assert.ok(tokens(project.lastTurn) <= LIMIT);
      const session = await project.session(pi);
      assert.equal(session.entries.filter(({ type }) => type === "compaction").length, 1);
      await eventually(() => assertAgreement(project));
      await pi.prompt("Good.");
      assert.equal(rejected.length, 1);
      await project.stopAll();
    }
  });

  test(`on ${host.name} a history that is too long is compacted as far as must be, and its end stays raw`, async (t) => {
    const { project, pi, rejected, answering } = await believing(t, host, 90);
    answering([]);
    await pi.prompt("Where are we?");
    await eventually(() => assert.ok(blockOf(project.lastTurn)));
    assert.equal(rejected.length, 1);
    assert.equal(project.lastTurn.messages.at(-1)?.text, "Where are we?");
    assert.ok(project.lastTurn.messages.length > 3, "there is a raw part");
    await eventually(() => assertAgreement(project));
  });

  test(`on ${host.name} what is too long all the same is not asked for ever`, async (t) => {
    const { project, pi } = await believing(t, host, 40);
    project.script.otherwise = (request) => rejection(request, 100);
    await pi.prompt("Where are we?");
    await eventually(() => assert.equal(project.turns.length, 2));
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    assert.equal(project.turns.length, 2);
    assert.equal((await project.session(pi)).entries.filter(({ type }) => type === "compaction").length, 1);
    project.script.otherwise = () => ({ text: "Here again." });
    await pi.prompt("And now?");
    assert.equal(project.lastTurn.messages.at(-1)?.text, "And now?");
    await eventually(() => assertAgreement(project));
  });
}
