/**
 * Checks `index.d.ts` against the engine: its types come from the Rust signatures and doc comments, which napi's macros write during the
 * build. Without arguments it compares; `--write` writes the file.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { typeDefinitions } from "./build.mjs";
import { root } from "./paths.mjs";

/**
 * One line that the macros write.
 * @typedef {{ kind: "fn" | "struct" | "impl", name: string, js_doc: string, def: string }} Definition
 */

/** The declarations of `index.js` itself. */
const HEAD = `/**
 * Types of pi-lossless-context. Everything about the engine is made from its Rust doc comments: change those, build, and run
 * \`node scripts/check-types.mjs --write\`.
 */

import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

/** Wires the extension into Pi; Pi calls it. It never throws. */
export default function losslessContext(pi: ExtensionAPI): void;

/**
 * The engine, for scripts: \`const { Engine } = loadEngine()\`.
 *
 * @throws {Error} a sentence that names the missing file and the remedy
 */
export function loadEngine(): Native;
`;

const target = path.join(root, "index.d.ts");

if (!existsSync(typeDefinitions)) fail("There are no type definitions yet: run `npm run build` first.");
const types = render(readFileSync(typeDefinitions, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line)));
if (process.argv.includes("--write")) writeFileSync(target, types);
else if (!existsSync(target) || readFileSync(target, "utf8") !== types) {
  fail("index.d.ts is not what the engine's doc comments say: run `node scripts/check-types.mjs --write` and commit it.");
}

/** @param {Definition[]} definitions */
function render(definitions) {
  const functions = definitions.filter(({ kind }) => kind === "fn");
  const classes = definitions.filter(({ kind }) => kind === "struct");
  const members = [
    ...classes.map(({ name }) => `/** The class itself; sessions come from \`${name}.open\`. */\n${name}: typeof ${name};`),
    ...functions.map(({ js_doc, def }) => `${js_doc}${def.replace(/^function /, "")};`),
  ];
  const native = `/** The native addon. */\nexport interface Native {\n${indent(members.join("\n"))}\n}\n`;
  return [HEAD, native, ...classes.map((definition) => classOf(definition, definitions))].join("\n");
}

/**
 * @param {Definition} definition
 * @param {Definition[]} definitions
 */
function classOf({ name, js_doc }, definitions) {
  const methods = definitions.filter((other) => other.kind === "impl" && other.name === name).map(({ def }) => def);
  const lines = methods.join("\n").split("\n").map((line) => (isMember(line) ? `${line.trim()};` : line));
  const body = ["private constructor();", ...lines].join("\n");
  return `${js_doc}export declare class ${name} {\n${indent(body)}\n}\n`;
}

/** Whether a line is a signature and not part of a comment. @param {string} line */
function isMember(line) {
  return line.trim() !== "" && !/^\s*(\/\*\*|\*)/.test(line);
}

/** @param {string} text */
function indent(text) {
  return text.replace(/^(?=.)/gm, "  ");
}

/**
 * @param {string} reason
 * @returns {never}
 */
function fail(reason) {
  process.stderr.write(`${reason}\n`);
  process.exit(1);
}
