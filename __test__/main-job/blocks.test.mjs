/**
 * Blocks as the model gets them, on the real Pi: the shipped session compacted once, into a small block and into one of the usual size;
 * and compacted twenty times while it grew, which must keep the same rules and tasks. `docs/blocks.md` shows them (`UPDATE_DOCS=1`
 * writes it).
 */
import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { extractOf } from "../../demo/extract.mjs";
import { makeSession } from "../../demo/make-session.mjs";
import { root } from "../../scripts/paths.mjs";
import { blockOf, statistics } from "../support/block.mjs";
import { aProject } from "../support/project.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../../demo/rpc.mjs").Pi} Pi */
/** What is shown of a block: all of it, or the lines that differ. @typedef {{ title: string, about: string, block: string, shown?: string }} Shown */

const page = path.join(root, "docs", "blocks.md");
const COMPACTIONS = 20;

const { text, files } = makeSession();
const [header, ...entries] = text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
/** The messages on the session's last branch. @type {any[]} */
const said = [];
const byId = new Map(entries.map((entry) => [entry.id, entry]));
for (let entry = entries.at(-1); entry; entry = byId.get(entry.parentId)) if (entry.type === "message") said.unshift(entry);

test("docs/blocks.md shows blocks as the model gets them, and twenty compactions keep the rules and tasks", async (t) => {
  const project = await aProject(t, { contextWindow: 400_000, keepRecentTokens: 2_000, script: { summary } });
  for (const [name, content] of files) {
    const file = path.join(project.cwd, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
  const pi = project.startPi();
  /** @type {Shown[]} */
  const shown = [];

  project.storeIn("small", { maxSummaryTokens: 1_000 });
  const small = await compacted(project, pi, "019a5000-0000-7000-8000-000000000001", [said]);
  shown.push({ title: "Small", about: "`maxSummaryTokens` is 1,000, so much is cut.", block: small });

  project.storeIn("lean");
  const lean = await compacted(project, pi, "019a5000-0000-7000-8000-000000000002", [said]);
  shown.push({ title: "Default", about: "`maxSummaryTokens` is 4,000.", block: lean });

  const grown = await compacted(project, pi, "019a5000-0000-7000-8000-000000000003", slices(COMPACTIONS));
  shown.push({ title: "After 20 compactions", about: "The same setting; the session was compacted 20 times while it grew. Rules and tasks are the same; these lines differ from the block above.", block: grown, shown: difference(lean, grown) });
  for (const block of [small, lean, grown]) assert.equal(statistics(block).missing, "none");
  assert.deepEqual(outline(grown), outline(lean));
  assert.ok(statistics(grown).depth > 0, "summaries of summaries are among them");
  const written = pageOf(shown);
  if (process.env.UPDATE_DOCS) writeFileSync(page, written);
  assert.deepEqual(outline(readFileSync(page, "utf8")), outline(written), "UPDATE_DOCS=1 writes docs/blocks.md again");
});

/** Headings, rules and tasks: the other text depends on the order in which parallel calls are answered. @param {string} shown */
const outline = (shown) => shown.split("\n").filter((line) => /^#|^- (rule|task|replaced rule): /.test(line));

/** The lines that only one of two blocks has. @param {string} before @param {string} after */
function difference(before, after) {
  const [old, fresh] = [before, after].map((block) => block.split("\n"));
  const only = (/** @type {string[]} */ lines, /** @type {string[]} */ others, /** @type {string} */ mark) => lines.filter((line) => !others.includes(line)).map((line) => `${mark} ${line}`);
  return [...only(old, fresh, "-"), ...only(fresh, old, "+")].join("\n");
}

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

/** @param {Shown[]} shown */
function pageOf(shown) {
  const tokens = (/** @type {string} */ block) => Math.ceil(Buffer.byteLength(block) / 4).toLocaleString("en-US");
  const blocks = shown.map(({ title, about, block, shown: part = block }) => `## ${title}\n\n${about} About ${tokens(block)} tokens.\n\n<details>\n<summary>${part === block ? "The block" : "The lines"}</summary>\n\n\`\`\`\`\n${part}\n\`\`\`\`\n\n</details>\n`);
  return `# Three blocks

What the model gets in place of compacted messages, word for word: the demo's session (five days, about 450 messages) on the real Pi,
summarized by a script. [block.md](block.md) explains the sections.

(\`UPDATE_DOCS=1\` makes \`__test__/main-job/blocks.test.mjs\` write this page.)

${blocks.join("\n")}`;
}
