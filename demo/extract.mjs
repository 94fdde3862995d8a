/**
 * The summaries of the demo model: extracts made by rule from the fenced text in the summarizer's prompt.
 *
 * They list what the user asked, what was decided and why, files, errors and replies, and are never longer than a third of their source,
 * so that the engine accepts them.
 */

const MOST_CHARACTERS = 1200;

/** The offer of details that ends every summary. */
const CLOSING = "Expand for details about: ";

/**
 * @param {string} prompt
 * @returns {string}
 */
export function extractOf(prompt) {
  const history = /<(history-\w+)>\n([\s\S]*)\n<\/\1>/.exec(prompt)?.[2] ?? prompt;
  const limit = Math.min(MOST_CHARACTERS, Math.floor(history.length / 3));
  const parts = sections(history);
  const summaries = parts.filter(({ head }) => /^D\d/.test(head));
  return summaries.length > 0 ? ofSummaries(summaries, limit) : ofMessages(parts, limit);
}

/** @typedef {{ head: string, text: string }} Section */

/**
 * The sources, each under its heading: `[digits role time]` or `[digits Dn …]`.
 * @param {string} history
 * @returns {Section[]}
 */
function sections(history) {
  const pieces = history.split(/^\[[0-9a-f]{8} ([^\]\n]*)\]$/m);
  const found = [];
  for (let at = 1; at < pieces.length; at += 2) found.push({ head: pieces[at], text: pieces[at + 1].trim() });
  return found;
}

/**
 * @param {Section[]} messages
 * @param {number} limit
 */
function ofMessages(messages, limit) {
  const own = (/** @type {string} */ role) => messages.filter(({ head }) => head.split(" ")[0] === role).map(({ text }) => text);
  const [users, assistants, results] = [own("user"), own("assistant"), own("toolResult")];
  const sentences = [...users, ...assistants].flatMap(sentencesOf);
  const files = filesIn([...assistants, ...results].join("\n"));
  const requests = users.flatMap((text) => sentencesOf(text).slice(0, 4));
  const replies = assistants.map((text) => sentencesOf(text)[0] ?? "").filter((line) => line.length > 40);
  const title = requests.find((line) => wordsOf(line) > 4) ?? replies[0] ?? (files.length > 0 ? `Work on ${files.slice(0, 3).join(", ")}` : "Work in between");
  return fit(limit, title, [
    ...unique(sentences.filter((line) => /\bbecause\b/.test(line))).map((line) => `Decided: ${cut(line.replace(/^(Noted|Agreed|Decision worth keeping)[:,] (and )?/, ""), 220)}`),
    ...unique(requests.filter((line) => wordsOf(line) > 2)).map((line) => `User: ${cut(line, 140)}`),
    files.length > 0 ? `Files: ${files.slice(0, 9).join(", ")}` : "",
    ...errorsIn(results).slice(0, 3).map((line) => `Seen: ${cut(line, 110)}`),
    ...unique(replies).map((line) => `Replied: ${cut(line, 140)}`),
  ], files);
}

/**
 * @param {Section[]} summaries
 * @param {number} limit
 */
function ofSummaries(summaries, limit) {
  const lines = summaries.map(({ text }) => text.split("\n").filter((line) => line.trim() !== "" && !line.startsWith(CLOSING)));
  const titles = lines.map(([title = ""]) => title);
  const decided = unique(lines.flat().filter((line) => line.startsWith("Decided: ")));
  const topics = unique(summaries.flatMap(({ text }) => text.split("\n").at(-1)?.split(CLOSING)[1]?.split(", ").slice(0, 2) ?? []));
  return fit(limit, titles.slice(0, 2).join("; "), [...decided, ...titles.map((title) => `Then: ${title}`), ...lines.flatMap(([, second = ""]) => (decided.includes(second) ? [] : second))], topics);
}

/**
 * A title, as many of the lines as fit, and the closing line.
 * @param {number} limit
 * @param {string} title
 * @param {string[]} lines
 * @param {string[]} topics
 */
function fit(limit, title, lines, topics) {
  const closing = cut(CLOSING + (topics.slice(0, 6).join(", ") || title), Math.max(40, Math.floor(limit / 4)));
  let text = cut(title.split(/\s+/).slice(0, 10).join(" ").replace(/[`*#]/g, "").replace(/[.,:;]$/, ""), 90);
  for (const line of lines.filter(Boolean)) {
    if (text.length + line.length + closing.length + 2 <= limit) text += `\n${line}`;
  }
  return cut(`${text}\n${closing}`, limit);
}

/**
 * The sentences in a message's prose, without tool calls, code and lists.
 * @param {string} text
 */
function sentencesOf(text) {
  const prose = text.split("\n").filter((line) => /[\p{L}]{3}/u.test(line) && !/^\s*([[{<>$|+\-/*`]|\d+\. |\w+\()/.test(line));
  return prose.flatMap((line) => line.split(/(?<=[.!?]) +(?=\p{Lu})|(?<=[。！？])/u)).map((sentence) => sentence.trim()).filter((sentence) => !isGreeting(sentence));
}

/** @param {string} sentence */
function isGreeting(sentence) {
  return sentence.length < 14 || /^(morning|moin|good|great|thanks|done|fine|ok)\b[^ ]*$/i.test(sentence);
}

/**
 * Files with their folders, those named most often first.
 * @param {string} text
 */
function filesIn(text) {
  const named = text.match(/(?<![\w./-])(?:src|test|scripts|docs|migrations|logs|samples)\/[\w./-]+\.\w+/g) ?? [];
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const name of named) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).map(([name]) => name);
}

/**
 * Lines in which programs report a failure, but not code that would print such lines.
 * @param {string[]} results
 */
function errorsIn(results) {
  const lines = results.flatMap((text) => text.split("\n").map((line) => line.trim()));
  return unique(lines.filter((line) => /^(✖ (?!failing)|(\w+Error)[ :[]|Command exited|\S+Z WARN )/.test(line)).map((line) => line.replace(/ \([\d.]+ms\)$/, "")));
}

/** @param {string} text */
const wordsOf = (text) => text.split(/\s+|(?<=[\u3040-\u9fff])/).length;

/** @param {string[]} lines */
const unique = (lines) => [...new Set(lines)];

/**
 * @param {string} text
 * @param {number} length
 */
const cut = (text, length) => (text.length <= length ? text : `${text.slice(0, Math.max(0, length - 1))}…`);
