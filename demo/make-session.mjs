/**
 * Makes `session.jsonl`, the demo's session, in Pi's format: the conversation is in `story.mjs`, the project as it is at the end in `project/`.
 * Tools answer from the project at their time: its beginning is its end without the story's edits. `node demo/make-session.mjs` writes it again,
 * always the same.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { seeded } from "./logs.mjs";
import { story } from "./story.mjs";
import { projectFolder, sessionFile } from "./world.mjs";

/** A call of a tool, and its result. @typedef {{ name: string, arguments: object, run: () => { text: string, details?: object, isError?: boolean } }} Call */

/** Dollars per token, as the demo's model costs. */
const RATES = { input: 1e-6, output: 4e-6, cacheRead: 1e-7, cacheWrite: 1.25e-6 };

export class Recorder {
  random = seeded(10_482);
  /** @type {any[]} */ entries = [{ type: "session", version: 3, id: "019a4f3c-2b10-7c55-9d0e-6b1f0c4a7e21", timestamp: "2026-11-02T08:30:58.412Z", cwd: "/home/sam/shop" }];
  /** The entry that the next one follows. @type {string | null} */ leaf = null;
  /** The edits so far, each as a function that takes it back. @type {(() => void)[]} */
  undo = [];
  #clock = Date.parse("2026-11-02T08:31:00.000Z");
  #context = 4_000;
  #cached = 0;

  /** @param {Map<string, string>} files @param {Map<string, string>} [end] the project at the end; by default these files, which then stay */
  constructor(files, end) {
    this.files = files;
    this.end = end ?? files;
    this.isRehearsal = !end;
    this.#entry("model_change", { provider: "demo", modelId: "demo-model" });
  }

  at = (/** @type {string} */ time) => void (this.#clock = Date.parse(time));
  user = (/** @type {string} */ text) => this.#message(300, { role: "user", content: [{ type: "text", text }] });
  says = (/** @type {string} */ text) => this.#assistant([{ type: "text", text }], "stop");
  aborted = (/** @type {string} */ text) => this.#assistant([{ type: "text", text }], "aborted", "Request was aborted");
  failed = (/** @type {string} */ message) => this.#assistant([], "error", message);
  custom = (/** @type {string} */ customType, /** @type {string} */ content) => this.#entry("custom_message", { customType, content, display: true });
  name = (/** @type {string} */ name) => this.#entry("session_info", { name });
  /** Goes back to an entry, as `/tree` does. */
  goBack = (/** @type {string | null} */ leaf) => void (this.leaf = leaf);
  /** A command of the user with `!`, or with `!!`, which the model does not see. */
  bang = (/** @type {string} */ command, /** @type {string} */ output, excludeFromContext = false) =>
    this.#message(40, { role: "bashExecution", command, output, exitCode: 0, cancelled: false, truncated: false, ...(excludeFromContext && { excludeFromContext }) });

  /** The assistant's calls, and their results. */
  step = (/** @type {string} */ text, /** @type {Call[]} */ ...calls) => {
    const ids = calls.map(() => `toolu_${this.random.hex(20)}`);
    this.#assistant([...(text ? [{ type: "text", text }] : []), ...calls.map(({ name, arguments: given }, n) => ({ type: "toolCall", id: ids[n], name, arguments: given }))], "toolUse");
    for (const [n, { name, run }] of calls.entries()) {
      const { text: answer, details, isError = false } = run();
      this.#message(1, { role: "toolResult", toolCallId: ids[n], toolName: name, content: [{ type: "text", text: answer }], ...(details && { details }), isError });
    }
  };

  read = (/** @type {string} */ file) => ({ name: "read", arguments: { path: file }, run: () => ({ text: this.files.get(file) ?? "" }) });
  bash = (/** @type {string} */ command, /** @type {string} */ output, exit = 0) => ({ name: "bash", arguments: { command }, run: () => ({ text: exit ? `${output}\n\nCommand exited with code ${exit}` : output, isError: exit > 0 }) });
  /** Writes a file as it is at the end. @returns {Call} */
  write = (/** @type {string} */ file) => {
    const content = this.end.get(file) ?? "";
    this.undo.push(() => void this.files.delete(file));
    return { name: "write", arguments: { path: file, content }, run: () => (this.files.set(file, content), { text: `Successfully wrote ${content.length} bytes to ${file}` }) };
  };
  /** Changes a text to what the file has at the end, between two texts. @returns {Call} */
  edit = (/** @type {string} */ file, /** @type {string} */ from, /** @type {string} */ to, was = "") => {
    const text = this.end.get(file) ?? "";
    const start = text.indexOf(from);
    const now = text.slice(start, text.indexOf(to, start + from.length) + to.length);
    // An insertion replaces the lines before it.
    const before = was ? "" : text.slice(0, start).split("\n").slice(-4).join("\n");
    const [oldText, newText] = [before + was, before + now];
    this.undo.push(() => void this.files.set(file, (this.files.get(file) ?? "").replace(newText, () => oldText)));
    const run = () => {
      const present = this.files.get(file) ?? "";
      if (!this.isRehearsal && (start < 0 || present.split(oldText).length !== 2)) throw new Error(`${file} does not have once: ${oldText}`);
      const line = present.slice(0, present.indexOf(oldText)).split("\n").length;
      this.files.set(file, present.replace(oldText, () => newText));
      const diff = [["-", was], ["+", now]].flatMap(([sign, part]) => part.trimEnd().split("\n").filter(Boolean).map((one, n) => `${sign}${line + n} ${one}`));
      return { text: `Successfully replaced 1 block(s) in ${file}.`, details: { diff: diff.join("\n"), firstChangedLine: line } };
    };
    return { name: "edit", arguments: { path: file, edits: [{ oldText, newText }] }, run };
  };
  npmTest = (/** @type {Record<string, string>} */ failing = {}) => ({ name: "bash", arguments: { command: "npm test" }, run: () => {
    const text = this.testReport(failing);
    return Object.keys(failing).length > 0 ? { text: `${text}\n\nCommand exited with code 1`, isError: true } : { text };
  } });

  /** What `npm test` prints for the project's tests. */
  testReport = (/** @type {Record<string, string>} */ failing) => {
    const names = [...this.files].filter(([file]) => file.endsWith(".test.js")).sort().flatMap(([, text]) => [...text.matchAll(/^test\("(.+?)"/gm)].map(([, name]) => name));
    const time = () => `(${this.random.between(1, 90)}.${this.random.between(100_000, 999_999)}ms)`;
    const failed = names.filter((name) => failing[name]);
    const counts = Object.entries({ tests: names.length, suites: 0, pass: names.length - failed.length, fail: failed.length, cancelled: 0, skipped: 0, todo: 0, duration_ms: this.random.between(400, 1400) });
    return ["> shop@2.4.0 test", "> node --test --test-reporter=spec test/*.test.js", "", ...names.map((name) => `${failing[name] ? "✖" : "✔"} ${name} ${time()}`), ...counts.map(([name, count]) => `ℹ ${name} ${count}`),
      ...failed.flatMap((name) => ["", "✖ failing tests:", "", `✖ ${name} ${time()}`, `  AssertionError [ERR_ASSERTION]: ${failing[name]}`, "      at TestContext.<anonymous> (file:///home/sam/shop/test)", "      at Test.run (node:internal/test_runner/test:1047:25)"])].join("\n");
  };

  /** Most of the context is read from the provider's cache, what is new is written to it. @param {any[]} content @param {string} stopReason @param {string} [errorMessage] */
  #assistant(content, stopReason, errorMessage) {
    const isEmpty = content.length === 0;
    const tokens = { input: isEmpty ? 0 : 3, output: isEmpty ? 0 : tokensOf(content), cacheRead: isEmpty ? 0 : this.#cached, cacheWrite: isEmpty ? 0 : this.#context - this.#cached };
    if (!isEmpty) this.#cached = this.#context;
    const cost = Object.fromEntries(Object.entries(RATES).map(([kind, rate]) => [kind, tokens[/** @type {keyof typeof RATES} */ (kind)] * rate]));
    const usage = { ...tokens, totalTokens: tokens.input + tokens.output + tokens.cacheRead + tokens.cacheWrite, cost: { ...cost, total: Object.values(cost).reduce((sum, one) => sum + one) } };
    this.#message(20, { role: "assistant", content, api: "anthropic-messages", provider: "demo", model: "demo-model", usage, stopReason, ...(errorMessage && { errorMessage }) });
  }

  /** @param {number} seconds at most since the last one @param {any} message */
  #message(seconds, message) {
    this.#clock += this.random.between(200, seconds * 1000);
    this.#context += tokensOf(message.content ?? message.output);
    this.#entry("message", { message: { ...message, timestamp: this.#clock } });
  }

  /** @param {string} type @param {object} fields */
  #entry(type, fields) {
    const id = this.random.hex(8);
    this.entries.push({ type, id, parentId: this.leaf, timestamp: new Date(this.#clock).toISOString(), ...fields });
    this.leaf = id;
  }
}

/** A token is about four characters. @param {unknown} value */
const tokensOf = (value) => Math.ceil(JSON.stringify(value).length / 4);

/** @returns {string} the session file */
export function makeSession() {
  const paths = readdirSync(projectFolder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
  const end = new Map(paths.sort().map((file) => [path.relative(projectFolder, file).replaceAll(path.sep, "/"), readFileSync(file, "utf8")]));
  const rehearsal = new Recorder(new Map(end));
  story(rehearsal);
  rehearsal.files = new Map(end);
  for (const takeBack of rehearsal.undo.reverse()) takeBack();
  const recorder = new Recorder(rehearsal.files, end);
  story(recorder);
  for (const [file, text] of end) if (recorder.files.get(file) !== text) throw new Error(`the story does not end with ${file} as it is`);
  return recorder.entries.map((entry) => `${JSON.stringify(entry)}\n`).join("");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(sessionFile, makeSession());
