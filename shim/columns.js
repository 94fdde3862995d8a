/**
 * Text in so many columns of a terminal. In doubt a character counts as wide: a line may end too early, never too late, for a
 * line that is too wide ends some versions of Pi.
 */

/** What is known to take one column. */
const NARROW = /^[\u0020-\u007e\u00a1-\u02ff\u0370-\u058f\u1e00-\u1fff\u2010-\u2027\u2030-\u205e\u2190-\u2193\u2500-\u257f\u25cb\u25cf]$/u;
/** What takes none beside the character it belongs to. */
const NOTHING = /^[\p{Mn}\u200b-\u200d\ufe00-\ufe0f]$/u;

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** Columns that a text takes at most. @param {string} text */
export function columns(text) {
  let sum = 0;
  for (const { segment } of graphemes.segment(text)) sum += columnsOf(segment);
  return sum;
}

/** The same of a character, as a reader sees it. @param {string} character */
function columnsOf(character) {
  let sum = 0;
  for (const point of character) sum += NARROW.test(point) ? 1 : NOTHING.test(point) && sum > 0 ? 0 : 2;
  // U+FE0F asks for the picture of a sign: `©️` is wide where `©` is not.
  return character.includes("\ufe0f") ? Math.max(sum, 2) : sum;
}

/** Tabs and what would move the cursor or colour the rest give way. @param {string} text */
export function plain(text) {
  return text.replace(/\t/g, "  ").replace(/\u001b\[[0-9;?]*[A-Za-z]/g, "").replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, "");
}

/**
 * `text` on one line, cut to `width` columns.
 *
 * @param {string} text
 * @param {number} width
 */
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
 * `text` in lines of at most `width` columns, broken between words where they are short enough.
 *
 * @param {string} text
 * @param {number} width
 * @returns {string[]}
 */
export function wrap(text, width) {
  return plain(text).split("\n").flatMap((line) => broken(line, width));
}

/**
 * @param {string} line
 * @param {number} width
 */
function broken(line, width) {
  const lines = [];
  let [piece, taken] = ["", 0];
  for (const { segment } of graphemes.segment(line)) {
    const more = columnsOf(segment);
    // What does not fit on a line of its own is left out.
    if (more > width) continue;
    if (taken + more > width) {
      const word = segment === " " ? -1 : piece.lastIndexOf(" ");
      const rest = word > piece.length / 2 ? piece.slice(word + 1) : "";
      lines.push(piece.slice(0, piece.length - rest.length).trimEnd());
      [piece, taken] = [rest, columns(rest)];
      if (segment === " ") continue;
    }
    piece += segment;
    taken += more;
  }
  lines.push(piece);
  return lines;
}
