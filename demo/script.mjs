/**
 * The demo model's answers. It is a script and says so: it recognizes a few requests and understands nothing.
 *
 * There are three kinds of requests: the extension's summarizer (answered with an extract of its input), the turns of the play, and
 * anything else that a user types in the interactive demo.
 */
import { extractOf } from "./extract.mjs";

/** @typedef {import("./model-server.mjs").Received} Received */
/** @typedef {import("./model-server.mjs").Reply} Reply */
/** @typedef {import("./wire.mjs").Message} Message */

/** The play's prompts, which this script can answer. */
export const PROMPTS = {
  queue: "How does take() in src/queue.ts make sure that two workers never get the same delivery? Have a look.",
  size: "And how much code is that by now, all in all?",
  recall: "What exactly did the import log of Monday night say about the files from Shenzhen? Please bring back the whole log, word for word.",
};

/** Words that only the log contains: partners' files, the share's error, and its output around a rejected file. */
const LOG_QUERY = "import log Shenzhen source as received CDATA ERROR_NETNAME_DELETED";

const SIGNATURE = "(I am the scripted demo model: this answer was written beforehand.)";

/**
 * @param {Received} request
 * @returns {Reply}
 */
export function demoReply(request) {
  if (request.kind === "summary") return { text: extractOf(request.messages.at(-1)?.text ?? "") };
  const asked = request.messages.findLastIndex((message) => message.role === "user");
  const text = request.messages[asked]?.text ?? "";
  const since = request.messages.slice(asked + 1);
  if (/import log/i.test(text)) return recall(request, since);
  if (text.includes("take()")) return queue(since);
  if (text.includes("how much code")) return size(since);
  return { text: help(text) };
}

/**
 * Reads the file, then reports its content.
 * @param {Message[]} since the messages after the question
 * @returns {Reply}
 */
function queue(since) {
  if (since.length === 0) return { thinking: "The file may have changed since I saw it; read it again.", text: "I'll read it.", toolCalls: [{ name: "read", arguments: { path: "src/queue.ts" } }] };
  const lines = resultText(since).split("\n").length;
  return {
    text: `By one statement: \`take\` (src/queue.ts, ${lines} lines) leases with a single \`UPDATE … WHERE id = (SELECT …) RETURNING …\`, so no other process can come between reading a row and leasing it. \`done\` and \`failed\` name the worker and count only while the lease is his. ${SIGNATURE}`,
  };
}

/**
 * @param {Message[]} since
 * @returns {Reply}
 */
function size(since) {
  if (since.length === 0) return { text: "Counting.", toolCalls: [{ name: "bash", arguments: { command: "cat src/*.ts src/*/*.ts | wc -l; cat test/*.ts | wc -l" } }] };
  const [source = "?", tests = "?"] = resultText(since).match(/\d+/g) ?? [];
  return { text: `${source} lines in src, ${tests} in test. ${SIGNATURE}` };
}

/**
 * The drill-down: finds the log, looks up its place, and gets it back page by page.
 * @param {Received} request
 * @param {Message[]} since
 * @returns {Reply}
 */
function recall({ toolNames }, since) {
  if (!toolNames.includes("lcm_grep")) return { text: `Without the extension's tools I have no way to look that up. ${SIGNATURE}` };
  const last = lastCall(since);
  if (!last) {
    return {
      thinking: "The log was read at the very beginning. If it is not in front of me any more, it can be found.",
      text: "I'll look it up in the history.",
      toolCalls: [{ name: "lcm_grep", arguments: { query: LOG_QUERY } }],
    };
  }
  const answer = resultText(since);
  if (last.name === "lcm_grep") return found(answer);
  const id = String(last.arguments.summary_id);
  const cursor = last.name === "lcm_expand" ? cursorIn(answer) : undefined;
  if (last.name === "lcm_describe" || cursor) {
    return { toolCalls: [{ name: "lcm_expand", arguments: { summary_id: id, max_tokens: 8000, ...(cursor && { cursor }) } }] };
  }
  const pages = since.filter((message) => message.role === "tool").length - 2;
  return {
    text: `That is the whole log, ${pages === 1 ? "in one page" : `in ${pages} pages`}, as it was read on Monday. About Shenzhen it says two things: descriptions in CDATA were not understood (\`unexpected "<![CDATA[…"\`), and HTML outside CDATA broke the nesting (\`unexpected closing tag </content> (expected </br>)\`). ${SIGNATURE}`,
  };
}

/**
 * @param {string} answer of lcm_grep
 * @returns {Reply}
 */
function found(answer) {
  const hit = answer.split("\n").find((line) => /^m-[0-9a-f]+ · toolResult read /.test(line));
  const id = /^m-[0-9a-f]+/.exec(hit ?? "")?.[0];
  if (!id) return { text: `The history has no file of that kind that was read. ${SIGNATURE}` };
  return { text: `It is ${id}. Where does it belong?`, toolCalls: [{ name: "lcm_describe", arguments: { section: "by_id", summary_id: id } }] };
}

/**
 * The cursor of the next page, from the last line of an answer.
 * @param {string} answer
 */
function cursorIn(answer) {
  return /"cursor":"([^"]+)"/.exec(answer.trimEnd().split("\n").at(-1) ?? "")?.[1];
}

/** @param {Message[]} since */
function lastCall(since) {
  return since.findLast((message) => message.toolCalls.length > 0)?.toolCalls.at(-1);
}

/** @param {Message[]} since */
function resultText(since) {
  return since.findLast((message) => message.role === "tool")?.text ?? "";
}

/** @param {string} text that a user typed */
function help(text) {
  const said = text.trim().split("\n")[0].slice(0, 60);
  return `I am the scripted demo model, so I can't really answer “${said}”. What works here:

- Ask *what did the import log say?* I find it in the history with lcm_grep, lcm_describe and lcm_expand, before a compaction and after it.
- \`/compact\` compacts this session. The summaries I write for it are extracts made by rule.
- \`/lcm tree\`, \`/lcm stats\` and \`/lcm help\` are the extension's own commands.

For a real model, set your provider's API key in the environment, or run \`npx pi\` in the project's folder and type \`/login\`. After that \`npm start\` opens your own Pi with the extension.`;
}
