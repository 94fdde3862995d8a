/**
 * Pi's tools as the story calls them, with the arguments and answers of the real ones.
 */
import { changeOf, countsOf } from "./diff.mjs";
import { listing, testReport } from "./reports.mjs";

/** @typedef {import("./recorder.mjs").Call} Call */

/**
 * @param {string} path
 * @param {{ offset?: number, limit?: number }} [range] lines, from 1
 * @returns {Call}
 */
export function read(path, { offset, limit } = {}) {
  return {
    name: "read",
    arguments: { path, ...(offset && { offset }), ...(limit && { limit }) },
    run: ({ project }) => {
      if (!project.has(path)) return { text: `ENOENT: no such file or directory, access '${project.cwd}/${path}'`, details: {}, isError: true };
      return { text: lines(project.read(path), offset, limit) };
    },
  };
}

/**
 * @param {string} text
 * @param {number} [offset]
 * @param {number} [limit]
 */
function lines(text, offset = 1, limit) {
  const all = text.split("\n");
  const end = limit === undefined ? all.length : offset - 1 + limit;
  const part = all.slice(offset - 1, end).join("\n");
  const rest = all.length - end;
  return rest > 0 ? `${part}\n\n[${rest} more lines in file. Use offset=${end + 1} to continue.]` : part;
}

/**
 * @param {string} path
 * @param {object[]} content image blocks
 * @returns {Call}
 */
export function readImage(path, content) {
  return { name: "read", arguments: { path }, run: () => ({ content: [{ type: "text", text: "Read image file [image/png]" }, ...content] }) };
}

/**
 * @param {string} pattern
 * @param {string} [path]
 * @returns {Call}
 */
export function grep(pattern, path = ".") {
  const expression = new RegExp(pattern);
  return {
    name: "grep",
    arguments: { pattern, ...(path !== "." && { path }) },
    run: ({ project }) => {
      const found = project.paths(path).flatMap((file) => hits(file, project.read(file), expression));
      return { text: found.length > 0 ? found.join("\n") : "No matches found" };
    },
  };
}

/**
 * @param {string} file
 * @param {string} text
 * @param {RegExp} expression
 */
function hits(file, text, expression) {
  return text.split("\n").flatMap((line, index) => (expression.test(line) ? [`${file}:${index + 1}: ${line}`] : []));
}

/**
 * @param {string} path
 * @param {...[oldText: string, newText: string]} pairs
 * @returns {Call}
 */
export function edit(path, ...pairs) {
  const edits = pairs.map(([oldText, newText]) => ({ oldText, newText }));
  return {
    name: "edit",
    arguments: { path, edits },
    run: ({ project }) => {
      const { before, after } = project.edit(path, edits);
      return { text: `Successfully replaced ${edits.length} block(s) in ${path}.`, details: changeOf(path, before, after) };
    },
  };
}

/**
 * An edit whose old text the model misremembered.
 * @param {string} path
 * @param {string} oldText
 * @param {string} newText
 * @returns {Call}
 */
export function failingEdit(path, oldText, newText) {
  return {
    name: "edit",
    arguments: { path, edits: [{ oldText, newText }] },
    run: ({ project }) => {
      if (project.read(path).includes(oldText)) throw new Error(`the story expects this edit of ${path} to fail`);
      const text = `Could not find the exact text in ${path}. The old text must match exactly including all whitespace and newlines.`;
      return { text, details: {}, isError: true };
    },
  };
}

/**
 * @param {string} path
 * @param {string} content
 * @returns {Call}
 */
export function write(path, content) {
  return {
    name: "write",
    arguments: { path, content },
    run: ({ project }) => {
      project.write(path, content);
      return { text: `Successfully wrote to ${path}` };
    },
  };
}

/**
 * A shell command with its output.
 * @param {string} command
 * @param {string} output
 * @param {{ exitCode?: number, seconds?: number }} [options]
 * @returns {Call}
 */
export function bash(command, output, { exitCode = 0, seconds = 0 } = {}) {
  return {
    name: "bash",
    arguments: { command },
    run: () => shellResult(output, exitCode, seconds),
  };
}

/**
 * @param {string} output
 * @param {number} exitCode
 * @param {number} seconds
 * @returns {import("./recorder.mjs").Result}
 */
function shellResult(output, exitCode, seconds) {
  const text = output === "" ? "(no output)" : output;
  if (exitCode === 0) return { text, seconds };
  return { text: `${text}\n\nCommand exited with code ${exitCode}`, details: {}, isError: true, seconds };
}

/**
 * `cat` of several files, or any other command that only shows files.
 * @param {string} command
 * @param {...string} paths
 * @returns {Call}
 */
export function cat(command, ...paths) {
  return { name: "bash", arguments: { command }, run: ({ project }) => ({ text: paths.map((path) => project.read(path)).join("") }) };
}

/**
 * @param {string} folder
 * @returns {Call}
 */
export function ls(folder) {
  return { name: "bash", arguments: { command: `ls -la ${folder}` }, run: ({ project }) => ({ text: listing(project, folder) }) };
}

/**
 * A run of the project's tests with the given failures; everything else passes.
 * @param {{ only?: string, fails?: import("./reports.mjs").TestFailure[] }} [options] `only`: one test file
 * @returns {Call}
 */
export function tests({ only, fails = [] } = {}) {
  const command = only ? `node --test --test-reporter=spec ${only}` : "npm test";
  return {
    name: "bash",
    arguments: { command },
    run: ({ project, random }) => shellResult(testReport(project, random, { only, fails }), fails.length > 0 ? 1 : 0, only ? 1 : 3),
  };
}

/**
 * `git diff` of everything since the last commit.
 * @returns {Call}
 */
export function gitDiff() {
  return {
    name: "bash",
    arguments: { command: "git add -AN && git diff" },
    run: ({ project, random }) => {
      const parts = project.changes().map(({ path, before, after }) => {
        const { patch } = changeOf(path, before, after);
        const young = before === "";
        const head = [`diff --git a/${path} b/${path}`, ...(young ? ["new file mode 100644"] : []), `index ${young ? "0000000" : random.hex(7)}..${random.hex(7)}`];
        return `${head.join("\n")}\n${patch.replace(`--- ${path}`, young ? "--- /dev/null" : `--- a/${path}`).replace(`+++ ${path}`, `+++ b/${path}`)}`;
      });
      return { text: parts.join("").trimEnd() };
    },
  };
}

/**
 * A commit of everything, with the summary git prints.
 * @param {string} message
 * @param {string} hash seven digits, which later messages may mention
 * @returns {Call}
 */
export function commit(message, hash) {
  return {
    name: "bash",
    arguments: { command: `git add -A && git commit -m '${message}'` },
    run: ({ project }) => {
      const changes = project.changes();
      const counts = changes.map(({ before, after }) => countsOf(before, after));
      const sum = (/** @type {"added" | "removed"} */ what) => counts.reduce((total, count) => total + count[what], 0);
      const created = changes.filter(({ before }) => before === "").map(({ path }) => ` create mode 100644 ${path}`);
      project.commit();
      const summary = ` ${changes.length} file${changes.length === 1 ? "" : "s"} changed, ${sum("added")} insertions(+), ${sum("removed")} deletions(-)`;
      return { text: [`[main ${hash}] ${message}`, summary, ...created].join("\n") };
    },
  };
}
