/**
 * Runs the JavaScript tests: several files at a time, starting with the slowest of the last run, and records their times for the report. It
 * is a separate program, because the test runner comes with the locked Node.
 *
 * `node scripts/node-tests.mjs FILE…`; `TEST_CONCURRENCY` is the number of files at a time.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { fileURLToPath } from "node:url";
import { root } from "./paths.mjs";

/** The timeout of a file: in `npm test` several times the slowest on two busy cores; full runs do far more. */
const TIMEOUT_MS = process.env.TEST_SUITE === "all" || process.env.INSTALL_MATRIX ? 1_800_000 : 600_000;

/** Milliseconds by file, from the last run of each. */
const timesFile = path.join(root, "target", "test-times.json");

/** @returns {Record<string, number>} */
export function lastTimes() {
  try {
    return JSON.parse(readFileSync(timesFile, "utf8"));
  } catch {
    return {};
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));

/** @param {string[]} files */
async function main(files) {
  const times = lastTimes();
  const name = (/** @type {string} */ file) => path.relative(root, file);
  const ordered = files.toSorted((a, b) => (times[name(b)] ?? Infinity) - (times[name(a)] ?? Infinity) || a.localeCompare(b));
  // Tests mostly wait for processes that they have started.
  const concurrency = Number(process.env.TEST_CONCURRENCY) || os.availableParallelism() + 1;
  const abort = new AbortController();
  for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM"])) {
    process.on(signal, () => {
      process.exitCode = 1;
      abort.abort();
    });
  }
  const events = run({ files: ordered.map((file) => path.resolve(root, file)), concurrency, timeout: TIMEOUT_MS, signal: abort.signal });
  events.on("test:fail", () => (process.exitCode = 1));
  events.on("test:summary", ({ file, duration_ms: ms }) => {
    if (file) times[name(file)] = Math.round(ms);
  });
  events.compose(new spec()).pipe(process.stdout);
  await new Promise((resolve) => events.on("end", resolve));
  mkdirSync(path.dirname(timesFile), { recursive: true });
  writeFileSync(timesFile, `${JSON.stringify(times, null, 2)}\n`);
}
