/**
 * Pruning on the real Pi: what of older turns gives way to stubs, that the prompt's beginning changes only then, and that each stub
 * brings back what it stands for. All of it is looked at in the requests that the model gets.
 */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { extension } from "../../scripts/paths.mjs";
import { hosts, hostsFor } from "../../scripts/hosts.mjs";
import { inSession } from "../commands/asking.mjs";
import { filler } from "../support/history.mjs";
import { aProject } from "../support/project.mjs";
import { sentMessages } from "../support/requests.mjs";

/** @typedef {import("../../demo/model-server.mjs").Received} Received */
/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../../demo/rpc.mjs").Pi} Pi */

const WINDOW = 60_000;
const LINES = 700;
const acting = fileURLToPath(new URL("../support/acting.mjs", import.meta.url));

/** @param {string} name */
const printing = (name) => `seq -f '${name} line %g' 1 ${LINES}`;
/** @param {string} name */
const printed = (name) => `${Array.from({ length: LINES }, (_, at) => `${name} line ${at + 1}`).join("\n")}\n`;

/**
 * @param {import("node:test").TestContext} t
 * @param {import("../../scripts/hosts.mjs").Host} host
 * @param {Record<string, unknown>} lcm
 */
function aLeanProject(t, host, lcm) {
  return aProject(t, { host, contextWindow: WINDOW, settings: { lcm, compaction: { enabled: false, keepRecentTokens: 200 } }, extensions: [extension, acting] });
}

/**
 * A turn: the model calls a tool, twice at once, and answers.
 * @param {Project} project
 * @param {Pi} pi
 * @param {number} n
 */
async function work(project, pi, n) {
  const toolCalls = ["a", "b"].map((at) => ({ id: `call_${n}${at}`, name: "bash", arguments: { command: printing(`turn ${n}${at}`) } }));
  project.script.turns = [{ text: `Looking at ${n}.`, toolCalls }, { text: `Answer ${n}.` }];
  await pi.prompt(`Question ${n}?`);
}

/**
 * A turn of more words than output.
 * @param {Project} project
 * @param {Pi} pi
 * @param {number} n
 */
async function chat(project, pi, n) {
  const toolCalls = ["a", "b"].map((at) => ({ id: `call_${n}${at}`, name: "bash", arguments: { command: `echo looked at ${n}${at}` } }));
  project.script.turns = [{ text: `Looking at ${n}. ${filler(`looking ${n}`, 400)}`, toolCalls }, { text: `Answer ${n}.` }];
  await pi.prompt(`Question ${n}? ${filler(`question ${n}`, 400)}`);
}

/** A request without its system prompt, as bytes. @param {Received} request */
const said = ({ body }) => JSON.stringify(body.messages.filter((/** @type {any} */ { role }) => role !== "system")).slice(0, -1);

/** Where requests do not begin with the one before. @param {Received[]} requests */
function breaks(requests) {
  const is = (/** @type {number} */ at) => !sentMessages(requests[at]).startsWith(sentMessages(requests[at - 1]));
  return requests.map((_, at) => at).filter((at) => at > 0 && is(at));
}

/** @param {any} message */
const textOf = ({ content }) => (typeof content === "string" ? content : (content ?? []).map((/** @type {any} */ { text }) => text ?? "").join(""));

/** No result without its call, no call without its results. @param {Received} request */
function assertPairs({ body }) {
  const calls = body.messages.flatMap((/** @type {any} */ { tool_calls }) => (tool_calls ?? []).map((/** @type {any} */ { id }) => id));
  const results = body.messages.flatMap((/** @type {any} */ { role, tool_call_id }) => (role === "tool" ? [tool_call_id] : []));
  assert.deepEqual(results, calls);
}

/** The stubs of a request. @param {Received} request @returns {{ text: string, arguments: any }[]} */
function stubsOf({ body }) {
  const texts = body.messages.map(textOf).filter((/** @type {string} */ text) => text.includes("left out to save context"));
  return texts.map((/** @type {string} */ text) => ({ text, arguments: JSON.parse(/lcm_expand (\{.*?\})/.exec(text)?.[1] ?? "null") }));
}

/**
 * Has the model call the tool as a stub says, page by page.
 * @param {Project} project
 * @param {Pi} pi
 * @param {any} args
 * @returns {Promise<string>} what it got
 */
async function recovered(project, pi, args) {
  let [text, next] = ["", args];
  for (let page = 0; next; page++) {
    project.script.turns = [{ text: "", toolCalls: [{ id: `expand_${args.summary_id}_${page}`, name: "lcm_expand", arguments: next }] }, { text: "I see." }];
    await pi.prompt("Bring it back.");
    const answer = textOf(project.lastTurn.body.messages.findLast((/** @type {any} */ { role }) => role === "tool"));
    text += /<content>\n([^]*)\n<\/content>/.exec(answer)?.[1] ?? answer;
    next = JSON.parse(/left: lcm_expand (\{.*?\})/.exec(answer)?.[1] ?? "null");
  }
  return text;
}

for (const host of hostsFor(hosts)) {
  const { version } = host;

  test(`${version}: bulky results of older turns give way, in batches, and each comes back by the call it names`, async (t) => {
    const project = await aLeanProject(t, host, { pruning: "tools", pruneYellow: 0.4, pruneRed: 0.9 });
    const pi = project.startPi();
    for (let n = 0; n < 8; n++) await work(project, pi, n);
    const requests = project.turns;
    const broken = breaks(requests);
    assert.ok(broken.length > 0 && broken.length <= 3, `the beginning changes at ${broken}`);
    for (const request of requests) assertPairs(request);
    for (const at of broken) {
      assert.ok(requests[at].raw.length < requests[at - 1].raw.length * 0.7, "a batch frees something");
      assert.ok(stubsOf(requests[at]).length >= 4);
    }
    const last = project.lastTurn;
    assert.ok(textOf(last.body.messages.findLast((/** @type {any} */ { role }) => role === "tool")).includes(`turn 7b line ${LINES}`), "the newest turn is whole");
    const stubs = stubsOf(last);
    assert.match(stubs[0].text, /^\[bash \{"command":"seq -f 'turn 0a line %g' 1 700"\} gave 700 lines, \d+ KB; left out to save context\. All of it: lcm_expand \{"summary_id":"m-[0-9a-f]{10}"\}\]\nturn 0a line 1\n…\nturn 0a line 700$/);
    assert.equal((await recovered(project, pi, stubs[0].arguments)).trim(), printed("turn 0a").trim());
    assert.equal((await recovered(project, pi, stubs[3].arguments)).trim(), printed("turn 1b").trim());

    const before = project.lastTurn;
    const { file } = await project.session(pi);
    await pi.stop();
    await project.runPi(["--session", file, "-p", "Are you still there?"]);
    assert.deepEqual(breaks([before, project.lastTurn]), [], "a later start goes on with the same bytes");
    const found = JSON.parse(await inSession(project, file, ["-p", "/lcm doctor --json"]));
    assert.deepEqual(found.checks.flatMap((/** @type {any} */ { findings }) => findings ?? []), []);

    const again = project.startPi(["--session", file]);
    await again.prompt("Go on.");
    const kept = project.lastTurn;
    await again.prompt("/act clone");
    await again.prompt("In the clone.");
    // A project with another session has the constant text in its system prompt.
    assert.ok(said(project.lastTurn).startsWith(said(kept)), "and so does a clone");
    await again.prompt("/act tree Answer 1.");
    await again.prompt("On another branch.");
    const branched = project.lastTurn;
    assert.deepEqual(stubsOf(branched), [], "a branch from before the pruning shows what it showed");
    assert.ok(branched.raw.includes(`turn 0a line ${LINES - 1}`));
  });

  test(`${version}: in red whole older turns give way to one line each`, async (t) => {
    const project = await aLeanProject(t, host, { pruning: "turns", pruneYellow: 0.2, pruneRed: 0.4 });
    const pi = project.startPi();
    for (let n = 0; n < 16; n++) await chat(project, pi, n);
    const requests = project.turns;
    const broken = breaks(requests);
    assert.ok(broken.length > 0 && broken.length <= 4, `the beginning changes at ${broken}`);
    for (const request of requests) assertPairs(request);
    const stubs = stubsOf(project.lastTurn);
    const turn = stubs[0];
    assert.match(turn.text, /^\[An earlier turn, 5 messages, about [\d,]+ tokens, left out to save context\. The user: "Question 0\? [a-z …]+" The answer began: "Answer 0\." All of it: lcm_expand \{"summary_id":"m-[0-9a-f]{10}","turn":true\}\]$/);
    assert.ok(!project.lastTurn.raw.includes("call_0a") && project.lastTurn.raw.includes("call_15b"));
    const whole = await recovered(project, pi, turn.arguments);
    for (const said of ["Question 0?", "Looking at 0.", "looked at 0a", "looked at 0b", "Answer 0."]) assert.ok(whole.includes(said), said);

    const before = project.lastTurn;
    const { file } = await project.session(pi);
    await pi.stop();
    await project.runPi(["--session", file, "-p", "Are you still there?"]);
    assert.deepEqual(breaks([before, project.lastTurn]), [], "a later start goes on with the same bytes");

    const told = JSON.parse(await inSession(project, file, ["-p", "/lcm context --json"]));
    assert.equal(told.pruned.turns, stubsOf(project.lastTurn).length);
    assert.equal(told.pruned.messages, told.pruned.turns * 4);
    assert.deepEqual([told.window, told.yellowAt, told.redAt, told.batch.atLeast, told.pruning], [WINDOW, 12_000, 24_000, 6_000, "turns"]);
    assert.equal(told.zone, told.tokens >= 12_000 ? "yellow" : "green");
    assert.ok(told.tokens < 24_000 && told.pruned.tokensSaved > 6_000 && told.cache.changedBy === "pruning" && told.cache.requests > 0);
    const alias = await inSession(project, file, ["-p", "/ctx-status"]);
    assert.match(alias, /^Context {2}[\d,]+ of 60,000 tokens \(\d+%\), (green|yellow)\nPruned {3}\d+ whole turns/);
    assert.equal(alias, await inSession(project, file, ["-p", "/lcm context"]));
  });

  test(`${version}: a compaction tells of what was pruned as it was said, and nothing of it is left over`, async (t) => {
    const project = await aLeanProject(t, host, { pruning: "turns", pruneYellow: 0.2, pruneRed: 0.4, minMessagesForCompaction: 2 });
    const pi = project.startPi();
    for (let n = 0; n < 18; n++) await chat(project, pi, n);
    assert.ok(stubsOf(project.lastTurn).length > 0);
    await pi.request("compact");
    const told = project.summaryCalls.map(({ raw }) => raw).join("\n");
    for (let n = 0; n < 17; n++) assert.ok(told.includes(`looked at ${n}b`), `the summariser is told of turn ${n}`);
    assert.ok(!told.includes("left out to save context"));
    await pi.prompt("Go on.");
    assertPairs(project.lastTurn);
    assert.deepEqual(stubsOf(project.lastTurn), []);
    const session = await project.session(pi);
    assert.match(session.lastCompaction.summary, /none missing/);
    await pi.stop();

    // The history is made anew from the session file alone.
    rmSync(project.storeDir, { recursive: true });
    const found = JSON.parse(await inSession(project, session.file, ["-p", "/lcm doctor --json"]));
    assert.deepEqual(found.checks.flatMap((/** @type {any} */ { findings }) => findings ?? []), []);
    const context = JSON.parse(await inSession(project, session.file, ["-p", "/lcm context --json"]));
    assert.deepEqual([context.pruned.turns, context.cache.changedBy], [0, "compaction"]);
  });
}

const [old, recent] = ["0.74.2", "1.5.2"].map((version) => hosts.find((host) => host.version === version));

for (const [from, to] of [
  [old, recent],
  [recent, old],
]) {
  const skip = from && to ? false : "it takes both 0.74.2 and 1.5.2";
  test(`a session that goes from ${from?.version} to ${to?.version} keeps its stubs`, { skip }, async (t) => {
    assert.ok(from && to);
    const project = await aLeanProject(t, from, { pruning: "turns", pruneYellow: 0.2, pruneRed: 0.4 });
    const pi = project.startPi();
    for (let n = 0; n < 18; n++) await chat(project, pi, n);
    const stubs = stubsOf(project.lastTurn);
    assert.ok(stubs.length > 0);
    const { file } = await project.session(pi);
    await pi.stop();
    project.host = to;
    await project.runPi(["--session", file, "-p", "Go on."]);
    assertPairs(project.lastTurn);
    assert.deepEqual(stubsOf(project.lastTurn), stubs);
    assert.ok(!project.lastTurn.raw.includes("call_0a"));
  });
}
