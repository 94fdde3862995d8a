/**
 * The demo model's answers. It is a script and says so: it recognizes a few requests and understands nothing. What it quotes, it takes from the
 * tools' results.
 *
 * There are three kinds of requests: the extension's summarizer (answered with an extract of its input), the turns of the play, and
 * anything else that a user types in the interactive demo.
 */
import { extractOf } from "./extract.mjs";

/** @typedef {import("./model-server.mjs").Received} Received */
/** @typedef {import("./model-server.mjs").Reply} Reply */
/** @typedef {import("./wire.mjs").Message} Message */

/** Prompts that this script can answer. */
export const PROMPTS = {
  check: "Read the code again: can a customer still be charged twice?",
  order: "What did the server log say about order 10482?",
  whole: "Print that server log again, all of it.",
  size: "How much code is that by now?",
};

/** What only the log has. */
const LOG_QUERY = "server log web-1 captured order 10482 delivery slow answer";
const SIGNATURE = "(I am a scripted model: I knew where to look, but not what I would find.)";

/**
 * @param {Received} request
 * @returns {Reply}
 */
export function demoReply(request) {
  if (request.kind === "summary") return { text: extractOf(request.messages.at(-1)?.text ?? "") };
  const asked = request.messages.findLastIndex((message) => message.role === "user");
  const said = request.messages[asked]?.text ?? "";
  // The hint above the editor numbers them.
  const text = { 1: PROMPTS.check, 2: PROMPTS.order }[said.trim()] ?? said;
  const since = request.messages.slice(asked + 1);
  if (/\blog\b/i.test(text)) return recall(request, since, /\b(all|whole)\b/.test(text) ? undefined : (/\d{5}/.exec(text)?.[0] ?? "10482"));
  if (text.includes("charged twice")) return check(since);
  if (text.includes("How much code")) return size(since);
  return { text: help(text) };
}

/** What the check reads, and what it looks for there. @type {[string, RegExp][]} */
const CHECKED = [["src/server.js", /settle\(db, payments\)/], ["src/webhook.js", /INSERT OR IGNORE INTO events/], ["src/payments.js", /`capture-\$\{order\}`/], ["migrations/002_events.sql", /PRIMARY KEY/]];

/** Reads a file per request, and reports from what it read. @param {Message[]} since the messages after the question @returns {Reply} */
function check(since) {
  const results = since.filter(({ role }) => role === "tool").map(({ text }) => text);
  const next = CHECKED[results.length];
  if (next) return { ...(results.length === 0 && { text: "I'll read what handles the money." }), toolCalls: [{ name: "read", arguments: { path: next[0] } }] };
  const found = CHECKED.every(([, what], at) => what.test(results[at]));
  return { text: found ? "No. An event has one row in `events`, so it is handled once, and all captures of an order have the same idempotency key." : "Perhaps: something that I expected there is missing." };
}

/** @param {Message[]} since @returns {Reply} */
function size(since) {
  if (since.length === 0) return { text: "Counting.", toolCalls: [{ name: "bash", arguments: { command: "cat src/*.js | wc -l; cat test/*.js | wc -l" } }] };
  const [source = "?", tests = "?"] = resultText(since).match(/\d+/g) ?? [];
  return { text: `${source} lines in src, ${tests} in test.` };
}

/**
 * Finds the log in the history, and quotes an order's lines from the original, or gets all of it back, page by page.
 *
 * @param {Received} request
 * @param {Message[]} since
 * @param {string} [order]
 * @returns {Reply}
 */
function recall({ toolNames }, since, order) {
  if (!toolNames.includes("lcm_grep")) return { text: "Without the extension's tools I have no way to look that up." };
  const last = since.findLast(({ toolCalls }) => toolCalls.length > 0)?.toolCalls.at(-1);
  if (!last) return { text: "The log is not in my context any more. I'll look it up.", toolCalls: [{ name: "lcm_grep", arguments: { query: LOG_QUERY, tool: "bash", limit: 3 } }] };
  const answer = resultText(since);
  if (last.name === "lcm_grep") {
    const id = /^(m-[0-9a-f]+) · toolResult bash /m.exec(answer)?.[1];
    return id ? { toolCalls: [{ name: "lcm_expand", arguments: { summary_id: id, ...(order ? { query: `order=${order}` } : { max_tokens: 8000 }) } }] } : { text: "The history has no such log." };
  }
  const cursor = /"cursor":"([^"]+)"/.exec(answer.trimEnd().split("\n").at(-1) ?? "")?.[1];
  if (!order && cursor) return { toolCalls: [{ name: "lcm_expand", arguments: { ...last.arguments, cursor } }] };
  if (!order) return { text: `That was all of it, in ${since.filter(({ role }) => role === "tool").length - 1} pages.` };
  const captured = [...answer.matchAll(/T([\d:.]+)Z INFO +(web-\d) captured «?order=\d+»? amount=(\S+)/g)].map(([, time, server, amount]) => `- ${time} UTC, ${server}: ${amount}`);
  return { text: `Order ${order} was captured ${captured.length === 1 ? "once" : `${captured.length} times`}:\n\n${captured.join("\n")}\n\n${SIGNATURE}` };
}

/** @param {Message[]} since */
const resultText = (since) => since.findLast(({ role }) => role === "tool")?.text ?? "";

/** @param {string} text that a user typed */
function help(text) {
  const said = text.trim().split("\n")[0].slice(0, 60);
  return `I am a scripted model, so I can't really answer “${said}”. What works here:

- Ask *${PROMPTS.check}* I read the code again.
- Ask *${PROMPTS.order}* I find it in the history, before a compaction and after it.
- \`/compact\` compacts this session. I write the summaries by rule.
- \`/lcm context\`, \`/lcm tree\`, \`/lcm search captured\` and \`/lcm help\` are the extension's own commands.

For a real model, set your provider's API key in the environment, or run \`npx pi\` in the project's folder and type \`/login\`. After that \`npm start\` opens your own Pi with the extension.`;
}
