/**
 * A long session of a given shape: the user's prompts, the scripted model's thoughts and actions, and facts that are mentioned on the way.
 * It is the same each time, however the context is kept, and a shorter one is the beginning of a longer one.
 *
 * Some facts are needed again a few turns later: if the model no longer sees one, it searches, if there are tools for it, or reads the file
 * again. At the end facts are asked for. A question is answered from the context if the fact is still in it; if not, with the tools,
 * first by searching, then by expanding the result. Without tools the model gives up.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { Dice } from "../corpus.mjs";

/** @typedef {import("../../demo/model-server.mjs").Received} Received */
/** @typedef {import("../../demo/model-server.mjs").Reply} Reply */
/** @typedef {import("./shapes.mjs").Shape} Shape */

/**
 * A fact that is mentioned once.
 * @typedef {import("../survival/facts.mjs").Fact & { turn: number, where: "user" | "answer" | "output" }} Fact
 */

const TOKEN = 4;
const THINGS = ["exporter", "scheduler", "importer", "gateway", "webhook", "archive", "mailer", "replica", "printer", "limiter", "index", "login", "thumbnailer", "ledger", "catalog", "orderbook", "reporter", "uploader", "syncer", "widget"];
const PLACES = ["staging", "nightly", "partner", "canary", "legacy", "mobile"];
/** Requests from one fact to the next. */
const FACT_EVERY = 10;
/** How often an earlier fact is needed, and how many turns earlier it was read. */
const [NEED_EVERY, NEED_AFTER] = [12, 9];

/**
 * No two of a kind share their words.
 *
 * @type {Record<"user" | "answer" | "output", ((thing: string, needle: string) => [sentence: string, question: string])[]>}
 */
const SAYINGS = {
  user: [
    (thing, needle) => [`For the ${thing} you must never touch the branch ${needle}.`, `which branch must never be touched for the ${thing}`],
    (thing, needle) => [`Please always deploy the ${thing} from host ${needle}, it is the only one with the key.`, `from which host do we deploy the ${thing}`],
  ],
  answer: [
    (thing, needle) => [`We decided to keep ${needle} for the ${thing}, because the alternatives lose the order of events.`, `what did we decide to keep for the ${thing} because of the order of events`],
    (thing, needle) => [`The ${thing} failed because its pool was exhausted; raising it to ${needle} fixed that.`, `to what was the pool of the ${thing} raised`],
  ],
  output: [
    (thing, needle) => [`Error: the ${thing} refused the handshake, code ${needle}`, `with which error code did the ${thing} refuse the handshake`],
    (thing, needle) => [`warning: ${thing} checksum mismatch, expected ${needle}`, `which checksum was expected of the ${thing}`],
  ],
};

/** How the kinds are called by the summarizer. */
const KINDS = /** @type {const} */ ({ user: "rule", answer: "decision", output: "error" });

/** @param {number} n @param {number} turn @param {Fact["where"]} where @returns {Fact} */
function fact(n, turn, where) {
  const topic = `${PLACES[n % PLACES.length]} ${THINGS[Math.floor(n / PLACES.length) % THINGS.length]}`;
  const needle = `${["quartz", "kestrel", "umbra"][n % 3]}-${(n * 7919 + 31_337).toString(36)}`;
  const sayings = SAYINGS[where];
  const [text, question] = sayings[Math.floor(n / 3) % sayings.length](topic, needle);
  return { turn, where, needle, text, question, topic, kind: KINDS[where] };
}

export class Session {
  /** All facts; the first ones are asked for at the end. @type {Fact[]} */
  facts = [];
  /** The facts that are needed again, by turn. @type {Map<number, Fact>} */
  needs = new Map();
  /** How many requests of the agent were answered. */
  answered = 0;
  /** The number of the first answer of the current run. */
  began = 0;
  /**
   * The current prompt, and how many of its requests were answered.
   *
   * @type {{ turn?: number, fact?: Fact, step: number, looked: number }}
   */
  #now = { step: 0, looked: 0 };

  /**
   * @param {Shape} shape
   * @param {number} requests of the agent, without those that look something up
   */
  constructor(shape, requests) {
    this.shape = shape;
    this.requests = requests;
    this.turns = Math.ceil(requests / shape.requests);
    const wheres = /** @type {Fact["where"][]} */ (["user", "answer", "output"]);
    for (let n = 0; n * FACT_EVERY < requests * 0.8; n++) this.facts.push(fact(n * 2, Math.floor((n * FACT_EVERY) / shape.requests), wheres[n % 3]));
    for (let turn = NEED_EVERY; turn < this.turns; turn += NEED_EVERY) this.needs.set(turn, fact((turn / NEED_EVERY) * 2 - 1, turn - NEED_AFTER, "output"));
  }

  /** @param {number} turn @param {Fact["where"]} where */
  #said(turn, where) {
    return [...this.facts, ...this.needs.values()].filter((one) => one.turn === turn && one.where === where).map(({ text }) => text);
  }

  /** The user's prompt. @param {number} turn */
  begin(turn) {
    this.#now = { turn, step: 0, looked: 0 };
    this.began = this.answered;
    const need = this.needs.get(turn);
    return [`Turn ${turn}: ${new Dice(turn).prose(240)}`, ...this.#said(turn, "user"), ...(need ? [`For that, look again ${need.question}.`] : [])].join("\n");
  }

  /** @param {Fact} fact */
  ask(fact) {
    this.#now = { fact, step: 0, looked: 0 };
    return `Question: ${fact.question}`;
  }

  /** Answers a request; thoughts and answers begin with their number. @param {Received} request @returns {Reply} */
  reply(request) {
    const { text = "", toolCalls } = this.#reply(request);
    const n = this.answered++;
    return { text: `Answer ${n}: ${text}`, toolCalls, thinking: this.thought(n) };
  }

  /** The thinking before an answer: mostly short, on average 190 tokens. @param {number} n */
  thought(n) {
    const tokens = 10 * (1 + Math.floor(new Dice(n + 7).next() ** 2 * 54));
    return `Thought ${n}: ${new Dice(n + 90_000).prose(tokens * TOKEN)}`.slice(0, tokens * TOKEN);
  }

  /** @param {Received} request @returns {Reply} */
  #reply(request) {
    const { turn, fact } = this.#now;
    if (turn === undefined) return fact ? this.#answer(request, fact) : { text: "Ready." };
    const need = this.needs.get(turn);
    const missing = need && this.#now.step === 0 ? this.#look(request, need) : undefined;
    if (missing) return missing;
    const { shape } = this;
    const at = turn * shape.requests + this.#now.step++;
    const length = shape.answer(at) * TOKEN;
    if (this.#now.step >= shape.requests || at + 1 >= this.requests) return { text: [new Dice(at + 50_000).prose(length), ...this.#said(turn, "answer")].join("\n") };
    const { name } = this.#file(turn, this.#now.step - 1);
    const call = at % 2 === 0 ? { name: "bash", arguments: { command: `cat ${name}` } } : { name: "read", arguments: { path: name } };
    return { text: new Dice(at + 50_000).prose(Math.max(1, length - 60)), toolCalls: [call] };
  }

  /** Retrieves a fact that is needed and no longer visible. @param {Received} request @param {Fact} need @returns {Reply | undefined} */
  #look({ messages, toolNames }, need) {
    if (messages.some(({ text }) => text.includes(need.needle))) return undefined;
    const looked = this.#now.looked++;
    if (toolNames.includes("lcm_grep") && looked < 2) return this.#recall(messages, need, looked);
    // Like someone who remembers the file.
    return looked > 2 ? undefined : { toolCalls: [{ name: "bash", arguments: { command: `cat ${this.#file(need.turn, 0).name}` } }] };
  }

  /** @param {Received} request @param {Fact} fact @returns {Reply} */
  #answer({ messages, toolNames }, fact) {
    if (messages.some(({ text }) => text.includes(fact.needle))) return { text: `It is ${fact.needle}.` };
    const looked = this.#now.looked++;
    return toolNames.includes("lcm_grep") && looked < 2 ? this.#recall(messages, fact, looked) : { text: "I do not know." };
  }

  /**
   * Searches, and then expands the first result.
   *
   * @param {Received["messages"]} messages
   * @param {Fact} fact
   * @param {number} looked
   * @returns {Reply}
   */
  #recall(messages, fact, looked) {
    const id = looked > 0 ? /\b[ms]-[0-9a-f]{10}\b/.exec(messages.findLast(({ role }) => role === "tool")?.text ?? "")?.[0] : undefined;
    return { toolCalls: [id ? { name: "lcm_expand", arguments: { summary_id: id } } : { name: "lcm_grep", arguments: { query: fact.question } }] };
  }

  /** The file that a step reads. @param {number} turn @param {number} step */
  #file(turn, step) {
    const at = turn * (this.shape.requests - 1) + step;
    return { name: `data/${turn}-${step}.log`, at, bytes: this.shape.result(at) * TOKEN };
  }

  /** Writes the files that the tools read. @param {string} project */
  write(project) {
    mkdirSync(path.join(project, "data"), { recursive: true });
    for (let turn = 0; turn < this.turns; turn++) {
      for (let step = 0; step < this.shape.requests - 1; step++) {
        const { name, at, bytes } = this.#file(turn, step);
        const said = step === 0 ? this.#said(turn, "output") : [];
        const lines = new Dice(at + 1_000).code(bytes).slice(0, bytes).split("\n");
        lines.splice(Math.floor(lines.length / 2), 0, ...said);
        writeFileSync(path.join(project, name), lines.join("\n"));
      }
    }
  }
}
