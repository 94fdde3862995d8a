/** Watches what the model gets: the last compaction's block, the raw part after it, and what a block says about something. */
import { mentions } from "./facts.mjs";

/** @typedef {import("../../demo/model-server.mjs").Received} Received */

/** The start and end of a block in a request. */
const BEGIN = "The conversation history before this point was compacted into the following summary:\n\n<summary>\n";
const END = "\n</summary>";
const BYTES_PER_TOKEN = 4;

/** @param {string} text */
export const tokensOf = (text) => Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);

export class Watch {
  /** All blocks so far, one for each compaction. @type {string[]} */
  blocks = [];
  /** For each compaction within a turn, whether the next request still had the prompt word for word. @type {boolean[]} */
  underWay = [];
  /** Whether the next request is the one to judge the session by. */
  isLooking = false;
  /** The content of that request: the block, and the rest. */
  block = "";
  raw = "";

  /**
   * @param {Received} request of a turn
   * @param {{ prompt: string, step: number }} turn the current one, with the number of its earlier requests
   */
  see({ messages }, { prompt, step }) {
    const texts = messages.map(({ text, toolCalls }) => [text, ...toolCalls.map((call) => JSON.stringify(call.arguments))].join("\n"));
    const at = texts.findIndex((text) => text.includes(BEGIN));
    const block = at < 0 ? "" : blockOf(texts[at]);
    if (block !== "" && block !== this.blocks.at(-1)) {
      this.blocks.push(block);
      if (step > 0) this.underWay.push(texts.some((text) => folded(text).includes(folded(prompt))));
    }
    if (!this.isLooking) return;
    this.isLooking = false;
    [this.block, this.raw] = [block, texts.map((text, place) => (place === at ? text.replace(block, () => "") : text)).join("\n")];
  }
}

/** @param {string} text */
function blockOf(text) {
  const from = text.indexOf(BEGIN) + BEGIN.length;
  return text.slice(from, text.indexOf(END, from));
}

/** Without the marks of quoted lines, and with each run of whitespace as one space. @param {string} text */
const folded = (text) => text.replace(/^\s*> ?/gm, "").replace(/\s+/g, " ").trim();

/** Whether the block says that a file was changed, and not that this failed. @param {string} block @param {string} file */
export function listedAsModified(block, file) {
  const said = mentions(block, file).map(({ heading, line }) => `${heading} ${line}`);
  return said.some((words) => /\b(modified|changed|edited|written|wrote|created|replaced)\b/i.test(words) && !/\b(fail|failed|error|could not|refused|not)\b/i.test(words));
}

/** Whether the block says that something is still open, by a heading or by its line. @param {string} block @param {string} needle */
export function listedAsOpen(block, needle) {
  return mentions(block, needle).some(({ heading, line }) => /\b(open|next|to-?do)\b/i.test(heading) || /^\W*(task|open|next|to-?do)\b/i.test(line));
}
