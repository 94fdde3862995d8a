/**
 * Makes `demo/session.jsonl`, the session that the demo opens: a week's work on a small invoice service.
 *
 * The conversation is fictional and written by hand, one file per day (`session/`), about a project that really runs: what is read, edited
 * and searched in it is computed from the files. The output is the same, byte for byte, each time.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { friday } from "./session/friday.mjs";
import { importLog } from "./session/import-log.mjs";
import { monday, sample } from "./session/monday.mjs";
import { Recorder } from "./session/recorder.mjs";
import { thursday } from "./session/thursday.mjs";
import { tuesday } from "./session/tuesday.mjs";
import { wednesday } from "./session/wednesday.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));

/** The shipped session. */
export const sessionFile = path.join(here, "session.jsonl");

/** The large tool result that the demo recovers. */
export const LOG = "logs/import-2026-11-02.log";

const NIGHTS = [
  { date: "2026-11-02", files: 205 },
  { date: "2026-11-03", files: 74, mended: true },
  { date: "2026-11-04", files: 61, mended: true },
  { date: "2026-11-05", files: 66, mended: true },
  { date: "2026-11-06", files: 58, mended: true },
];

/**
 * @returns {{ text: string, files: Map<string, string> }} the session file, and the project as the story leaves it
 */
export function makeSession() {
  const recorder = new Recorder({
    seed: 4711,
    id: "019a4f3c-2b10-7c55-9d0e-6b1f0c4a7e21",
    cwd: "/home/jonas/kontor",
    start: "2026-11-02T08:31:07.412Z",
    files: startingFiles(),
  });
  monday(recorder);
  tuesday(recorder);
  wednesday(recorder);
  thursday(recorder);
  friday(recorder);
  return { text: recorder.text(), files: recorder.project.snapshot() };
}

/** The project as it is on Monday morning. */
function startingFiles() {
  const folder = path.join(here, "session", "project");
  const paths = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const files = paths.map((entry) => path.join(entry.parentPath, entry.name)).sort();
  const project = files.map((file) => /** @type {[string, string]} */ ([path.relative(folder, file).replaceAll(path.sep, "/"), readFileSync(file, "utf8")]));
  const nights = NIGHTS.map((night) => /** @type {[string, string]} */ ([`logs/import-${night.date}.log`, importLog(night)]));
  return new Map([...project, ...nights, ["samples/SZ_1101_0042.xml", sample]]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(sessionFile, makeSession().text);
