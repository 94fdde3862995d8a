/**
 * The text of an entry: its parts, a line for the list, and the text that the filter searches.
 */

/** @typedef {import("./data.js").Line} Line */
/** Part of a message. @typedef {{ kind: "text" | "output" | "thinking" | "call" | "image" | "note", text: string, name?: string, id?: string, source?: string, given?: any }} Part */

/** Speakers by the types of entries and the roles of messages in a session file. @type {Record<string, string>} */
export const SPEAKERS = {
  user: "user",
  assistant: "assistant",
  toolResult: "tool",
  bashExecution: "shell",
  custom: "note",
  custom_message: "note",
  branch_summary: "branch",
  branchSummary: "branch",
  system: "system",
  compaction: "compaction",
};

/** Invisible characters, and characters that would change how others are drawn. */
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;
/** The part of a text to read for a line. */
const LOOKED_AT = 2000;
const LINE = 240;

/** Names in the list for entries without text. @type {Record<string, string>} */
const MARKS = { model_change: "model", thinking_level_change: "thinking", label: "label", session_info: "name" };

/** The label of an entry in the list. @param {Line} line */
export function nameOf(line) {
  const who = speaker(line);
  return who === "mark" ? (editOf(line.entry) ? "edit" : (MARKS[line.entry.type] ?? "entry")) : who;
}

/** The kind of an entry: one of a few words that are also names of colors. @param {Line} line */
export function speaker({ entry, message }) {
  if (message?.kind === "purged") return "purged";
  if (entry.type === "message") return SPEAKERS[entry.message?.role] ?? "note";
  return SPEAKERS[entry.type] ?? "mark";
}

/** ms. @param {Line} line */
export function timeOf({ entry }) {
  const said = entry.message?.timestamp;
  return typeof said === "number" ? said : Date.parse(entry.timestamp) || 0;
}

/** @param {Line} line @returns {Part[]} */
export function partsOf({ entry, message }) {
  if (message?.kind === "purged") return [{ kind: "note", text: "This message was removed for good with /lcm purge." }];
  if (entry.type === "message") return partsOfMessage(entry.message ?? {});
  if (entry.type === "custom_message") return partsOfContent(entry.content, "text");
  if (entry.type === "branch_summary" || entry.type === "compaction") return [{ kind: "text", text: String(entry.summary ?? "") }];
  return [{ kind: "note", text: note(entry) }];
}

/** @param {any} message @returns {Part[]} */
function partsOfMessage(message) {
  if (message.role === "bashExecution") {
    const code = message.exitCode ? [{ kind: /** @type {const} */ ("note"), text: `exit code ${message.exitCode}` }] : [];
    return [{ kind: "call", name: "$", text: String(message.command ?? "") }, { kind: "output", text: String(message.output ?? "") }, ...code];
  }
  if (message.role === "system") {
    const sections = Object.entries(message.sections ?? {}).map(([name, text]) => ({ kind: /** @type {const} */ ("output"), name, text: String(text) }));
    return [...partsOfContent(message.content || [], "text"), ...sections];
  }
  if (message.role === "branchSummary") return [{ kind: "text", text: String(message.summary ?? "") }];
  const parts = partsOfContent(message.content, message.role === "toolResult" ? "output" : "text");
  if (message.role === "assistant" && message.errorMessage) parts.push({ kind: "note", text: String(message.errorMessage) });
  return parts;
}

/** @param {any} content @param {"text" | "output"} kind @returns {Part[]} */
function partsOfContent(content, kind) {
  if (typeof content === "string") return [{ kind, text: content }];
  if (!Array.isArray(content)) return [];
  return content.map((block) => partOf(block ?? {}, kind));
}

/** @param {any} block @param {"text" | "output"} kind @returns {Part} */
function partOf(block, kind) {
  if (block.type === "text") return { kind, text: String(block.text ?? "") };
  if (block.type === "thinking") return { kind: "thinking", text: String(block.thinking ?? "") };
  if (block.type === "toolCall") return { kind: "call", name: String(block.name), id: block.id, text: argumentsOf(block.arguments), given: block.arguments };
  if (block.type === "image") return { kind: "image", text: String(block.mimeType ?? "image"), source: imageOf(block) };
  return { kind: "note", text: JSON.stringify(block, null, 2) };
}

/** A single argument is shown without its name. @param {any} given */
function argumentsOf(given) {
  const values = Object.values(given ?? {});
  if (values.length === 1 && typeof values[0] === "string") return values[0];
  return JSON.stringify(given ?? {}, null, 2);
}

/** The address of a picture in the page itself; undefined if it is not a picture. @param {any} block */
function imageOf({ mimeType, data }) {
  const isPicture = /^image\/(png|jpeg|gif|webp|avif|bmp)$/.test(mimeType) && /^[A-Za-z0-9+/=\s]+$/.test(data ?? "");
  return isPicture ? `data:${mimeType};base64,${data}` : undefined;
}

/** A description of an entry without a message. @param {any} entry */
function note(entry) {
  if (entry.type === "model_change") return `Model: ${entry.provider}/${entry.modelId}`;
  if (entry.type === "thinking_level_change") return `Thinking: ${entry.thinkingLevel}`;
  if (entry.type === "label") return entry.label ? `Label: ${entry.label}` : "Label removed";
  if (entry.type === "session_info") return `Session name: ${entry.name ?? ""}`;
  const edit = editOf(entry);
  if (edit) return edit.replacement === null ? "An earlier message is hidden from the model" : "An earlier message is shown to the model in another form";
  return `${entry.type}${entry.customType ? ` ${entry.customType}` : ""}`;
}

/** The replacement that an entry makes. @param {any} entry @returns {{ target: string, replacement: any } | undefined} */
export function editOf(entry) {
  return entry.type === "context_edit" ? { target: entry.targetId, replacement: entry.replacement } : undefined;
}

/** The text of an entry in the list. @param {Line} line */
export function headline(line) {
  const parts = partsOf(line);
  const words = parts.find(({ kind, text }) => (kind === "text" || kind === "output") && text.trim());
  const calls = parts.filter(({ kind }) => kind === "call").map(({ name, text }) => (name === "$" ? `$ ${text}` : `${name} ${text}`));
  const tool = line.entry.message?.toolName;
  if (line.entry.message?.role === "system") return "System prompt and tools";
  if (line.entry.message?.role === "bashExecution") return oneLine(calls[0] ?? "");
  if (words) return oneLine(tool ? `${tool}: ${words.text}` : words.text) + (calls.length && !tool ? `  → ${oneLine(calls.join(", "))}` : "");
  if (calls.length) return `→ ${oneLine(calls.join(", "))}`;
  const first = parts.find(({ text }) => text.trim());
  if (first?.kind === "image") return `[picture, ${first.text}]`;
  const nothing = line.entry.type === "compaction" ? "(its text is not known)" : "(nothing)";
  return oneLine(`${tool ? `${tool}: ` : ""}${first?.text ?? nothing}`);
}

/** A name or a line in which nothing reverses the text next to it. @param {string} text */
export function legible(text) {
  return text.replace(UNSEEN, "\ufffd");
}

/** The first words of a text, on one line. @param {string} text */
export function oneLine(text) {
  const line = legible(text.slice(0, LOOKED_AT).replace(/^[\s#>*-]+/, "").replace(/\s+/g, " "));
  return line.length > LINE ? `${line.slice(0, LINE)}…` : line;
}

/** The words around a place in a text, on one line. @param {string} text @param {number} at @param {number} before @param {number} [after] characters */
export function around(text, at, before, after = LINE) {
  const from = Math.max(0, Math.floor(at - before));
  return (from > 0 ? "…" : "") + oneLine(text.slice(from, at + after));
}

/** Texts by entry, made on first use. @type {WeakMap<object, string>} */
const texts = new WeakMap();

/** The whole text of an entry, for the filter. @param {Line} line */
export function textOf(line) {
  let text = texts.get(line);
  if (text === undefined) {
    const tool = line.entry.message?.toolName;
    text = partsOf(line)
      .filter(({ kind }) => kind !== "image")
      .map(({ name, text: words }) => (name ? `${name} ${words}` : words))
      .join("\n");
    if (tool) text = `${tool}\n${text}`;
    texts.set(line, text);
  }
  return text;
}

/** The title of a summary: its first line with words. @param {string} text */
export function titleOf(text) {
  for (const line of text.slice(0, LOOKED_AT).split("\n")) {
    const words = oneLine(line.replace(/^\s*Title:/, ""));
    if (words.trim()) return words;
  }
  return "(nothing)";
}
