/**
 * Blocks as the model gets them, on the real Pi: the shipped session compacted once, into a small block and into one of the usual size;
 * and compacted twenty times while it grew, which must keep the same rules and tasks.
 */
import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { extractOf } from "../../demo/extract.mjs";
import { makeSession } from "../../demo/make-session.mjs";
import { blockOf, statistics } from "../support/block.mjs";
import { aProject } from "../support/project.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../../demo/rpc.mjs").Pi} Pi */

const COMPACTIONS = 20;

const { text, files } = makeSession();
const [header, ...entries] = text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
/** The messages on the session's last branch. @type {any[]} */
const said = [];
const byId = new Map(entries.map((entry) => [entry.id, entry]));
for (let entry = entries.at(-1); entry; entry = byId.get(entry.parentId)) if (entry.type === "message") said.unshift(entry);

test("blocks of two sizes miss nothing, and twenty compactions keep the rules and tasks", async (t) => {
  const project = await aProject(t, { contextWindow: 400_000, keepRecentTokens: 2_000, script: { summary } });
  for (const [name, content] of files) {
    const file = path.join(project.cwd, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
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

/** The messages in `count` parts of about the same length, each beginning with a user message. @param {number} count */
function slices(count) {
  const starts = said.flatMap(({ message }, at) => (message.role === "user" && at > 0 ? [at] : []));
  const cuts = Array.from({ length: count - 1 }, (_, n) => {
    const wanted = ((n + 1) * said.length) / count;
    return starts.reduce((best, at) => (Math.abs(at - wanted) < Math.abs(best - wanted) ? at : best));
  });
  const ends = [0, ...new Set(cuts), said.length];
  assert.equal(ends.length, count + 1, "there are enough turns");
  return ends.slice(1).map((end, at) => said.slice(ends[at], end));
}

/**
 * The demo's summaries, and at the end of a stretch the state of the work.
 *
 * @param {import("../../demo/model-server.mjs").Received} request
 */
function summary({ messages }) {
  const prompt = messages.at(-1)?.text ?? "";
  if (!prompt.includes("`State:`")) return { text: extractOf(prompt) };
  const last = (/** @type {string} */ role) => [...prompt.matchAll(new RegExp(`^\\[[0-9a-f]{8} ${role} [^\\]]*\\]\\n([^\\n[][^\\n]{20,})`, "gm"))].at(-1)?.[1];
  const state = Object.entries({ goal: last("user"), "in progress": last("assistant"), blocked: "nothing" }).flatMap(([name, line]) => (line ? [`${name}: ${line}`] : []));
  const [body, closing] = extractOf(prompt).split(/\n(?=Expand for details about: )/);
  return { text: [body, "", "State:", ...state, "", closing].join("\n") };
}
