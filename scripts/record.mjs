/**
 * Records `docs/demo.svg`, the README's moving picture: the demo in a real pseudo-terminal, with typing.
 *
 * Each state of the screen is a frame. A row's text is written once, wherever it is used, and CSS shows it for the time that it stays the same.
 * With reduced motion, the last frame shows.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { PROMPTS } from "../demo/script.mjs";
import { node22, root } from "./paths.mjs";

const require = createRequire(import.meta.url);

const SIZE = { cols: 80, rows: 24 };
/** The size of a character's cell and the margin around the screen, in pixels. */
const [WIDTH, HEIGHT, MARGIN] = [8, 17, 12];
const [TEXT, BACKGROUND] = ["#e6edf3", "#0d1117"];
/** The terminal's 16 colors. */
const PALETTE = "484f58 ff7b72 3fb950 d29922 58a6ff bc8cff 39c5cf b1bac4 6e7681 ffa198 56d364 e3b341 79c0ff d2a8ff 56d4dd ffffff".split(" ").map((color) => `#${color}`);
/** The time between two frames while typing words, and while waiting for an answer, in milliseconds. */
const [TYPING, WAITING] = [80, 200];
/** Before each of the scripted model's answers. */
const DELAY_MS = 350;

/** The input, the screen's text once it is answered, and the time to read that, in milliseconds. */
const STEPS = [
  { typed: "", answered: /LCM: \d+ msgs/, reading: 900 },
  { typed: PROMPTS.check, answered: /An event has one row/, reading: 1_800 },
  { typed: PROMPTS.order, answered: /I am a scripted model/, reading: 2_400 },
  { typed: "/lcm context", answered: /so \$[\d.]+\s+less/, reading: 3_200 },
];

/** @typedef {{ at: number, rows: string[] }} Frame the time in milliseconds, and the SVG of each row at the top of the screen */

const home = mkdtempSync(path.join(os.tmpdir(), "record-"));
process.once("exit", () => rmSync(home, { recursive: true, force: true }));
writeFileSync(path.join(root, "docs", "demo.svg"), svgOf(await record()));

/** Plays the steps. @returns {Promise<Frame[]>} */
async function record() {
  const { Terminal } = require("@xterm/headless");
  /** @type {import("@xterm/headless").Terminal} */
  const screen = new Terminal({ ...SIZE, allowProposedApi: true });
  const env = { ...process.env, HOME: home, TMPDIR: home, TERM: "xterm-256color", COLORTERM: "truecolor", COLORFGBG: "15;0", DEMO_DELAY_MS: String(DELAY_MS) };
  const pi = require("@lydell/node-pty").spawn(node22, [path.join(root, "demo", "interactive.mjs")], { ...SIZE, cwd: root, env });
  const ended = new Promise((resolve) => pi.onExit(resolve));
  screen.onData((answer) => pi.write(answer));
  pi.onData((/** @type {string} */ output) => screen.write(output));
  /** @type {Frame[]} */
  const frames = [];
  let now = 0;
  /** Takes frames for a time, or until an answer is shown. @param {number} most @param {RegExp} [answer] */
  const watch = async (most, answer) => {
    const tick = answer ? WAITING : TYPING;
    for (let waited = 0; waited < most; waited += tick) {
      await sleep(tick);
      const { text, rows } = look(screen);
      const isThere = answer?.test(text);
      const last = frames.at(-1);
      if (last?.rows.join() !== rows.join() && (last || isThere)) frames.push({ at: now, rows });
      if (isThere) return;
      now += last ? tick : 0;
    }
    if (answer) throw new Error(`the screen does not show ${answer}:\n${look(screen).text}`);
  };
  for (const { typed, answered, reading } of STEPS) {
    for (const word of typed.split(/(?<= )/)) {
      pi.write(word);
      await watch(TYPING);
    }
    if (typed) pi.write("\r");
    await watch(60_000, answered);
    await watch(reading);
  }
  pi.kill();
  await ended;
  return [...frames, { at: now, rows: [] }];
}

/** The visible text, and the SVG of each row. @param {import("@xterm/headless").Terminal} screen */
function look({ buffer: { active }, rows }) {
  const lines = Array.from({ length: rows }, (_, row) => active.getLine(active.baseY + row));
  return { text: lines.map((line) => line?.translateToString(true)).join("\n"), rows: lines.map(rowOf) };
}

/** @param {import("@xterm/headless").IBufferLine | undefined} line */
function rowOf(line) {
  /** Neighboring cells of one style. @type {{ col: number, width: number, text: string, wide: number, style: string, ground: string }[]} */
  const runs = [];
  for (let col = 0, wide = 0; line && col < line.length; col += wide) {
    const cell = /** @type {import("@xterm/headless").IBufferCell} */ (line.getCell(col));
    wide = Math.max(1, cell.getWidth());
    const { style, ground } = styleOf(cell);
    const last = runs.at(-1);
    const text = cell.getChars() || " ";
    if (last?.style === style && last.ground === ground && last.wide === wide) Object.assign(last, { text: last.text + text, width: last.width + wide });
    else runs.push({ col, width: wide, text, wide, style, ground });
  }
  const place = (/** @type {number} */ col) => MARGIN + col * WIDTH;
  const grounds = runs.filter(({ ground }) => ground !== BACKGROUND).map(({ col, width, ground }) => `<rect x="${place(col)}" width="${width * WIDTH}" height="${HEIGHT}" fill="${ground}"/>`);
  const texts = runs.filter(({ text }) => text.trim()).map(({ col, text, width, style }) => {
    const from = text.length - text.trimStart().length;
    const length = width - from - (text.length - text.trimEnd().length);
    return `<text x="${place(col + from)}" y="13" textLength="${length * WIDTH}"${style}>${escaped(text.trim())}</text>`;
  });
  return [...grounds, ...texts].join("");
}

/** A cell's attributes and background. @param {import("@xterm/headless").IBufferCell} cell */
function styleOf(cell) {
  const hex = (/** @type {number} */ color) => `#${color.toString(16).padStart(6, "0")}`;
  const colors = [cell.isFgRGB() ? hex(cell.getFgColor()) : cell.isFgPalette() ? PALETTE[cell.getFgColor()] : TEXT, cell.isBgRGB() ? hex(cell.getBgColor()) : cell.isBgPalette() ? PALETTE[cell.getBgColor()] : BACKGROUND];
  const [ink, ground] = cell.isInverse() ? colors.reverse() : colors;
  return { style: (ink === TEXT ? "" : ` fill="${ink}"`) + (cell.isBold() ? ' font-weight="bold"' : "") + (cell.isItalic() ? ' font-style="italic"' : "") + (cell.isDim() ? ' opacity=".65"' : ""), ground };
}

/** @param {string} text */
function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(/ {2,}/g, (spaces) => "\u00a0".repeat(spaces.length));
}

/** @param {Frame[]} frames the last one only gives the end of the one before it */
function svgOf(frames) {
  const total = frames.at(-1)?.at ?? 0;
  const texts = [...new Set(frames.flatMap(({ rows }) => rows))].filter(Boolean);
  /** Rows that show over the same frames, by `first-end`. @type {Map<string, string>} */
  const groups = new Map();
  for (let row = 0; row < SIZE.rows; row += 1) {
    for (let from = 0, to = 1; to < frames.length; to += 1) {
      const text = frames[from].rows[row];
      if (frames[to].rows[row] === text) continue;
      if (text) groups.set(`${from}-${to}`, `${groups.get(`${from}-${to}`) ?? ""}<use href="#r${texts.indexOf(text)}" y="${MARGIN + row * HEIGHT}"/>`);
      from = to;
    }
  }
  const percent = (/** @type {number} */ at) => `${((100 * frames[at].at) / total).toFixed(2)}%`;
  const parts = [...groups].map(([span, rows]) => {
    const [from, to] = span.split("-").map(Number);
    const before = from > 0 ? "0%{visibility:hidden}" : "";
    const after = to < frames.length - 1 ? `${percent(to)},to{visibility:hidden}` : "";
    const rule = `@keyframes f${span}{${before}${percent(from)}{visibility:visible}${after}}#f${span}{animation-name:f${span}}`;
    return { rule, group: `<g id="f${span}" class="f${after ? " past" : ""}">${rows}</g>` };
  });
  const [width, height] = [SIZE.cols * WIDTH + 2 * MARGIN, SIZE.rows * HEIGHT + 2 * MARGIN];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="13" fill="${TEXT}">
<title>The demo: a long context is folded, a question that it no longer answers is looked up, and what the session costs</title>
<defs>${texts.map((text, at) => `<g id="r${at}">${text}</g>`).join("\n")}</defs>
<style>.past{visibility:hidden}@media (prefers-reduced-motion:no-preference){.f{animation:${total}ms step-end infinite}
${parts.map(({ rule }) => rule).join("\n")}}</style>
<rect width="100%" height="100%" rx="8" fill="${BACKGROUND}"/>
${parts.map(({ group }) => group).join("\n")}
</svg>
`;
}
