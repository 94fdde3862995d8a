/**
 * Facts in a session that may be needed later: eight kinds, each in at least six phrasings, as people write them.
 *
 * Each fact has a needle, a unique text that identifies it, and a question in other words, as from someone who has forgotten the answer.
 * Some facts need a companion: a decision needs its reason, a command its outcome. They only count if that is next to the needle.
 */
import { CLOSINGS, FAILED, PASSED, PHRASINGS } from "./phrasings.mjs";

/** @typedef {"rule" | "request" | "decision" | "command" | "file" | "error" | "number" | "task"} Kind */

/**
 * @typedef {object} Fact
 * @property {Kind} kind
 * @property {string} needle
 * @property {string} text as it is said; the command, or the path of a file
 * @property {string} question
 * @property {string} topic of the turn
 * @property {RegExp} [nearby] must match the needle's line or the next one
 * @property {number} [turn] in which it was said; absent before that
 * @property {string} [closing] the user's words when this task was done
 */

const GEMS = ["quartz", "kestrel", "umbra", "tansy", "cobalt", "juniper", "osprey"];
const PLACES = ["staging", "nightly", "partner", "canary", "legacy", "mobile", "regional", "internal", "customer", "admin", "weekly", "public"];
const THINGS = [
  "exporter", "scheduler", "importer", "gateway", "webhook", "archive", "mailer", "replica", "invoice printer", "rate limiter",
  "search index", "login form", "thumbnail queue", "audit log", "price list", "order book", "report builder", "upload page", "sync job", "chat widget",
];

export const KINDS = /** @type {Kind[]} */ (Object.keys(PHRASINGS));

/** A unique topic for each turn. @param {number} seed @param {number} turn */
export function topicOf(seed, turn) {
  const at = (turn * 37 + seed * 11) % (PLACES.length * THINGS.length);
  return `${PLACES[at % PLACES.length]} ${THINGS[Math.floor(at / PLACES.length)]}`;
}

/** Makes the facts of a session in order. */
export class Facts {
  /** @type {Fact[]} */
  all = [];
  #seed;
  #taken = new Set();

  /** @param {number} seed */
  constructor(seed) {
    this.#seed = seed;
  }

  /**
   * @param {Kind} kind
   * @param {string} topic
   * @param {{ passes?: boolean }} [outcome] of a command
   * @returns {Fact}
   */
  make(kind, topic, { passes } = {}) {
    const same = this.all.filter((fact) => fact.kind === kind).length;
    const phrasings = PHRASINGS[kind];
    const { say, ask, needle: form, nearby } = phrasings[(same + this.#seed) % phrasings.length];
    const needle = this.#needle(kind, same, form);
    const outcome = passes === undefined ? undefined : passes ? PASSED : FAILED;
    /** @type {Fact} */
    const fact = { kind, needle, text: say(topic, needle), question: ask(topic), topic, nearby: nearby ?? outcome };
    this.all.push(fact);
    return fact;
  }

  /** A needle for something that is no fact, such as a file that could not be written. @param {number} n */
  stray(n) {
    return this.#needle("stray", n);
  }

  /** Closes every third task, six turns after it was said. @param {number} turn @returns {string[]} the user's words for that */
  close(turn) {
    const tasks = this.all.filter(({ kind }) => kind === "task");
    const due = tasks.filter((task, n) => n % 3 === 1 && task.turn === turn - 6);
    return due.map((task) => (task.closing = CLOSINGS[(tasks.indexOf(task) + this.#seed) % CLOSINGS.length](task.topic)));
  }

  /** @param {Kind | "stray"} kind @param {number} n @param {import("./phrasings.mjs").Phrasing["needle"]} [form] */
  #needle(kind, n, form = (word) => word) {
    const place = kind === "stray" ? KINDS.length : KINDS.indexOf(kind);
    const word = `${GEMS[(n + place) % GEMS.length]}-${(46_656 + ((n * 16 + place) * 7919 + this.#seed * 611_953) % 1_600_000).toString(36)}`;
    const needle = form(word, n + this.#seed * 200);
    if (this.#taken.has(needle)) throw new Error(`two facts have the needle ${needle}`);
    this.#taken.add(needle);
    return needle;
  }
}

/** Whether a text contains a fact with its companion. @param {Fact} fact @param {string} text */
export function tells({ needle, nearby }, text) {
  return mentions(text, needle).some(({ heading, line, next }) => !nearby || nearby.test(`${heading}\n${line}\n${next}`));
}

/**
 * The lines that mention something, each with the next one and with its heading: a title, a tag, the beginning of a list.
 * @param {string} text
 * @param {string} needle
 */
export function mentions(text, needle) {
  let [section, list] = ["", ""];
  const lines = text.split("\n");
  return lines.flatMap((line, at) => {
    if (/^#|^<\w/.test(line)) [section, list] = [line, ""];
    else if (line.startsWith("</")) section = "";
    else if (line.endsWith(":")) list = line;
    else if (!/^\s*[-*·•]/.test(line)) list = "";
    return line.includes(needle) ? [{ heading: `${section}\n${list}`, line, next: lines[at + 1] ?? "" }] : [];
  });
}
