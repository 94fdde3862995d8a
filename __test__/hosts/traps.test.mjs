/**
 * Pitfalls of Pi, on each version that has them: events that come twice, late or never, entries without an event, files that do not exist
 * yet or have an older format, and failures of the extension.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { everything, hosts, hostsFor } from "../../scripts/hosts.mjs";
import { extension, root } from "../../scripts/paths.mjs";
import { startsIn } from "../support/acting.mjs";
import { assertAgreement, assertStored } from "../support/agreement.mjs";
import { blockOf } from "../support/block.mjs";
import { copyWithoutEngine } from "../support/copies.mjs";
import { filler } from "../support/history.mjs";
import { OnePi } from "../support/one-pi.mjs";
import { aProject, eventually, temporaryFolder } from "../support/project.mjs";
import { assertGrowing } from "../support/requests.mjs";
import { saidBy, sessionSaying } from "../support/seats.mjs";
import { SessionFile, textIn } from "../support/session-file.mjs";
import { databasesIn } from "../support/store.mjs";
import { noTerminal } from "../support/terminal.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {(t: import("node:test").TestContext) => Promise<void>} Body */

const inSupport = (/** @type {string} */ name) => path.join(root, "__test__", "support", name);
const acting = inSupport("acting.mjs");

/** The tests mostly wait for processes. */
const AT_ONCE = 3;

/** How hosts differ, which determines what each test expects. @param {import("../../scripts/hosts.mjs").Host} host */
const traitsOf = ({ version }) => ({
  /** A section of the prompt stays in every run. */
  keepsSections: version !== "0.87.1",
  /** The session file exists as soon as the user has sent a message. */
  writesAtOnce: version !== "0.87.1",
  /** In rpc mode, a new session is announced twice. */
  startsTwice: version !== "1.6.0",
});

/** The hosts of a pitfall besides the main one in `npm test`: those that differ from it, see `traitsOf`. */
const [OLD, NEW] = ["0.87.1", "1.6.0"];

for (const host of hosts) {
  const { keepsSections, writesAtOnce, startsTwice } = traitsOf(host);
  /** @param {import("node:test").TestContext} t @param {import("../support/project.mjs").ProjectOptions} [options] */
  const projectHere = (t, options) => aProject(t, { host, extensions: [extension, acting], ...options });
  /**
   * A test of one pitfall.
   * @param {string[]} also
   * @param {string} title
   * @param {[Body] | [{ skip?: string }, Body]} rest as of `test`
   */
  const trap = (also, title, ...rest) => {
    const [options, body] = rest.length === 2 ? rest : [{}, rest[0]];
    if (hostsFor(...also).includes(host)) test(title, options, body);
  };
  /** @param {Project} project */
  const agreed = (project) => eventually(() => assertAgreement(project));

  describe(`${host.name}, in one Pi`, () => {
    const shared = new OnePi({ host, extensions: [extension, acting], settings: { retry: { enabled: true, maxRetries: 2, baseDelayMs: 10 } } });

    trap([OLD, NEW], "the prompt's prefix stays the same between compactions", async (t) => {
      const { project, pi } = await shared.sit(await shared.past(40));
      const look = () => ({ toolCalls: [{ name: "bash", arguments: { command: "echo looked" } }] });
      /** The requests of the user's runs, and of one that an extension starts; both with a tool call. */
      const talk = async () => {
        const from = project.turns.length;
        project.script.turns = [look(), { text: "There." }, { text: "Gladly." }, look(), { text: "Noted." }, { text: "Bye." }];
        await pi.prompt(`Where is it? ${filler("where", 100)}`);
        await pi.prompt("Thank you, 再見.");
        const runs = () => pi.events.filter(({ type }) => type === "agent_end").length;
        const before = runs();
        await pi.prompt("/act trigger a note");
        // The command ends before the run that it starts.
        await eventually(async () => {
          assert.deepEqual([project.turns.length, runs()], [from + 5, before + 1]);
          assert.equal((await pi.request("get_state")).isStreaming, false);
        });
        await pi.prompt("That is all.");
        const requests = project.turns.slice(from);
        assert.equal(requests.length, 6);
        return requests;
      };
      const before = await talk();
      await pi.request("compact");
      const after = await talk();
      await agreed(project);

      const kept = (/** @type {typeof before} */ requests) => (keepsSections ? requests : requests.toSpliced(AFTER_A_TOOL_IN_A_STARTED_RUN, 1));
      await t.test("before the first one", () => assertConstant(kept(before)));
      await t.test("and after it, with the same text about the summaries", () => {
        assertConstant(kept(after));
        assert.ok(blockOf(after[0]));
        assert.equal(new Set([...kept(before), ...kept(after)].map(({ system }) => system)).size, 1);
        assert.equal(after[0].system.split("Older parts of this conversation").length, 2);
      });
      if (keepsSections) return;
      await t.test("but this Pi drops that text after the first tool call of a run that an extension started", () => {
        for (const requests of [before, after]) assert.doesNotMatch(requests[AFTER_A_TOOL_IN_A_STARTED_RUN].system, /Older parts of this conversation/);
      });
    });

    trap([], "a session without messages is not stored", async () => {
      const { project, pi } = await shared.sit();
      const { sessionId } = await pi.request("get_state");
      await pi.waitFor(() => pi.status("lcm")?.startsWith("LCM: 0 msgs"));
      await shared.sit();
      await pi.prompt("said in the next one");
      await agreed(project);
      assert.ok(!project.sessions().some(({ id }) => id === sessionId));
    });

    trap([OLD, NEW], "a session that starts twice is one session", async () => {
      const { project, pi } = await shared.sit();
      await pi.prompt("in the first");
      const before = startsIn(project.agentDir);
      await shared.sit();
      assert.equal(startsIn(project.agentDir) - before, startsTwice ? 2 : 1);
      await pi.prompt("in the new one");
      await agreed(project);
      await pi.waitFor(() => pi.status("lcm")?.startsWith("LCM: 2 msgs"));
    });

    trap([], "Pi's entries for its prompt and tools are stored but not counted", async () => {
      const { project, pi } = await shared.sit();
      await pi.prompt("hello");
      await agreed(project);
      const noted = (await project.session(pi)).entries.filter(({ message }) => message?.role === "system");
      assert.ok(noted.length > 0);
      await pi.waitFor(() => pi.status("lcm")?.startsWith("LCM: 2 msgs"));
    });

    trap([], "choosing a user message in /tree continues above it; choosing the first one adds a second root", async () => {
      const { project, pi } = await shared.sit();
      await pi.prompt("the first");
      await pi.prompt("the second");
      await pi.prompt("/act tree the second");
      await pi.prompt("instead of the second");
      const users = () => sessionSaying(project, "the first").branch().map((entry) => saidBy(entry, "user")).filter(Boolean);
      assert.deepEqual(users(), ["the first", "instead of the second"]);
      await agreed(project);
      await pi.prompt("/act tree the first");
      await pi.prompt("instead of everything");
      assert.deepEqual(users(), ["instead of everything"]);
      await agreed(project);
      const ids = project.inStore((store) => store.entries(sessionSaying(project, "the first").id).map(({ id }) => id));
      assert.equal(new Set(ids).size, ids.length);
    });

    trap([], "a failed and retried answer is stored, and the model sees the second", async () => {
      const { project, pi } = await shared.sit();
      project.script.turns = [{ status: 400, errorBody: "overloaded_error: 529, please retry" }, { text: "The second attempt." }];
      await pi.prompt("try");
      await eventually(async () => assert.equal(textIn((await project.session(pi)).entries.at(-1).message), "The second attempt."));
      await pi.prompt("go on");
      await agreed(project);
      const { entries } = await project.session(pi);
      assert.ok(entries.some(({ message }) => message?.stopReason === "error"), "the failed attempt is in the session");
      assert.ok(entries.some(({ type }) => type === "context_edit"), "an entry hides it");
    });

    for (const version of [1, 2]) {
      trap([], `a session file of version ${version}, which Pi rewrites, is stored as rewritten`, async () => {
        const history = await shared.past(6);
        if (version === 2) history.message({ role: "hookMessage", customType: "note", content: "from a hook", display: true });
        const lines = history.entries.length;
        // Version 1 had neither a number nor a tree.
        Object.assign(history.header, { version: version === 1 ? undefined : version });
        if (version === 1) history.entries = history.entries.map(({ id: _id, parentId: _parentId, ...entry }) => entry);
        const { project, pi } = await shared.sit(history);
        await pi.prompt("still there?");
        const { file } = await project.session(pi);
        await shared.sit();
        await pi.request("switch_session", { sessionPath: file });
        await pi.prompt("and now?");
        const session = new SessionFile(file);
        assert.equal(session.header.version, 3);
        assert.equal(session.visible().length, lines + 4);
        await agreed(project);
      });
    }

    trap([], "an overflowing context is compacted by the extension, and the turn is sent again", async () => {
      const { project, pi } = await shared.sit(await shared.past(120));
      const errorBody = "This model's maximum context length is 9000 tokens, however you requested 9001.";
      project.script.turns = [{ status: 400, errorBody }, { text: "Now it fits." }];
      await pi.prompt("Too much?");
      await eventually(async () => assert.equal(textIn((await project.session(pi)).entries.at(-1).message), "Now it fits."));
      const session = await project.session(pi);
      assert.equal(blockOf(project.lastTurn), session.lastCompaction.summary);
      assert.ok(project.summaryCalls.length > 0);
      await agreed(project);
    });

    trap([], "rpc's abort stops a compaction, and the session continues", async () => {
      const { project, pi } = await shared.sit(await shared.past(40));
      project.script.summary = () => ({ hang: true });
      const compacting = assert.rejects(pi.request("compact"), /cancelled|aborted/i);
      await eventually(() => assert.ok(project.summaryCalls.length > 0));
      await pi.request("abort");
      await compacting;
      await pi.prompt("after that");
      assert.equal((await project.session(pi)).lastCompaction, undefined);
      await agreed(project);
    });

    trap([], "/lcm compact in the middle of a run waits for its end", async () => {
      const { project, pi } = await shared.sit(await shared.past(40));
      /** @type {(reply: { text: string }) => void} */
      let answer = () => {};
      project.script.turns = [() => new Promise((resolve) => (answer = resolve))];
      await pi.request("prompt", { message: "Take your time." });
      await eventually(() => assert.equal(project.turns.length, 1));
      const compacting = pi.request("prompt", { message: "/lcm compact" });
      await pi.request("get_state");
      assert.equal(project.summaryCalls.length, 0);
      answer({ text: "At leisure." });
      await compacting;
      const { entries, lastCompaction } = await project.session(pi);
      const last = entries.findLast(({ message }) => message);
      assert.deepEqual([saidBy(last, "assistant"), last.message.stopReason], ["At leisure.", "stop"]);
      assert.ok(entries.indexOf(lastCompaction) > entries.indexOf(last));
      await agreed(project);
    });

    trap([OLD, NEW], "messages from before the session file exists are kept", async () => {
      const { project, pi } = await shared.sit();
      const { sessionFile, sessionId } = await pi.request("get_state");
      const asked = project.turns.length;
      project.script.turns = [{ hang: true }];
      await pi.request("prompt", { message: "a walrus nobody answered" });
      const said = () => project.inStore((store) => store.entries(sessionId).filter(({ json }) => json?.includes("walrus")).length);
      await eventually(() => assert.deepEqual([project.turns.length - asked, said()], [1, 1], "asked and stored"));
      assert.equal(existsSync(sessionFile), writesAtOnce);
      await pi.kill("SIGKILL");
      shared.gone();

      await (await shared.sit()).pi.prompt("another day");
      await eventually(() => assertStored(project, sessionSaying(project, "another day")));
      assert.equal(said(), 1);
    });

    trap([], "entries without an event are stored when Pi quits", async () => {
      const { project, pi } = await shared.sit();
      await pi.prompt("the question");
      await pi.request("bash", { command: "echo seen" });
      await pi.request("bash", { command: "echo unseen", excludeFromContext: true });
      await pi.request("set_session_name", { name: "a name" });
      for (const line of ["note a note", "remember a fact", "label the question"]) await pi.prompt(`/act ${line}`);
      await pi.stop();
      shared.gone();
      // The last process that closes a database deletes its journal.
      assert.ok(!readdirSync(project.storeDir).some((name) => name.endsWith("-wal")), "no process has the store open");
      const session = sessionSaying(project, "the question");
      const kinds = new Set(session.entries.map(({ type, message }) => message?.role ?? type));
      for (const kind of ["bashExecution", "session_info", "custom_message", "custom", "label"]) assert.ok(kinds.has(kind), kind);
      assertStored(project, session);
    });
  });

  describe(host.name, { concurrency: AT_ONCE }, () => {
    for (const engine of /** @type {const} */ (["missing", "broken"])) {
      trap([], `an engine that is ${engine} is reported, and Pi continues in every mode`, async (t) => {
        const project = await projectHere(t, { extensions: [copyWithoutEngine(temporaryFolder(t), engine)] });
        // Together the two cover each mode except json, which is print mode with another output.
        if (engine === "missing" || everything) {
          const { code, stdout } = await project.runPi(["-p", "hello"]);
          assert.deepEqual({ code, stdout }, { code: 0, stdout: "Understood.\n" });
        }

        if (everything) {
          const json = await project.runPi(["--mode", "json", "hello"]);
          assert.equal(json.code, 0);
          assert.ok(json.stdout.split("\n").filter(Boolean).every((line) => JSON.parse(line).type));
        }

        if (engine === "broken" || everything) {
          const pi = project.startPi();
          await pi.prompt("hello");
          await pi.prompt("/lcm stats");
          const notices = pi.ui("notify").map(({ message }) => message);
          assert.equal(notices.length, 2, "once at the start, and once on request");
          for (const message of notices) assert.match(message, /pi-lossless-context is off: .*\.node/);
        }

        if (noTerminal) return t.diagnostic(`not in the TUI: ${noTerminal}`);
        if (engine === "missing" || everything) {
          const terminal = project.openTerminal();
          await terminal.waitFor((screen) => screen.includes("pi-lossless-context is off"), "why it is off");
          await terminal.send("hello");
          await terminal.waitFor((screen) => screen.includes("Understood."), "an answer");
        }
      });
    }

    trap([], "a session without a file leaves no database", async (t) => {
      const project = await projectHere(t);
      const { code, stdout } = await project.runPi(["--no-session", "-p", "keep this to yourself", "/lcm stats"]);
      assert.equal(code, 0);
      assert.match(stdout, /^This session +2 messages[^]*memory only/);
      assert.deepEqual(databasesIn(project.storeDir), []);
      assert.deepEqual(project.sessions(), []);
    });

    trap([], "Escape in the TUI stops a compaction, and the session continues", { skip: noTerminal }, async (t) => {
      const project = await projectHere(t, { script: { summary: () => ({ hang: true }) } });
      const history = project.history();
      history.talk(40);
      const file = history.write(project.sessionDir);
      const terminal = project.openTerminal(["--session", file]);
      await terminal.waitFor((screen) => screen.includes("LCM: 80 msgs"), "our footer");
      await terminal.send("/compact");
      await eventually(() => assert.ok(project.summaryCalls.length > 0));
      terminal.press("escape");
      await eventually(() => assert.ok(project.summaryCalls.every(({ abandoned }) => abandoned)));
      await terminal.waitFor((screen) => /Compaction cancelled/i.test(screen), "the cancellation");
      await terminal.send("after that");
      await terminal.waitFor((screen) => screen.includes("LCM: 82 msgs"), "two more messages");
      assert.equal(new SessionFile(file).lastCompaction, undefined);
      assert.equal(blockOf(project.lastTurn), undefined);
      await agreed(project);
    });

    trap([], "without a store Pi compacts by itself, and the user is told why once", async (t) => {
      const project = await projectHere(t, { script: { otherwise: () => ({ text: "Pi's own words." }) } });
      writeFileSync(project.storeDir, "a file where the folder should be");
      const history = project.history();
      history.talk(40);
      const file = history.write(project.sessionDir);
      const pi = project.startPi(["--session", file]);
      await pi.prompt("hello");
      const { summary } = await pi.request("compact");
      assert.match(summary, /Pi's own words\./);
      assert.ok(!new SessionFile(file).lastCompaction.fromHook);
      await pi.prompt("and on");
      const notices = pi.ui("notify").map(({ message }) => message);
      assert.equal(notices.length, 1, notices.join("\n"));
      assert.ok(notices[0].includes(project.storeDir), notices[0]);
      assert.equal(project.summaryCalls.length, 0);
      // Nothing can be shown here, as with a missing engine.
      if (!everything) return;
      const { code, stdout } = await project.runPi(["--session", file, "-p", "in print mode"]);
      assert.deepEqual({ code, stdout }, { code: 0, stdout: "Pi's own words.\n" });
    });
  });
}

/** The index of that request among those of the prefix test. */
const AFTER_A_TOOL_IN_A_STARTED_RUN = 4;

/** Asserts that each request extends the one before. @param {import("../../demo/model-server.mjs").Received[]} requests */
function assertConstant(requests) {
  assertGrowing(requests);
  assert.equal(new Set(requests.map(({ body }) => JSON.stringify(body.tools))).size, 1, "the same tools");
}
