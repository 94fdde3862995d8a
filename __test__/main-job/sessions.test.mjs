/** Several sessions of one project: forks and clones share what they have in common, others stay separate. */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { assertAgreement } from "../support/agreement.mjs";
import { blockOf, drillDownIds } from "../support/block.mjs";
import { filler } from "../support/history.mjs";
import { aProject, eventually } from "../support/project.mjs";

/** @typedef {import("../support/project.mjs").Pi} Pi */

test("several sessions", async (t) => {
  const project = await aProject(t, { settings: { lcm: { leafChunkTokens: 4000 } } });
  /** @type {Pi} */
  let pi;

  await t.test("a deleted store is rebuilt from the session file without a model call", async () => {
    const history = project.history();
    history.talk(130, { words: 60 });
    const file = history.write(project.sessionDir);
    const before = project.startPi(["--session", file]);
    await before.request("compact");
    await before.stop();
    const identities = () =>
      project.inStore((store) => [
        store.rows("SELECT lower(hex(lineage)) AS id FROM messages ORDER BY id").map(({ id }) => id),
        store.rows("SELECT lower(hex(hash)) AS id, depth, text, hex(packed) AS packed, state FROM summaries ORDER BY hash").map((row) => ({ ...row })),
      ]);
    const [messages, summaries] = identities();
    assert.ok(summaries.length > 6);
    const calls = project.summaryCalls.length;
    rmSync(project.storeDir, { recursive: true });

    pi = project.startPi(["--session", file]);
    await eventually(() => assert.deepEqual(identities(), [messages, summaries]));
    const session = await project.session(pi);
    const ids = drillDownIds(session.lastCompaction.summary);
    assert.deepEqual(project.inStore((store) => store.entriesUnder(session.id, ids)), session.compactedBy());
    assert.equal(project.summaryCalls.length, calls);
  });
  await t.test("sessions of one process stay separate", async (t) => {
    await pi.request("new_session");
    await pi.prompt("a walrus in the first");
    const first = await project.session(pi);
    await pi.request("new_session");
    await pi.prompt("an ostrich in the second");
    const second = await project.session(pi);
    assert.notEqual(second.id, first.id);
    await eventually(() => assertAgreement(project));

    await t.test("they stay separate after switching back", async () => {
      await pi.request("switch_session", { sessionPath: first.file });
      await pi.prompt("back again");
      const longer = await project.session(pi);
      assert.equal(longer.id, first.id);
      assert.ok(longer.entries.length > first.entries.length);
      await eventually(() => assertAgreement(project));
    });

    await t.test("each shows its own footer", async () => {
      await pi.waitFor(() => pi.status("lcm")?.startsWith("LCM: 4 msgs"));
      await pi.request("switch_session", { sessionPath: second.file });
      await pi.waitFor(() => pi.status("lcm")?.startsWith("LCM: 2 msgs"));
    });

    await t.test("a search that its session does not answer covers the project", async () => {
      const search = (/** @type {object} */ more) => ({ toolCalls: [{ name: "lcm_grep", arguments: { query: "walrus", ...more } }] });
      project.script.turns = [search({ session: "this" }), search({})];
      await pi.prompt("search");
      const answers = project.lastTurn.messages.filter(({ role }) => role === "tool").map(({ text }) => text) ?? [];
      assert.match(answers[0], /^Nothing found/);
      assert.match(answers[1], /^This session has no exact match: these are of the whole project\.\nSession .* UTC \(.*\):\nm-[0-9a-f]{10} /);
    });
  });

  await t.test("a session that has only begun finds what the only other one said", async (t) => {
    const own = await aProject(t, { host: project.host });
    const fresh = own.startPi();
    await fresh.prompt("Where is the walrus?");
    await fresh.request("new_session");
    await fresh.prompt("/lcm search walrus");
    assert.match(fresh.ui("notify").at(-1)?.message ?? "", /^This session has no exact match: these are of the whole project\.[^]*Where is the «walrus»/);
    await fresh.stop();
  });

  await t.test("forks and clones use the summaries of their parent", async (t) => {
    const history = project.history("parent");
    history.talk(40, { name: "parent" });
    // The tail begins with this question: the parent's summaries cover everything before it.
    const question = history.user(`the question at which the fork leaves ${filler("question", 300)}`);
    history.assistant("the answer");
    await project.resume(pi, history);
    await pi.request("compact");
    const parent = await project.session(pi);
    assert.equal(parent.lastCompaction.firstKeptEntryId, question);
    const calls = project.summaryCalls.length;
    // Without Pi's entries for its prompt and tools, which each new session gets.
    const said = () => project.inStore((store) => store.rows("SELECT count(*) AS n FROM messages WHERE role <> 'system'")[0].n);
    const before = said();

    await t.test("a clone continues with the same block", async () => {
      await pi.request("clone");
      await pi.prompt("in the clone");
      const clone = await project.session(pi);
      assert.notEqual(clone.id, parent.id);
      assert.equal(blockOf(project.lastTurn), parent.lastCompaction.summary);
      assert.equal(project.summaryCalls.length, calls);
      await eventually(() => assertAgreement(project));
    });

    await t.test("a fork from before the compaction compacts without a model call", async () => {
      await pi.request("switch_session", { sessionPath: parent.file });
      await pi.request("fork", { entryId: question });
      await pi.prompt(`in the fork ${filler("fork", 300)}`);
      assert.equal(blockOf(project.lastTurn), undefined);
      await pi.request("compact");
      const fork = await project.session(pi);
      assert.notEqual(fork.id, parent.id);
      assert.equal(project.summaryCalls.length, calls);
      const ids = drillDownIds(fork.lastCompaction.summary);
      assert.deepEqual(ids, drillDownIds(parent.lastCompaction.summary));
      assert.deepEqual(project.inStore((store) => store.entriesUnder(fork.id, ids)), fork.compactedBy());
    });

    await t.test("the list tells forks from the session that they begin as", async () => {
      const from = pi.ui("notify").length;
      await pi.prompt("/lcm sessions");
      await pi.waitFor(() => pi.ui("notify").length > from);
      const list = pi.ui("notify").slice(from)[0].message;
      assert.equal(list.match(/\n {4}\(this one\) \(a fork\) \S/g)?.length, 1, list);
      assert.equal(list.match(/\(a fork\)/g)?.length, 2, list);
      assert.match(list, new RegExp(`^${parent.id} .*\\n {4}parent0000x`, "m"));
    });

    await t.test("the shared messages are stored once", () => {
      // Only two prompts and their answers are new.
      assert.equal(said(), before + 4);
    });
  });
});

test("a fork of a file of Pi's first format is stored from its first new message on", async (t) => {
  const project = await aProject(t);
  const said = (/** @type {string} */ text) => ({ type: "message", timestamp: "2025-11-20T09:00:00.000Z", message: { role: "user", content: text, timestamp: 1 } });
  const lines = [{ type: "session", id: "old", timestamp: "2025-11-20T09:00:00.000Z", cwd: project.cwd }, said("one"), said("two")];
  const file = path.join(project.cwd, "old.jsonl");
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const pi = project.startPi(["--fork", file]);
  await pi.prompt("in the fork");
  await pi.waitFor(() => pi.status("lcm")?.startsWith("LCM: 2 msgs"));
  assert.deepEqual(pi.ui("notify").filter(({ message }) => message.includes("pi-lossless-context")), []);
  await pi.stop();
});
