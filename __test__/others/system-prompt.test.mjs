/**
 * Extensions and users that change the system prompt: nothing of theirs is lost, our text is added, and nothing ever changes.
 */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsFor, MAIN } from "../../scripts/hosts.mjs";
import { aProject } from "../support/project.mjs";
import { assertGrowing } from "../support/requests.mjs";
import { bothOf, placings } from "./beside.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../../demo/model-server.mjs").Received} Received */

const OURS = "Lossless Context Management";
const THEIRS = "Mind the ledger, says another extension.";
/** The user's own prompt in files. */
const IN_FOLDERS = /You are a smith\.[^]*Strike hard\./;

/** How often a text occurs in the request's system prompt. @param {Received} request @param {string} text */
const times = ({ system }, text) => system.split(text).length - 1;

/**
 * Talks in a session with history before and after a compaction.
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
 * Asserts that the prompt has our text once, and stays the same.
 * @param {{ before: Received[], after: Received[] }} requests
 */
function assertOursIsAdded({ before, after }) {
  for (const request of [...before, ...after]) {
    assert.equal(times(request, OURS), 1);
    assert.equal(request.system, before[0].system);
  }
}

for (const placing of placings) {
  const { host, oursIsLast, title } = placing;
  const files = oursIsLast ? "in Pi's agent folder and in the project's" : "on the command line";
  test(`an extension that adds to the prompt and the user's own prompt ${files} stay, and our text is added, on ${title}`, async (t) => {
    const project = await aProject(t, { host, extensions: bothOf(placing, "prompting") });
    const args = oursIsLast ? inFolders(project, host.version === MAIN) : ["--system-prompt", "You are a poet.", "--append-system-prompt", "Rhyme."];
    const requests = await talked(project, args);
    for (const request of [...requests.before, ...requests.after]) {
      assert.equal(times(request, THEIRS), 1);
      assert.match(request.system, oursIsLast ? IN_FOLDERS : /You are a poet\.[^]*Rhyme\./);
    }
    assertOursIsAdded(requests);
  });
}

for (const host of hostsFor()) {
  test(`the user's own prompt stays next to our text alone, on ${host.name}`, async (t) => {
    const project = await aProject(t, { host });
    const requests = await talked(project, inFolders(project, false));
    for (const request of [...requests.before, ...requests.after]) assert.match(request.system, IN_FOLDERS);
    assertOursIsAdded(requests);
  });
}

/**
 * The user's own prompts, for this project and for all.
 * @param {Project} project
 * @param {boolean} whole whether the project replaces the whole prompt, or only adds to Pi's
 */
function inFolders(project, whole) {
  mkdirSync(path.join(project.cwd, ".pi"));
  writeFileSync(path.join(project.agentDir, "SYSTEM.md"), whole ? "You are a baker." : "You are a smith.");
  if (whole) writeFileSync(path.join(project.cwd, ".pi", "SYSTEM.md"), "You are a smith.");
  writeFileSync(path.join(project.cwd, ".pi", "APPEND_SYSTEM.md"), "Strike hard.");
  return ["--approve"];
}
