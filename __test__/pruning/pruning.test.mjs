/**
 * Pruning on the real Pi: what of older turns gives way to stubs, that the prompt's beginning changes only then, and that each stub
 * brings back what it stands for. All of it is looked at in the requests that the model gets.
 */
import assert from "node:assert/strict";
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

const WINDOW = 30_000;
const LINES = 350;
/** So many turns of words make the context red. */
const TURNS = 9;
const TOOLS = { pruning: "tools", pruneYellow: 0.4, pruneRed: 0.9 };
const WHOLE_TURNS = { pruning: "turns", pruneYellow: 0.2, pruneRed: 0.4, minMessagesForCompaction: 2 };
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

/**
 * What a command answers as data.
 * @param {Pi} pi
 * @param {string} line
 */
async function asked(pi, line) {
  const from = pi.events.length;
  await pi.prompt(`${line} --json`);
  const answer = () => pi.events.slice(from).find(({ method, message }) => method === "notify" && message.startsWith("{"));
  return JSON.parse((await pi.waitFor(answer)).message);
}

/** Nothing in the session is wrong. @param {Pi} pi */
async function assertSound(pi) {
  const { checks } = await asked(pi, "/lcm doctor");
  assert.deepEqual(checks.flatMap((/** @type {any} */ { findings }) => findings ?? []), []);
}

for (const host of hostsFor(hosts)) {
  test(host.name, async (t) => {
    const project = await aLeanProject(t, host, TOOLS);
    project.storeIn("store", TOOLS);
    const pi = project.startPi();

    await t.test("bulky results of older turns give way, in batches, and each comes back by the call it names", async () => {
      for (let n = 0; n < 8; n++) await work(project, pi, n);
      const requests = project.turns;
      const broken = breaks(requests);
      assert.ok(broken.length > 0 && broken.length <= 3, `the beginning changes at ${broken}`);
      for (const request of requests) assertPairs(request);
      for (const at of broken) {
        assert.ok(said(requests[at]).length < said(requests[at - 1]).length * 0.7, "a batch frees something");
        assert.ok(stubsOf(requests[at]).length >= 4);
      }
      const last = project.lastTurn;
      assert.ok(textOf(last.body.messages.findLast((/** @type {any} */ { role }) => role === "tool")).includes(`turn 7b line ${LINES}`), "the newest turn is whole");
      const stubs = stubsOf(last);
      assert.match(stubs[0].text, /^\[bash \{"command":"seq -f 'turn 0a line %g' 1 350"\} gave 350 lines, \d+ KB; left out to save context\. All of it: lcm_expand \{"summary_id":"m-[0-9a-f]{10}"\}\]\nturn 0a line 1\n…\nturn 0a line 350$/);
      assert.equal((await recovered(project, pi, stubs[0].arguments)).trim(), printed("turn 0a").trim());
      assert.equal((await recovered(project, pi, stubs[3].arguments)).trim(), printed("turn 1b").trim());

      // What was brought back gives way too, once it is no longer the newest; then there is nothing left to prune.
      for (const text of ["Thanks.", "Thanks again."]) await pi.prompt(text);
      const before = project.lastTurn;
      await pi.request("switch_session", { sessionPath: (await project.session(pi)).file });
      await pi.prompt("Are you still there?");
      assert.deepEqual(breaks([before, project.lastTurn]), [], "whoever takes it up later goes on with the same bytes");
      await assertSound(pi);
    });

    await t.test("so does a clone, and a branch from before the pruning shows what it showed", async () => {
      const kept = project.lastTurn;
      await pi.prompt("/act clone");
      await pi.prompt("In the clone.");
      // A project with another session has the constant text in its system prompt.
      assert.ok(said(project.lastTurn).startsWith(said(kept)));
      await pi.prompt("/act tree Answer 1.");
      await pi.prompt("On another branch.");
      const branched = project.lastTurn;
      assert.deepEqual(stubsOf(branched), []);
      assert.ok(branched.raw.includes(`turn 0a line ${LINES - 1}`));
    });

    let file = "";
    await t.test("in red whole older turns give way to one line each", async () => {
      project.storeIn("store", WHOLE_TURNS);
      await pi.request("new_session");
      const from = project.turns.length;
      for (let n = 0; n < TURNS; n++) await chat(project, pi, n);
      const requests = project.turns.slice(from);
      const broken = breaks(requests);
      assert.ok(broken.length > 0 && broken.length <= 4, `the beginning changes at ${broken}`);
      for (const request of requests) assertPairs(request);
      const stubs = stubsOf(project.lastTurn);
      const turn = stubs[0];
      assert.match(turn.text, /^\[An earlier turn, 5 messages, about [\d,]+ tokens, left out to save context\. The user: "Question 0\? [a-z …]+" The answer began: "Answer 0\." All of it: lcm_expand \{"summary_id":"m-[0-9a-f]{10}","turn":true\}\]$/);
      assert.ok(!project.lastTurn.raw.includes("call_0a") && project.lastTurn.raw.includes(`call_${TURNS - 1}b`));
      const whole = await recovered(project, pi, turn.arguments);
      for (const said of ["Question 0?", "Looking at 0.", "looked at 0a", "looked at 0b", "Answer 0."]) assert.ok(whole.includes(said), said);
      ({ file } = await project.session(pi));
    });

    await t.test("a later start goes on with the same bytes, and /lcm context tells how it stands", async () => {
      await pi.request("new_session");
      const before = project.lastTurn;
      const stdout = await inSession(project, file, ["-p", "Are you still there?", "/lcm context --json", "/ctx-status", "/lcm context"]);
      assert.deepEqual(breaks([before, project.lastTurn]), []);
      const [json, alias, long] = stdout.split(/^(?=Context {2})/m);
      const told = JSON.parse(json);
      assert.equal(told.pruned.turns, stubsOf(project.lastTurn).length);
      assert.equal(told.pruned.messages, told.pruned.turns * 4);
      assert.deepEqual([told.window, told.yellowAt, told.redAt, told.batch.atLeast, told.pruning], [WINDOW, 6_000, 12_000, 3_000, "turns"]);
      assert.equal(told.zone, told.tokens >= 6_000 ? "yellow" : "green");
      assert.ok(told.tokens < 12_000 && told.pruned.tokensSaved > 3_000 && told.cache.changedBy === "pruning" && told.cache.requests > 0);
      assert.match(alias, /^Context {2}[\d,]+ of 30,000 tokens \(\d+%\), (green|yellow)\nPruned {3}\d+ whole turns/);
      assert.equal(long, alias);
    });

    await t.test("a compaction tells of what was pruned as it was said, and nothing of it is left over", async () => {
      await pi.request("switch_session", { sessionPath: file });
      await pi.request("compact");
      const told = project.summaryCalls.map(({ raw }) => raw).join("\n");
      for (let n = 0; n < TURNS; n++) assert.ok(told.includes(`looked at ${n}b`), `the summariser is told of turn ${n}`);
      assert.ok(!told.includes("left out to save context"));
      await pi.prompt("Go on.");
      assertPairs(project.lastTurn);
      assert.deepEqual(stubsOf(project.lastTurn), []);
      const session = await project.session(pi);
      assert.match(session.lastCompaction.summary, /none missing/);

      // The history is made anew from the session file alone.
      project.storeIn("another", WHOLE_TURNS);
      await pi.request("switch_session", { sessionPath: file });
      await assertSound(pi);
      const context = await asked(pi, "/lcm context");
      assert.deepEqual([context.pruned.turns, context.cache.changedBy], [0, "compaction"]);
    });
  });
}

const [old, recent] = ["0.74.2", "1.5.2"].map((version) => hosts.find((host) => host.version === version));

test("a session that goes from one Pi to another keeps its stubs", { skip: old && recent ? false : "it takes both 0.74.2 and 1.5.2" }, async (t) => {
  assert.ok(old && recent);
  const project = await aLeanProject(t, old, WHOLE_TURNS);
  const pis = [old, recent].map((host) => {
    project.host = host;
    return { host, pi: project.startPi() };
  });
  /** @type {{ file: string, stubs: { text: string, arguments: any }[] }[]} */
  const sessions = [];
  for (const { pi } of pis) {
    for (let n = 0; n < TURNS; n++) await chat(project, pi, n);
    const stubs = stubsOf(project.lastTurn);
    assert.ok(stubs.length > 0);
    sessions.push({ stubs, file: (await project.session(pi)).file });
    await pi.request("new_session");
  }
  for (const [at, { pi, host }] of pis.toReversed().entries()) {
    await t.test(`to ${host.version}`, async () => {
      const { file, stubs } = sessions[at];
      await pi.request("switch_session", { sessionPath: file });
      await pi.prompt("Go on.");
      assertPairs(project.lastTurn);
      assert.deepEqual(stubsOf(project.lastTurn), stubs);
      assert.ok(!project.lastTurn.raw.includes("call_0a"));
    });
  }
});
