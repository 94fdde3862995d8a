/**
 * Every moment of a session's life, in every mode, on every Pi that we know: after each of them the store holds exactly what
 * Pi's session files hold, and nobody was disturbed by us. The table of it goes to `target/hosts-matrix.md`.
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
/** @typedef {import("../../scripts/hosts.mjs").Host} Host */

const acting = path.join(root, "__test__", "support", "acting.mjs");

const COLUMNS = /** @type {const} */ ([
  "start", "continue", "resume", "new", "fork", "clone", "tree", "tree+summary", "reload", "switch", "compact", "lcm_grep", "quit", "SIGTERM", "SIGINT", "crash",
]);

/** @typedef {typeof COLUMNS[number]} Column */

/** Processes are waited for more than they compute. */
const AT_ONCE = 3;

const matrix = new Matrix(COLUMNS);

/** @param {Host} host @param {Mode} mode */
const rowOf = (host, mode) => `${host.name}, ${mode}`;

/** @type {readonly Column[]} */
const SHORT = ["start", "resume", "compact", "lcm_grep"];

/** @type {readonly Column[]} */
const SHORTEST = ["start"];

/**
 * The moments of a row. `npm test` lives every moment on the main Pi, in all modes but json, which is print mode with another
 * output. Its other rows are short, and together pair each Pi, each Node and each mode.
 * @param {Host} host @param {Mode} mode
 * @returns {readonly Column[]}
 */
function momentsOf({ name, version }, mode) {
  if (everything || (version === MAIN && mode !== "json")) return COLUMNS;
  if (name === "Pi 0.74.2, Node 22" && mode !== "TUI") return [];
  return mode === "json" && version !== MAIN ? SHORTEST : SHORT;
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
        const project = await aProject(t, { host, extensions: [extension, acting], script: { otherwise: echo } });
        const seat = seatAt(mode, project);
        await live({ seat, project, moments, cell: (column, moment) => cell(t, rowOf(host, mode), column, moment) });
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
 * @param {import("node:test").TestContext} t
 * @param {string} row
 * @param {Column} column
 * @param {() => Promise<void>} moment
 */
async function cell(t, row, column, moment) {
  await t.test(column, async () => {
    matrix.set(row, column, "FAIL");
    await moment();
    matrix.set(row, column, "pass");
  });
}

/**
 * A life with all its moments, in an order in which few starts are needed; or a short one.
 * @param {object} given
 * @param {Seat} given.seat
 * @param {Project} given.project
 * @param {readonly Column[]} given.moments
 * @param {(column: Column, moment: () => Promise<void>) => Promise<void>} given.cell
 */
async function live({ seat, project, moments, cell }) {
  /** The interactive modes write on while we look, the others have ended. */
  const agreed = () => (seat.interactive ? eventually(() => assertAgreement(project)) : assertAgreement(project));

  await cell("start", async () => {
    await seat.begin([]);
    await seat.do({ say: "the first" }, { say: "the second" });
    await agreed();
  });
  if (moments === SHORTEST) return seat.leave();
  if (moments !== SHORT) await wander({ seat, project, cell, agreed });

  const history = project.history("019a4f3c-0000-7000-8000-000000000002");
  history.abandoned(() => history.talk(2, { name: "aside" }));
  history.talk(40);
  const file = history.write(project.sessionDir);

  await cell("resume", async () => {
    await seat.begin(["--session", file]);
    await seat.do({ say: "resumed" });
    const session = sessionSaying(project, "resumed");
    assert.equal(session.file, file);
    await agreed();
  });

  await cell("compact", async () => {
    const { id } = sessionSaying(project, "resumed");
    await seat.do({ act: "compact" }, { say: "compacted" });
    const session = sessionSaying(project, "compacted");
    assert.equal(session.id, id);
    assert.ok(session.compactedBy().length > 10);
    assert.ok(project.summaryCalls.length > 0, "the model was asked for summaries");
    assert.match(session.lastCompaction.summary, /What happened was summarised\./);
    assert.equal(blockOf(project.lastTurn), session.lastCompaction.summary);
    assert.ok(session.branch().includes(session.lastCompaction));
    await agreed();
  });

  await cell("lcm_grep", async () => {
    project.script.turns = [{ toolCalls: [{ name: "lcm_grep", arguments: { query: "mark0000x" } }] }];
    await seat.do({ say: "search" });
    const answer = project.lastTurn.messages.findLast(({ role }) => role === "tool");
    assert.match(answer?.text ?? "", /^(In s-[0-9a-f]{10}:\n)?m-[0-9a-f]{10} .*«mark0000x»/);
    await agreed();
  });

  await seat.leave();
  assertAgreement(project);
}

/**
 * Forks, clones, trees, switches, and the ways to end.
 * @param {object} given
 * @param {Seat} given.seat
 * @param {Project} given.project
 * @param {(column: Column, moment: () => Promise<void>) => Promise<void>} given.cell
 * @param {() => Promise<void> | void} given.agreed
 */
async function wander({ seat, project, cell, agreed }) {
  /** Print and json begin anew each time, where the interactive modes stay. @param {SessionFile} session */
  const at = async (session) => {
    if (!seat.interactive) await seat.begin(["--session", session.file]);
  };

  const first = sessionSaying(project, "the first");

  await cell("fork", async () => {
    await at(first);
    await seat.do({ act: "fork", which: "the second" }, { say: "in the fork" });
    const fork = sessionSaying(project, "in the fork");
    assert.equal(fork.header.parentSession, first.file);
    assert.deepEqual(conversation(fork), ["the first", heard("the first"), "in the fork", heard("in the fork")]);
    await agreed();
  });

  await cell("clone", async () => {
    const fork = sessionSaying(project, "in the fork");
    await at(fork);
    await seat.do({ act: "clone" }, { say: "in the clone" });
    const clone = sessionSaying(project, "in the clone");
    assert.equal(clone.header.parentSession, fork.file);
    assert.deepEqual(clone.entries.slice(0, fork.entries.length).map(({ id }) => id), fork.entries.map(({ id }) => id));
    await agreed();
  });

  await cell("tree", async () => {
    const clone = sessionSaying(project, "in the clone");
    await at(clone);
    await seat.do({ act: "tree", which: heard("the first") }, { say: "on another branch" });
    const grown = sessionSaying(project, "on another branch");
    assert.equal(grown.id, clone.id);
    assert.deepEqual(conversation(grown), ["the first", heard("the first"), "on another branch", heard("on another branch")]);
    await agreed();
  });

  await cell("tree+summary", async () => {
    const grown = sessionSaying(project, "on another branch");
    await at(grown);
    await seat.do({ act: "tree-summary", which: heard("the first") }, { say: "with a summary" });
    const session = sessionSaying(project, "with a summary");
    assert.equal(session.id, grown.id);
    const summary = session.branch().find(({ type }) => type === "branch_summary");
    assert.ok(summary, "the summary is on the branch");
    assert.ok(project.lastTurn.messages.some(({ text }) => text.includes(summary.summary)), "the model was shown it");
    await agreed();
  });

  await cell("reload", async () => {
    const before = sessionSaying(project, "with a summary");
    await at(before);
    await seat.do({ act: "reload" }, { say: "after reloading" });
    assert.equal(sessionSaying(project, "after reloading").id, before.id);
    await agreed();
  });

  await cell("new", async () => {
    const before = project.sessions().length;
    await at(first);
    await seat.do({ act: "new" }, { say: "in a new one" });
    assert.equal(project.sessions().length, before + 1);
    assert.deepEqual(conversation(sessionSaying(project, "in a new one")), ["in a new one", heard("in a new one")]);
    await agreed();
  });

  await cell("switch", async () => {
    const past = project.history("019a4f3c-0000-7000-8000-000000000001");
    past.user("long ago");
    past.assistant("It was.");
    const other = new SessionFile(past.write(project.sessionDir));
    await at(first);
    await seat.do({ act: "switch", which: other }, { say: "back again" });
    assert.equal(sessionSaying(project, "back again").id, other.id);
    await agreed();
  });

  await cell("quit", async () => {
    await seat.leave();
    assertAgreement(project);
  });

  await cell("continue", async () => {
    const latest = sessionSaying(project, "back again");
    await seat.begin(["--continue"]);
    await seat.do({ say: "continued" });
    assert.equal(sessionSaying(project, "continued").id, latest.id);
    await agreed();
  });

  for (const [column, signal] of /** @type {const} */ ([["SIGTERM", "SIGTERM"], ["SIGINT", "SIGINT"], ["crash", "SIGKILL"]])) {
    await cell(column, async () => {
      const { id } = sessionSaying(project, "back again");
      await seat.dieBy(signal, `before ${signal}`, `cut off by ${signal}`);
      await seat.begin(["--continue"]);
      await seat.do({ say: `after ${signal}` });
      const session = sessionSaying(project, `after ${signal}`);
      assert.equal(session.id, id);
      assert.deepEqual(userTexts(session).slice(-3), [`before ${signal}`, `cut off by ${signal}`, `after ${signal}`]);
      await agreed();
    });
  }
}

/** Repeats what the user said. @param {import("../support/project.mjs").Received} request */
function echo({ messages }) {
  const said = messages.findLast(({ role }) => role === "user");
  return { text: heard(said?.text ?? "") };
}

/** What was said on the branch where Pi would open the session. @param {SessionFile} session */
function conversation(session) {
  return session.branch().map((entry) => saidBy(entry, "user") ?? saidBy(entry, "assistant")).filter((text) => text !== undefined);
}

/** @param {SessionFile} session */
function userTexts(session) {
  return session.branch().map((entry) => saidBy(entry, "user")).filter((text) => text !== undefined);
}
