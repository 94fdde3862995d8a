/**
 * Reads the boards' files into one format: conversations of Pi messages, and queries with the positions of the messages that answer them.
 *
 * A file's format is detected by content, not by name; unknown files are skipped. LoCoMo's speakers and BEAM's turns become user and
 * assistant messages of one session; each LongMemEval question has its own conversation.
 */
import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { gunzipSync } from "node:zlib";

/**
 * @typedef {object} Query
 * @property {string} kind
 * @property {string} query
 * @property {number[]} gold places of the messages that answer
 * @property {string} [needle] the line that must be in a snippet, in lower case, with whitespace folded
 */
/** @typedef {{ board: string, id: string, messages: any[], sessions?: string[], queries: Query[] }} Conversation `sessions` has one name for each message */

/** Milliseconds between two messages without times. */
const STEP_MS = 60_000;
const EPOCH = Date.UTC(2020, 0, 1);
/** LoCoMo's question kinds by number. The last kind asks about something that was never said. */
const LOCOMO_KINDS = ["", "several turns", "time", "open domain", "one turn"];

/** All conversations in a folder, recursively. @param {string} folder @returns {Generator<Conversation>} */
export function* conversationsIn(folder) {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => /\.json(\.gz)?$/.test(name));
  for (const name of names.sort()) {
    const file = path.join(folder, name);
    if (/^chat(_trunecated)?\.json$/.test(path.basename(file))) yield* beam(file, names);
    else if (!name.includes("probing_questions")) yield* read(load(file), path.basename(file).replace(/\..*$/, ""));
  }
}

/** @param {any} data @param {string} name @returns {Generator<Conversation>} */
function* read(data, name) {
  if (data?.conversations && data.queries) yield* plain(data, name);
  if (!Array.isArray(data)) return;
  if (data[0]?.conversation && data[0].qa) for (const sample of data) yield locomo(sample);
  if (data[0]?.haystack_sessions) for (const question of data) yield longMemEval(question);
}

/** @param {string} file */
const load = (file) => JSON.parse((file.endsWith(".gz") ? gunzipSync(readFileSync(file)) : readFileSync(file)).toString());

/** Pi messages with queries, as docs/benchmarks.md describes them. @param {any} data @param {string} board @returns {Generator<Conversation>} */
function* plain({ conversations, queries }, board) {
  for (const { id, messages } of conversations) {
    yield { board, id, messages, queries: queries.filter((/** @type {any} */ { conv }) => conv === id) };
  }
}

/** @param {any} sample @returns {Conversation} */
function locomo({ sample_id: id, conversation, qa }) {
  const built = building();
  for (let number = 1; conversation[`session_${number}`]; number++) {
    built.at(conversation[`session_${number}_date_time`]?.replace(/^(.*) on (.*)$/, "$2 $1"));
    for (const { speaker, text, blip_caption: shown, dia_id: turn } of conversation[`session_${number}`]) {
      built.say(speaker === conversation.speaker_a ? "user" : "assistant", `${speaker}: ${text}${shown ? ` [shows ${shown}]` : ""}`, turn, `session ${number}`);
    }
  }
  const queries = qa.filter((/** @type {any} */ { category }) => LOCOMO_KINDS[category]).map((/** @type {any} */ { question, evidence, category }) => ({
    kind: LOCOMO_KINDS[category], query: question, gold: built.places(evidence.flatMap((/** @type {string} */ turns) => turns.split(/[;,\s]+/))),
  }));
  return built.done("LoCoMo", id, queries);
}

/** @param {any} question @returns {Conversation} */
function longMemEval({ question_id: id, question_type: kind, question, haystack_sessions: sessions, haystack_session_ids: names, haystack_dates: dates, answer_session_ids: answers }) {
  const built = building();
  /** @type {string[]} */
  const marked = [];
  for (const [n, turns] of sessions.entries()) {
    built.at(dates?.[n]?.replace(/\(\w+\)/, ""));
    for (const [at, { role, content, has_answer: has }] of turns.entries()) {
      built.say(role, content, `${n}.${at}`, names[n]);
      if (has) marked.push(`${n}.${at}`);
    }
  }
  // If no turn is marked, the sessions are known; an unanswerable question has neither.
  const gold = id.endsWith("_abs") ? [] : built.places(marked);
  const whole = gold.length > 0 || id.endsWith("_abs") ? [] : built.places(sessions.flatMap((/** @type {any[]} */ turns, /** @type {number} */ n) => (answers.includes(names[n]) ? turns.map((_, at) => `${n}.${at}`) : [])));
  return built.done("LongMemEval", id, [{ kind, query: question, gold: [...gold, ...whole] }]);
}

/** A chat, unless there is a shortened one next to it. @param {string} file @param {string[]} names @returns {Generator<Conversation>} */
function* beam(file, names) {
  const folder = path.dirname(file);
  const sibling = (/** @type {string} */ name) => names.find((other) => path.join(folder, name).endsWith(path.sep + other) && other.split(path.sep).length > 1);
  if (file.endsWith("chat.json") && sibling("chat_trunecated.json")) return;
  if (!sibling(path.join("probing_questions", "probing_questions.json"))) return;
  const built = building();
  for (const batch of load(file)) {
    built.at(batch.time_anchor);
    for (const { role, content, id } of batch.turns.flat()) built.say(role, content.replace(/\s*->->.*$/s, ""), String(id), `batch ${batch.batch_number}`);
  }
  const asked = Object.entries(load(path.join(folder, "probing_questions", "probing_questions.json")));
  const queries = asked.flatMap(([kind, questions]) => questions.map((/** @type {any} */ { question, source_chat_ids: ids }) => ({
    kind: kind.replaceAll("_", " "), query: question, gold: built.places(Object.values(ids ?? []).flat().map(String)),
  })));
  yield built.done("BEAM", path.basename(folder), queries);
}

/** Builds a conversation. */
function building() {
  /** @type {any[]} */
  const messages = [];
  /** @type {string[]} */
  const sessions = [];
  /** @type {Map<string, number>} */
  const places = new Map();
  let time = EPOCH;
  return {
    /** Sets the time of the next messages. @param {string | undefined} when */
    at: (when) => void (time = Math.max(time + STEP_MS, Date.parse(`${when} UTC`) || 0)),
    say: (/** @type {string} */ role, /** @type {string} */ text, /** @type {string} */ name, /** @type {string} */ session) => {
      places.set(name, messages.length);
      sessions.push(session);
      messages.push({ role, content: [{ type: "text", text }], timestamp: (time += STEP_MS) });
    },
    places: (/** @type {string[]} */ names) => [...new Set(names.flatMap((name) => places.get(name) ?? []))],
    /** @returns {Conversation} */
    done: (/** @type {string} */ board, /** @type {string} */ id, /** @type {Query[]} */ queries) => ({ board, id, messages, sessions, queries: queries.filter(({ gold }) => gold.length > 0) }),
  };
}
