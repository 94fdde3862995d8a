/**
 * A session of any length like real ones: kinds of messages with the shares and sizes of coding sessions, and texts written by people, from
 * the locked packages.
 *
 * The size of a store depends mostly on the texts, and made-up words compress badly. An agent reads the same few dozen files again and
 * again, and so does this session.
 */
import { readFileSync, readdirSync, statSync } from "node:fs";
import path from "node:path";
import { root } from "../scripts/paths.mjs";
import { Dice, header, sessionId } from "./corpus.mjs";

/** Packages with sources and with prose. */
const PACKAGES = ["typescript/lib", "@earendil-works/pi-coding-agent/docs", "@earendil-works/pi-coding-agent/dist", "@types/node", "@xterm/headless"];
/** Files that are read repeatedly. */
const FAVOURITES = 60;
const START = Date.parse("2026-03-02T08:00:00.000Z");

/** The kinds of turns, in percent. */
const TURNS = [
  { share: 46, tool: "bash", result: [40, 250, 600, 5000] },
  { share: 30, tool: "edit", result: [250, 900, 1800, 6000] },
  { share: 13, tool: "read", result: [300, 2000, 6000, 30_000] },
  { share: 11, tool: "" },
];

/** Text files, the same in the same order each time. */
function texts() {
  const files = PACKAGES.flatMap((name) => {
    const folder = path.join(root, "node_modules", name);
    return readdirSync(folder, { recursive: true, encoding: "utf8" }).map((file) => path.join(folder, file));
  });
  const worthIt = (/** @type {string} */ file) => /\.(d\.ts|js|md)$/.test(file) && statSync(file).size > 2000 && statSync(file).size < 300_000;
  return files.filter(worthIt).sort().map((file) => ({ file: path.relative(root, file), text: readFileSync(file, "utf8") }));
}

/**
 * The lines of a session file of about that many bytes, as values; the header first.
 * @param {number} session its number
 * @param {string} cwd
 * @param {number} bytes
 */
export function composed(session, cwd, bytes) {
  const dice = new Dice(session + 23);
  const files = texts();
  const favourites = Array.from({ length: FAVOURITES }, () => files[dice.below(files.length)]);
  const prose = files.filter(({ file }) => file.endsWith(".md")).flatMap(({ text }) => text.split("\n\n")).filter(({ length }) => length > 40);
  const some = () => (dice.below(10) < 7 ? favourites[dice.below(FAVOURITES)] : files[dice.below(files.length)]);
  const piece = (/** @type {number} */ length) => {
    const { text } = some();
    const from = text.indexOf("\n", dice.below(Math.max(1, text.length - length))) + 1;
    return text.slice(from, from + length);
  };
  const said = (/** @type {number} */ length) => {
    let text = "";
    while (text.length < length) text += `${prose[dice.below(prose.length)]} `;
    return text.slice(0, length);
  };
  /** Mostly small, sometimes large. @param {number[]} quartiles */
  const size = (quartiles) => {
    const quarter = dice.below(4);
    const from = quarter === 0 ? 20 : quartiles[quarter - 1];
    return from + dice.below(quartiles[quarter] - from) * dice.next();
  };

  /** @type {any[]} */
  const lines = [header(session, cwd)];
  let written = 0;
  /** @type {string | null} */
  let parentId = null;
  const hex = (/** @type {number} */ digits) => Array.from({ length: digits }, () => dice.below(16).toString(16)).join("");
  const append = (/** @type {object} */ message) => {
    const time = START + lines.length * 41_000 + dice.below(30_000);
    const entry = { type: "message", id: hex(8), parentId, timestamp: new Date(time).toISOString(), message: { ...message, timestamp: time - 7 } };
    parentId = entry.id;
    lines.push(entry);
    written += Buffer.byteLength(JSON.stringify(entry)) + 1;
  };
  const text = (/** @type {string} */ text) => ({ type: "text", text });
  const answer = (/** @type {object[]} */ content, /** @type {string} */ stopReason) => {
    const [input, output, cacheRead, cacheWrite] = [1 + dice.below(9), 40 + dice.below(900), dice.below(90_000), dice.below(4000)];
    const cost = { input: input * 3e-6, output: output * 1.5e-5, cacheRead: cacheRead * 3e-7, cacheWrite: cacheWrite * 3.75e-6 };
    const total = cost.input + cost.output + cost.cacheRead + cost.cacheWrite;
    const usage = { input, output, cacheRead, cacheWrite, totalTokens: input + output + cacheRead + cacheWrite, cost: { ...cost, total } };
    append({ role: "assistant", content, api: "anthropic-messages", provider: "anthropic", model: "claude-sonnet-4-5", usage, stopReason });
  };

  while (written < bytes) {
    let roll = dice.below(100);
    const { tool, result = [] } = TURNS.find(({ share }) => (roll -= share) < 0) ?? TURNS[0];
    if (!tool) {
      answer([text(said(100 + dice.below(1300)))], "stop");
      append({ role: "user", content: [text(said(20 + dice.below(400)))] });
      continue;
    }
    const id = `toolu_01${Array.from({ length: 22 }, () => (dice.below(36)).toString(36)).join("")}`;
    const { file } = some();
    const old = piece(size([80, 250, 500, 1500]));
    const calls = {
      bash: { command: `cd ${path.dirname(file)} && grep -rn "${old.split(/\W+/).find((word) => word.length > 4) ?? "TODO"}" . | head -${dice.below(50)}` },
      edit: { path: file, oldText: old, newText: old.slice(0, old.length / 2) + piece(size([40, 150, 300, 800])) },
      read: { path: file, offset: dice.below(900), limit: 200 },
    };
    const spoken = dice.below(2) ? [text(said(30 + dice.below(160)))] : [];
    answer([...spoken, { type: "toolCall", id, name: tool, arguments: calls[/** @type {keyof typeof calls} */ (tool)] }], "toolUse");
    const output = tool === "edit" ? `Successfully replaced text in ${file}.` : piece(size(result));
    const details = tool === "edit" ? { details: { diff: piece(size(result)) } } : {};
    append({ role: "toolResult", toolCallId: id, toolName: tool, content: [text(output)], ...details, isError: false });
  }
  return { id: sessionId(session), lines };
}
