/**
 * Windows so small that Pi's settings leave nothing to compact, on the real Pi: the context is folded before the window is full, an answer
 * that was cut short is asked for again, and one message names the settings.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { assertAgreement } from "../support/agreement.mjs";
import { blockOf } from "../support/block.mjs";
import { aProject, eventually } from "../support/project.mjs";

/** @typedef {import("../../demo/model-server.mjs").Received} Received */

/** @param {Received} request */
const tokens = ({ raw }) => Math.ceil(Buffer.byteLength(raw) / 4);

const PROMPTS = 40;
const look = { text: "Let me look.", toolCalls: [{ name: "bash", arguments: { command: "seq 1 600" } }] };

for (const host of hostsFor()) {
  for (const window of [20_000, 12_000]) {
    test(`no request is too long for a window of ${window} tokens with Pi's default settings, on ${host.name}`, async (t) => {
      const project = await aProject(t, { host, contextWindow: window, settings: { compaction: {} } });
      /** @type {Received[]} */
      const rejected = [];
      let turn = 0;
      project.script.otherwise = (request) => {
        if (tokens(request) > window) {
          rejected.push(request);
          return { status: 400, errorBody: `This model's maximum context length is ${window} tokens. However, you requested ${tokens(request)} tokens.` };
        }
        return turn++ % 2 === 0 ? look : { text: "It is in order." };
      };
      const pi = project.startPi();
      for (let part = 1; part <= PROMPTS; part++) await pi.prompt(`please check part ${part} of the parser`);
      // Pi is idle while a fold waits for its summaries, and may take the next prompt then.
      await eventually(() => assert.match(JSON.stringify(project.lastTurn.messages), new RegExp(`check part ${PROMPTS} of`)));
      assert.deepEqual(rejected.map(({ index }) => index), []);
      assert.ok(blockOf(project.lastTurn), "the context was folded");
      const said = pi.ui("notify").filter(({ message }) => /reserveTokens/.test(message));
      assert.equal(said.length, 1);
      assert.match(said[0].message, /window of [\d,]+ tokens: it reserves 16,384 \(reserveTokens\) and keeps 20,000 \(keepRecentTokens\)/);
      await eventually(() => assertAgreement(project));
    });
  }

  for (const window of [8_192, 12_288]) {
    test(`every prompt is answered in a window of ${window} tokens, on ${host.name}`, async (t) => {
      const project = await aProject(t, { host, contextWindow: window, settings: { compaction: { reserveTokens: 2_048, keepRecentTokens: 2_000 } } });
      const long = "It is in order, as far as I can see. ".repeat(20);
      let turn = 0;
      project.script.otherwise = () => (turn++ % 2 === 0 ? { ...look, toolCalls: [{ name: "bash", arguments: { command: "seq 1 120" } }] } : { text: long });
      const pi = project.startPi();
      for (let part = 1; part <= PROMPTS; part++) {
        const events = await pi.prompt(`please check part ${part} of the parser`);
        const answers = events.flatMap(({ type, message }) => (type === "message_end" && message.role === "assistant" ? [message] : []));
        // Pi cuts an answer short if its request leaves too little of the window.
        assert.equal(answers.at(-1).stopReason, "stop", `prompt ${part}: ${answers.map(({ stopReason }) => stopReason)}`);
      }
      assert.ok(blockOf(project.lastTurn), "the context was folded");
      await eventually(() => assertAgreement(project));
    });
  }

  test(`a session that already fills its window goes on after the next answer, on ${host.name}`, async (t) => {
    const project = await aProject(t, { host, contextWindow: 20_000, settings: { compaction: {} } });
    const history = project.history();
    history.talk(70, { words: 150 });
    const pi = project.startPi(["--session", history.write(project.sessionDir)]);
    await pi.prompt("Where are we?");
    assert.ok(tokens(project.lastTurn) > 16_500, "Pi leaves no room for an answer");
    assert.equal(blockOf(project.lastTurn), undefined);
    await eventually(() => assert.ok(project.summaryCalls.length > 0));
    await eventually(async () => {
      await pi.prompt("And now?");
      assert.ok(blockOf(project.lastTurn));
    });
    assert.ok(tokens(project.lastTurn) < 12_000);
    assert.match(JSON.stringify((await project.session(pi)).entries.at(-1)), /Understood\./);
  });
}
