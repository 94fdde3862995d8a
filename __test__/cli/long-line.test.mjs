/** An import of a very long line takes a few times its length as memory, not ten times. */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { node22 } from "../../scripts/paths.mjs";
import { collect } from "../../scripts/proc.mjs";
import { environmentOf, program } from "../support/cli.mjs";
import { temporaryFolder } from "../support/project.mjs";

const MB = 1e6;
const LINE = 50 * MB;
/** Reports the most memory that the process took, in KB. */
const REPORTING = `data:text/javascript,process.on("exit", () => console.error(process.resourceUsage().maxRSS))`;
const at = { timestamp: "2026-01-02T03:04:05.000Z" };

/** A session of Pi with a long result of a tool. @type {(cwd: string, output: string) => object[]} */
const pis = (cwd, output) => [
  { type: "session", version: 3, id: "one", ...at, cwd },
  { type: "message", id: "a", parentId: null, ...at, message: { role: "toolResult", toolCallId: "c", toolName: "bash", content: [{ type: "text", text: output }], isError: false } },
];

/** The same of Claude Code: what is stored has the text twice, as the message and in the record. @type {typeof pis} */
const claudes = (cwd, output) => {
  const common = { ...at, sessionId: "one", cwd, version: "2.1.38" };
  return [
    { ...common, type: "user", uuid: "a", parentUuid: null, message: { role: "user", content: "run it" } },
    { ...common, type: "user", uuid: "b", parentUuid: "a", message: { role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: output }] } },
  ];
};

for (const [agent, of, times, options] of /** @type {const} */ ([["Pi", pis, 2.8, []], ["Claude Code", claudes, 3.8, ["--from", "claude-code"]]])) {
  test(`a line of 50 MB in a log of ${agent}`, { timeout: 120_000 }, async (t) => {
    const folder = temporaryFolder(t);
    const [cwd, agentDir, storeDir] = ["project", "agent", "store"].map((name) => path.join(folder, name));
    for (const dir of [cwd, agentDir]) mkdirSync(dir);
    /** The memory that an import of a text takes, in bytes. @param {string} output */
    const memory = async (output) => {
      const file = path.join(folder, `${output.length}.jsonl`);
      writeFileSync(file, of(cwd, output).map((line) => `${JSON.stringify(line)}\n`).join(""));
      const ran = await collect(node22, ["--import", REPORTING, program, "import", ...options, file], { cwd, env: environmentOf({ cwd, agentDir, storeDir }) });
      assert.match(ran.stdout, /^1 session: \d messages? new/);
      return Number(ran.stderr) * 1024;
    };
    const line = 'a line of output with "quotes"\n';
    const floor = await memory(line);
    const taken = (await memory(line.repeat(LINE / JSON.stringify(line).length))) - floor;
    assert.ok(taken < times * LINE, `${taken / MB} MB above ${floor / MB} MB`);
  });
}
