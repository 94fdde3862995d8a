/**
 * The summaries of the demo model: extracts made by rule from the fenced text in the summarizer's prompt.
 *
 * Each turn is a line with what the user asked and how the answer to it begins; reasons, changed files, failures, the state and the user's
 * rules follow. They are never longer than a third of their source, so that the engine accepts them.
 */

const MOST_CHARACTERS = 1800;
const CLOSING = "Expand for details about: ";
const ALL = "all of it";

/** @typedef {{ head: string, text: string, prose: string[] }} Section */

/**
 * @param {string} prompt
 * @returns {string}
 */
export function extractOf(prompt) {
  const history = /<(history-\w+)>\n([\s\S]*)\n<\/\1>/.exec(prompt)?.[2] ?? prompt;
  const limit = Math.min(MOST_CHARACTERS, Math.floor(history.length / 3));
  const parts = sections(history);
  const summaries = parts.filter(({ head }) => /^D\d/.test(head));
  const { lines, topics } = summaries.length > 0 ? ofSummaries(summaries) : ofMessages(parts);
  const state = prompt.includes("`State:`") ? stateOf(parts) : [];
  const closing = cut(CLOSING + (topics.slice(0, 6).join(", ") || ALL), Math.max(40, Math.floor(limit / 4)));
  const title = cut((lines[0] ?? "Work in between").replace(/^- |[`*#]|[.:?!]? → [^]*/g, ""), 70);
  let text = title;
  for (const line of unique(lines)) if (text.length + line.length + state.join("\n").length + closing.length + 4 <= limit) text += `\n${line}`;
  return [cut(text, limit - closing.length - 1), ...(text.length + state.join("\n").length + closing.length + 4 <= limit ? state : []), closing].join("\n");
}

/** The sources, each under its heading: `[digits role time]` or `[digits Dn …]`. @param {string} history @returns {Section[]} */
function sections(history) {
  const pieces = history.split(/^\[[0-9a-f]{8} ([^\]\n]*)\]$/m);
  return pieces.flatMap((head, at) => (at % 2 === 1 ? { head, text: pieces[at + 1].trim(), prose: sentencesOf(pieces[at + 1].split("[tool call ")[0]) } : []));
}

/** @param {Section[]} messages */
function ofMessages(messages) {
  const [said, results] = [messages.filter(({ head }) => /^(user|assistant) /.test(head)), messages.filter(({ head }) => head.startsWith("toolResult "))];
  /** @type {{ asked: string, told: string }[]} */
  const turns = [];
  for (const { head, prose } of said.filter(({ prose }) => prose.length > 0)) {
    if (head.startsWith("user ")) turns.push({ asked: cut(prose.find((one) => one.length > 20 && /^(What|Why|How)/.test(one)) ?? prose.slice(0, 2).join(" "), 130), told: "" });
    else (turns.at(-1) ?? turns[turns.push({ asked: "", told: "" }) - 1]).told = cut(prose.slice(0, 2).join(" "), 240);
  }
  const files = filesIn(said.map(({ text }) => text).join("\n"));
  const failures = results.flatMap(({ text }) => text.split("\n").filter((line) => /^\s*(✖ (?!failing)|\w*Error[ :[]|Job for .* failed)/.test(line)));
  const lines = [
    ...turns.map(({ asked, told }) => `- ${[asked, told].filter(Boolean).join(" → ")}`),
    ...said.flatMap(({ prose }) => prose.filter((line) => /\bbecause\b/.test(line))).map((line) => `- Decided: ${cut(line, 220)}`),
    ...(files.length > 0 ? [`- Files: ${files.slice(0, 9).join(", ")}`] : []),
    ...unique(failures.map((line) => `- Failed: ${cut(line.trim().replace(/ \([\d.]+ms\)$/, ""), 110)}`)).slice(0, 3),
  ];
  return { lines, topics: files };
}

/** The beginnings of the summaries, and what was decided. @param {Section[]} summaries */
function ofSummaries(summaries) {
  const bodies = summaries.map(({ text }) => text.split(/\n(?:\nState:|Expand for )/)[0].split("\n"));
  const decided = bodies.flat().filter((line) => line.startsWith("- Decided: "));
  const topics = summaries.flatMap(({ text }) => text.split(CLOSING)[1]?.split(", ").slice(0, 2) ?? []);
  return { lines: [...bodies.flatMap((lines) => lines.filter((line) => line.startsWith("- ") && !decided.includes(line)).slice(0, 3)), ...decided], topics: unique(topics).filter((topic) => topic !== ALL) };
}

/** The sections `State:` and `Quotes:`. @param {Section[]} messages */
function stateOf(messages) {
  const of = (/** @type {string} */ role) => messages.filter(({ head, prose }) => head.startsWith(`${role} `) && prose.length > 0);
  const [asked = { prose: [] }] = of("user").slice(-1);
  const [told = { prose: [] }] = of("assistant").slice(-1);
  const next = told.prose.find((line) => /^(Next|Open): /.test(line));
  const words = (/** @type {string[]} */ lines) => lines.join(" ").split(" ").slice(0, 30).join(" ");
  const state = Object.entries({ goal: words(asked.prose), "in progress": words(told.prose.filter((line) => line !== next).slice(0, 1)), next: words(next ? [next.replace(/^\w+: /, "")] : []) }).filter(([, line]) => line);
  const rules = of("user").flatMap(({ prose }) => prose.filter((line) => /\b(?:[Nn]ever|[Aa]lways)\b/.test(line) && !line.endsWith("?")));
  return ["", "State:", ...state.map(([name, line]) => `${name}: ${line}`), ...(rules.length > 0 ? ["", "Quotes:", ...rules.slice(0, 6).map((rule) => `rule: "${rule}"`)] : []), ""];
}

/** The sentences in a text, without code and lists. @param {string} text */
function sentencesOf(text) {
  const prose = text.split("\n").filter((line) => /\p{L}{3}/u.test(line) && !/^\s*([[{<>$|+\-*]|\/[/*]|```|\w+\()/.test(line));
  return prose.flatMap((line) => line.split(/(?<=[.!?]) +(?=[\p{Lu}`])|(?<=[。！？])/u)).map((sentence) => sentence.trim()).filter((sentence) => sentence.length > 13 || /^[\p{Lu}\d].* .*[.?!]$/u.test(sentence));
}

/** Files with their folders, those named most often first. @param {string} text */
function filesIn(text) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const name of text.match(/(?<![\w./-])(?:src|test|scripts|docs|migrations)\/[\w./-]+\.\w+/g) ?? []) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).map(([name]) => name);
}

/** @param {string[]} lines */
const unique = (lines) => [...new Set(lines)];

/** @param {string} text @param {number} length */
const cut = (text, length) => (text.length <= length ? text : `${text.slice(0, Math.max(0, length - 1))}…`);
