/**
 * Turns times into figures, and figures into a table.
 *
 * Machines differ in speed and load, so each figure is next to its floor: the time that the same machine needs in the same run for the
 * unavoidable part.
 */

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/**
 * One line of the table.
 * @typedef {object} Figure
 * @property {string} what was measured
 * @property {string} measured
 * @property {string} floor for comparison; may be empty
 * @property {string} ratio of the two; may be empty
 * @property {string} asked the goal; empty if the figure is for information
 * @property {boolean} [reached] absent without a goal
 */

/**
 * The context of a benchmark.
 * @typedef {object} Context
 * @property {number} messages in the largest store
 * @property {(line: string) => void} say prints progress
 * @property {(name: string) => string} folder makes an empty folder that is deleted at the end
 */

/**
 * A benchmark: each file of this folder that ends in `.bench.mjs`.
 * @typedef {{ title: string, run: (context: Context) => Promise<Figure[]> }} Benchmark
 */

/**
 * The smallest value that at least this share of the values does not exceed.
 * @param {number[]} values
 * @param {number} part between 0 and 1
 */
export function quantile(values, part) {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
}

/** @param {number[]} values */
export const median = (values) => quantile(values, 0.5);

/** @param {number[]} values */
export const longest = (values) => values.reduce((one, other) => Math.max(one, other), 0);

/** A time as text. @param {number} ms */
export function time(ms) {
  const size = Math.abs(ms);
  if (size < 1) return `${(ms * 1000).toFixed(size < 0.1 ? 1 : 0)} µs`;
  if (size < 1000) return `${ms.toFixed(size < 10 ? 2 : 1)} ms`;
  return `${(ms / 1000).toFixed(2)} s`;
}

/** A whole number as text. @param {number} value */
export const number = (value) => Math.round(value).toLocaleString("en");

/** @param {number} bytes */
export const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

/** @param {number} value @param {number} floor */
export const ratio = (value, floor) => `${(value / floor).toFixed(2)} ×`;

/**
 * Measures the time of `work`.
 * @template T
 * @param {() => T | Promise<T>} work
 * @returns {Promise<{ ms: number, value: T }>}
 */
export async function timed(work) {
  const began = performance.now();
  const value = await work();
  return { ms: performance.now() - began, value };
}

/** Otherwise garbage of an earlier benchmark would be collected during a measurement, on the same cores. */
export function collectGarbage() {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
}

/** @param {number} ms @returns {Promise<void>} */
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * @param {Figure[]} figures
 * @returns {string}
 */
export function table(figures) {
  const verdict = (/** @type {Figure} */ { reached }) => (reached === undefined ? "" : reached ? "pass" : "FAIL");
  const rows = figures.map((figure) => [figure.what, figure.measured, figure.floor, figure.ratio, figure.asked, verdict(figure)]);
  const all = [["measured", "", "floor", "ratio", "asked", ""], ...rows];
  const widths = all[0].map((_, column) => longest(all.map((row) => row[column].length)));
  return all.map((row) => row.map((cell, column) => cell.padEnd(widths[column])).join("  ").trimEnd()).join("\n");
}

/**
 * Rows as a Markdown table; the first is the header, and numbers are right-aligned.
 * @param {string[][]} rows
 */
export function markdown(rows) {
  const widths = rows[0].map((_, column) => longest(rows.map((row) => row[column].length)));
  const lines = rows.map((row) => `| ${row.map((cell, column) => (column === 0 ? cell.padEnd(widths[column]) : cell.padStart(widths[column]))).join(" | ")} |`);
  lines.splice(1, 0, `|${widths.map((width, column) => (column === 0 ? "-".repeat(width + 2) : `${"-".repeat(width + 1)}:`)).join("|")}|`);
  return lines.join("\n");
}
