/**
 * The driver behind `npm run bench`: `npm run bench -- [name …] [--messages N]`.
 *
 * Each benchmark is a file `<name>.bench.mjs` that describes what it measures. They run one after the other, since two at once would
 * measure each other. The exit code tells whether every goal was reached.
 */
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { root } from "../scripts/paths.mjs";
import { number, table } from "./measure.mjs";

/** @typedef {import("./measure.mjs").Benchmark} Benchmark */
/** @typedef {import("./measure.mjs").Context} Context */
/** @typedef {import("./measure.mjs").Figure} Figure */

const ENDING = ".bench.mjs";
const all = readdirSync(import.meta.dirname).filter((file) => file.endsWith(ENDING)).map((file) => file.slice(0, -ENDING.length));
const { values, positionals } = parseArgs({ allowPositionals: true, options: { messages: { type: "string", default: "100000" } } });
const names = positionals.length > 0 ? positionals : all;
const messages = Number(values.messages);
if (names.some((name) => !all.includes(name)) || !(messages >= 100_000) || messages % 100_000 !== 0) {
  process.stderr.write(`usage: npm run bench -- [${all.join(" | ")}] … [--messages a multiple of 100000]\n`);
  process.exit(1);
}

const scratch = path.join(root, "target", "bench", `run-${process.pid}`);
let folders = 0;
/** @type {Context} */
const context = {
  messages,
  say: (line) => void (process.stderr.isTTY && process.stderr.write(`\r\x1b[K${line}`)),
  folder: (name) => {
    const folder = path.join(scratch, `${++folders}-${name}`);
    mkdirSync(folder, { recursive: true });
    return folder;
  },
};

/** @type {Figure[]} */
const figures = [];
try {
  for (const name of names) {
    const began = performance.now();
    /** @type {Benchmark} */
    const { title, run } = await import(`./${name}${ENDING}`);
    const found = await run(context);
    figures.push(...found);
    context.say("");
    process.stdout.write(`\n${name}: ${title}\n\n${table(found)}\n(${number((performance.now() - began) / 1000)} s)\n`);
    // Old files would get in the next benchmark's way.
    rmSync(scratch, { recursive: true, force: true });
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
const asked = figures.filter(({ reached }) => reached !== undefined);
const failed = asked.filter(({ reached }) => !reached);
if (names.length > 1) process.stdout.write(`\nWhat is asked\n\n${table(asked)}\n`);
process.stdout.write(`\n${asked.length - failed.length} of ${asked.length} figures are reached.\n`);
process.exitCode = failed.length > 0 ? 1 : 0;
