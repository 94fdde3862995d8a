/**
 * Text in a given number of terminal columns. If in doubt, a character counts as wide: a line may end too early but never too late, since
 * some versions of Pi exit on a line that is too wide.
 */

/** Characters that are known to take one column. */
const NARROW = /^[\u0020-\u007e\u00a1-\u02ff\u0370-\u058f\u1e00-\u1fff\u2010-\u2027\u2030-\u205e\u2190-\u2193\u2500-\u257f\u25cb\u25cf]$/u;
/** Characters that take no column next to the one they belong to. */
const NOTHING = /^[\p{Mn}\u200b-\u200d\ufe00-\ufe0f]$/u;

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** The maximum number of columns that a text takes. @param {string} text */
export function columns(text) {
  let sum = 0;
  for (const { segment } of graphemes.segment(text)) sum += columnsOf(segment);
  return sum;
}

/** The same for a grapheme. @param {string} character */
function columnsOf(character) {
  let sum = 0;
  for (const point of character) sum += NARROW.test(point) ? 1 : NOTHING.test(point) && sum > 0 ? 0 : 2;
  // U+FE0F selects the emoji form of a character: `©️` is wide, `©` is not.
  return character.includes("\ufe0f") ? Math.max(sum, 2) : sum;
}

/** Characters that a terminal obeys instead of showing: control characters except line feed and tab, and bidirectional controls. */
const OBEYED = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff]/g;

/** `text` that is safe for a terminal: each character it would obey is replaced. @param {string} text */
export function legible(text) {
  return text.replace(/\r\n/g, "\n").replace(OBEYED, "\ufffd");
}

/** The same for JSON, whose value stays the same. @param {string} json */
export function legibleJson(json) {
  return json.replace(OBEYED, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** The same for a screen with counted columns: replaces tabs too. @param {string} text */
export function plain(text) {
  return legible(text).replace(/\t/g, "  ");
}

/** `text` on one line, cut to `width` columns. @param {string} text @param {number} width */
export function fit(text, width) {
  const line = plain(text.replace(/\s+/g, " "));
  if (columns(line) <= width) return line;
  if (width < 1) return "";
  let [piece, taken] = ["", 1];
  for (const { segment } of graphemes.segment(line)) {
    taken += columnsOf(segment);
    if (taken > width) break;
    piece += segment;
  }
  return `${piece.trimEnd()}…`;
}

/**
 * `text` in lines of at most `width` columns, broken between words if they are short enough. What is broken keeps its indent.
 *
 * @param {string} text
 * @param {number} width
 * @returns {string[]}
 */
export function wrap(text, width) {
  return plain(text).split("\n").flatMap((line) => broken(line, width));
}

/** @param {string} line @param {number} width */
function broken(line, width) {
  const lines = [];
  const spaces = /^ */.exec(line)?.[0] ?? "";
  const indent = spaces.length <= width / 2 ? spaces : "";
  let [piece, taken] = ["", 0];
  for (const { segment } of graphemes.segment(line)) {
    const more = columnsOf(segment);
    // A character that does not fit on a line of its own is left out.
    if (more + indent.length > width) continue;
    if (taken + more > width) {
      const word = segment === " " ? -1 : piece.lastIndexOf(" ");
      const rest = word > piece.length / 2 && piece.slice(0, word).trim() ? piece.slice(word + 1) : "";
      lines.push(piece.slice(0, piece.length - rest.length).trimEnd());
      [piece, taken] = [indent + rest, indent.length + columns(rest)];
      if (segment === " ") continue;
    }
    piece += segment;
    taken += more;
  }
  lines.push(piece);
  return lines;
}
