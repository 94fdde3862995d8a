/**
 * A realistic scripted coding session: in each turn the user has a request, and the model reads files, looks into a log, changes files,
 * runs the tests and answers. Everything really happens in a scratch project, so results are real.
 *
 * Each turn has a unique topic. Its facts are stated where they belong: rules, requests and open tasks by the user, decisions and numbers
 * by the model, errors by a tool. Every seventh turn is long, so that compactions happen within it. The plan depends on the seed, however
 * the context is kept.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { SHAPES } from "../context/shapes.mjs";
import { Dice } from "../corpus.mjs";
import { Facts, topicOf } from "./facts.mjs";
import { slug } from "./phrasings.mjs";

/** @typedef {import("../../demo/model-server.mjs").Received} Received */
/** @typedef {import("../../demo/model-server.mjs").Reply} Reply */
/** @typedef {import("../../demo/wire.mjs").ToolCall} ToolCall */
/** @typedef {import("./facts.mjs").Fact} Fact */

/** The model's actions in one request, and the facts they state. @typedef {{ text: string, calls: (ToolCall & { fails?: boolean })[], facts: Fact[] }} Step */

const TOKEN = 4;
/** How often a turn is long, the first long one, and its extra requests. */
const [LONG_EVERY, LONG_FROM, LONG] = [7, 4, 32];
/** Searches per message. */
export const SEARCHES = 20;

const CHECK = `// Stands for a project's tests: what a name comes to is in outcomes.json.
import { readFileSync } from "node:fs";
const name = process.argv[2];
const { passes, lines } = JSON.parse(readFileSync("outcomes.json", "utf8"))[name];
console.log(lines.join("\\n"));
process.exit(passes ? 0 : 1);
`;
const SCRIPTS = { test: "node check.mjs", build: "node check.mjs", lint: "node check.mjs", typecheck: "node check.mjs" };

/** The last lines of a run. @type {Record<"pass" | "fail", ((name: string, count: number) => string[])[]>} */
const ENDINGS = {
  pass: [
    (name, count) => [`PASS ${name} (${count} checks)`],
    (name, count) => [`ok ${count} - ${name}`, `# pass ${count}`, "# fail 0"],
    (name, count) => [`✔ ${name}`, `${count} passed, 0 failed`],
    (name, count) => [`${name}: ${count} files, all good`],
  ],
  fail: [
    (name, count) => [`FAIL ${name}`, `  expected ${count}, received ${count + 1}`],
    (name, count) => [`not ok ${count} - ${name}`, "  operator: deepEqual", "# fail 1"],
    (name, count) => [`✖ ${name} (1 of ${count} failed)`],
    (name, count) => [`error in ${name}: line ${count}: type 'string' does not fit type 'number'`],
  ],
};

/** The model's remarks besides its actions. @type {((dice: Dice) => string)[]} */
const REMARKS = [
  (dice) => `Let me see where \`${dice.identifier()}\` is used.`,
  (dice) => `\`${dice.identifier()}\` looks like the right place, its caller hands over \`${dice.identifier()}\`.`,
  (dice) => `That matches what I saw in \`${dice.identifier()}\`, so on to the next file.`,
  () => "Nothing unusual so far.",
  (dice) => `The loop over \`${dice.identifier()}\` ends early when the list is empty.`,
  (dice) => `I'll check \`${dice.identifier()}\` as well, it has the same shape.`,
  (dice) => `Here \`${dice.identifier()}\` is set twice, once before and once after \`${dice.identifier()}\`.`,
  () => "This part is older than the rest and nobody seems to call it.",
  (dice) => `The helper \`${dice.identifier()}\` returns early, which explains the gap.`,
  () => "Good, that is what I expected.",
  (dice) => `There are two places that build \`${dice.identifier()}\`, and only one of them closes it.`,
];

/** The user's additions to a long request. */
const WISHES = [
  "Go through all the places where it is used, not only the obvious ones.",
  "Compare with how the other modules do it, file by file, and tell me where they differ.",
  "I'd rather wait for a complete answer than get half of it now.",
  "Start with the data files, the old ones too, there were surprises in them before.",
  "When you are through, sum it up in a few lines that I can forward to the team.",
];

export class Session {
  /** @type {Facts} */
  facts;
  /** Paths that only a failed call names. @type {{ path: string, turn: number }[]} */
  unwritten = [];
  /** Whether a call has to fail, by its id. @type {Map<string, boolean>} */
  expected = new Map();
  /** The current prompt. */
  prompt = "";
  /** How many of its requests were answered. */
  step = 0;
  turn = -1;
  #seed;
  #folder;
  /** @type {Step[]} */
  #steps = [];
  /** The facts to look up. @type {Fact[]} */
  #asked = [];
  /** @type {Record<string, { passes: boolean, lines: string[] }>} */
  #outcomes = {};
  #reads = 0;

  /**
   * @param {number} seed
   * @param {string} folder the scratch project
   */
  constructor(seed, folder) {
    this.#seed = seed;
    this.#folder = folder;
    this.facts = new Facts(seed);
    this.#write("package.json", JSON.stringify({ name: "shop", version: "1.0.0", private: true, scripts: SCRIPTS }, null, 2));
    this.#write("check.mjs", CHECK);
    this.#write("scripts/ci.sh", 'node check.mjs "$1"\n');
  }

  /** The next turn: writes the files that it needs. @returns {string} the user's prompt */
  begin() {
    const turn = ++this.turn;
    const dice = new Dice(this.#seed * 10_007 + turn);
    const topic = topicOf(this.#seed, turn);
    const isLong = turn % LONG_EVERY === LONG_FROM;
    const make = (/** @type {import("./facts.mjs").Kind} */ kind) => this.facts.make(kind, topic);
    const said = [make("request"), ...(turn % 2 === 0 ? [make("rule")] : []), ...(turn % 6 === 1 ? [make("number")] : []), ...(turn % 3 > 0 ? [make("task")] : [])];
    const sentences = [...said.map(({ text }) => text), ...this.facts.close(turn)];
    if (isLong) sentences.splice(1, 0, ...WISHES.slice(turn % 2));
    this.#tell(said);
    this.#steps = this.#plan(topic, dice, isLong ? LONG : 0);
    this.step = 0;
    this.#asked = [];
    this.prompt = sentences.join(dice.below(2) ? "\n" : " ");
    return this.prompt;
  }

  /** Looks these up next, one question each. @param {Fact[]} facts */
  ask(facts) {
    this.#asked = facts;
    this.step = 0;
    return "Before we go on, look a few things up for me, please.";
  }

  /**
   * @param {Received} request
   * @param {boolean} isEnough the turn has to end
   * @returns {Reply}
   */
  reply({ toolNames }, isEnough) {
    const step = this.step++;
    if (this.#steps.length === 0) {
      const searches = step === 0 && toolNames.includes("lcm_grep") ? this.#asked : [];
      return { text: "Looked up.", toolCalls: searches.map(({ question }, at) => ({ id: `search_${at}`, name: "lcm_grep", arguments: { query: question } })) };
    }
    if (isEnough) this.#steps.splice(0, this.#steps.length - 1);
    const [{ text, calls, facts }] = this.#steps.splice(0, 1);
    this.#tell(facts);
    const toolCalls = calls.map(({ fails = false, ...call }, at) => {
      const id = `call_${this.#seed}_${this.turn}_${step}_${at}`;
      this.expected.set(id, fails);
      return { id, ...call };
    });
    return { text, toolCalls };
  }

  /** @param {Fact[]} facts */
  #tell(facts) {
    for (const fact of facts) fact.turn = this.turn;
  }

  /**
   * The requests of a turn.
   * @param {string} topic
   * @param {Dice} dice
   * @param {number} more requests that only read
   * @returns {Step[]}
   */
  #plan(topic, dice, more) {
    const { turn } = this;
    const make = (/** @type {import("./facts.mjs").Kind} */ kind) => this.facts.make(kind, topic);
    const decisions = turn % 3 === 2 ? [] : [make("decision")];
    const numbers = turn % 2 === 0 ? [make("number")] : [];
    const decidesEarly = turn % 3 === 1;
    const steps = [this.#reading(topic, dice, 1_000 + dice.below(1_600)), this.#log(topic, dice, turn % 2 === 0 ? [make("error")] : [])];
    for (let n = dice.below(3) + more; n > 0; n--) steps.push(this.#reading(topic, dice, more > 0 ? 500 + dice.below(900) : undefined));
    if (turn % 4 === 2) steps.push(this.#failing(topic, dice));
    steps.push(this.#changing(make("file"), dice, decidesEarly ? decisions : []));
    if (turn % 2 === 1) steps.push(this.#changing(make("file"), dice, []));
    if (turn % 3 === 0) steps.push(this.#running(topic, dice, false));
    steps.push(this.#running(topic, dice, turn % 5 !== 4));
    const last = [...(decidesEarly ? [] : decisions), ...numbers];
    steps.push({ text: [this.#remarks(dice, 60), ...last.map(({ text }) => text)].join(dice.below(2) ? "\n" : " "), calls: [], facts: last });
    return steps;
  }

  /** @param {Dice} dice @param {number} [tokens] @param {Fact[]} [facts] */
  #remarks(dice, tokens = SHAPES.recorded.answer(this.#reads), facts = []) {
    let text = "";
    while (text.length < Math.min(tokens, 250) * TOKEN) text += `${text && " "}${REMARKS[dice.below(REMARKS.length)](dice)}`;
    return [text, ...facts.map((fact) => fact.text)].join(" ");
  }

  /** @param {string} topic @param {Dice} dice @param {number} [tokens] of the result @returns {Step} */
  #reading(topic, dice, tokens = SHAPES.recorded.result(this.#reads)) {
    const name = `data/${slug(topic)}/${this.#reads++}.txt`;
    this.#write(name, dice.code(tokens * TOKEN));
    const ways = [
      { name: "read", arguments: { path: name } },
      { name: "bash", arguments: { command: `cat ${name}` } },
      { name: "bash", arguments: { command: `sed -n '1,400p' ${name}` } },
      { name: "bash", arguments: { command: `grep -n '' ${name} | head -300` } },
    ];
    return { text: this.#remarks(dice), calls: [ways[dice.below(ways.length)]], facts: [] };
  }

  /** A log with its errors in the middle. @param {string} topic @param {Dice} dice @param {Fact[]} errors @returns {Step} */
  #log(topic, dice, errors) {
    const name = `logs/${slug(topic)}.log`;
    const lines = dice.code(1_200 + dice.below(2_400)).split("\n");
    lines.splice(Math.floor(lines.length / 2), 0, ...errors.map(({ text }) => text));
    this.#write(name, lines.join("\n"));
    return { text: this.#remarks(dice), calls: [{ name: "bash", arguments: { command: dice.below(2) ? `tail -n 200 ${name}` : `cat ${name}` } }], facts: errors };
  }

  /** Writes a file, or changes an existing one. @param {Fact} file @param {Dice} dice @param {Fact[]} decisions @returns {Step} */
  #changing(file, dice, decisions) {
    const content = dice.code(300 + dice.below(900));
    const facts = [file, ...decisions];
    const text = this.#remarks(dice, 30, decisions);
    if (dice.below(2)) return { text, calls: [{ name: "write", arguments: { path: file.text, content } }], facts };
    const [oldText] = content.split("\n");
    this.#write(file.text, content);
    return { text, calls: [{ name: "edit", arguments: { path: file.text, edits: [{ oldText, newText: `${oldText} // ${dice.identifier()}` }] } }], facts };
  }

  /** A change that fails. @param {string} topic @param {Dice} dice @returns {Step} */
  #failing(topic, dice) {
    const n = this.unwritten.length;
    const needle = this.facts.stray(n);
    const edits = [{ oldText: `${dice.identifier()} is not in it`, newText: dice.identifier() }];
    const ways = [
      () => ({ path: `src/${slug(topic)}/${needle}.ts`, name: "edit", rest: { edits }, content: dice.code(400) }),
      () => ({ path: `lib/${needle}/missing.js`, name: "edit", rest: { edits }, content: undefined }),
      () => ({ path: `package.json/${needle}.json`, name: "write", rest: { content: dice.code(200) }, content: undefined }),
    ];
    const { path: file, name, rest, content } = ways[n % ways.length]();
    if (content) this.#write(file, content);
    this.unwritten.push({ path: file, turn: this.turn });
    return { text: this.#remarks(dice, 30), calls: [{ name, arguments: { path: file, ...rest }, fails: true }], facts: [] };
  }

  /** Runs something that passes or fails. @param {string} topic @param {Dice} dice @param {boolean} passes @returns {Step} */
  #running(topic, dice, passes) {
    const fact = this.facts.make("command", topic, { passes });
    const name = /** @type {RegExpExecArray} */ (new RegExp(`\\S*${fact.needle}`).exec(fact.text))[0];
    const endings = ENDINGS[passes ? "pass" : "fail"];
    const lines = [...dice.code(dice.below(1_500)).split("\n"), ...endings[dice.below(endings.length)](name, 3 + dice.below(40))];
    this.#outcomes[name] = { passes, lines };
    this.#write("outcomes.json", JSON.stringify(this.#outcomes));
    return { text: this.#remarks(dice, 20), calls: [{ name: "bash", arguments: { command: fact.text }, fails: !passes }], facts: [fact] };
  }

  /** @param {string} name @param {string} content */
  #write(name, content) {
    const file = path.join(this.#folder, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
}
