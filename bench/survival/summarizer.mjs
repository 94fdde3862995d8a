/**
 * A summarizer that loses a given share of what it should keep, for the extension's and Pi's prompts.
 *
 * It should keep the sentences and lines with a fact of the session. It puts them first, fills the rest by the rules of
 * `bench/strategies/summarize.mjs`, and then drops each with the given probability, independently in every call: in leaf and condensed
 * summaries, in each of Pi's updates, and in the requested sections. The dice depend on the sentence and the source, so the same source
 * loses the same sentences in every run.
 */
import { createHash } from "node:crypto";
import { WORTH, extract, written } from "../strategies/summarize.mjs";

/** @typedef {import("./facts.mjs").Fact} Fact */
/** @typedef {(sentence: string) => boolean} Keeps */

/** Characters of a summary for Pi: 2,500 tokens, like real models, and fewer for the beginning of a split turn. */
const [PI_SUMMARY, PI_PREFIX] = [10_000, 4_000];
const CHARACTERS_PER_WORD = 5;
/** Quotes of a leaf summary, as the prompt allows. */
const QUOTES = 6;
/** Lines that a summary does not copy: tool calls, and code unless it has a fact. */
const CALL = /^\[(tool call|Assistant tool calls)/;
const CODE = /::|[{};]\s*$|\t|\.\.\. ok \(|^\W*([0-9a-f]{5,8}|\d+:.*) |^\[….*…\]$|characters truncated\]/;
/** A shorter line that a fact's text happens to contain means nothing. */
const SHORTEST = 12;
/** The start of a message in Pi's prompts. */
const SPEAKER = /^\[(User|Assistant|Tool result)\]: /;

/**
 * @param {string} prompt of the extension's summarizer, or of Pi's
 * @param {number} loss between 0 and 1
 * @param {Fact[]} facts of the session
 * @returns {string}
 */
export function lossySummary(prompt, loss, facts) {
  const [, , history] = /<(history-\w+)>\n([\s\S]*)\n<\/\1>/.exec(prompt) ?? [];
  if (history === undefined) return summaryForPi(prompt, loss, facts);
  const keeps = keeper(history, loss);
  const words = Number(/(\d+) words/.exec(prompt)?.[1] ?? 200);
  const [asksForState, asksForQuotes] = ["`State:`", "`Quotes:`"].map((section) => prompt.includes(section));
  // Text with its own section is not repeated.
  const body = asksForQuotes ? history.replace(/^(Quotes:|\W*(rule|task): ".*")$/gm, "") : history;
  const lines = worthKeeping(body, words * CHARACTERS_PER_WORD, facts).filter(keeps);
  return written(lines, [...(asksForState ? stateOf(history, keeps) : []), ...(asksForQuotes ? quotesOf(history, keeps, facts) : [])]);
}

/**
 * A summary in Pi's format, of the conversation and the previous summary. Pi adds the lists of files itself.
 * @param {string} prompt
 * @param {number} loss
 * @param {Fact[]} facts
 */
function summaryForPi(prompt, loss, facts) {
  const [, prefix] = /^# Conversation\n([\s\S]*)\n\n# Instructions\n/.exec(prompt) ?? [];
  const [, conversation = prompt] = /<conversation>\n([\s\S]*)\n<\/conversation>/.exec(prompt) ?? [];
  const [, before = ""] = /<previous-summary>\n([\s\S]*)\n<\/previous-summary>/.exec(prompt) ?? [];
  const history = prefix ?? `${before.replace(/<(read|modified)-files>[\s\S]*?<\/\1-files>/g, "")}\n${conversation}`;
  return worthKeeping(history, prefix === undefined ? PI_SUMMARY : PI_PREFIX, facts).filter(keeper(history, loss)).join("\n") || "Nothing of note.";
}

/**
 * The lines that a model without omissions would write.
 * @param {string} history
 * @param {number} characters
 * @param {Fact[]} facts
 */
function worthKeeping(history, characters, facts) {
  const told = facts.filter(({ needle, text }) => history.includes(needle) || history.includes(text));
  const settled = told.filter(({ closing }) => closing && history.includes(closing));
  const isSettled = (/** @type {string} */ line) => settled.some(({ needle }) => line.includes(needle));
  const isNeeded = (/** @type {string} */ line) => told.some((fact) => isPartOf(fact, line));
  const lines = inSentences(history).split("\n").filter((line) => isHeading(line) || !(isSettled(line) || CALL.test(line) || (CODE.test(line) && !isNeeded(line))));
  // A title repeats the beginning of the first line.
  const whole = lines.filter((line) => !lines.some((other) => other.length > line.length && other.startsWith(line)));
  return extract(whole.join("\n"), characters, [{ test: isNeeded }, ...WORTH]);
}

/** Whether the line states the fact, or a sentence of it. A command needs its outcome. @param {Fact} fact @param {string} line */
function isPartOf({ kind, needle, text, closing, nearby }, line) {
  if (line.includes(needle)) return kind !== "command" || Boolean(nearby?.test(line));
  const words = line.trim().replace(SPEAKER, "");
  return words.length > SHORTEST && [text, closing].some((said) => said?.includes(words));
}

/** @param {string} line */
const isHeading = (line) => /^\[[0-9a-f]{8} /.test(line);

/** Puts each sentence on its own line. @param {string} text */
const inSentences = (text) => text.replace(/(?<=[.!?]) +(?=\p{Lu})/gu, "\n");

/**
 * Decides what is kept of this source. Ids, times and the scratch folder differ from run to run and do not count.
 * @param {string} source
 * @param {number} loss
 * @returns {Keeps}
 */
function keeper(source, loss) {
  const key = createHash("sha1").update(source.replace(/\b[ms]-[0-9a-f]{10}\b|\d{4}-\d\d-\d\d \d\d:\d\d|–\d\d:\d\d|lcm-survival-\w+/g, "")).digest("hex");
  return (sentence) => createHash("sha1").update(`${key} ${sentence}`).digest().readUInt32BE() / 2 ** 32 >= loss;
}

/**
 * The user's rules and open tasks, word for word; of summaries, their quotes that are not settled.
 * @param {string} history
 * @param {Keeps} keeps
 * @param {Fact[]} facts
 */
function quotesOf(history, keeps, facts) {
  const said = messagesOf(history).filter(({ role }) => role === "user").map(({ text }) => text).join("\n");
  const isOpen = (/** @type {Fact} */ { closing }) => !closing || !history.includes(closing);
  const found = facts.filter((fact) => (fact.kind === "rule" || fact.kind === "task") && said.includes(fact.text) && isOpen(fact)).map(({ kind, text }) => `${kind}: "${text}"`);
  const quoted = [...history.matchAll(/^\W*((?:rule|task): ".*")$/gm)].map(([, quote]) => quote);
  const held = quoted.filter((quote) => facts.every((fact) => isOpen(fact) || !quote.includes(fact.needle)));
  const quotes = (said ? found.slice(0, QUOTES) : held).filter(keeps);
  return quotes.length > 0 ? ["Quotes:", ...quotes] : ["Quotes: none"];
}

/**
 * The state of the work at the end of the history, as far as it is mentioned.
 * @param {string} history
 * @param {Keeps} keeps
 */
function stateOf(history, keeps) {
  const messages = messagesOf(history);
  const last = (/** @type {string} */ role) => inSentences(messages.findLast((message) => message.role === role)?.text ?? "").split("\n").filter((line) => /\p{L}{3}/u.test(line) && !CODE.test(line));
  const told = (/** @type {string} */ name) => [...history.matchAll(new RegExp(`^\\W*${name}: (.*)$`, "gm"))].at(-1)?.[1];
  const state = {
    goal: last("user")[0] ?? told("goal"),
    "in progress": last("assistant")[0] ?? told("in progress"),
    blocked: last("toolResult").find((line) => /\b(error|failed|fatal)\b/i.test(line)) ?? told("blocked"),
    next: last("user").find((line) => /\b(still|to-?do|later|next)\b/i.test(line)) ?? last("assistant").at(-1) ?? told("next"),
  };
  const lines = Object.entries(state).flatMap(([name, value]) => (value && keeps(`${name} ${value}`) ? [`${name}: ${value.slice(0, 200)}`] : []));
  return lines.length > 0 ? ["State:", ...lines] : [];
}

/** The messages of a history; none if it consists of summaries. @param {string} history */
function messagesOf(history) {
  const pieces = history.split(/^\[[0-9a-f]{8} ([a-z]\w*)[^\]\n]*\]$/m);
  return pieces.flatMap((role, at) => (at % 2 === 1 ? [{ role, text: pieces[at + 1].trim() }] : []));
}
