/**
 * A long session with large tool outputs: what the user types, what the scripted model does about it, and facts that
 * are said on the way and asked for at the end. The same one each time, whichever way the context is kept.
 *
 * Each turn a file is read and a command run, of 2 to 20 KB as such outputs are, and an answer given. A question at the end is answered
 * from the context where the fact still stands in it; where not, with the tools that are there, first by searching, then by
 * expanding what was found. Who has no tools has to give up.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { Dice } from "../corpus.mjs";

/** @typedef {import("../../demo/model-server.mjs").Received} Received */
/** @typedef {import("../../demo/model-server.mjs").Reply} Reply */

/**
 * Something that is said once.
 * @typedef {object} Fact
 * @property {number} turn
 * @property {"user" | "answer" | "output"} where
 * @property {string} sentence
 * @property {string} needle the word that stands nowhere else
 * @property {string} question as somebody would ask who has forgotten the answer
 */

/**
 * @typedef {object} Session
 * @property {string[]} prompts
 * @property {Fact[]} facts
 * @property {(request: Received) => Reply} reply
 * @property {(project: string) => void} write makes the files that the tools read
 */

const QUESTION = "Question: ";
const OUTPUT = [2_000, 20_000];
const THINGS = ["exporter", "scheduler", "importer", "gateway", "webhook", "archive", "mailer", "replica"];

/** @type {{ where: Fact["where"], say: (thing: string, needle: string) => string, ask: (thing: string) => string }[]} */
const KINDS = [
  { where: "user", say: (thing, needle) => `For the ${thing} you must never touch the branch ${needle}.`, ask: (thing) => `which branch must never be touched for the ${thing}` },
  { where: "answer", say: (thing, needle) => `We decided to keep ${needle} for the ${thing}, because the alternatives lose the order of events.`, ask: (thing) => `what did we decide to keep for the ${thing} because of the order of events` },
  { where: "output", say: (thing, needle) => `Error: the ${thing} refused the handshake, code ${needle}`, ask: (thing) => `with which error code did the ${thing} refuse the handshake` },
];

/**
 * @param {number} turns
 * @param {number} facts
 * @returns {Session}
 */
export function longSession(turns, facts) {
  const said = Array.from({ length: facts }, (_, n) => fact(n, Math.floor(((n + 0.5) * turns) / facts)));
  const at = (/** @type {number} */ turn, /** @type {Fact["where"]} */ where) => said.filter((one) => one.turn === turn && one.where === where).map(({ sentence }) => sentence);
  const prompts = Array.from({ length: turns }, (_, turn) => [`Turn ${turn}: ${new Dice(turn).prose(300)}`, ...at(turn, "user")].join("\n"));
  const answer = (/** @type {number} */ turn) => [new Dice(turn + 50_000).prose(600), ...at(turn, "answer")].join("\n");
  return {
    prompts: [...prompts, ...said.map(({ question }) => QUESTION + question)],
    facts: said,
    reply: (request) => {
      const asked = request.messages.findLast(({ role, text }) => role === "user" && /^(Turn \d+|Question): /.test(text))?.text ?? "";
      const turn = /^Turn (\d+): /.exec(asked)?.[1];
      if (turn === undefined) return recall(request, said.find(({ question }) => asked === QUESTION + question));
      return request.messages.at(-1)?.role === "tool" ? { text: answer(Number(turn)) } : { toolCalls: calls(Number(turn)) };
    },
    write: (project) => {
      for (let turn = 0; turn < turns; turn++) {
        for (const name of [source(turn), log(turn)]) {
          const file = path.join(project, name);
          mkdirSync(path.dirname(file), { recursive: true });
          writeFileSync(file, output(turn, name, name === log(turn) ? at(turn, "output") : []));
        }
      }
    },
  };
}

/** @param {number} n @param {number} turn @returns {Fact} */
function fact(n, turn) {
  const { where, say, ask } = KINDS[n % KINDS.length];
  const thing = `${["staging", "nightly", "partner"][n % 3]} ${THINGS[Math.floor(n / 3) % THINGS.length]}`;
  const needle = `${["quartz", "kestrel", "umbra"][n % 3]}-${(n * 7919 + 31_337).toString(36)}`;
  return { turn, where, needle, sentence: say(thing, needle), question: ask(thing) };
}

const source = (/** @type {number} */ turn) => `src/part${turn}.rs`;
const log = (/** @type {number} */ turn) => `logs/run-${turn}.log`;

/** @param {number} turn */
const calls = (turn) => [
  { name: "read", arguments: { path: source(turn) } },
  { name: "bash", arguments: { command: `cat ${log(turn)}` } },
];

/**
 * @param {number} turn
 * @param {string} name
 * @param {string[]} said half-way
 */
function output(turn, name, said) {
  const dice = new Dice(turn * 2 + name.length);
  const [least, most] = OUTPUT;
  const lines = dice.code(least + dice.below(most - least)).split("\n");
  lines.splice(Math.floor(lines.length / 2), 0, ...said);
  return lines.join("\n");
}

/**
 * @param {Received} request
 * @param {Fact | undefined} fact that is asked for
 * @returns {Reply}
 */
function recall({ messages, toolNames }, fact) {
  if (!fact) throw new Error("a question that nobody asked");
  if (messages.some(({ text }) => text.includes(fact.needle))) return { text: `It is ${fact.needle}.` };
  const since = messages.slice(messages.findLastIndex(({ role }) => role === "user"));
  const found = since.filter(({ role }) => role === "tool").map(({ text }) => text);
  if (!toolNames.includes("lcm_grep") || found.length > 1) return { text: "I do not know." };
  if (found.length === 0) return { toolCalls: [{ name: "lcm_grep", arguments: { query: fact.question } }] };
  const id = /\b[ms]-[0-9a-f]{10}\b/.exec(found[0])?.[0];
  return id ? { toolCalls: [{ name: "lcm_expand", arguments: { summary_id: id } }] } : { text: "I do not know." };
}
