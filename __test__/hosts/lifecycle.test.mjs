/**
 * Each step of a session's life, in every mode, on every supported Pi: after each step the store holds exactly the content of Pi's session
 * files, and nothing disturbed the user. `target/hosts-matrix.md` has the results as a table.
 */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, describe, test } from "node:test";
import { allHosts, everything, hosts, MAIN } from "../../scripts/hosts.mjs";
import { extension, root } from "../../scripts/paths.mjs";
import { assertAgreement } from "../support/agreement.mjs";
import { blockOf } from "../support/block.mjs";
import { Matrix } from "../support/matrix.mjs";
import { aProject, eventually } from "../support/project.mjs";
import { heard, modes, saidBy, seatAt, sessionSaying } from "../support/seats.mjs";
import { SessionFile } from "../support/session-file.mjs";
import { noTerminal } from "../support/terminal.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../support/seats.mjs").Seat} Seat */
/** @typedef {import("../support/seats.mjs").Mode} Mode */
/** @typedef {import("../support/seats.mjs").Step} Step */
/** @typedef {import("../../scripts/hosts.mjs").Host} Host */

const acting = path.join(root, "__test__", "support", "acting.mjs");

const COLUMNS = /** @type {const} */ ([
  "start", "fork", "clone", "tree", "tree+summary", "reload", "new", "switch", "compact", "lcm_grep", "quit", "resume", "SIGTERM", "SIGINT", "crash", "continue",
]);

/** @typedef {typeof COLUMNS[number]} Column */

/** The tests mostly wait for processes. */
const AT_ONCE = 3;

const matrix = new Matrix(COLUMNS);

/** @param {Host} host @param {Mode} mode */
const rowOf = (host, mode) => `${host.name}, ${mode}`;

/** The steps within one start of Pi. @type {readonly Column[]} */
const SHORT = ["start", "switch", "compact", "lcm_grep", "quit"];

/** Pi handles neither signal, so the mode makes no difference here. @type {readonly Column[]} */
const SUDDEN = ["SIGINT", "crash"];

/**
 * The steps of a row. `npm test` runs every step on the main Pi in rpc mode, and in print mode and the TUI those that the mode can change;
 * json is print mode with another output. Its other rows are short, and pair each Pi and each Node with each mode.
 * @param {Host} host @param {Mode} mode
 * @returns {readonly Column[]}
 */
function momentsOf({ version }, mode) {
  if (everything) return COLUMNS;
  if (version !== MAIN || mode === "json") return SHORT;
  return mode === "rpc" ? COLUMNS : COLUMNS.filter((column) => !SUDDEN.includes(column));
}

for (const host of allHosts) {
  for (const mode of modes) {
    if (!hosts.includes(host)) matrix.leaveOut(rowOf(host, mode), COLUMNS, "left out by TEST_HOSTS");
    else matrix.begin(rowOf(host, mode));
  }
}

describe("a session's life", { concurrency: AT_ONCE }, () => {
  for (const host of hosts) {
    for (const mode of modes) {
      const moments = momentsOf(host, mode);
      matrix.leaveOut(rowOf(host, mode), COLUMNS.filter((column) => !moments.includes(column)), "run by `npm run test:all`");
      if (moments.length === 0) continue;
      const reason = mode === "TUI" ? noTerminal : undefined;
      if (reason) matrix.leaveOut(rowOf(host, mode), moments, reason);
      test(rowOf(host, mode), { skip: reason }, async (t) => {
        const project = await aProject(t, { host, extensions: [extension, acting], script: { otherwise: reply } });
        const seat = seatAt(mode, project);
        /** @type {Cell} */
        const cell = (columns, body) => t.test(columns.join(", "), async () => {
          for (const column of columns) matrix.set(rowOf(host, mode), column, "FAIL");
          await body();
          for (const column of columns) matrix.set(rowOf(host, mode), column, "pass");
        });
        await stay({ seat, project, moments, cell });
        if (moments !== SHORT) await comeBack({ seat, project, moments, cell });
      });
    }
  }
});

after(() => {
  const table = matrix.toString();
  mkdirSync(path.join(root, "target"), { recursive: true });
  writeFileSync(path.join(root, "target", "hosts-matrix.md"), `${table}\n`);
  process.stdout.write(`\n${table}\n\n`);
});

/**
 * Runs a test of one or more steps.
 * @typedef {(columns: Column[], body: () => Promise<void>) => Promise<void>} Cell
 */

/**
 * The context of a row.
 * @typedef {{ seat: Seat, project: Project, moments: readonly Column[], cell: Cell }} Life
 */

/**
 * A step that Pi survives.
 * @typedef {object} Moment
 * @property {Column} column
 * @property {() => Step[]} steps
 * @property {() => void} check what the session files show of it, from then on
 */

/** Runs all steps within one start of Pi. @param {Life} life */
async function stay({ seat, project, moments, cell }) {
  const inside = momentsOfAStay(project).filter(({ column }) => moments.includes(column));
  await seat.begin([]);
  for (const { column, steps, check } of inside) {
    await cell([column], async () => {
      if (seat.interactive) await seat.do(...steps());
      // Print and json mode do everything in one run, which is checked afterwards.
      else if (column === "start") await seat.do(...inside.flatMap(({ steps }) => steps()));
      check();
      // The interactive modes are still writing, the others have ended.
      if (seat.interactive) await eventually(() => assertAgreement(project));
    });
  }
  await cell(["quit"], async () => {
    await seat.leave();
    assertAgreement(project);
  });
}

/**
 * @param {Project} project
 * @returns {Moment[]} each continues where the one before it ended
 */
function momentsOfAStay(project) {
  const saying = (/** @type {string} */ text) => sessionSaying(project, text);
  const childOf = (/** @type {SessionFile} */ { file }) => {
    const children = project.sessions().filter(({ header }) => header.parentSession === file);
    assert.equal(children.length, 1);
    return children[0];
  };
  return [
    {
      column: "start",
      steps: () => [{ say: "the first" }, { say: "the second" }],
      check: () => assert.deepEqual(conversation(saying("the second"), "the second"), exchanges("the first", "the second")),
    },
    {
      column: "fork",
      steps: () => [{ act: "fork", which: "the second" }, { say: "in the fork" }],
      check: () => {
        const fork = childOf(saying("the second"));
        assert.deepEqual(conversation(fork, "in the fork"), exchanges("the first", "in the fork"));
      },
    },
    {
      column: "clone",
      steps: () => [{ act: "clone" }, { say: "in the clone" }],
      check: () => {
        const fork = childOf(saying("the second"));
        const clone = childOf(fork);
        assert.deepEqual(clone.entries.slice(0, fork.entries.length).map(({ id }) => id), fork.entries.map(({ id }) => id));
        assert.deepEqual(conversation(clone, "in the clone"), exchanges("the first", "in the fork", "in the clone"));
      },
    },
    {
      column: "tree",
      // The search waits until everything so far is stored. Without it, the order of the branches would depend on timing.
      steps: () => [{ say: "search the clone" }, { act: "tree", which: heard("the first") }, { say: "on another branch" }],
      check: () => {
        const grown = saying("in the clone");
        assert.deepEqual(conversation(grown, "on another branch"), exchanges("the first", "on another branch"));
      },
    },
    {
      column: "tree+summary",
      steps: () => [{ act: "tree-summary", which: heard("the first") }, { say: "with a summary" }],
      check: () => {
        const session = saying("in the clone");
        assert.deepEqual(conversation(session, "with a summary"), exchanges("the first", "with a summary"));
        const summary = session.branch().find(({ type }) => type === "branch_summary");
        assert.ok(summary, "the summary is on the branch");
        assert.ok(turnAfter(project, "with a summary").messages.some(({ text }) => text.includes(summary.summary)), "the model got it");
      },
    },
    {
      column: "reload",
      steps: () => [{ act: "reload" }, { say: "after reloading" }],
      check: () => assert.deepEqual(conversation(saying("in the clone"), "after reloading"), exchanges("the first", "with a summary", "after reloading")),
    },
    {
      column: "new",
      steps: () => [{ act: "new" }, { say: "in a new one" }],
      check: () => assert.deepEqual(conversation(saying("in a new one"), "in a new one"), exchanges("in a new one")),
    },
    {
      column: "switch",
      steps: () => [{ act: "switch", which: aPast(project) }, { say: "back again" }],
      check: () => assert.equal(saying("back again").id, PAST),
    },
    {
      column: "compact",
      steps: () => [{ act: "compact" }, { say: "compacted" }],
      check: () => {
        const session = saying("compacted");
        assert.equal(session.id, PAST);
        assert.ok(session.compactedBy().length > 10);
        assert.ok(project.summaryCalls.length > 0, "the model was asked for summaries");
        assert.match(session.lastCompaction.summary, /What happened was summarized\./);
        assert.equal(blockOf(turnAfter(project, "compacted")), session.lastCompaction.summary);
        assert.ok(session.branch().includes(session.lastCompaction));
      },
    },
    {
      column: "lcm_grep",
      steps: () => [{ say: "search the past" }],
      check: () => {
        const answer = project.turns.map(({ messages }) => messages.at(-1)).findLast((message) => message?.role === "tool");
        assert.match(answer?.text ?? "", /^(In s-[0-9a-f]{10}:\n)?m-[0-9a-f]{10} .*«mark0000x»/);
      },
    },
  ];
}

/** The session to switch to. */
const PAST = "019a4f3c-0000-7000-8000-000000000001";

/** @param {Project} project */
function aPast(project) {
  const past = project.history(PAST);
  past.user("long ago");
  past.assistant("It was.");
  past.abandoned(() => past.talk(2, { name: "aside" }));
  past.talk(40);
  return new SessionFile(past.write(project.sessionDir));
}

/** Starts Pi with a session, and ends it in ways that the session must survive. @param {Life} life */
async function comeBack({ seat, project, moments, cell }) {
  const history = project.history("019a4f3c-0000-7000-8000-000000000002");
  history.talk(3);
  let args = ["--session", history.write(project.sessionDir)];
  /** @type {Column} */
  let beginning = "resume";
  /** @type {string[]} */
  const said = [];

  for (const [column, signal] of /** @type {const} */ ([["SIGTERM", "SIGTERM"], ["SIGINT", "SIGINT"], ["crash", "SIGKILL"]])) {
    if (!moments.includes(column)) continue;
    await cell([beginning, column], async () => {
      await seat.begin(args);
      said.push(`before ${signal}`, `cut off by ${signal}`);
      await seat.dieBy(signal, said[said.length - 2], said[said.length - 1]);
      const session = sessionSaying(project, `before ${signal}`);
      assert.equal(session.id, history.id);
      assert.deepEqual(userTexts(session).slice(-said.length), said);
    });
    [beginning, args] = ["continue", ["--continue"]];
  }

  await cell(["continue"], async () => {
    await seat.begin(["--continue"]);
    await seat.do({ say: "continued" });
    const session = sessionSaying(project, "continued");
    assert.equal(session.id, history.id);
    assert.deepEqual(userTexts(session).slice(-said.length - 1), [...said, "continued"]);
    await seat.leave();
    assertAgreement(project);
  });
}

/** Repeats the user's words, and searches when told to. @param {import("../support/project.mjs").Received} request */
function reply({ messages }) {
  const said = messages.findLast(({ role }) => role === "user")?.text ?? "";
  if (said.startsWith("search ") && messages.at(-1)?.role === "user") return { toolCalls: [{ name: "lcm_grep", arguments: { query: "mark0000x" } }] };
  return { text: heard(said) };
}

/** The request that ends with the user's text. @param {Project} project @param {string} text */
function turnAfter(project, text) {
  const turn = project.turns.find(({ messages }) => messages.at(-1)?.text === text);
  assert.ok(turn, `the model was asked "${text}"`);
  return turn;
}

/** The user's texts with the model's answers. @param {...string} texts */
const exchanges = (...texts) => texts.flatMap((text) => [text, heard(text)]);

/** The messages of the branch that ends with the answer to `last`. @param {SessionFile} session @param {string} last */
function conversation(session, last) {
  const end = session.entries.find((entry) => saidBy(entry, "assistant") === heard(last));
  return session.branch(end?.id).map((entry) => saidBy(entry, "user") ?? saidBy(entry, "assistant")).filter((text) => text !== undefined);
}

/** @param {SessionFile} session */
function userTexts(session) {
  return session.branch().map((entry) => saidBy(entry, "user")).filter((text) => text !== undefined);
}
