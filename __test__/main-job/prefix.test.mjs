/**
 * The prompt prefix, which providers cache, stays the same: the extension changes nothing in it between two compactions, and its small
 * addition is constant. Compared byte by byte with the requests of Pi alone.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { blockOf } from "../support/block.mjs";
import { filler } from "../support/history.mjs";
import { aProject } from "../support/project.mjs";
import { assertGrowing, sentMessages } from "../support/requests.mjs";

/** @typedef {import("../../demo/model-server.mjs").Received} Received */

/** A run with a tool call, and one without. */
const script = () => [
  { text: "Let me look.", toolCalls: [{ id: "call_1", name: "bash", arguments: { command: "echo looked" } }] },
  { text: "There it is." },
  { text: "Gladly." },
];
const prompts = ["Where is it?", "Thank you, 再見."];

test("the prefix of a request is stable", async (t) => {
  const project = await aProject(t);
  /** A Pi with a session that only differs by its id. @param {string} id @param {null} [loading] */
  const piWith = (id, loading) => {
    const history = project.history(id);
    history.talk(40);
    return project.startPi(["--session", history.write(project.sessionDir)], loading);
  };

  /** Talks, and returns the requests. @param {import("../support/project.mjs").Pi} pi */
  const talk = async (pi) => {
    const from = project.turns.length;
    project.script.turns = script();
    for (const prompt of prompts) await pi.prompt(`${prompt} ${filler(prompt, 100)}`);
    return project.turns.slice(from);
  };

  const pi = piWith("ours");
  const before = await talk(pi);
  await t.test("before a compaction Pi sends what it sends without the extension, and one constant text", async () => {
    const alone = await talk(piWith("alone", null));
    assert.equal(before.length, 3);
    // Thinking is signed over the constant text and the tools too.
    const said = (/** @type {Received} */ request) => sentMessages(request).replace(/"signature":"[^"]+"/g, "").replace(/(\\n)*<lcm>[^<]+<\/lcm>/, "");
    assert.deepEqual(before.map(said), alone.map(said));
  });
  await t.test("before the first compaction requests only grow at their end", () => assertGrowing(before));

  await pi.request("compact");
  const between = await talk(pi);
  await t.test("they do so from one compaction to the next", () => {
    assertGrowing(between);
    assert.ok(blockOf(between[0]));
  });

  await pi.request("compact");
  const after = await talk(pi);
  await t.test("they do so after the second", () => {
    assertGrowing(after);
    assert.notEqual(blockOf(after[0]), blockOf(between[0]));
  });

  await t.test("the system prompt never changes", () => {
    assert.equal(new Set([...before, ...between, ...after].map(({ system }) => system)).size, 1);
  });

  const { file } = await project.session(pi);
  await pi.stop();
  const again = project.startPi(["--session", file]);

  await t.test("a later start of the session continues with the same bytes", async () => {
    await again.prompt("Are you still there?");
    assertGrowing([after[2], project.lastTurn]);
  });

  await t.test("a new session has the same constant text", async () => {
    await again.request("new_session");
    await again.prompt("Something else.");
    const fresh = project.lastTurn;
    assert.equal(fresh.system, after[0].system);
    assert.equal(fresh.messages.length, 1);
  });
});
