/**
 * A table of test results: a row for each host and mode, a column for each step of a session's life. A cell that did not run has the number
 * of its reason, which is below the table; a cell that was not reached because of an earlier failure has a dash.
 */

export class Matrix {
  /** @type {Map<string, Map<string, string>>} */
  #rows = new Map();
  /** @type {string[]} */
  #reasons = [];
  #columns;

  /** @param {readonly string[]} columns */
  constructor(columns) {
    this.#columns = columns;
  }

  /** Rows are in the order in which they are first named. @param {string} row */
  begin(row) {
    this.#cells(row);
  }

  /**
   * @param {string} row
   * @param {string} column
   * @param {"pass" | "FAIL"} result
   */
  set(row, column, result) {
    this.#cells(row).set(column, result);
  }

  /**
   * @param {string} row
   * @param {readonly string[]} columns
   * @param {string} reason
   */
  leaveOut(row, columns, reason) {
    if (!this.#reasons.includes(reason)) this.#reasons.push(reason);
    for (const column of columns) this.#cells(row).set(column, `(${this.#reasons.indexOf(reason) + 1})`);
  }

  /** As a Markdown table. */
  toString() {
    const lines = [["", ...this.#columns], ...[...this.#rows].map(([row, cells]) => [row, ...this.#columns.map((column) => cells.get(column) ?? "-")])];
    const widths = lines[0].map((_, at) => Math.max(...lines.map((line) => line[at].length)));
    const drawn = lines.map((line) => `| ${line.map((text, at) => text.padEnd(widths[at])).join(" | ")} |`);
    drawn.splice(1, 0, `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`);
    return [...drawn, "", ...this.#reasons.map((reason, at) => `(${at + 1}) ${reason}`)].join("\n").trimEnd();
  }

  /** @param {string} row */
  #cells(row) {
    const cells = this.#rows.get(row) ?? new Map();
    this.#rows.set(row, cells);
    return cells;
  }
}
