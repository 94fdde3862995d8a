/**
 * Records a session in the format of Pi 0.87: entries with ids and parents, messages with all their fields.
 *
 * The story (`monday.mjs` to `friday.mjs`) has the texts; the tools (`tools.mjs`) answer from a virtual project, so that everything read,
 * edited and tested is consistent. Time, ids, signatures and usage come from a seeded generator.
 */
import { Project } from "./project.mjs";
import { Random } from "./random.mjs";

/** Dollars per million tokens, as in the demo's models.json. */
const RATES = { input: 1, output: 4, cacheRead: 0.1, cacheWrite: 1.25 };

/** The two scripted models of the story; their messages show the differences between their APIs. */
const MODELS = {
  "demo-model": { api: "openai-completions", rawStop: { stop: "stop", toolUse: "tool_calls" } },
  "demo-model-thinking": { api: "anthropic-messages", rawStop: { stop: "end_turn", toolUse: "tool_use" } },
};

/**
 * A call of one of Pi's tools, and its result.
 * @typedef {object} Call
 * @property {string} name
 * @property {Record<string, unknown>} arguments
 * @property {(recorder: Recorder) => Result} run may change the project
 */

/**
 * @typedef {object} Result
 * @property {string} [text]
 * @property {object[]} [content] instead of text
 * @property {object} [details]
 * @property {boolean} [isError]
 * @property {number} [seconds] its duration
 */

/** @typedef {{ think?: string, say?: string }} Words */

export class Recorder {
  /** @type {object[]} */
  entries = [];
  /** @type {string | null} */
  leaf = null;
  random;
  project;
  #clock = 0;
  #context = 4_000;
  /** @type {keyof typeof MODELS} */
  #model = "demo-model";

  /**
   * @param {{ seed: number, id: string, cwd: string, start: string, files: Map<string, string> }} options
   */
  constructor({ seed, id, cwd, start, files }) {
    this.random = new Random(seed);
    this.project = new Project(cwd, files);
    this.at(start);
    this.header = { type: "session", version: 3, id, timestamp: this.#now(), cwd };
  }

  /** Moves the clock forward to a time. @param {string} time ISO, UTC */
  at(time) {
    if (Date.parse(time) < this.#clock) throw new Error(`the story goes back in time, to ${time}`);
    this.#clock = Date.parse(time);
  }

  /** The session file's text. */
  text() {
    return [this.header, ...this.entries].map((entry) => `${JSON.stringify(entry)}\n`).join("");
  }

  // ── Messages ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * @param {string} text
   * @param {object[]} [images] image blocks
   */
  user(text, images = []) {
    this.#wait(60, 900);
    return this.#message({ role: "user", content: [{ type: "text", text }, ...images], timestamp: this.#clock });
  }

  /**
   * A turn with tools: the model's thoughts and text, the calls, and their results in order.
   * @param {Words} words
   * @param {...Call} calls
   */
  step({ think, say }, ...calls) {
    this.#wait(3, 25);
    const ids = calls.map(() => this.#callId());
    const blocks = calls.map((call, n) => ({ type: "toolCall", id: ids[n], name: call.name, arguments: call.arguments }));
    this.#assistant([...this.#words({ think, say }), ...blocks], { stopReason: "toolUse" });
    for (const [n, call] of calls.entries()) {
      const { text, content, details, isError = false, seconds = 0 } = call.run(this);
      this.#clock += seconds * 1000 + this.random.between(4, 60);
      this.#message({
        role: "toolResult",
        toolCallId: ids[n],
        toolName: call.name,
        content: content ?? [{ type: "text", text }],
        ...(details && { details }),
        isError,
        timestamp: this.#clock,
      });
    }
  }

  /**
   * A turn with only text, which ends a run.
   * @param {string} say
   * @param {string} [think]
   */
  says(say, think) {
    this.#wait(4, 30);
    return this.#assistant(this.#words({ think, say }), { stopReason: "stop" });
  }

  /** A reply that the user aborted. @param {Words} words so far */
  aborted(words) {
    this.#wait(3, 12);
    return this.#assistant(this.#words(words), { stopReason: "aborted", errorMessage: "Request was aborted" });
  }

  /** A reply that never came. @param {string} errorMessage */
  failed(errorMessage) {
    this.#wait(1, 4);
    return this.#assistant([], { stopReason: "error", errorMessage, empty: true });
  }

  // ── Other entries ──────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * A command that the user ran with `!`, or with `!!`, which hides it from the model.
   * @param {string} command
   * @param {string} output
   * @param {{ exitCode?: number, excludeFromContext?: boolean }} [options]
   */
  bang(command, output, { exitCode = 0, excludeFromContext = false } = {}) {
    this.#wait(10, 60);
    const end = { exitCode, cancelled: false, truncated: false, timestamp: this.#clock };
    return this.#message({ role: "bashExecution", command, output, ...end, ...(excludeFromContext && { excludeFromContext }) });
  }

  /**
   * @param {keyof typeof MODELS} model
   */
  useModel(model) {
    this.#model = model;
    return this.#entry("model_change", { provider: "demo", modelId: model });
  }

  /** @param {string} thinkingLevel */
  useThinking(thinkingLevel) {
    return this.#entry("thinking_level_change", { thinkingLevel });
  }

  /** @param {string} name */
  name(name) {
    return this.#entry("session_info", { name });
  }

  /**
   * @param {string} targetId
   * @param {string} label
   */
  label(targetId, label) {
    return this.#entry("label", { targetId, label });
  }

  /**
   * A message that an extension added.
   * @param {string} customType
   * @param {string} content
   */
  custom(customType, content) {
    this.#wait(5, 30);
    return this.#entry("custom_message", { customType, content, display: true });
  }

  /**
   * Goes back to an earlier entry, as `/tree` does; what `elsewhere` adds remains as an abandoned branch.
   * @param {() => void} elsewhere
   */
  branch(elsewhere) {
    const from = this.leaf;
    const files = this.project.snapshot();
    elsewhere();
    this.leaf = from;
    this.project.restore(files);
  }

  // ── Inside ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * @param {Words} words
   * @returns {object[]}
   */
  #words({ think, say }) {
    const thought = think && { type: "thinking", thinking: think, thinkingSignature: this.#signature(think) };
    return [...(thought ? [thought] : []), ...(say ? [{ type: "text", text: say }] : [])];
  }

  /**
   * OpenAI-like servers return the name of a field, Anthropic-like ones an opaque signature.
   * @param {string} thinking
   */
  #signature(thinking) {
    if (this.#model === "demo-model") return "reasoning_content";
    return Buffer.from(this.random.bytes(Math.min(420, 150 + thinking.length))).toString("base64");
  }

  /**
   * @param {object[]} content
   * @param {{ stopReason: "stop" | "toolUse" | "aborted" | "error", errorMessage?: string, empty?: boolean }} end
   */
  #assistant(content, { stopReason, errorMessage, empty = false }) {
    const { api, rawStop } = MODELS[this.#model];
    const usage = empty ? this.#usage(0, 0) : this.#usage(this.#context, tokensOf(content));
    const done = stopReason === "stop" || stopReason === "toolUse";
    return this.#message({
      role: "assistant",
      content,
      api,
      provider: "demo",
      model: this.#model,
      usage,
      stopReason,
      timestamp: this.#clock,
      ...(errorMessage && { errorMessage }),
      ...(done && { responseId: this.#responseId(), rawStopReason: rawStop[stopReason] }),
    });
  }

  /**
   * Most of the context is read from the provider's cache; what was added since the last request is written to it.
   * @param {number} context
   * @param {number} output
   */
  #usage(context, output) {
    const cacheWrite = Math.min(context, this.random.between(180, 2400));
    const input = context === 0 ? 0 : this.random.between(3, 90);
    const cacheRead = Math.max(0, context - cacheWrite - input);
    const tokens = { input, output, cacheRead, cacheWrite: context === 0 ? 0 : cacheWrite };
    const price = (/** @type {keyof typeof RATES} */ kind) => (tokens[kind] * RATES[kind]) / 1e6;
    const cost = { input: price("input"), output: price("output"), cacheRead: price("cacheRead"), cacheWrite: price("cacheWrite") };
    const total = cost.input + cost.output + cost.cacheRead + cost.cacheWrite;
    return { ...tokens, totalTokens: input + output + cacheRead + tokens.cacheWrite, cost: { ...cost, total } };
  }

  /** @param {any} message */
  #message(message) {
    this.#context += tokensOf(message.content ?? message.output);
    return this.#entry("message", { message });
  }

  /**
   * @param {string} type
   * @param {object} fields
   * @returns {string} the entry's id
   */
  #entry(type, fields) {
    const id = this.random.hex(8);
    this.#clock += this.random.between(1, 9);
    this.entries.push({ type, id, parentId: this.leaf, timestamp: this.#now(), ...fields });
    this.leaf = id;
    return id;
  }

  /**
   * @param {number} low seconds
   * @param {number} high seconds
   */
  #wait(low, high) {
    this.#clock += this.random.between(low * 1000, high * 1000);
  }

  #now() {
    return new Date(this.#clock).toISOString();
  }

  #callId() {
    return this.#model === "demo-model" ? `call_${this.random.hex(16)}` : `toolu_${this.random.hex(20)}`;
  }

  #responseId() {
    return this.#model === "demo-model" ? `chatcmpl-${this.random.hex(16)}` : `msg_${this.random.hex(20)}`;
  }
}

/** @param {unknown} value */
function tokensOf(value) {
  return Math.ceil(JSON.stringify(value ?? "").length / 4);
}
