/**
 * Stubs on the real Pi: old results are replaced, even in the middle of a turn; only that changes the prompt's beginning; and each stub can
 * be expanded. All of it is checked in the model's requests.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { extension } from "../../scripts/paths.mjs";
import { hosts, hostsFor } from "../../scripts/hosts.mjs";
import { asked, inSession } from "../commands/asking.mjs";
import { aProject } from "../support/project.mjs";
import { sentMessages } from "../support/requests.mjs";

/** @typedef {import("../../demo/model-server.mjs").Received} Received */
/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../../demo/rpc.mjs").Pi} Pi */

const WINDOW = 128_000;
const LINES = 350;
/** Answers are so expensive that a change pays early. */
const COST = { input: 1, output: 4_000, cacheRead: 0.1, cacheWrite: 1.25 };
const REQUESTS = 24;
const acting = fileURLToPath(new URL("../support/acting.mjs", import.meta.url));

/** @param {string} name */
const printing = (name) => `seq -f '${name} line %g' 1 ${LINES}`;
/** @param {string} name */
const printed = (name) => `${Array.from({ length: LINES }, (_, at) => `${name} line ${at + 1}`).join("\n")}\n`;

/**
 * @param {import("node:test").TestContext} t
 * @param {import("../../scripts/hosts.mjs").Host} host
 */
function aLeanProject(t, host) {
  return aProject(t, { host, contextWindow: WINDOW, cost: COST, extensions: [extension, acting], settings: { lcm: {} } });
}

/**
 * Runs one turn: the model makes two tool calls at once, several times, and answers.
 * @param {Project} project
 * @param {Pi} pi
 * @param {string} name
 * @param {number} [requests]
 */
async function work(project, pi, name, requests = REQUESTS) {
  const calls = (/** @type {number} */ n) => ["a", "b"].map((at) => ({ id: `call_${name}_${n}${at}`, name: "bash", arguments: { command: printing(`${name} ${n}${at}`) } }));
  project.script.turns = [...Array.from({ length: requests }, (_, n) => ({ text: `Looking at ${n}.`, toolCalls: calls(n) })), { text: `Answer ${name}.` }];
  await pi.prompt(`Question ${name}?`);
}

/** A request without its system prompt, as text. @param {Received} request */
const said = ({ body }) => JSON.stringify(body.messages.filter((/** @type {any} */ { role }) => role !== "system")).slice(0, -1);

/** The requests that do not begin with the one before. @param {Received[]} requests */
function breaks(requests) {
  const is = (/** @type {number} */ at) => !sentMessages(requests[at]).startsWith(sentMessages(requests[at - 1]));
  return requests.map((_, at) => at).filter((at) => at > 0 && is(at));
}

/** @param {any} message */
const textOf = ({ content }) => (typeof content === "string" ? content : (content ?? []).map((/** @type {any} */ { text }) => text ?? "").join(""));

/** Asserts that no result lacks its call, and no call its result. @param {Received} request */
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
 * Asserts that a resumed session continues with the same bytes, unless the last turn's end has made more stubs.
 * @param {Received} before
 * @param {Received} after
 */
function assertGoesOn(before, after) {
  const [old, now] = [stubsOf(before), stubsOf(after)].map((stubs) => stubs.map(({ text }) => text));
  assert.deepEqual(now.filter((text) => old.includes(text)), old);
  if (now.length === old.length) assert.deepEqual(breaks([before, after]), []);
}

/**
 * Lets the model call the tool as a stub says, page by page.
 * @param {Project} project
 * @param {Pi} pi
 * @param {any} args
 * @returns {Promise<string>} the result
 */
async function recovered(project, pi, args) {
  let [text, next] = ["", args];
  for (let page = 0; next; page++) {
    project.script.turns = [{ text: "", toolCalls: [{ id: `expand_${args.summary_id}_${page}`, name: "lcm_expand", arguments: next }] }, { text: "I see." }];
    await pi.prompt("Bring it back.");
    const answer = textOf(project.lastTurn.body.messages.findLast((/** @type {any} */ { role }) => role === "tool"));
    text += /<(content-\w+)>\n([^]*)\n<\/\1>/.exec(answer)?.[2] ?? answer;
    next = JSON.parse(/left: lcm_expand (\{.*?\})/.exec(answer)?.[1] ?? "null");
  }
  return text;
}

/** Asserts that the doctor finds nothing. @param {Pi} pi */
async function assertSound(pi) {
  const { checks } = await asked(pi, "/lcm doctor");
  assert.deepEqual(checks.flatMap((/** @type {any} */ { findings }) => findings ?? []), []);
}

for (const host of hostsFor()) {
  test(host.name, async (t) => {
    const project = await aLeanProject(t, host);
    project.storeIn("store");
    const pi = project.startPi();

    await t.test("large results are stubbed during a turn, in batches, and each stub's call returns its result", async () => {
      await work(project, pi, "first");
      const requests = project.turns;
      const broken = breaks(requests);
      assert.ok(broken.length > 0 && broken.length <= 6, `the beginning changes at ${broken}`);
      for (const request of requests) assertPairs(request);
      for (const at of broken) {
        assert.ok(said(requests[at]).length < said(requests[at - 1]).length * 0.8, "a batch frees something");
        assert.ok(stubsOf(requests[at]).length >= 4);
        // The model's newest result is complete.
        assert.ok(textOf(requests[at].body.messages.at(-1)).includes(`line ${LINES}`));
      }
      const stubs = stubsOf(project.lastTurn);
      assert.match(stubs[0].text, /^\[bash \{"command":"seq -f 'first 0a line %g' 1 350"\} gave 350 lines, \d+ KB; left out to save context\. All of it: lcm_expand \{"summary_id":"m-[0-9a-f]{10}"\}\]\nfirst 0a line 1\n…\nfirst 0a line 350$/);
      assert.equal((await recovered(project, pi, stubs[0].arguments)).trim(), printed("first 0a").trim());
      assert.equal((await recovered(project, pi, stubs[3].arguments)).trim(), printed("first 1b").trim());

      // Expanded results are stubbed too, and then nothing is left to do.
      for (const text of ["Thanks.", "Thanks again."]) await pi.prompt(text);
      const before = project.lastTurn;
      await pi.request("switch_session", { sessionPath: (await project.session(pi)).file });
      await pi.prompt("Are you still there?");
      assertGoesOn(before, project.lastTurn);
      await assertSound(pi);
    });

    await t.test("a clone is the same, and an earlier branch is unchanged", async () => {
      const kept = project.lastTurn;
      await pi.prompt("/act clone");
      await pi.prompt("In the clone.");
      // In a project with another session the system prompt has the constant text.
      assert.ok(said(project.lastTurn).startsWith(said(kept)));
      await pi.prompt("/act tree Looking at 1.");
      await pi.prompt("On another branch.");
      assert.deepEqual(stubsOf(project.lastTurn), []);
    });

    let file = "";
    await t.test("a later start continues with the same bytes, and /lcm context shows the decisions and reasons", async () => {
      await pi.request("new_session");
      await work(project, pi, "second");
      for (const text of ["Thanks.", "Thanks again."]) await pi.prompt(text);
      const before = project.lastTurn;
      ({ file } = await project.session(pi));
      const context = await asked(pi, "/lcm context");
      assert.equal(context.pruned.results, stubsOf(before).length);
      assert.deepEqual([context.window, context.context, context.piCompactsAt], [WINDOW, "lean", WINDOW - 16_384]);
      assert.ok(context.pruned.tokensSaved > 3_000 && context.cache.changedBy === "pruning" && context.cache.requests > 0);
      assert.ok(context.decided.some((/** @type {any} */ { action, reason }) => action.stub !== undefined && reason === "due"), JSON.stringify(context.decided));
      assert.ok(context.cost.requests === REQUESTS + 3 && context.cost.paid < context.cost.withPiAlone, JSON.stringify(context.cost));
      await pi.request("new_session");
      const stdout = await inSession(project, file, ["-p", "Are you still there?", "/ctx-status", "/lcm context"]);
      assertGoesOn(before, project.lastTurn);
      const [alias, long] = stdout.split(/^(?=Context {2})/m);
      assert.match(alias, /^Context {2}[\d,]+ of 128,000 tokens \(\d+%\), lean\nStubs {4}\d+ results, about [\d,]+ tokens less\n(Decided {2}after 1 request: |Next {5})/);
      // Pi 0.74 does not wait for the decision at a turn's end.
      const lasting = (/** @type {string} */ text) => text.replace(/^(Decided|Cost) .*\n/gm, "").trim();
      assert.equal(lasting(long), lasting(alias));
    });

    await t.test("a compaction covers pruned results in full, and no stub is left", async () => {
      await pi.request("switch_session", { sessionPath: file });
      const from = project.summaryCalls.length;
      await pi.request("compact");
      const summarized = project.summaryCalls.slice(from).map(({ raw }) => raw).join("\n");
      for (let n = 0; n < REQUESTS; n++) assert.ok(summarized.includes(`second ${n}b line`), `the summarizer gets request ${n}`);
      assert.ok(!summarized.includes("left out to save context"));
      await pi.prompt("Go on.");
      assertPairs(project.lastTurn);
      assert.deepEqual(stubsOf(project.lastTurn), []);
      const session = await project.session(pi);
      assert.match(session.lastCompaction.summary, /none missing/);

      // The history is rebuilt from the session file alone.
      project.storeIn("another");
      await pi.request("switch_session", { sessionPath: file });
      await assertSound(pi);
      const context = await asked(pi, "/lcm context");
      assert.deepEqual([context.pruned.results, context.cache.changedBy], [0, "compaction"]);
    });

    await t.test("a full context is left unchanged", async () => {
      project.storeIn("another", { context: "full" });
      await pi.request("new_session");
      const from = project.turns.length;
      await work(project, pi, "third");
      assert.deepEqual(breaks(project.turns.slice(from)), []);
      assert.deepEqual(stubsOf(project.lastTurn), []);
    });
  });
}

const [old, recent] = ["0.74.2", "1.5.2"].map((version) => hosts.find((host) => host.version === version));

test("a session that moves from one Pi to another keeps its stubs", { skip: old && recent ? false : "it takes both 0.74.2 and 1.5.2" }, async (t) => {
  assert.ok(old && recent);
  const project = await aLeanProject(t, old);
  const pis = [old, recent].map((host) => {
    project.host = host;
    return { host, pi: project.startPi() };
  });
  /** @type {{ file: string, stubs: { text: string, arguments: any }[] }[]} */
  const sessions = [];
  for (const { pi, host } of pis) {
    await work(project, pi, host.version);
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
      assert.deepEqual(stubsOf(project.lastTurn).slice(0, stubs.length), stubs);
    });
  }
});
