/**
 * The speed of importing another agent's logs, and when a search first finds something in them. In Codex's dense logs every line is text
 * that search reads; the others are like a day's work, with long tool outputs, encrypted thoughts and events that repeat what was said.
 * OpenCode's database has the same work, in a row for each part of a message. Logs and sessions have 0.1 to 16 MB.
 *
 * The floor is reading the lines or rows. Each import runs in a process of its own, so that its memory and processor time are its alone.
 */
import { fork } from "node:child_process";
import { createWriteStream, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { once } from "node:events";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { Dice } from "./corpus.mjs";
import { longest, megabytes, pause, ratio, time, timed } from "./measure.mjs";
import { kept, openEngine, projectFolder } from "./stores.mjs";

/** @typedef {import("./measure.mjs").Context} Context */
/** @typedef {import("./measure.mjs").Figure} Figure */
/** @typedef {{ ms: number, first: number, memory: number, cpu: number, busiest: number }} Result */

/** Bytes of logs for each of the benchmark's messages; the bytes of the smallest and the largest log. */
const [BYTES, SMALLEST, LARGEST] = [1000, 100e3, 16e6];
const [RATE, FIRST_MS, MEMORY] = [10e6, 10_000, 200e6];
/** A word of the first log's first message. */
const NEEDLE = "qvarn";
const START = Date.parse("2026-05-05T10:00:00.000Z");
const DATABASE = "opencode.db";

export const title = "importing another agent's logs";

/** @param {Context} context @returns {Promise<Figure[]>} */
export async function run(context) {
  const bytes = context.messages * BYTES;
  /** @type {Figure[]} */
  const figures = [];
  const kinds = /** @type {const} */ ([
    ["dense", "codex", dense],
    ["a day's work", "codex", work],
    ["a day's work in a database", "opencode", steps],
  ]);
  for (const [kind, agent, said] of kinds) {
    const logs = agent === "codex" ? await logsOf(context, kind, bytes, said) : databaseOf(context, bytes, said);
    const { ms: floor } = await timed(() => read(logs));
    context.say(`importing ${megabytes(bytes)} of logs, ${kind} …`);
    const { ms, first, memory, cpu, busiest } = await imported(context.folder("import"), agent, logs);
    const rate = bytes / (ms / 1000);
    const what = `${megabytes(bytes)}, ${kind}`;
    figures.push(
      {
        what: `${what}: imported`,
        measured: `${megabytes(rate)}/s, ${time(ms)}; processor ${time(cpu)}, its busiest thread ${time(busiest)}`,
        floor: `${time(floor)} to read the ${agent === "codex" ? "lines" : "rows"}`,
        ratio: ratio(ms, floor),
        asked: `≥ ${megabytes(RATE)}/s`,
        reached: rate >= RATE,
      },
      { what: `${what}: first hit of a search after`, measured: time(first), floor: "", ratio: "", asked: `≤ ${time(FIRST_MS)}`, reached: first <= FIRST_MS },
      { what: `${what}: memory, at most`, measured: megabytes(memory), floor: "", ratio: "", asked: `≤ ${megabytes(MEMORY)}`, reached: memory <= MEMORY },
    );
  }
  return figures;
}

/** Reads logs line by line, a database row by row. @param {string} folder */
async function read(folder) {
  for (const name of readdirSync(folder)) {
    const file = path.join(folder, name);
    if (name === DATABASE) {
      const database = new DatabaseSync(file, { readOnly: true });
      for (const table of ["message", "part"]) for (const _ of database.prepare(`SELECT data FROM ${table}`).iterate());
      database.close();
    } else for await (const _ of (await open(file)).readLines());
  }
}

/**
 * @param {string} folder
 * @param {string} agent
 * @param {string} logs
 * @returns {Promise<Result>}
 */
async function imported(folder, agent, logs) {
  const child = fork(fileURLToPath(import.meta.url), ["--import", folder, agent, logs]);
  const [[result]] = await Promise.all([once(child, "message"), once(child, "exit")]);
  return result;
}

/**
 * @param {string} folder
 * @param {string} agent
 * @param {string} logs
 * @returns {Promise<Result>}
 */
async function importHere(folder, agent, logs) {
  const engine = await openEngine(folder, 1);
  const before = process.cpuUsage();
  let first = 0;
  const { ms, value } = await timed(async () => {
    const began = performance.now();
    const importing = engine.command(JSON.stringify({ line: `import --from ${agent} "${logs}"`, folders: { sessionDir: folder, allSessions: folder } }));
    for (let call = 0; first === 0; call++) {
      await pause(50);
      const found = await engine.callTool(call, "lcm_grep", JSON.stringify({ query: NEEDLE, session: "project" }));
      if (found.includes(`${agent} user`)) first = performance.now() - began;
    }
    return importing;
  });
  const { user, system } = process.cpuUsage(before);
  const busiest = busiestThread();
  const { ok, error } = JSON.parse(value);
  if (error || !ok.answer.newMessages || ok.answer.brokenLines || ok.answer.unknownRecords) throw new Error(error?.message ?? ok.text);
  await engine.close();
  return { ms, first, memory: process.resourceUsage().maxRSS * 1024, cpu: (user + system) / 1000, busiest };
}

/** The processor time, in ms, of the thread that had most: the writer. 0 where the system does not tell. */
function busiestThread() {
  try {
    const times = readdirSync("/proc/self/task").map((task) => {
      const [user, system] = readFileSync(`/proc/self/task/${task}/stat`, "utf8").replace(/.*\) /s, "").split(" ").slice(11);
      return (Number(user) + Number(system)) * 10;
    });
    return longest(times);
  } catch {
    return 0;
  }
}

/**
 * A folder of logs, written once.
 * @param {Context} context
 * @param {string} kind
 * @param {number} bytes
 * @param {(dice: Dice, n: number) => Iterable<[string, object]>} lines
 */
async function logsOf({ say }, kind, bytes, lines) {
  const folder = path.join(kept, `codex-${kind.replace(/\W+/g, "-")}-${bytes}`);
  if (existsSync(folder)) return folder;
  mkdirSync(`${folder}.part`, { recursive: true });
  for (let log = 0, left = bytes; left > 0; log++) {
    say(`writing ${megabytes(left)} of logs, ${kind} …`);
    const id = `0199c000-0000-7000-8000-${String(log).padStart(12, "0")}`;
    const out = createWriteStream(path.join(`${folder}.part`, `rollout-2026-05-05T10-00-00-${id}.jsonl`));
    const dice = new Dice(log * 7919 + 31);
    let [size, n] = [0, 0];
    const write = async (/** @type {string} */ type, /** @type {object} */ payload) => {
      const line = `${JSON.stringify({ timestamp: new Date(START + n++ * 1000).toISOString(), type, payload })}\n`;
      size += line.length;
      if (!out.write(line)) await once(out, "drain");
    };
    await write("session_meta", { id, timestamp: new Date(START).toISOString(), cwd: projectFolder(), originator: "codex_cli_rs", cli_version: "0.98.0", source: "cli" });
    if (log === 0) await write("response_item", said("user", `Find the ${NEEDLE}.`));
    const enough = Math.min(left, sizeBy(dice));
    for (let turn = 0; size < enough; turn++) {
      for (const [type, payload] of lines(dice, turn)) await write(type, payload);
    }
    left -= size;
    out.end();
    await once(out, "close");
  }
  renameSync(`${folder}.part`, folder);
  return folder;
}

/** The bytes of a log: as many small ones as large ones. @param {Dice} dice */
const sizeBy = (dice) => SMALLEST * (LARGEST / SMALLEST) ** dice.next();

/**
 * A folder with a database of OpenCode's whose messages have so many bytes, written once.
 * @param {Context} context
 * @param {number} bytes
 * @param {(dice: Dice, n: number) => Iterable<[string, object[]]>} messages
 */
function databaseOf({ say }, bytes, messages) {
  const folder = path.join(kept, `opencode-${bytes}`);
  if (existsSync(folder)) return folder;
  say(`writing a database with ${megabytes(bytes)} of messages …`);
  rmSync(`${folder}.part`, { recursive: true, force: true });
  mkdirSync(`${folder}.part`, { recursive: true });
  const database = new DatabaseSync(path.join(`${folder}.part`, DATABASE));
  database.exec(`CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, version TEXT, title TEXT, time_created INTEGER, time_updated INTEGER);
    CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
    CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT); BEGIN`);
  const insert = (/** @type {string} */ table, /** @type {number} */ columns) => database.prepare(`INSERT INTO ${table} VALUES (${Array(columns).fill("?")})`);
  const [sessions, rows, parts] = [insert("session", 7), insert("message", 4), insert("part", 4)];
  let [ids, left] = [0, bytes];
  const next = (/** @type {string} */ kind) => `${kind}_${(ids++).toString(16).padStart(12, "0")}${"x".repeat(14)}`;
  for (let n = 0; left > 0; n++) {
    const [session, dice] = [next("ses"), new Dice(n * 7919 + 31)];
    sessions.run(session, null, projectFolder(), "1.2.10", "Work", START, START);
    const write = (/** @type {string} */ role, /** @type {object[]} */ content) => {
      const [message, now] = [next("msg"), START + ids];
      const data = JSON.stringify({ role, time: { created: now, completed: now }, providerID: "openai", modelID: "gpt-5.2-codex", mode: "build", cost: 0 });
      rows.run(message, session, now, data);
      left -= data.length;
      for (const json of content.map((part) => JSON.stringify(part))) {
        parts.run(next("prt"), message, session, json);
        left -= json.length;
      }
    };
    if (n === 0) write("user", [{ type: "text", text: `Find the ${NEEDLE}.` }]);
    const end = left - Math.min(left, sizeBy(dice));
    for (let turn = 0; left > end; turn++) for (const [role, content] of messages(dice, turn)) write(role, content);
  }
  database.exec("COMMIT");
  database.close();
  renameSync(`${folder}.part`, folder);
  return folder;
}

/** @param {string} role @param {string} text */
const said = (role, text) => ({ type: "message", role, content: [{ type: role === "user" ? "input_text" : "output_text", text }] });

/**
 * A question, two calls with their outputs, and an answer: 2 KB each.
 * @param {Dice} dice @param {number} turn @returns {Iterable<[string, object]>}
 */
function* dense(dice, turn) {
  yield ["response_item", said("user", dice.prose(1900))];
  for (const call of [`call_${turn}a`, `call_${turn}b`]) {
    yield ["response_item", { type: "function_call", name: "shell", arguments: JSON.stringify({ command: ["bash", "-lc", dice.code(1800)] }), call_id: call }];
    yield ["response_item", { type: "function_call_output", call_id: call, output: dice.code(1900) }];
  }
  yield ["response_item", said("assistant", dice.prose(1900))];
}

/**
 * A question with its surroundings, about eight calls with outputs of 200 bytes to Codex's limit of 10 KB, and an answer.
 * @param {Dice} dice @param {number} turn @returns {Iterable<[string, object]>}
 */
function* work(dice, turn) {
  const question = dice.prose(300);
  const usage = { input_tokens: dice.below(2e5), cached_input_tokens: dice.below(2e5), output_tokens: dice.below(4000), reasoning_output_tokens: dice.below(2000) };
  const counted = { type: "token_count", info: { total_token_usage: usage, last_token_usage: usage, model_context_window: 272_000 }, rate_limits: { primary: { used_percent: 12.5, window_minutes: 300 } } };
  yield ["turn_context", { cwd: projectFolder(), approval_policy: "on-request", sandbox_policy: { mode: "workspace-write" }, model: "gpt-5.2-codex", effort: "medium", summary: "auto" }];
  yield ["response_item", said("user", question)];
  yield ["event_msg", { type: "user_message", message: question, images: [] }];
  for (let n = 1 + dice.below(16); n > 0; n--) {
    const [call, thought] = [`call_${turn}_${n}`, dice.prose(200)];
    yield ["event_msg", { type: "agent_reasoning", text: thought }];
    yield ["response_item", { type: "reasoning", summary: [{ type: "summary_text", text: thought }], content: null, encrypted_content: secret(dice, 1500) }];
    yield ["response_item", { type: "function_call", name: "shell_command", arguments: JSON.stringify({ command: dice.code(120), workdir: projectFolder() }), call_id: call }];
    yield ["response_item", { type: "function_call_output", call_id: call, output: `Exit code: 0\nWall time: 0.${dice.below(10)} seconds\nOutput:\n${dice.code(200 * 50 ** dice.next())}` }];
    yield ["event_msg", counted];
  }
  const answer = dice.prose(900);
  yield ["event_msg", { type: "agent_message", message: answer }];
  yield ["response_item", said("assistant", answer)];
}

/**
 * The same in OpenCode's messages, each with its parts.
 * @param {Dice} dice @param {number} turn @returns {Iterable<[string, object[]]>}
 */
function* steps(dice, turn) {
  /** @type {[string, any]} */
  let [thought, called] = ["", {}];
  for (const [, item] of /** @type {Iterable<[string, any]>} */ (work(dice, turn))) {
    if (item.type === "reasoning") thought = item.summary[0].text;
    if (item.type === "function_call") called = item;
    if (item.type === "message") yield [item.role, [{ type: "text", text: item.content[0].text }]];
    if (item.type !== "function_call_output") continue;
    const time = { start: START, end: START };
    const state = { status: "completed", input: JSON.parse(called.arguments), output: item.output, title: "", metadata: { output: item.output, exit: 0 }, time };
    const tool = { type: "tool", callID: called.call_id, tool: "bash", state };
    const tokens = { input: dice.below(2e5), output: dice.below(4000), reasoning: 0, cache: { read: dice.below(2e5), write: 0 } };
    yield ["assistant", [{ type: "step-start" }, { type: "reasoning", text: thought, time }, tool, { type: "step-finish", reason: "tool-calls", cost: 0, tokens }]];
  }
}

/** Base64 that looks random. @param {Dice} dice @param {number} length */
function secret(dice, length) {
  const bytes = Buffer.alloc(Math.ceil(length / 4) * 3);
  for (let at = 0; at < bytes.length; at++) bytes[at] = dice.below(256);
  return bytes.toString("base64");
}

const [, , command, folder, agent, logs] = process.argv;
if (command === "--import") process.send?.(await importHere(folder, agent, logs));
