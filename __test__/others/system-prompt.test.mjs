/**
 * Beside others who have a say in the system prompt, be they extensions or the user: nothing of theirs is lost, ours stands
 * there too once there is something to look up, and between compactions not a byte changes.
 */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsByVersion, hostsFor } from "../../scripts/hosts.mjs";
import { extension, root } from "../../scripts/paths.mjs";
import { aProject } from "../support/project.mjs";
import { assertGrowing } from "../support/requests.mjs";
import { beside } from "./beside.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../../demo/model-server.mjs").Received} Received */

const OURS = "Lossless Context Management";
const THEIRS = "Mind the ledger, says another extension.";

/** How often a text stands in the request's system prompt. @param {Received} request @param {string} text */
const times = ({ system }, text) => system.split(text).length - 1;

/**
 * A session with a past that is talked in before and after it is compacted.
 * @param {Project} project
 * @param {string[]} [args]
 * @returns {Promise<{ before: Received[], after: Received[] }>}
 */
async function talked(project, args = []) {
  const history = project.history();
  history.talk(40);
  const pi = project.startPi(["--session", history.write(project.sessionDir), ...args]);
  const talk = async () => {
    const from = project.turns.length;
    project.script.turns = [{ toolCalls: [{ id: "call_1", name: "bash", arguments: { command: "echo looked" } }] }];
    await pi.prompt("look");
    await pi.prompt("and on");
    return project.turns.slice(from);
  };
  const before = await talk();
  await pi.request("compact");
  const after = await talk();
  assertGrowing(before);
  assertGrowing(after);
  return { before, after };
}

/**
 * The prompt that Pi has without us, with ours after it.
 * @param {{ before: Received[], after: Received[] }} requests
 */
function assertOursIsAdded({ before, after }) {
  for (const request of before) assert.equal(times(request, OURS), 0);
  for (const request of after) {
    assert.equal(times(request, OURS), 1);
    const added = request.system.replace(/\s*(<lcm>\n)?Older parts of this conversation[^]*?, not instructions\.(\n<\/lcm>)?/, "");
    assert.equal(added.trim(), before[0].system.trim());
  }
}

beside("an extension that adds to the whole prompt keeps its words, and ours stand there too", "prompting", async (t, { host, extensions }) => {
  const project = await aProject(t, { host, extensions });
  const requests = await talked(project);
  for (const request of [...requests.before, ...requests.after]) assert.equal(times(request, THEIRS), 1);
  assertOursIsAdded(requests);
}, { orderMatters: true });

for (const host of hostsFor(hostsByVersion)) {
  test(`prompts of the user's own, on ${host.name}`, { concurrency: 3 }, async (t) => {
    const approve = host.version === "0.74.2" ? [] : ["--approve"];
    await Promise.all([
      t.test("a prompt on the command line", async (t) => {
        const project = await aProject(t, { host });
        const requests = await talked(project, ["--system-prompt", "You are a poet.", "--append-system-prompt", "Rhyme."]);
        assert.match(requests.after[0].system, /You are a poet\.[^]*Rhyme\./);
        assertOursIsAdded(requests);
      }),

      t.test("a prompt in Pi's agent folder", async (t) => {
        const project = await aProject(t, { host });
        writeFileSync(path.join(project.agentDir, "SYSTEM.md"), "You are a baker.");
        const requests = await talked(project);
        assert.ok(requests.after[0].system.includes("You are a baker."));
        assertOursIsAdded(requests);
      }),

      t.test("a prompt in the project's folder", async (t) => {
        const project = await aProject(t, { host });
        mkdirSync(path.join(project.cwd, ".pi"));
        for (const [name, text] of [["SYSTEM.md", "You are a smith."], ["APPEND_SYSTEM.md", "Strike hard."]]) writeFileSync(path.join(project.cwd, ".pi", name), text);
        const requests = await talked(project, approve);
        assert.match(requests.after[0].system, /You are a smith\.[^]*Strike hard\./);
        assertOursIsAdded(requests);
      }),
    ]);
  });

}

for (const host of hostsFor(hostsByVersion, "Pi 0.74.2", "Pi 1.5.2")) {
  // Pi 0.87 asks nobody about such a run's prompt, and drops our part with the first tool call of it; we hear of it with the
  // next prompt only.
  const drops = host.version === "0.87.1";
  const what = drops ? "loses our part with its first tool call, which is back with the next prompt" : "has the prompt of every other";
  test(`a run that an extension's message sets off ${what}, on ${host.name}`, async (t) => {
    const acting = path.join(root, "__test__", "support", "acting.mjs");
    const project = await aProject(t, { host, extensions: [extension, acting] });
    const history = project.history();
    history.talk(40);
    const pi = project.startPi(["--session", history.write(project.sessionDir)]);
    await pi.request("compact");
    await pi.prompt("said by the user");
    project.script.turns = [{ toolCalls: [{ id: "call_1", name: "bash", arguments: { command: "echo looked" } }] }, { text: "Seen." }];
    await pi.prompt("/act trigger said by an extension");
    await pi.prompt("said by the user again");
    const [before, begins, goesOn, after] = project.turns;
    assert.equal(project.turns.length, 4);
    assert.deepEqual([before, begins, goesOn, after].map((request) => times(request, OURS)), [1, 1, drops ? 0 : 1, 1]);
    assert.equal(after.system, before.system);
    assertGrowing(drops ? [before, begins, after] : project.turns);
  });
}
