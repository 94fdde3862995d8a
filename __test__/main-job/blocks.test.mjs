/**
 * Blocks as the model gets them, on the real Pi: the shipped session compacted once, into a small block and into one of the usual size;
 * and compacted twelve times while it grew, which must keep the same rules and tasks.
 */
import assert from "node:assert/strict";
import { appendFileSync, cpSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { extractOf } from "../../demo/extract.mjs";
import { projectFolder, sessionFile } from "../../demo/world.mjs";
import { blockOf, statistics } from "../support/block.mjs";
import { aProject } from "../support/project.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../../demo/rpc.mjs").Pi} Pi */

const COMPACTIONS = 12;

const [header, ...entries] = readFileSync(sessionFile, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
/** The messages on the session's last branch. @type {any[]} */
const said = [];
const byId = new Map(entries.map((entry) => [entry.id, entry]));
for (let entry = entries.at(-1); entry; entry = byId.get(entry.parentId)) if (entry.type === "message") said.unshift(entry);

test("blocks of two sizes miss nothing, and twelve compactions keep the rules and tasks", async (t) => {
  const project = await aProject(t, { contextWindow: 400_000, keepRecentTokens: 200, script: { summary: ({ messages }) => ({ text: extractOf(messages.at(-1)?.text ?? "") }) } });
  cpSync(projectFolder, project.cwd, { recursive: true });
  const pi = project.startPi();

  project.storeIn("small", { maxSummaryTokens: 1_000 });
  const small = await compacted(project, pi, "019a5000-0000-7000-8000-000000000001", [said]);

  project.storeIn("lean");
  const lean = await compacted(project, pi, "019a5000-0000-7000-8000-000000000002", [said]);

  const grown = await compacted(project, pi, "019a5000-0000-7000-8000-000000000003", slices(COMPACTIONS));
  for (const block of [small, lean, grown]) assert.equal(statistics(block).missing, "none");
  assert.deepEqual(outline(grown), outline(lean));
  assert.ok(statistics(grown).depth > 0, "summaries of summaries are among them");
});

/** Headings, rules and tasks: the other text depends on the order in which parallel calls are answered. @param {string} shown */
const outline = (shown) => shown.split("\n").filter((line) => /^#|^- (rule|task|replaced rule): /.test(line));

/**
 * Appends these parts to a session, with a compaction after each.
 * @param {Project} project
 * @param {Pi} pi
 * @param {string} id
 * @param {any[][]} parts
 * @returns {Promise<string>} the block of the next request
 */
async function compacted(project, pi, id, parts) {
  const file = path.join(project.sessionDir, `${id}.jsonl`);
  writeFileSync(file, `${JSON.stringify({ ...header, id, cwd: project.cwd })}\n`);
  for (const part of parts) {
    const last = JSON.parse(readFileSync(file, "utf8").trimEnd().split("\n").at(-1) ?? "{}");
    let leaf = last.type === "session" ? null : last.id;
    const lines = part.map((entry) => {
      const line = JSON.stringify({ ...entry, parentId: leaf });
      leaf = entry.id;
      return `${line}\n`;
    });
    appendFileSync(file, lines.join(""));
    await pi.request("switch_session", { sessionPath: file });
    await pi.request("compact");
  }
  await pi.prompt("Go on.");
  const block = blockOf(project.lastTurn);
  assert.ok(block, "the request begins with a block");
  return block;
}

/** The messages in `count` parts of about as many turns. @param {number} count */
function slices(count) {
  const starts = said.flatMap(({ message }, at) => (message.role === "user" && at > 0 ? [at] : []));
  assert.ok(starts.length >= count, "there are enough turns");
  const ends = [0, ...Array.from({ length: count - 1 }, (_, n) => starts[Math.floor(((n + 1) * starts.length) / count)]), said.length];
  return ends.slice(1).map((end, at) => said.slice(ends[at], end));
}
