/**
 * Questions that a model answers with its tools, on the real Pi: the shipped session, compacted, with another session in the project, and a
 * scripted model with the cheapest calls. The answer to each question must be in the result of the first call, or of a second one that
 * expands what the first found.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { extractOf } from "../../demo/extract.mjs";
import { SATURDAY } from "../../demo/logs.mjs";
import { makeSession } from "../../demo/make-session.mjs";
import { sessionFile } from "../../demo/world.mjs";
import { hostsFor } from "../../scripts/hosts.mjs";
import { blockOf } from "../support/block.mjs";
import { aProject } from "../support/project.mjs";

/** @typedef {import("../../demo/model-server.mjs").Received} Received */
/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../../demo/rpc.mjs").Pi} Pi */

/**
 * A call, or a function that makes it from the previous answer.
 * @typedef {{ tool: string, args: Record<string, unknown> }} Call
 * @typedef {Call | ((answer: string) => Call)} Step
 */

/**
 * @typedef {object} Question
 * @property {string} title
 * @property {string} asked by the user
 * @property {Step[]} steps
 * @property {string[]} says texts in the last answer
 */

/** The entries of the shipped session. @type {any[]} */
const shipped = readFileSync(sessionFile, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));

/** The text of a stored message. @param {any} message */
const textOf = (message) => (typeof message.content === "string" ? message.content : message.content.map((/** @type {any} */ part) => part.text ?? "").join("\n"));

/** The result of the first call with an argument. @param {string} name @param {string} value @returns {string} */
function resultOf(name, value) {
  const calls = shipped.flatMap(({ message }) => (message?.role === "assistant" ? message.content : []));
  const { id } = calls.find(({ type, arguments: args }) => type === "toolCall" && args[name] === value);
  return textOf(shipped.find(({ message }) => message?.toolCallId === id).message);
}

/** What the server's log has about one order's money. */
const captured = resultOf("command", SATURDAY).split("\n").filter((line) => line.includes("captured order=10482")).map((line) => line.replace(/ +/g, " "));

/** @param {string} tool @param {Record<string, unknown>} args @returns {Call} */
const call = (tool, args) => ({ tool, args });

/** The first message of a kind in an answer. @param {string} answer @param {RegExp} kind */
const named = (answer, kind) => answer.split("\n").find((line) => kind.test(line))?.match(/m-[0-9a-f]{10}/)?.[0];

/** @type {Question[]} */
const questions = [
  {
    title: "An exact error",
    asked: "What exactly did systemd say when the deploy failed?",
    steps: [call("lcm_grep", { query: "systemd start operation timed out" })],
    says: ["shop.service: start operation timed out. Terminating."],
  },
  {
    title: "Why something was decided",
    asked: "Why did we decide to round the discount per order and not per line?",
    steps: [call("lcm_grep", { query: "why did we decide to round the discount per order and not per line" })],
    says: ["because the receipt must show exactly what the provider charges"],
  },
  {
    title: "A file's content when it was first read",
    asked: "What was in src/webhook.js when you first read it?",
    steps: [
      call("lcm_grep", { query: "export async function handle", path: "src/webhook.js", tool: "read", sort: "oldest", limit: 3 }),
      (answer) => call("lcm_expand", { summary_id: named(answer, /toolResult read/), max_tokens: 8000 }),
    ],
    says: [`${resultOf("path", "src/webhook.js")}\n</content-`],
  },
  {
    title: "The user's request on the first day",
    asked: "What was the first thing I asked you to do, and which rules did I give you that day?",
    steps: [call("lcm_describe", { section: "earliest" })],
    says: ["This is our web shop: Node and SQLite, no framework. Since Friday some customers are charged twice", "Three rules for all of this work", "How many customers is that since Friday"],
  },
  {
    title: "The cause of something",
    asked: "We once wanted locks in Redis. What became of that?",
    steps: [
      call("lcm_grep", { query: "use Redis locks for that" }),
      (answer) => call("lcm_expand", { summary_id: named(answer, /Redis/), around: 2, max_tokens: 2500 }),
    ],
    says: ["Call it project purple-lighthouse.", " · asked for · on another branch · "],
  },
  {
    title: "A detail in a long output",
    asked: "What did the server's log of Saturday say about order 10482?",
    steps: [
      call("lcm_grep", { query: "slow answer captured", tool: "bash", sort: "oldest", limit: 3 }),
      (answer) => call("lcm_expand", { summary_id: named(answer, /toolResult bash/), query: "captured order=10482", max_tokens: 1500 }),
    ],
    says: [...captured, "7 of 7 lines of m-"],
  },
  {
    title: "Something from another session",
    asked: "What did we find out about the label printer, some weeks ago?",
    steps: [call("lcm_grep", { query: "label printer prints empty labels", session: "project" })],
    says: ["Session ", "it wants its labels 102 mm wide"],
  },
  {
    title: "Something that was never said",
    asked: "Which Kubernetes cluster do we deploy to?",
    steps: [call("lcm_grep", { query: "Kubernetes cluster ingress" })],
    says: ["Nothing found for `Kubernetes cluster ingress`"],
  },
];

test("the shipped session is what its generator makes", () => assert.equal(readFileSync(sessionFile, "utf8"), makeSession()));

describe("questions of a model", () => {
  for (const host of hostsFor()) {
    test(host.name, async (t) => {
      const summary = (/** @type {Received} */ { messages }) => ({ text: extractOf(messages.at(-1)?.text ?? "") });
      const project = await aProject(t, { host, contextWindow: 400_000, keepRecentTokens: 2_000, script: { summary } });
      const pi = project.startPi(["--session", sessions(project)]);
      await pi.prompt("/lcm import");
      await pi.request("compact");
      for (const question of questions) {
        await t.test(question.title, async () => {
          const answers = await look(project, pi, question);
          assert.ok(blockOf(project.lastTurn), "the model gets the block, not the compacted messages");
          const answer = plain(answers.at(-1) ?? "");
          for (const said of question.says) assert.ok(answer.includes(said), `${said}\nis not in\n${answer.slice(0, 4000)}`);
        });
      }
    });
  }
});

/** A snippet without its highlights. @param {string} answer */
const plain = (answer) => answer.replaceAll(/[«»]/g, "");

/**
 * The shipped session and one from some weeks earlier, in the project's session folder.
 * @param {Project} project
 */
function sessions(project) {
  const earlier = project.history("019a1111-0000-7000-8000-000000000001");
  earlier.user("The label printer in the warehouse prints empty labels since Thursday.");
  earlier.assistant("Found it: it wants its labels 102 mm wide, and since the update we send 100. I set LABEL_WIDTH to 102.");
  earlier.user("Works, thanks.");
  earlier.assistant("Good.");
  earlier.write(project.sessionDir);
  const [header, ...entries] = shipped;
  const file = path.join(project.sessionDir, path.basename(sessionFile));
  writeFileSync(file, [{ ...header, cwd: project.cwd }, ...entries].map((line) => `${JSON.stringify(line)}\n`).join(""));
  return file;
}

/**
 * Asks the model a question. The model makes the calls, each from the previous answer.
 * @param {Project} project
 * @param {Pi} pi
 * @param {Question} question
 * @returns {Promise<string[]>} the tools' answers
 */
async function look(project, pi, { asked, steps }) {
  const from = project.turns.length;
  project.script.turns = steps.map((step) => (request) => {
    const last = request.messages.findLast(({ role }) => role === "tool");
    const made = typeof step === "function" ? step(last?.text ?? "") : step;
    return { toolCalls: [{ name: made.tool, arguments: made.args }] };
  });
  await pi.prompt(asked);
  const answers = project.turns.slice(from + 1).map(({ messages }) => messages.findLast(({ role }) => role === "tool")?.text ?? "");
  assert.equal(answers.length, steps.length, "each call was answered");
  return answers;
}
