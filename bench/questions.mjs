/**
 * Questions about a session, each with the messages that answer it, generated from the session itself.
 *
 * Rare texts are asked for in the ways of an agent: verbatim, split, half remembered, with another ending, in other words, misspelled, as a
 * question. A message is an answer if it has everything the question is about; `evidence` must be in a snippet so that no second call is
 * needed.
 */
import { Dice } from "./corpus.mjs";

/**
 * @typedef {object} Question
 * @property {string} kind
 * @property {string} query
 * @property {string} evidence
 * @property {number[]} answers positions of the messages
 */

/** A text in more messages than this is not worth searching for. */
const RARE = 3;
/** The same for runs of ideographs, of which the made-up sessions have few. */
const RARE_RUN = 30;
const FUNCTION = new Set(
  `a about after all also am an and any are as at be been before but by can could did do does first for from get had has have how i if in into is it
its just let me more my no not of on one only or our out please should so some still that the their then there these they this to two us use used was we
were what when where which who why will with would you your`.split(/\s+/),
);
/** Two names of one thing that people confuse. */
const SHORT = [["configuration", "config"], ["directory", "dir"], ["database", "db"], ["repository", "repo"], ["function", "fn"], ["parameter", "param"], ["environment", "env"], ["authentication", "auth"], ["document", "doc"], ["migration", "migrate"], ["maximum", "max"], ["decisions", "decided"]];
const ALIKE = [["error", "failure"], ["remove", "delete"], ["fix", "repair"], ["twice", "duplicate"], ["customer", "client"], ["invoice", "bill"], ["change", "modify"], ["wrong", "incorrect"], ["find", "search"], ["begin", "start"]];

/** The text that search covers, as far as needed here. @param {any} message @returns {string} */
export function textOf(message) {
  // A search of the model does not find what was kept from it.
  if (message.excludeFromContext) return "";
  /** @type {(value: any) => string[]} */
  const strings = (value) => (typeof value === "string" ? [value] : value && typeof value === "object" ? Object.values(value).flatMap(strings) : []);
  const blocks = typeof message.content === "string" ? [{ type: "text", text: message.content }] : (message.content ?? []);
  const texts = blocks.map((/** @type {any} */ block) => (block.type === "text" ? block.text : block.type === "toolCall" ? [block.name, ...strings(block.arguments)].join("\n") : ""));
  if (message.role === "bashExecution") texts.push(`$ ${message.command}\n${message.output}`);
  return texts.join("\n");
}

/**
 * @param {any[]} messages
 * @param {number} seed
 * @param {number} each how many of a kind at most
 * @returns {Question[]}
 */
export function questionsAbout(messages, seed, each) {
  const dice = new Dice(seed);
  const texts = messages.map(textOf);
  const lower = texts.map((text) => text.toLowerCase());
  const joined = lower.map((text) => text.replace(/[\s_\-.]+/g, ""));
  const words = lower.map((text) => new Set(text.match(/[\p{L}\p{N}]+/gu) ?? []));
  /** @type {Question[]} */
  const questions = [];

  const holding = (/** @type {string} */ evidence) => positions(lower, (text) => text.includes(evidence.toLowerCase()));
  const holdingAll = (/** @type {string[]} */ wanted) => positions(words, (has) => wanted.every((word) => has.has(word.toLowerCase())));
  const shuffled = (/** @type {Iterable<string>} */ list) => {
    const items = [...new Set(list)];
    for (let at = items.length - 1; at > 0; at--) {
      const other = dice.below(at + 1);
      [items[at], items[other]] = [items[other], items[at]];
    }
    return items;
  };
  /**
   * @param {string} kind
   * @param {Iterable<string>} found
   * @param {(item: string) => { query: string, evidence: string, answers?: number[] } | undefined} ask
   * @param {number} [most] messages that may hold it
   */
  const add = (kind, found, ask, most = RARE) => {
    let added = 0;
    for (const item of shuffled(found)) {
      if (added === each) break;
      const asked = ask(item);
      if (!asked) continue;
      const answers = asked.answers ?? holding(asked.evidence);
      if (answers.length === 0 || answers.length > most) continue;
      questions.push({ kind, query: asked.query, evidence: asked.evidence, answers });
      added++;
    }
  };
  const all = texts.join("\n");
  const matches = (/** @type {RegExp} */ pattern, text = all) => text.match(pattern) ?? [];
  const identifiers = [...new Set(matches(/\b[A-Za-z_][A-Za-z0-9_]{5,50}\b/g))].filter((name) => /[a-z][A-Z]|[A-Za-z]_[A-Za-z]/.test(name) && !/^call_/.test(name));
  const pieces = (/** @type {string} */ name) => name.replace(/([a-z0-9])([A-Z])/g, "$1 $2").split(/[\s_]+/).filter(Boolean);
  const spoken = (/** @type {string} */ role) => messages.map((message, at) => (message.role === role ? texts[at].split("\n").filter((line) => !/^(read|bash|edit|grep|write|find|ls)$/.test(line)).join("\n") : ""));
  const said = [...spoken("user"), ...messages.map((message, at) => (message.role === "assistant" && (message.content ?? []).every?.((/** @type {any} */ block) => block.type !== "toolCall") ? texts[at] : ""))];
  const sentences = said.flatMap((text) => text.split(/(?<=[.!?])\s+|\n/)).filter((sentence) => sentence.length > 30 && sentence.length < 400);
  const telling = (/** @type {string} */ text) => (text.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? []).filter((word) => !FUNCTION.has(word) && !/^\p{Script=Han}/u.test(word));
  const some = (/** @type {string} */ text, /** @type {number} */ count) => shuffled(telling(text)).slice(0, count);
  /**
   * A question made of words from one sentence.
   *
   * @param {string} kind
   * @param {string[]} from
   * @param {number} count
   * @param {(words: string[], sentence: string) => string | undefined} ask
   */
  const inWords = (kind, from, count, ask) =>
    add(kind, from, (sentence) => {
      const chosen = some(sentence, count);
      if (chosen.length < count) return undefined;
      const query = ask(chosen, sentence);
      const rarest = [...chosen].sort((one, other) => holdingAll([one]).length - holdingAll([other]).length)[0];
      return query ? { query, evidence: rarest, answers: holdingAll(chosen) } : undefined;
    });

  add("identifier", identifiers, (name) => ({ query: name, evidence: name }));
  add("identifier, split", identifiers, (name) => ({ query: pieces(name).join(" ").toLowerCase(), evidence: name }));
  add("identifier, partial", identifiers.filter((name) => pieces(name).length > 2), (name) => {
    const parts = pieces(name);
    const query = /_/.test(name) ? parts.slice(1).join("_") : parts.slice(1).join("");
    return { query, evidence: name, answers: positions(joined, (text) => text.includes(parts.slice(1).join("").toLowerCase())) };
  });
  add("identifier, cut short", identifiers, (name) => ({ query: name.slice(0, -2), evidence: name.slice(0, -2) }));
  const paths = matches(/(?:[\w.-]+\/)+[\w.-]+\.[a-z]{1,5}\b/g);
  add("path", paths, (path) => ({ query: path, evidence: path }));
  add("file name", paths, (path) => ({ query: path.split("/").at(-1) ?? "", evidence: path.split("/").at(-1) ?? "" }));
  const hashes = matches(/\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b/g);
  add("hash", hashes, (hash) => ({ query: hash, evidence: hash }));
  add("hash, its beginning", hashes, (hash) => ({ query: hash.slice(0, 5), evidence: hash.slice(0, 5) }));
  add("number", matches(/\b\d{3,6}\b/g), (number) => ({ query: number, evidence: number, answers: holdingAll([number]) }));
  const errors = matches(/^.*\b(?:error|panic|panicked|exception|cannot|failed|deadline exceeded|ENOENT|TypeError|KeyError|ValueError)\b.*$/gim).map((line) => line.trim()).filter((line) => line.length > 20 && line.length < 200);
  add("error line", errors, (line) => ({ query: line.slice(0, 90).trim(), evidence: line.slice(0, 40) }));
  inWords("error words", errors, 3, (chosen) => chosen.join(" "));
  const commands = messages.flatMap((message) => (Array.isArray(message.content) ? message.content : []).map((/** @type {any} */ block) => block.arguments?.command)).filter((command) => typeof command === "string" && command.length > 12);
  add("command", commands, (command) => ({ query: command.split("\n")[0].slice(0, 80), evidence: command.split("\n")[0].slice(0, 40) }));
  add("phrase", sentences, (sentence) => {
    const run = sentence.split(/\s+/);
    const at = dice.below(Math.max(1, run.length - 5));
    const phrase = run.slice(at, at + 5).join(" ").replaceAll('"', "");
    return run.length > 6 && phrase.length > 20 ? { query: `"${phrase}"`, evidence: phrase } : undefined;
  });
  inWords("user's words", spoken("user"), 3, (chosen) => chosen.join(" "));
  inWords("assistant's words", said.slice(messages.length), 3, (chosen) => chosen.join(" "));
  const frames = [(/** @type {string[]} */ w) => `why did we decide on ${w[0]} and ${w[1]} for the ${w[2]} ${w[3]}?`, (/** @type {string[]} */ w) => `What was it about ${w[0]} with the ${w[1]}, ${w[2]} and ${w[3]}?`, (/** @type {string[]} */ w) => `how did the ${w[0]} ${w[1]} get its ${w[2]} ${w[3]}`, (/** @type {string[]} */ w) => `Did somebody say where ${w[0]} ${w[1]} was, or which ${w[2]} the ${w[3]} has?`];
  inWords("question", sentences, 4, (chosen) => frames[dice.below(frames.length)](chosen));
  const bent = (/** @type {string} */ word) => (/[^aeiou]e$/.test(word) ? `${word.slice(0, -1)}ing` : /[a-z]{4,}ed$/.test(word) ? word.slice(0, -2) + "s" : /[a-z]{4,}ing$/.test(word) ? word.slice(0, -3) + "ed" : /[a-z]{4,}s$/.test(word) ? word.slice(0, -1) : /^[a-z]{4,}$/.test(word) ? `${word}s` : word);
  inWords("other endings", sentences, 3, (chosen) => (chosen.some((word) => bent(word) !== word) ? chosen.map(bent).join(" ") : undefined));
  const exchanged = (/** @type {string[][]} */ pairs) => (/** @type {string[]} */ chosen, /** @type {string} */ sentence) => {
    const pair = pairs.flatMap(([one, other]) => [[one, other], [other, one]]).find(([one]) => new RegExp(`\\b${one}\\b`, "i").test(sentence));
    return pair ? [...chosen, pair[1]].join(" ") : undefined;
  };
  inWords("abbreviation", sentences, 2, exchanged(SHORT));
  inWords("synonym", sentences, 2, exchanged(ALIKE));
  const misspelt = (/** @type {string} */ word) => {
    const at = 1 + dice.below(word.length - 2);
    const how = dice.below(4);
    if (how === 0) return word.slice(0, at) + word.slice(at + 1);
    if (how === 1) return word.slice(0, at) + word[at + 1] + word[at] + word.slice(at + 2);
    if (how === 2) return word.slice(0, at) + "aeioutnrs"[dice.below(9)] + word.slice(at + 1);
    return word.slice(0, at) + word[at] + word.slice(at);
  };
  const long = shuffled(said.flatMap(telling)).filter((word) => /^[a-z]{6,}$/.test(word));
  add("misspelt word", long, (word) => {
    const wrong = misspelt(word);
    return wrong === word || words.some((has) => has.has(wrong)) ? undefined : { query: wrong, evidence: word, answers: holdingAll([word]) };
  });
  inWords("one of three misspelt", sentences, 3, (chosen) => {
    const at = chosen.findIndex((word) => /^[a-z]{6,}$/.test(word));
    if (at < 0) return undefined;
    const wrong = misspelt(chosen[at]);
    return words.some((has) => has.has(wrong)) ? undefined : chosen.with(at, wrong).join(" ");
  });
  const runs = matches(/\p{Script=Han}{2,}/gu, said.join("\n"));
  add("Chinese", runs, (run) => ({ query: run, evidence: run.slice(0, 20) }), RARE_RUN);
  add("Chinese, a piece", runs.filter((run) => run.length > 5), (run) => {
    const at = dice.below(run.length - 4);
    return { query: run.slice(at, at + 4), evidence: run.slice(at, at + 4) };
  }, RARE_RUN);
  return questions;
}

/** @template T @param {T[]} list @param {(item: T) => boolean} fits */
function positions(list, fits) {
  return list.flatMap((item, at) => (fits(item) ? [at] : []));
}
