/**
 * Histories for benchmarks: sessions in Pi's format with messages of about 2 KB, the same each time.
 *
 * Results depend on the texts: an index of one repeated sentence is small and fast. So word frequencies are realistic (few words are
 * common, most are rare), prose alternates with code and tool output, and no two messages are equal.
 */

const COMMON = `the of and to in is that it for was on are as with be this by from have not or but what all were when we there can an
your which their if will do each about how up out then them so some would make like into time has look two more write go see
number no way could people than first been call who now find long down day did get come made may part over new after take only
little work know place year back give most very thing our just name good sentence great think say help low line before turn
cause same mean differ move right old too does tell set three want air well also play small end put home read hand large spell
add even must big high such follow act why ask men change went light kind off need house picture try again point build self`
  .split(/\s+/)
  .filter(Boolean);
const STEMS = `pars token cach index stor queu writ read fold branch merg hash rout valid render schem migrat batch column header invoic ledger
retri timeout socket buffer stream cursor snapshot replic partit shard lease lock thread async polic quota secret vector matrix`
  .split(/\s+/)
  .filter(Boolean);
const ENDINGS = ["e", "er", "ed", "ing", "es", "able", "ation", "ator", "less", "ment", "ity", "al", "or", "ful", "ness", "ify", "ive", "ism"];
const FRONTS = ["", "re", "un", "pre", "sub", "over", "inter", "non", "multi", "de", "co", "mis"];
/** Few words are common, most are rare. */
const WORDS = [...COMMON, ...FRONTS.flatMap((front) => ENDINGS.flatMap((end) => STEMS.map((stem) => front + stem + end)))];

const START = Date.parse("2026-03-02T08:00:00.000Z");

/** Random numbers that are the same for the same seed. */
export class Dice {
  #state;

  /** @param {number} seed */
  constructor(seed) {
    this.#state = (seed ^ 0x9e3779b9) >>> 0;
  }

  /** Between 0 and 1. */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** @param {number} limit */
  below(limit) {
    return Math.floor(this.next() * limit);
  }

  /** A word; the n-th has a probability of about 1/n. */
  word() {
    return WORDS[Math.floor(WORDS.length ** this.next()) - 1];
  }

  /** `someThing` or `some_thing`. */
  identifier() {
    const [one, other] = [WORDS[this.below(WORDS.length)], this.word()];
    return this.below(2) ? `${one}_${other}` : one + other[0].toUpperCase() + other.slice(1);
  }

  /** @param {number} length characters, about */
  prose(length) {
    let text = "";
    for (let at = 0; text.length < length; at++) {
      const special = this.below(14);
      if (special === 0) text += `\`${this.identifier()}\``;
      else if (special === 1) text += String(this.below(10_000));
      else text += this.word();
      text += at % 12 === 11 ? ".\n" : " ";
    }
    return text;
  }

  /** @param {number} length characters, about */
  code(length) {
    let text = "";
    for (let line = this.below(900); text.length < length; line++) {
      const [one, other, third] = [this.identifier(), this.identifier(), this.word()];
      const shapes = [
        `src/${third}/${one}.rs:${line}:    let ${one} = ${other}(&${third}, ${this.below(512)})?;`,
        `${line}\t  if (!${one}.${third}) return ${other}("${this.word()} ${this.word()}");`,
        `test ${one}::${other} ... ok (${this.below(9000)} ms)`,
        `${this.below(2 ** 31).toString(16)} ${third} ${one}: ${this.word()} ${this.word()} ${this.word()}`,
      ];
      text += `${shapes[this.below(shapes.length)]}\n`;
    }
    return text;
  }
}

/**
 * The id of the n-th session.
 * @param {number} session
 */
export const sessionId = (session) => `019a4f00-0000-7000-8000-${String(session).padStart(12, "0")}`;

/**
 * The header of a session's file.
 * @param {number} session
 * @param {string} cwd
 */
export const header = (session, cwd) => ({ type: "session", version: 3, id: sessionId(session), timestamp: new Date(START).toISOString(), cwd });

/**
 * The entries of a session, in order.
 * @param {number} session its number, which determines its texts
 * @param {number} count of messages
 * @param {number} [size] characters of each message's JSON, about
 */
export function* entries(session, count, size = 2048) {
  const dice = new Dice(session * 7919 + 17);
  /** @type {string | null} */
  let parentId = null;
  for (let n = 0; n < count; n++) {
    const time = START + n * 1000;
    const id = (0x10000000 + n).toString(16);
    yield { type: "message", id, parentId, timestamp: new Date(time).toISOString(), message: message(dice, n, time, size) };
    parentId = id;
  }
}

/**
 * One message in Pi's format: a question, a tool call, its result and an answer, alternately.
 * @param {Dice} dice
 * @param {number} n
 * @param {number} timestamp
 * @param {number} size
 */
function message(dice, n, timestamp, size) {
  const call = `call_${(n - (n % 4)).toString(36)}_${dice.below(2 ** 31).toString(36)}`;
  const text = (/** @type {string} */ text) => ({ type: "text", text });
  if (n % 4 === 0) return { role: "user", content: [text(dice.prose(size - 100))], timestamp };
  if (n % 4 === 2) {
    return { role: "toolResult", toolCallId: call, toolName: "bash", content: [text(dice.code(size - 250))], isError: false, timestamp };
  }
  const cost = { input: 0.00123, output: 0.0045, cacheRead: 0, cacheWrite: 0, total: 0.00573 };
  const usage = { input: 1000 + n, output: 300, cacheRead: 0, cacheWrite: 0, totalTokens: 1300 + n, cost };
  const said = { api: "openai-completions", provider: "demo", model: "demo-model", usage, timestamp };
  if (n % 4 === 3) return { role: "assistant", content: [text(dice.prose(size - 450))], stopReason: "stop", ...said };
  const thinking = { type: "thinking", thinking: dice.prose((size - 500) / 2) };
  const toolCall = { type: "toolCall", id: call, name: "bash", arguments: { command: dice.code((size - 500) / 2) } };
  return { role: "assistant", content: [thinking, toolCall], stopReason: "toolUse", ...said };
}
