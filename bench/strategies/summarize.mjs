/**
 * The demo's summarizer for comparisons: an extract by rule, made from the prompt alone, with the requested length.
 *
 * It is the same for every strategy, and better than a real model in one respect: it overlooks nothing, however long the prompt is. It
 * first keeps rules, decisions and errors, then numbers and requests, each kind evenly over the length.
 */

/** What makes a line worth keeping, best first. */
export const WORTH = [/\b(must|never|always|don't|do not)\b/i, /\b(because|decided|instead of)\b/i, /\b(error|failed|refused|exception|panic)\b/i, /\b\d{4,}\b|\b\d+ (ms|MB|rows|%)/, /\?$|^(please|can you|add|fix|make|let's)\b/i];
const LONGEST_LINE = 220;
const CHARACTERS_PER_WORD = 5;

/**
 * @param {string} prompt
 * @returns {string}
 */
export function summarize(prompt) {
  const history = /<(history-\w+)>\n([\s\S]*)\n<\/\1>/.exec(prompt)?.[2] ?? prompt;
  const words = Number(/(\d+) words/.exec(prompt)?.[1] ?? 200);
  return written(extract(history, words * CHARACTERS_PER_WORD));
}

/**
 * The kept lines, in their order.
 * @param {string} history
 * @param {number} characters the room for them
 * @param {{ test: (line: string) => boolean }[]} [worthwhile] what makes a line worth keeping, best first
 */
export function extract(history, characters, worthwhile = WORTH) {
  const room = Math.min(characters, Math.floor(history.length * 0.9));
  const lines = [...new Set(history.split("\n").map((line) => line.trim()).filter((line) => /\p{L}{3}/u.test(line) && !/^(\[(m|s)-|Expand for details about:)/.test(line)))];
  const ranked = worthwhile.map((worth, rank) => lines.filter((line) => worthwhile.findIndex((other) => other.test(line)) === rank));
  ranked.push(lines.filter((line) => !worthwhile.some((worth) => worth.test(line))));
  /** @type {Set<string>} */
  const kept = new Set();
  let length = 80;
  for (const group of ranked) {
    const average = group.reduce((sum, line) => sum + Math.min(line.length, LONGEST_LINE) + 1, 0) / (group.length || 1);
    const most = Math.max(0, Math.floor((room - length) / average));
    const step = Math.max(1, group.length / most);
    for (let at = 0; at < group.length && most > 0; at += step) {
      const line = cut(group[Math.floor(at)]);
      if (length + line.length + 1 > room) break;
      kept.add(line);
      length += line.length + 1;
    }
  }
  return lines.map(cut).filter((line) => kept.has(line));
}

/**
 * A summary of these lines, with the title and end that the prompts request.
 * @param {string[]} lines
 * @param {string[]} [sections] lines before the end
 */
export function written(lines, sections = []) {
  return [cut(lines[0] ?? "Work").slice(0, 60), ...lines, ...sections, "Expand for details about: all of it"].join("\n");
}

/** @param {string} line */
const cut = (line) => (line.length <= LONGEST_LINE ? line : `${line.slice(0, LONGEST_LINE - 1)}…`);
