/**
 * Moving a project's history to another machine: exported after work in the real Pi and imported under another name, it is identical; and
 * every Pi opens an exported session as its own.
 */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { answer, ask, lcm } from "../support/cli.mjs";
import { Store } from "../support/store.mjs";
import { filler } from "../support/history.mjs";
import { aProject, eventually, temporaryFolder } from "../support/project.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */

/** A store's content, independent of row ids and file names. @param {string} dir */
function digest(dir) {
  const store = new Store(dir);
  const sessions = store.rows("SELECT session_id FROM conversations ORDER BY session_id").map(({ session_id }) => session_id);
  const held = {
    entries: Object.fromEntries(sessions.map((id) => [id, store.entries(id)])),
    messages: store.rows("SELECT hex(lineage) AS lineage, kind, role, tool_name, tokens, timestamp, bytes FROM messages ORDER BY 1"),
    edits: store.rows("SELECT entry_id, target, hex(m.lineage) AS shown FROM entries e LEFT JOIN messages m ON m.id = e.message_id WHERE e.kind = 2 ORDER BY 1"),
    compactions: store.rows("SELECT entry_id FROM entries WHERE kind = 3 ORDER BY 1"),
    summaries: store.rows("SELECT hex(hash) AS hash, depth, state, model, tokens, created_at, messages FROM summaries ORDER BY 1"),
    edges: store.rows(
      `SELECT hex(s.hash) AS summary, ordinal, hex(m.lineage) AS message, hex(t.hash) AS source FROM summary_sources e JOIN summaries s ON s.id = e.summary_id
         LEFT JOIN messages m ON m.id = e.message_id LEFT JOIN summaries t ON t.id = e.source_id ORDER BY 1, 2`,
    ),
    carried: store.rows("SELECT e.entry_id, hex(s.hash) AS hash FROM carried c JOIN entries e ON e.id = c.entry_id JOIN summaries s ON s.id = c.summary_id ORDER BY 1, 2"),
  };
  store.close();
  return held;
}

/** A project with a fork, an abandoned branch, a compaction and a summary that no compaction carries. @param {Project} project */
async function workedOn(project) {
  const pi = project.startPi();
  for (let turn = 0; turn < 8; turn++) await pi.prompt(`${filler(`turn ${turn}`, 60)} turn ${turn}`);
  await pi.request("compact");
  await pi.prompt("after the compaction");
  const { messages } = await pi.request("get_fork_messages");
  await pi.request("fork", { entryId: messages.at(-1).entryId });
  await pi.prompt("another way");
  await pi.request("new_session");
  await pi.prompt("something else, 你好");
  await pi.stop();
}

for (const host of hostsFor()) {
  test(`a project is identical on another machine, on ${host.name}`, async (t) => {
    const project = await aProject(t, { host });
    await workedOn(project);
    const here = digest(project.storeDir);
    assert.ok(here.summaries.length > 0 && Object.keys(here.entries).length === 3);
    const out = path.join(project.agentDir, "out");
    const exported = await ask(project, "export", "--jsonl", "--all", out);
    assert.equal(exported.files.length, 3);

    const machine = realpathSync(temporaryFolder(t));
    const there = { cwd: path.join(machine, "elsewhere"), agentDir: path.join(machine, "agent"), storeDir: path.join(machine, "store"), env: { HOME: machine } };
    mkdirSync(there.cwd);
    const taken = await ask({ ...there, cwd: machine }, "import", "--project", there.cwd, out);
    assert.deepEqual([taken.sessions, taken.failed, taken.brokenLines], [3, [], 0]);
    assert.deepEqual(digest(there.storeDir), here);
    const again = await ask(there, "import", out);
    assert.deepEqual([again.newMessages, again.sessions], [0, 3]);
    assert.equal((await answer(there, "doctor")).code, 0);
    assert.ok((await ask(there, "grep", "你好")).hits.length > 0);

    // And back again, without the exported files.
    rmSync(out, { recursive: true });
    const back = path.join(machine, "back");
    await ask(there, "export", "--jsonl", "--all", back);
    const third = { ...there, storeDir: path.join(machine, "third") };
    await ask(third, "import", back);
    assert.deepEqual(digest(third.storeDir), here);
  });

  test(`Pi opens a session that was exported with its summaries, on ${host.name}`, async (t) => {
    const lcmSettings = { compactionModels: ["demo/demo-model"], leafChunkTokens: 4000 };
    const project = await aProject(t, { host, contextWindow: 60_000, settings: { compaction: { reserveTokens: 10_000, keepRecentTokens: 3_000 }, lcm: lcmSettings } });
    const history = project.history();
    history.talk(95, { words: 100 });
    const pi = project.startPi(["--session", history.write(project.sessionDir)]);
    await pi.prompt("Where are we?");
    await eventually(() => assert.ok(uncarried(project) > 2));
    await pi.request("new_session");
    const session = await project.session();
    const ahead = uncarried(project);
    // Pi takes session files in its own folder for those of its first versions, and moves them.
    const out = path.join(path.dirname(project.agentDir), "out.jsonl");
    assert.equal((await lcm(project, "export", "--jsonl", out)).code, 0);
    const lines = readFileSync(out, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
    assert.deepEqual([lines.at(-1).type, lines.at(-1).id], ["session", session.id]);
    // One that was being written may have been added.
    const { length } = lines.at(-1).summaries;
    assert.ok(length >= ahead && length <= uncarried(project), `${length} of ${ahead} summaries`);

    await pi.request("switch_session", { sessionPath: out });
    const said = session.entries.filter(({ type, message }) => type === "message" && message.role !== "system").length;
    await pi.prompt("and it goes on");
    assert.equal(project.lastTurn.messages.length, said + 1, "the model sees all messages");
    const { sessionId } = await pi.request("get_state");
    assert.equal(sessionId, session.id);
    await pi.stop();
    const after = readFileSync(out, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
    // A fold may come after it.
    const last = after.findLast(({ type }) => type === "message");
    const above = new Map(after.filter(({ type }) => type !== "session").map((entry) => [entry.id, entry]));
    assert.equal(last.message.role, "assistant");
    let depth = 0;
    for (let entry = last; entry; entry = above.get(entry.parentId)) depth++;
    assert.ok(depth > said, "new messages are below the exported ones");

    const machine = realpathSync(temporaryFolder(t));
    const there = { cwd: machine, agentDir: machine, storeDir: path.join(machine, "store") };
    assert.deepEqual((await ask(there, "import", out)).failed, []);
    const store = new Store(there.storeDir);
    assert.equal(store.count("summaries"), lines.at(-1).summaries.length);
    store.close();
  });
}

/** Summaries that were made ahead, and are in no session file yet. @param {Project} project @returns {number} */
function uncarried(project) {
  return project.inStore((store) => store.rows("SELECT count(*) AS n FROM summaries s WHERE NOT EXISTS (SELECT 1 FROM carried c WHERE c.summary_id = s.id)")[0].n);
}
