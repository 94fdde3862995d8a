/**
 * Writes session files for tests: short histories of any shape, in the format of Pi 0.87, without running Pi.
 *
 * Each message has a unique marker word, so that a test can tell from any text which messages it contains.
 */
import { writeFileSync } from "node:fs";
import path from "node:path";

const START = Date.parse("2026-11-02T08:00:00.000Z");

export class History {
  /** @type {any[]} */
  entries = [];
  /** The parent of the next entry. @type {string | null} */
  leaf = null;
  #clock = START;

  /**
   * @param {object} options
   * @param {string} options.cwd
   * @param {string} [options.id] Pi's session id
   * @param {number} [options.began] when, in seconds after that of other histories
   */
  constructor({ cwd, id = "019a4f00-0000-7000-8000-000000000001", began = 0 }) {
    this.id = id;
    this.#clock += began * 1000;
    this.header = { type: "session", version: 3, id, timestamp: new Date(this.#clock).toISOString(), cwd };
  }

  /**
   * @param {string} text
   * @param {object[]} [images]
   */
  user(text, images = []) {
    return this.message({ role: "user", content: [{ type: "text", text }, ...images] });
  }

  /**
   * @param {string} text
   * @param {{ id: string, name: string, arguments: object }[]} [toolCalls]
   * @param {number} [contextTokens] the context's size, by which Pi decides whether to compact
   */
  assistant(text, toolCalls = [], contextTokens = 1000) {
    const calls = toolCalls.map((call) => ({ type: "toolCall", ...call }));
    const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
    return this.message({
      role: "assistant",
      content: [...(text ? [{ type: "text", text }] : []), ...calls],
      api: "openai-completions",
      provider: "demo",
      model: "demo-model",
      usage: { input: contextTokens, output: 10, cacheRead: 0, cacheWrite: 0, totalTokens: contextTokens + 10, cost },
      stopReason: calls.length > 0 ? "toolUse" : "stop",
    });
  }

  /**
   * @param {string} toolCallId
   * @param {string} toolName
   * @param {string} text
   */
  toolResult(toolCallId, toolName, text) {
    return this.message({ role: "toolResult", toolCallId, toolName, content: [{ type: "text", text }], isError: false });
  }

  /**
   * @param {string} command
   * @param {string} output
   * @param {{ excludeFromContext?: boolean }} [options]
   */
  bash(command, output, options = {}) {
    return this.message({ role: "bashExecution", command, output, exitCode: 0, cancelled: false, truncated: false, ...options });
  }

  /**
   * Questions and answers, each with a marker.
   * @param {number} exchanges
   * @param {object} [options]
   * @param {number} [options.words] of filler in each message
   * @param {string} [options.name] the prefix of the markers
   * @param {number} [options.contextTokens]
   * @returns {string[]} the markers, in order
   */
  talk(exchanges, { words = 30, name = "mark", contextTokens } = {}) {
    const markers = [];
    for (let n = 0; n < exchanges; n++) {
      const [question, answer] = [markerOf(name, 2 * n), markerOf(name, 2 * n + 1)];
      this.user(`${question} please ${filler(question, words)}`);
      this.assistant(`${answer} done ${filler(answer, words)}`, [], contextTokens);
      markers.push(question, answer);
    }
    return markers;
  }

  /** @param {any} message whose time is the entry's unless it has one */
  message(message) {
    return this.entry("message", { message: { timestamp: this.#clock + 1000, ...message } });
  }

  /**
   * @param {string} type
   * @param {object} fields
   * @returns {string} its id
   */
  entry(type, fields) {
    this.#clock += 1000;
    const id = (0x10000000 + this.entries.length).toString(16);
    this.entries.push({ type, id, parentId: this.leaf, timestamp: new Date(this.#clock).toISOString(), ...fields });
    this.leaf = id;
    return id;
  }

  /**
   * Goes back, as `/tree` does: the entries that `elsewhere` adds become an abandoned branch.
   * @param {() => void} elsewhere
   */
  abandoned(elsewhere) {
    const from = this.leaf;
    elsewhere();
    this.leaf = from;
  }

  /**
   * @param {string} dir
   * @returns {string} the file
   */
  write(dir) {
    const file = path.join(dir, `2026-11-02T08-00-00-000Z_${this.id}.jsonl`);
    writeFileSync(file, [this.header, ...this.entries].map((line) => `${JSON.stringify(line)}\n`).join(""));
    return file;
  }
}

/**
 * @param {string} name
 * @param {number} number
 */
const markerOf = (name, number) => `${name}${String(number).padStart(4, "0")}x`;

/**
 * Words that differ from message to message: repeated text may be stored and counted differently.
 * @param {string} seed
 * @param {number} words
 */
export function filler(seed, words) {
  const vocabulary = ["invoice", "parser", "column", "retry", "header", "total", "branch", "cache", "review", "ledger", "queue"];
  let state = [...seed].reduce((sum, character) => (sum * 31 + character.charCodeAt(0)) >>> 0, 7);
  const word = () => {
    state = (state * 1103515245 + 12345) >>> 0;
    return vocabulary[(state >>> 16) % vocabulary.length];
  };
  return Array.from({ length: words }, word).join(" ");
}

/**
 * The markers in a text or in any JSON value.
 * @param {unknown} said
 * @returns {string[]} each once, sorted
 */
export function markersIn(said) {
  // An escape before a marker would look like its first letter.
  const text = JSON.stringify(said).replace(/\\[a-z]/g, " ");
  return [...new Set(text.match(/\b[a-z]+\d{4}x\b/g))].sort();
}
