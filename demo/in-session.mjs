/**
 * Converts a summarizer's request within the session into a form that a script can answer: with the named part of the conversation
 * written out in its fence, as in a request outside the session.
 */

/** @typedef {import("./wire.mjs").Message} Message */

/** The text that identifies such a request. */
const MARK = "in this answer you are the summarizer of pi-lossless-context";
/** The text instead of the part. */
const NAMED_ABOVE = "(the stretch of this conversation that is named above)";
/** The number of characters that identify a message. */
const HEAD = 60;
const ROLES = { user: "user", assistant: "assistant", tool: "toolResult" };

/**
 * The request alone; undefined if the conversation does not end with one.
 *
 * @param {Message[]} messages
 * @returns {Message | undefined}
 */
export function questionIn(messages) {
  const asked = messages.at(-1);
  if (asked?.role !== "user" || !asked.text.includes(MARK)) return undefined;
  const text = asked.text.slice(asked.text.indexOf(MARK));
  const [, fence = "", ends = ""] = /<(history-\w+)>\n([\s\S]*?)\n<\/\1>/.exec(text) ?? [];
  const [begin, end] = ends.split("\n\n").map((some) => some.split("\n").slice(1));
  // After a message of the user, the question is a part of the same one.
  const before = asked.text.slice(0, asked.text.indexOf(MARK));
  const conversation = [...messages.slice(0, -1), { ...asked, text: before }];
  const spoken = conversation.filter(({ role }) => role !== "tool");
  const first = placeOf(spoken, begin, 0);
  const next = spoken[placeOf(spoken, end, first) + end.length];
  const stretch = conversation.slice(conversation.indexOf(spoken[first]), next ? conversation.indexOf(next) : undefined).map((message) => `[00000000 ${ROLES[message.role]} 2026-01-01 00:00]\n${wordsOf(message)}\n`);
  const question = text.slice(text.indexOf(`</${fence}>`));
  return { ...asked, text: question.replace(NAMED_ABOVE, () => stretch.join("\n")) };
}

/** The place of the messages that the lines describe. @param {Message[]} messages @param {string[]} lines @param {number} from */
function placeOf(messages, lines, from) {
  const words = lines.map((line) => line.replace(/^[^:]*: /, "").replace(/…$/, "").split(" · ")[0].slice(0, HEAD));
  const at = messages.findIndex((_, place) => place >= from && words.every((some, next) => oneLine(messages[place + next]).includes(some)));
  if (at < 0) throw new Error(`the conversation has no messages with: ${words.join(" | ")}`);
  return at;
}

/** @param {Message | undefined} message */
function oneLine(message) {
  return message ? wordsOf(message).replace(/\s+/g, " ").trim() : "";
}

/** @param {Message} message */
function wordsOf({ text, toolCalls }) {
  return [text, ...toolCalls.map(({ name, arguments: given }) => `${name} ${JSON.stringify(given)}`)].filter(Boolean).join("\n");
}
