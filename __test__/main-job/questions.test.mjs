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
import { sessionFile } from "../../demo/make-session.mjs";
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

/** A file's content when it was first read. @param {string} file */
function firstRead(file) {
  const calls = shipped.flatMap(({ message }) => (message?.role === "assistant" ? message.content : []));
  const { id } = calls.find(({ type, name, arguments: args }) => type === "toolCall" && name === "read" && args.path === file);
  return textOf(shipped.find(({ message }) => message?.toolCallId === id).message);
}

/** @param {string} tool @param {Record<string, unknown>} args @returns {Call} */
const call = (tool, args) => ({ tool, args });

/** The first message of a kind in an answer. @param {string} answer @param {RegExp} kind */
const named = (answer, kind) => answer.split("\n").find((line) => kind.test(line))?.match(/m-[0-9a-f]{10}/)?.[0];

/** @type {Question[]} */
const questions = [
  {
    title: "An exact error",
    asked: "What exactly did systemd say when it killed us at a deploy?",
    steps: [call("lcm_grep", { query: "systemd stop timed out Killing" })],
    says: ["State 'stop-sigterm' timed out. Killing.", "after 90 s"],
  },
  {
    title: "Why something was decided",
    asked: "Why did we decide to round per rate and not per line?",
    steps: [call("lcm_grep", { query: "why did we decide to round per rate and not per line" })],
    says: ["because the auditors compare our totals with DATEV to the cent"],
  },
  {
    title: "A file's content when it was first read",
    asked: "What was in src/queue.ts when you first read it?",
    steps: [
      call("lcm_grep", { query: "export class Queue", path: "src/queue.ts", tool: "read", sort: "oldest", limit: 3 }),
      (answer) => call("lcm_expand", { summary_id: named(answer, /toolResult read/), max_tokens: 8000 }),
    ],
    says: [`${firstRead("src/queue.ts")}\n</content-`],
  },
  {
    title: "The user's request on the first day",
    asked: "What was the first thing I asked you to do, and which rules did I give you that day?",
    steps: [call("lcm_describe", { section: "earliest" })],
    says: ["Morning. This is kontor, our invoice service. I need you on it all week", "Two rules before you start", "Nr. 4 scares me"],
  },
  {
    title: "The cause of something",
    asked: "We once wanted the queue in Redis. What became of that?",
    steps: [
      call("lcm_grep", { query: "queue into Redis streams" }),
      (answer) => call("lcm_expand", { summary_id: named(answer, /Redis/), around: 2, max_tokens: 2500 }),
    ],
    says: ["Call it project purple-lighthouse.", " · asked for · on another branch · "],
  },
  {
    title: "A detail in a long output",
    asked: "Which positions of the import log were about Shenzhen?",
    steps: [
      call("lcm_grep", { query: "import log of Monday night", tool: "read", path: "logs/import-2026-11-02.log", limit: 3 }),
      (answer) => call("lcm_expand", { summary_id: named(answer, /toolResult read/), query: "shenzhen unexpected", max_tokens: 1500 }),
    ],
    says: ['\\shenzhen\\\\SZ_1101_0029.xml" reason="unexpected closing tag </content> (expected </br>)', "9 of 53 lines of m-"],
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
