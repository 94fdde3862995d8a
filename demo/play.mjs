/**
 * Plays the main job on the real Pi without a user: open a session, work until the extension folds it, and let the model get back word for word
 * what has left its context.
 *
 * The output comes from Pi's events, the model server's request log and the session file. It ends with PASS or FAIL.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { extension } from "../scripts/paths.mjs";
import { SATURDAY } from "./logs.mjs";
import { startPi } from "./rpc.mjs";
import { PROMPTS } from "./script.mjs";
import { wires } from "./wire.mjs";
import { makeWorld } from "./world.mjs";

/** Before each answer, as a model takes its time: the summaries are written meanwhile. */
const DELAY_MS = 300;
/** The lines of the block that are printed. */
const SHOWN = 16;

/** @typedef {import("./wire.mjs").Message} Message */

/** @type {string[]} */
const failures = [];

// Interrupting the play leaves nothing behind: the folders and Pi go when this process ends.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(130));

const world = await makeWorld(DELAY_MS);
const log = logInSession();
const pi = startPi({ agentDir: world.agentDir, cwd: world.project, args: ["--session", world.session, "-e", extension], env: { LCM_DB_DIR: world.store } });
let cost = "";
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
if (failures.length === 0) print(`\nPASS  every byte came back, for ${cost} than with Pi alone`);
process.exitCode = failures.length === 0 ? 0 : 1;

async function play() {
  print("The real Pi with pi-lossless-context, a recorded session, and a scripted model on this machine.");
  print("All files are temporary; your own Pi is not touched.");

  heading("1. Open a session of three days");
  const entries = entriesIn(world.session).filter(({ type }) => type === "message" || type === "custom_message");
  await pi.waitFor(() => stored() >= entries.length, 20_000);
  print(`footer    ${pi.status("lcm")}`);
  expect(stored() === entries.length, `${entries.length} messages are in the file, ${stored()} are stored`);

  heading("2. Work on");
  // The extension folds as soon as the summaries are ready: usually before the first answer ends.
  for (const prompt of [PROMPTS.check, PROMPTS.size, PROMPTS.size]) if (!notified(/folded: /)) await say(prompt);
  const [full, folded] = [contextOf(requests().find(({ kind }) => kind === "turn")), contextOf(requests().at(-1))];
  print(`\nfolded    ${notified(/folded: /).replace("LCM: folded: ", "")}`);
  const block = /<summary>\n([^]*?)\n<\/summary>/.exec(folded[0].text)?.[1].split("\n") ?? [];
  print("          Older messages have been replaced by this block, taken from the messages and from summaries of them:\n");
  for (const line of block.slice(0, SHOWN)) print(`  │ ${cut(line, 120)}`);
  print(`  │ … ${block.length - SHOWN} more lines`);
  expect(textOf(full).includes(log) && !textOf(folded).includes(log.slice(0, 500)), "the server's log has not left the context");

  heading("3. Ask about something that has left the context");
  await say(PROMPTS.order);
  const answer = requests().at(-1)?.conversation.messages.at(-1)?.text.replaceAll(/[«»]/g, "") ?? "";
  for (const line of log.split("\n").filter((line) => line.includes("captured order=10482"))) expect(answer.includes(line.replace(/ +/g, " ")), `the answer lacks ${line}`);

  heading("4. Bring back all of it");
  await say(PROMPTS.whole);
  const pages = pagesIn(contextOf(requests().at(-1)));
  for (const [where, text] of [["in the session file", log], ["what came back", pages.join("")]]) print(`${where.padEnd(20)} ${Buffer.byteLength(text).toLocaleString("en")} bytes, sha256 ${sha256(text)}`);
  expect(pages.length > 1 && sha256(pages.join("")) === sha256(log), "what came back differs from the session file");

  heading("5. What it costs");
  await pi.request("prompt", { message: "/lcm context" });
  await pi.waitFor(() => notified(/^Cost /m) !== "");
  const line = /^Cost .*$/m.exec(notified(/^Cost /m))?.[0] ?? "";
  print(line);
  cost = /so (\$[\d.]+ less)/.exec(line)?.[1] ?? "";
  expect(cost !== "", "the session does not cost less than with Pi alone");
}

// ── What Pi did ──────────────────────────────────────────────────────────────────────────────────────────────────────

/** Prints a prompt, the tool calls with their results, and the answer. @param {string} prompt */
async function say(prompt) {
  print(`> ${prompt}`);
  for (const { type, toolName, args, result, isError, message } of await pi.prompt(prompt)) {
    if (type === "tool_execution_start") print(`  ${toolName} ${JSON.stringify(args)}`);
    if (type === "tool_execution_end" && toolName.startsWith("lcm_")) showAnswer(textIn(result).split("\n"));
    if (isError) failures.push(`${toolName} failed: ${textIn(result)}`);
    if (type === "message_end" && message.stopReason === "stop") print(`< ${textIn(message).replaceAll("\n", "\n  ")}`);
    if (type === "message_end" && message.stopReason === "error") failures.push(`a turn failed: ${message.errorMessage}`);
  }
}

/** @param {string[]} lines */
function showAnswer(lines) {
  const shown = lines.length > 9 ? [...lines.slice(0, 5), `… ${lines.length - 7} lines …`, ...lines.slice(-2)] : lines;
  for (const line of shown) print(`    ${cut(line, 130)}`);
}

/** The number of stored messages in the footer. */
function stored() {
  return Number(/([\d,]+) msgs/.exec(pi.status("lcm") ?? "")?.[1].replaceAll(",", "") ?? 0);
}

/** The last notification of a kind, or "". @param {RegExp} kind */
function notified(kind) {
  return pi.ui("notify").findLast(({ message }) => kind.test(message))?.message ?? "";
}

// ── What is in the files ─────────────────────────────────────────────────────────────────────────────────────────────

/** The lines of the request log. */
function requests() {
  return linesOf(world.log).map(({ api, kind, body }) => ({ kind, conversation: wires[/** @type {"anthropic"} */ (api)].read(body) }));
}

/** @param {ReturnType<typeof requests>[number] | undefined} request */
function contextOf(request) {
  return request?.conversation.messages ?? [];
}

/** @param {Message[]} messages */
function textOf(messages) {
  return messages.map(({ text }) => text).join("\n");
}

/** The pages of lcm_expand since the last prompt, in order, without the tool's own text around them. @param {Message[]} messages */
function pagesIn(messages) {
  const since = messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1);
  return since.filter(({ role }) => role === "tool").flatMap(({ text }) => /^<(content-\w+)>\n([^]*)\n<\/\1>$/m.exec(text)?.[2] ?? []);
}

/** The log in the session file. */
function logInSession() {
  const messages = entriesIn(world.session).flatMap(({ message }) => message ?? []);
  const call = messages.flatMap(({ role, content }) => (role === "assistant" ? content : [])).find((block) => block.arguments?.command === SATURDAY);
  return textIn(messages.find(({ toolCallId }) => toolCallId === call.id));
}

/** @param {string} file @returns {any[]} */
function linesOf(file) {
  return readFileSync(file, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

/** @param {string} file */
function entriesIn(file) {
  return linesOf(file).slice(1);
}

/** @param {{ content: { text?: string }[] }} message */
function textIn({ content }) {
  return content.map(({ text = "" }) => text).join("");
}

// ── Output ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** @param {boolean} holds @param {string} otherwise */
function expect(holds, otherwise) {
  if (!holds) failures.push(otherwise);
}

/** @param {string} text */
function heading(text) {
  print(`\n${text}\n`);
}

/** @param {string} line */
function print(line) {
  process.stdout.write(`${line}\n`);
}

/** @param {string} text */
function sha256(text) {
  return createHash("sha256").update(text).digest("hex");
}

/** @param {string} line @param {number} most */
function cut(line, most) {
  return (line.length > most ? `${line.slice(0, most - 1)}…` : line);
}
