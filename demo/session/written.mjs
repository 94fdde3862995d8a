/**
 * Files that the story's model writes in full. They are stored next to the project, so that they can be read and run.
 */
import { readFileSync } from "node:fs";

/** @param {string} name */
export function fileWritten(name) {
  return readFileSync(new URL(`./written/${name}`, import.meta.url), "utf8");
}
