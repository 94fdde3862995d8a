/**
 * The output of Pi's edit tool for a change: a diff with line numbers for people, a unified patch for programs.
 *
 * The story's edits are small and separate, so a plain longest common subsequence of lines is enough.
 */

const CONTEXT = 4;

/** @typedef {{ kind: " " | "-" | "+", text: string }} Step */

/**
 * @param {string} path
 * @param {string} before
 * @param {string} after
 */
export function changeOf(path, before, after) {
  const steps = compare(linesOf(before), linesOf(after));
  const number = numbered(steps);
  return { diff: forPeople(number), patch: unified(path, number), firstChangedLine: number.find((step) => step.kind !== " ")?.newLine };
}

/**
 * The number of added and removed lines.
 * @param {string} before
 * @param {string} after
 */
export function countsOf(before, after) {
  const steps = compare(linesOf(before), linesOf(after));
  const count = (/** @type {Step["kind"]} */ kind) => steps.filter((step) => step.kind === kind).length;
  return { added: count("+"), removed: count("-") };
}

/**
 * The newline at the end of a file ends its last line and does not start another.
 * @param {string} text
 */
function linesOf(text) {
  if (text === "") return [];
  return text.replace(/\n$/, "").split("\n");
}

/**
 * @param {string[]} old
 * @param {string[]} young
 * @returns {Step[]}
 */
function compare(old, young) {
  let start = 0;
  while (start < old.length && start < young.length && old[start] === young[start]) start++;
  let end = 0;
  while (end < old.length - start && end < young.length - start && old[old.length - 1 - end] === young[young.length - 1 - end]) end++;
  const same = (/** @type {string} */ text) => /** @type {Step} */ ({ kind: " ", text });
  return [
    ...old.slice(0, start).map(same),
    ...middle(old.slice(start, old.length - end), young.slice(start, young.length - end)),
    ...old.slice(old.length - end).map(same),
  ];
}

/**
 * @param {string[]} old
 * @param {string[]} young
 * @returns {Step[]}
 */
function middle(old, young) {
  const common = Array.from({ length: old.length + 1 }, () => new Uint32Array(young.length + 1));
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = young.length - 1; j >= 0; j--) {
      common[i][j] = old[i] === young[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  /** @type {Step[]} */
  const steps = [];
  let i = 0;
  let j = 0;
  while (i < old.length || j < young.length) {
    if (i < old.length && j < young.length && old[i] === young[j]) {
      steps.push({ kind: " ", text: old[i++] });
      j++;
    } else if (i < old.length && (j === young.length || common[i + 1][j] >= common[i][j + 1])) steps.push({ kind: "-", text: old[i++] });
    else steps.push({ kind: "+", text: young[j++] });
  }
  return steps;
}

/** @typedef {Step & { oldLine: number, newLine: number }} NumberedStep */

/**
 * @param {Step[]} steps
 * @returns {NumberedStep[]}
 */
function numbered(steps) {
  let oldLine = 1;
  let newLine = 1;
  return steps.map((step) => {
    const here = { ...step, oldLine, newLine };
    if (step.kind !== "+") oldLine++;
    if (step.kind !== "-") newLine++;
    return here;
  });
}

/**
 * The hunks: runs of changed lines with some unchanged lines around them.
 * @param {NumberedStep[]} steps
 * @returns {NumberedStep[][]}
 */
function hunks(steps) {
  const changed = steps.flatMap((step, index) => (step.kind === " " ? [] : [index]));
  /** @type {[number, number][]} */
  const ranges = [];
  for (const index of changed) {
    const from = Math.max(0, index - CONTEXT);
    const to = Math.min(steps.length, index + CONTEXT + 1);
    const last = ranges.at(-1);
    if (last && from <= last[1]) last[1] = to;
    else ranges.push([from, to]);
  }
  return ranges.map(([from, to]) => steps.slice(from, to));
}

/** @param {NumberedStep[]} steps */
function forPeople(steps) {
  const width = String(steps.length).length;
  const line = (/** @type {NumberedStep} */ { kind, text, oldLine, newLine }) =>
    `${kind}${String(kind === "+" ? newLine : oldLine).padStart(width)} ${text}`;
  return hunks(steps)
    .map((hunk) => hunk.map(line).join("\n"))
    .join(`\n ${" ".repeat(width)} ...\n`);
}

/**
 * @param {string} path
 * @param {NumberedStep[]} steps
 */
function unified(path, steps) {
  const parts = hunks(steps).map((hunk) => {
    const old = hunk.filter((step) => step.kind !== "+").length;
    const young = hunk.filter((step) => step.kind !== "-").length;
    const head = `@@ -${old === 0 ? 0 : hunk[0].oldLine},${old} +${hunk[0].newLine},${young} @@`;
    return [head, ...hunk.map(({ kind, text }) => kind + text)].join("\n");
  });
  return `--- ${path}\n+++ ${path}\n${parts.join("\n")}\n`;
}
