/**
 * Plays the main job on the real Pi without a user: open a session, work, compact, and let the model get back word for word what was
 * compacted.
 *
 * The output comes from Pi's events, the model server's request log and the session file. It ends with PASS or FAIL.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { extension } from "../scripts/paths.mjs";
import { LOG } from "./make-session.mjs";
import { startPi } from "./rpc.mjs";
import { PROMPTS } from "./script.mjs";
import { wires } from "./wire.mjs";
import { makeWorld } from "./world.mjs";

/** The heading of the block. */
const BLOCK_HEADING = "## Conversation History (Lossless Context Management)";

/** @type {string[]} */
const failures = [];

/** The last announced step. */
let step = 0;

// Interrupting the play leaves nothing behind: the folders and Pi go when this process ends.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(130));

const world = await makeWorld();
const started = Date.now();
const pi = startPi({
  agentDir: world.agentDir,
  cwd: world.project,
  args: ["--session", world.session, "-e", extension],
  env: { LCM_DB_DIR: world.store },
});

try {
  await play();
} catch (error) {
  failures.push(error instanceof Error ? error.message : String(error));
} finally {
  await pi.stop();
  await world.remove();
}

expect(pi.nonJson.length === 0 && pi.stderr === "", `Pi's output held what is not Pi's: ${[...pi.nonJson, pi.stderr].join(" ").slice(0, 300)}`);
for (const failure of failures) print(`FAIL  ${failure}`);
if (failures.length === 0) print("PASS  every byte came back");
process.exitCode = failures.length === 0 ? 0 : 1;

async function play() {
  print("pi-lossless-context: the main job on the real Pi (rpc mode), with a scripted demo model on this machine.");
  print("All files are temporary; your own Pi is not touched.");
  await openSession();
  await work();
  await compact();
  await lookUp();
}

async function openSession() {
  heading("Open a session of some hundred messages");
  const entries = entriesIn(world.session);
  const conversation = entries.filter(({ type }) => type === "message" || type === "custom_message").length;
  print(`file     ${entries.length} entries, ${conversation} of them messages, ${bytes(readFileSync(world.session).length)}`);
  await pi.waitFor(() => stored() >= conversation, 20_000);
  print(`footer   ${pi.status("lcm")}   (${Date.now() - started} ms after Pi was started)`);
  expect(stored() === conversation, `${conversation} messages stand in the file, ${stored()} are stored`);
}

async function work() {
  heading("Go on working");
  await say(PROMPTS.queue);
  await say(PROMPTS.size);
  print(`footer   ${pi.status("lcm")}`);
}

async function compact() {
  heading("/compact");
  const before = requests().length;
  const asked = Date.now();
  const result = await pi.request("compact");
  const took = Date.now() - asked;
  const calls = requests().slice(before);
  const summaries = calls.filter(({ kind }) => kind === "summary").length;
  print(`calls    ${summaries} of the summarizer, ${calls.length - summaries} others`);
  print(`time     ${took} ms in all, the model's answers included`);
  print(`context  ${number(result.tokensBefore)} tokens before, ${number(result.estimatedTokensAfter)} after (as Pi estimates)`);
  await pi.waitFor(() => /^LCM: \d.*summar/.test(pi.status("lcm") ?? ""), 10_000);
  print(`footer   ${pi.status("lcm")}`);
  expect(summaries > 0, "no summary was asked for");
  expect(result.summary.startsWith(BLOCK_HEADING), "the compaction is not this extension's");
}

async function lookUp() {
  const original = logInSession();
  const from = requests().length;
  const events = await pi.prompt(PROMPTS.recall);
  const [first] = requests().slice(from);
  const last = /** @type {Request} */ (requests().at(-1));

  heading("What the model sees now in place of the past (from the next request)");
  const sent = first.conversation.messages.map(({ text }) => text).join("\n");
  const block = /<summary>\n([\s\S]*?)\n<\/summary>/.exec(sent)?.[1] ?? "";
  for (const line of block.split("\n")) print(`  │ ${line}`);
  print(`and after it ${first.conversation.messages.length - 1} messages that were kept as they are.`);
  expect(block.startsWith(BLOCK_HEADING), "the request after the compaction does not hold the block");
  expect(!sent.includes(original.slice(0, 2000)), "the log is still in the model's context: nothing to recover");

  heading("The model brings back the log it read on the first day");
  print(`> ${PROMPTS.recall}`);
  show(events);

  heading("Proof");
  const pages = pagesIn(last);
  const recovered = pages.join("");
  print(`session file   ${bytes(Buffer.byteLength(original))}, sha256 ${sha256(original)}`);
  print(`request log    ${bytes(Buffer.byteLength(recovered))}, sha256 ${sha256(recovered)}   (${pages.length} pages of lcm_expand, put together)`);
  expect(pages.length > 1, `the log should come in several pages, it came in ${pages.length}`);
  expect(sha256(original) === sha256(recovered), "what was recovered differs from the session file");
}

// ── What Pi did ──────────────────────────────────────────────────────────────────────────────────────────────────────

/** @param {string} prompt */
async function say(prompt) {
  print(`> ${prompt}`);
  show(await pi.prompt(prompt));
}

/**
 * Tool calls with their results, and the model's last text.
 * @param {any[]} events
 */
function show(events) {
  for (const event of events) {
    if (event.type === "tool_execution_start") print(`  ${event.toolName} ${JSON.stringify(event.args)}`);
    if (event.type === "tool_execution_end") showAnswer(event);
    if (event.type === "message_end" && event.message.stopReason === "stop") print(`< ${textOf(event.message)}`);
    if (event.type === "message_end" && event.message.stopReason === "error") failures.push(`a turn failed: ${event.message.errorMessage}`);
  }
}

/** @param {any} event the end of a tool's run */
function showAnswer({ toolName, result, isError }) {
  const lines = textOf(result).split("\n");
  const [shown, end] = lines.length > 9 ? [lines.slice(0, 5), lines.slice(-2)] : [lines, []];
  for (const line of shown) print(`    ${cut(line)}`);
  if (end.length > 0) print(`    … ${lines.length - shown.length - end.length} lines …`);
  for (const line of end) print(`    ${cut(line)}`);
  if (isError) failures.push(`${toolName} failed: ${lines[0]}`);
}

/** The number of stored messages in the footer. */
function stored() {
  return Number(/([\d,]+) msgs/.exec(pi.status("lcm") ?? "")?.[1].replaceAll(",", "") ?? 0);
}

// ── What is in the files ─────────────────────────────────────────────────────────────────────────────────────────────

/**
 * @typedef {object} Request a line of the request log
 * @property {string} kind
 * @property {import("./wire.mjs").Conversation} conversation
 */

/** @returns {Request[]} */
function requests() {
  const lines = readFileSync(world.log, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => {
    const { api, kind, body } = JSON.parse(line);
    return { kind, conversation: wires[/** @type {"openai" | "anthropic"} */ (api)].read(body) };
  });
}

/**
 * The pages of lcm_expand in a request, in order, without the tool's own text around them.
 * @param {Request} request
 */
function pagesIn({ conversation: { messages } }) {
  const asked = messages.findLastIndex(({ role }) => role === "user");
  const since = messages.slice(asked + 1);
  const calls = since.flatMap(({ toolCalls }) => toolCalls).filter(({ name }) => name === "lcm_expand");
  return calls.map(({ id }) => {
    const answer = since.find(({ toolCallId }) => toolCallId === id)?.text ?? "";
    return /^<(content-\w+)>\n([^]*)\n<\/\1>$/m.exec(answer)?.[2] ?? "";
  });
}

/** The log in the session file: the result of the first time it was read. */
function logInSession() {
  const messages = entriesIn(world.session).flatMap(({ message }) => (message ? [message] : []));
  const call = messages.flatMap(({ role, content }) => (role === "assistant" ? content : [])).find(({ name, arguments: given }) => name === "read" && given.path === LOG);
  return textOf(messages.find(({ toolCallId }) => toolCallId === call.id));
}

/**
 * @param {string} file
 * @returns {any[]}
 */
function entriesIn(file) {
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  return lines.slice(1).map((line) => JSON.parse(line));
}

// ── Output ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * @param {boolean} holds
 * @param {string} otherwise
 */
function expect(holds, otherwise) {
  if (!holds) failures.push(otherwise);
}

/** @param {string} text */
function heading(text) {
  print(`\n${++step}. ${text}\n`);
}

/** @param {string} line */
function print(line) {
  process.stdout.write(`${line}\n`);
}

/** @param {{ content: { type: string, text?: string }[] }} message */
function textOf({ content }) {
  return content.map(({ text = "" }) => text).join("");
}

/** @param {string} text */
function sha256(text) {
  return createHash("sha256").update(text).digest("hex");
}

/** @param {string} line */
function cut(line) {
  return line.length > 150 ? `${line.slice(0, 149)}…` : line;
}

/** @param {number} count */
function number(count) {
  return count.toLocaleString("en");
}

/** @param {number} count */
function bytes(count) {
  return `${number(count)} bytes`;
}
