/** `index.js` on a fake host: whatever fails, Pi starts, continues, and the user is told once. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { loadEngine } from "../index.js";
import { addon, platformTriple, root } from "../scripts/paths.mjs";
import { drillDownIds } from "./support/block.mjs";
import { FakeHost, reply } from "./support/fake-host.mjs";
import { History } from "./support/history.mjs";
import { escape, handedOverAtStart, heldUp, hosted, inStore, installed, manifest, waiting, working } from "./support/hosted.mjs";
import { eventually, temporaryFolder } from "./support/project.mjs";

/** @typedef {import("node:test").TestContext} TestContext */

for (const [what, wrong, pattern] of /** @type {const} */ ([
  ["is missing", {}, /is missing/],
  ["cannot be loaded", { engine: path.join(root, "README.md") }, /can't be loaded/],
  ["is of another version", { version: "99.0.0", engine: addon() }, new RegExp(`${manifest.version}.*99\\.0\\.0`)],
])) {
  test(`an addon that ${what} is reported once, with file, platform and remedy, and Pi continues`, async (t) => {
    const module = await installed(t, wrong);
    const host = new FakeHost({ cwd: temporaryFolder(t) });
    module.default(host.pi);
    for (const reason of ["startup", "startup", "new"]) await host.emit("session_start", { reason });
    assert.equal(host.notifications.length, 1);
    const [{ message, type }] = host.notifications;
    assert.equal(type, "error");
    assert.match(message, pattern);
    assert.ok(message.includes(`pi-lossless-context.${platformTriple()}.node`), message);
    assert.match(message, /npm run build/);
    assert.equal(host.tools.size, 0);
    for (const name of host.events) assert.deepEqual(await host.emit(name, { systemPrompt: "You are.", message: {} }), [undefined], name);
    assert.equal(host.notifications.length, 1);
    // Otherwise Pi would send `/lcm` to the model.
    await host.commands.get("lcm").handler("stats", host.ctx);
    assert.equal(host.notifications.at(-1)?.message, message);
    assert.throws(() => module.loadEngine(), pattern);
  });
}

test("a missing addon with a stale context does not stop Pi", async (t) => {
  const module = await installed(t);
  const host = new FakeHost({ cwd: temporaryFolder(t) });
  module.default(host.pi);
  host.stale = true;
  await host.emit("session_start", { reason: "startup" });
});

test("a store that cannot be opened is reported once, and Pi does everything itself", async (t) => {
  const file = path.join(temporaryFolder(t), "a-file");
  writeFileSync(file, "not a folder");
  const { host } = hosted(t, { storeDir: file });
  host.history.talk(20);

  await t.test("handlers give Pi nothing to do", async () => {
    const events = { session_start: {}, message_end: { message: {} }, turn_end: {}, agent_end: {}, before_agent_start: { systemPrompt: "You are." } };
    for (const [name, fields] of Object.entries(events)) assert.deepEqual(await host.emit(name, fields), [undefined], name);
    assert.deepEqual(await host.emit("session_before_compact", host.compaction(2)), [undefined]);
    assert.deepEqual(await host.emit("session_compact", { fromExtension: false }), [undefined]);
  });

  await t.test("one notification has the reason", async () => {
    await eventually(() => assert.equal(host.notifications.length, 1));
    assert.ok(host.notifications[0].message.includes(file), host.notifications[0].message);
  });

  await t.test("the tools answer with a sentence", async () => {
    const names = [...host.tools.keys()];
    assert.deepEqual(names, ["lcm_grep", "lcm_expand", "lcm_describe", "lcm_note"]);
    for (const name of names) {
      const saysWhy = (/** @type {unknown} */ error) => error instanceof Error && error.message.includes(file);
      await assert.rejects(host.callTool(name, { query: "x", summary_id: "m-1" }), saysWhy);
    }
  });

  await t.test("so does /lcm", async () => {
    await host.commands.get("lcm").handler("stats", host.ctx);
    assert.ok(host.notifications.at(-1)?.message.includes(file));
    assert.equal(host.notifications.at(-1)?.type, "error");
  });
});

test("session_start may come twice", async (t) => {
  const { host, storeDir } = hosted(t);
  host.history.talk(20);
  await host.emit("session_start", { reason: "startup" });
  await host.emit("session_start", { reason: "new" });
  await host.emit("turn_end");
  await host.commands.get("lcm").handler("stats", host.ctx);
  assert.match(host.notifications[0].message, /^This session +40 messages/);
  inStore(storeDir, (store) => {
    assert.equal(store.count("conversations"), 1);
    assert.deepEqual(store.entries(host.history.id).map(({ id }) => id), host.history.entries.map(({ id }) => id));
  });

  await t.test("it opens the store once: it is closed after the session's end", async () => {
    await host.emit("session_shutdown", { reason: "quit" });
    // SQLite deletes its log when the last connection is closed.
    await eventually(() => assert.deepEqual(readdirSync(storeDir).filter((name) => !name.endsWith(".db")), []), 5000);
  });
});

test("a start hands over only what the store lacks", async (t) => {
  const cwd = temporaryFolder(t);
  const history = new History({ cwd });
  // More entries than one query has, and more characters than one hand-over has.
  for (let n = 0; n < 2000; n++) history.entry("custom", { customType: "note" });
  for (let n = 0; n < 3; n++) history.user("long ".repeat(60_000));
  history.talk(5);
  const ids = (/** @type {History} */ { entries }) => entries.map(({ id }) => id);

  await t.test("the first start everything", async (t) => {
    assert.deepEqual(await handedOverAtStart(t, cwd, history), ids(history));
  });
  await t.test("the next start nothing", async (t) => {
    assert.deepEqual(await handedOverAtStart(t, cwd, history), []);
  });
  await t.test("a start after a crash the lost entries", async (t) => {
    history.talk(4);
    assert.deepEqual(await handedOverAtStart(t, cwd, history), ids(history).slice(-8));
  });
  await t.test("a start after the file was replaced by one of the same length the new entries", async (t) => {
    const replaced = new History({ cwd });
    replaced.entries = history.entries.map((entry, at) => (at < 2010 ? entry : { ...entry, id: `other${at}`, parentId: at === 2010 ? entry.parentId : `other${at - 1}` }));
    replaced.leaf = replaced.entries.at(-1).id;
    assert.deepEqual(await handedOverAtStart(t, cwd, replaced), ids(replaced).slice(2010));
  });
});

test("a file with another order of entries is stored like any other", async (t) => {
  const { host, storeDir } = hosted(t);
  host.history.talk(20, { words: 5 });
  const inOrder = host.history.entries;
  host.history.entries = inOrder.toReversed();
  await host.emit("session_start", { reason: "startup" });
  await host.commands.get("lcm").handler("stats", host.ctx);
  assert.match(host.notifications[0].message, /^This session +40 messages, 40 on this branch/);
  const places = (/** @type {any[]} */ entries) => entries.map(({ id, parentId }) => `${id} below ${parentId}`);
  inStore(storeDir, (store) => assert.deepEqual(places(store.entries(host.history.id)), places(inOrder)));
});

test("messages during the hand-over of the history are stored in their places", async (t) => {
  const { begun, release } = heldUp(t);
  const { host, storeDir } = hosted(t);
  host.history.talk(20);
  await host.emit("session_start", { reason: "startup" });
  await begun;
  host.history.user("meanwhile");
  await host.emit("message_end");
  await host.emit("turn_end");
  inStore(storeDir, (store) => assert.equal(store.count("entries"), 0));
  release();
  await host.commands.get("lcm").handler("stats", host.ctx);
  inStore(storeDir, (store) => {
    const expected = host.history.entries.map(({ id, parentId }) => ({ id, parentId }));
    const stored = store.entries(host.history.id).map(({ id, parentId }) => ({ id, parentId }));
    assert.deepEqual(stored.slice(-3), expected.slice(-3));
    assert.equal(stored.length, expected.length);
  });
});

test("the footer counts what came while a branch that was left was handed over", async (t) => {
  const { begun, release } = heldUp(t, 2);
  const { host } = hosted(t);
  host.history.talk(2);
  await host.emit("session_start", { reason: "startup" });
  await eventually(() => assert.match(host.statuses.at(-1) ?? "", /^LCM: 4 msgs/));
  host.history.abandoned(() => host.history.talk(1));
  await host.emit("session_tree");
  await begun;
  host.history.user("meanwhile");
  await host.emit("agent_end");
  release();
  await eventually(() => assert.match(host.statuses.at(-1) ?? "", /^LCM: 7 msgs/));
});

test("a compaction uses Pi's own model call and has Pi's format", async (t) => {
  /** @type {{ context: any, options: any }[]} */
  const asked = [];
  const { host } = hosted(t, {
    answer: async (context, options) => {
      asked.push({ context, options });
      return reply(`Talk ${asked.length}\nMuch was said.\nExpand for details about: all`);
    },
  });
  host.history.talk(20);
  await host.emit("session_start", { reason: "startup" });
  const wanted = host.compaction(4);
  const [{ compaction }] = await host.emit("session_before_compact", wanted);

  assert.equal(compaction.firstKeptEntryId, wanted.preparation.firstKeptEntryId);
  assert.equal(compaction.tokensBefore, 12_345);
  assert.equal(drillDownIds(compaction.summary).length, asked.length);
  assert.equal(compaction.usage.input, 100 * asked.length);
  assert.ok(asked.length > 0);
  for (const { context, options } of asked) {
    assert.deepEqual([context.messages.length, context.tools], [1, undefined]);
    assert.equal(options.cacheRetention, "none");
    assert.ok(options.maxTokens <= 8192);
  }
});

test("Pi's abort reaches the model calls and cancels the compaction", async (t) => {
  const abort = new AbortController();
  let stopped = 0;
  const { host } = hosted(t, {
    answer: (_context, { signal }) =>
      new Promise((resolve) => {
        signal.addEventListener("abort", () => resolve({ ...reply(""), stopReason: "aborted", errorMessage: `stopped ${++stopped}` }));
        setImmediate(() => abort.abort());
      }),
  });
  host.history.talk(20);
  await host.emit("session_start", { reason: "startup" });
  assert.deepEqual(await host.emit("session_before_compact", host.compaction(4, abort.signal)), [{ cancel: true }]);
  assert.ok(stopped > 0);
  assert.deepEqual(host.notifications, []);

  await t.test("so does an abort before the call", async () => {
    assert.deepEqual(await host.emit("session_before_compact", host.compaction(4, AbortSignal.abort())), [{ cancel: true }]);
  });
});

test("waiting for the history of a long session can be aborted", async (t) => {
  const { release } = heldUp(t);
  const { host } = hosted(t, { answer: async () => reply("Talk\nMuch was said.") });
  host.history.talk(20);
  await host.emit("session_start", { reason: "startup" });
  const abort = new AbortController();
  const compaction = host.emit("session_before_compact", host.compaction(4, abort.signal));
  const call = host.callTool("lcm_grep", { query: "please" }, abort.signal);
  setImmediate(() => abort.abort());
  assert.deepEqual(await compaction, [{ cancel: true }]);
  await assert.rejects(call, /the call was stopped/);
  release();
  const [{ compaction: done }] = await host.emit("session_before_compact", host.compaction(4));
  assert.match(done.summary, /covers 36 messages, none missing/);
});

test("leaving aborts the model calls of work ahead", async (t) => {
  const { host, signals } = await waiting(t);
  await host.emit("session_shutdown", { reason: "quit" });
  assert.deepEqual([...new Set(signals.map(({ aborted }) => aborted))], [true]);
});

test("stopping work ahead aborts its model calls", async (t) => {
  const pressed = escape(t);
  const { host, signals } = await waiting(t);
  assert.deepEqual(await host.emit("session_before_compact", host.compaction(4, pressed)), [{ cancel: true }]);
  await eventually(() => assert.ok(signals.every(({ aborted }) => aborted)));
  await host.emit("session_shutdown", { reason: "quit" });
});

test("work ahead that hangs during a key lookup blocks neither Escape nor leaving", async (t) => {
  const pressed = escape(t);
  const host = working(t, async () => reply("Talk\nMuch was said."));
  let looked = 0;
  const { getApiKeyAndHeaders } = host.plain.modelRegistry;
  host.plain.modelRegistry.getApiKeyAndHeaders = () => new Promise(() => void looked++);
  await host.emit("session_start", { reason: "startup" });
  await host.emit("turn_end");
  await eventually(() => assert.equal(looked, 1));

  await t.test("Escape", async () => {
    assert.deepEqual(await host.emit("session_before_compact", host.compaction(4, pressed)), [{ cancel: true }]);
  });

  await t.test("a compaction after that", async () => {
    const hanging = host.plain.modelRegistry.getApiKeyAndHeaders;
    host.plain.modelRegistry.getApiKeyAndHeaders = getApiKeyAndHeaders;
    const [{ compaction }] = await host.emit("session_before_compact", host.compaction(4));
    assert.match(compaction.summary, /none missing/);
    host.plain.modelRegistry.getApiKeyAndHeaders = hanging;
  });

  await t.test("leaving", async () => {
    host.history.talk(20);
    await host.emit("turn_end");
    await eventually(() => assert.ok(looked >= 2));
    await host.emit("session_shutdown", { reason: "quit" });
  });
});

test("a model call that throws, returns no promise or answers nonsense only degrades the summaries", async (t) => {
  const answers = [
    () => { throw new Error("thrown"); },
    async () => { throw new Error("rejected"); },
    async () => undefined,
    async () => ({ content: 7 }),
  ];
  const { host } = hosted(t, { answer: () => /** @type {any} */ (answers[0]()) });
  host.history.talk(20);
  await host.emit("session_start", { reason: "startup" });
  while (answers.length > 0) {
    const [{ compaction }] = await host.emit("session_before_compact", host.compaction(4));
    assert.match(compaction.summary, /covers 36 messages, none missing, [1-9]\d* degraded/);
    answers.shift();
  }
});

test("a stale context never makes a handler throw", async (t) => {
  const { host } = hosted(t, { answer: async () => reply("Talk\nMuch was said.") });
  host.history.talk(20);
  await host.emit("session_start", { reason: "startup" });
  await host.emit("turn_end");
  host.stale = true;
  const fields = { ...host.compaction(4), systemPrompt: "You are.", message: {}, fromExtension: true };
  for (const name of host.events) await host.emit(name, fields);
  // Without a session, and with no way to start one.
  for (const name of host.events) await host.emit(name, fields);
  await host.commands.get("lcm").handler("stats", host.ctx);
  await host.commands.get("lcm").handler("compact", host.ctx);
});

/**
 * A host with these global settings of the extension.
 * @param {TestContext} t
 * @param {unknown} lcm
 * @param {(host: FakeHost) => void} [prepare]
 */
async function configured(t, lcm, prepare = () => {}) {
  const { host, storeDir, agentDir } = hosted(t, { settings: { theme: "dark", lcm } });
  prepare(host);
  host.history.talk(20);
  await host.emit("session_start", { reason: "startup" });
  return { host, storeDir, agentDir };
}

test("with an extension that has the same tools it stays inactive, and reports it once", async (t) => {
  const theirs = { name: "lcm_grep", sourceInfo: { path: "/elsewhere/pi-lcm/index.ts" } };
  const { host, storeDir } = await configured(t, {}, ({ tools }) => tools.set(theirs.name, theirs));
  await host.emit("session_start", { reason: "new" });
  await host.emit("turn_end");
  assert.deepEqual(host.notifications.map(({ type }) => type), ["warning"]);
  assert.match(host.notifications[0].message, /another extension \(\/elsewhere\/pi-lcm\/index\.ts\).*so this one does nothing/);
  assert.deepEqual([...host.tools.values()], [theirs]);
  // Their command must stay the only one of its name.
  assert.equal(host.commands.size, 0);
  assert.ok(!existsSync(storeDir));
});

test("the footer is only redrawn when its text changes", async (t) => {
  const { host } = hosted(t);
  host.history.talk(20);
  await host.emit("session_start", { reason: "startup" });
  for (let turn = 0; turn < 3; turn++) await host.emit("turn_end");
  await eventually(() => assert.match(host.statuses.at(-1) ?? "", /^LCM: 40 msgs/));
  await host.commands.get("lcm").handler("stats", host.ctx);
  host.history.talk(1);
  // Turns that end within a second of the last count are not counted; the end of a run is.
  await host.emit("agent_end");
  await eventually(() => assert.match(host.statuses.at(-1) ?? "", /^LCM: 42 msgs/));
  assert.deepEqual(host.statuses, [...new Set(host.statuses)]);
});

test("names and arguments of commands are completed", async (t) => {
  const { host } = hosted(t);
  await host.emit("session_start", { reason: "startup" });
  /** @param {string} prefix @returns {string[] | undefined} */
  const completed = (prefix) => host.commands.get("lcm").getArgumentCompletions(prefix)?.map((/** @type {{ value: string }} */ { value }) => value);
  assert.deepEqual(completed("st"), ["stats"]);
  assert.ok((completed("") ?? []).length > 8);
  assert.equal(completed("stats"), undefined, "an open list would take the Enter");
  assert.equal(completed("export --json"), undefined, "every command has it");
  assert.deepEqual(completed("help ex"), ["help export"]);
  assert.deepEqual(completed("export --"), ["export --md", "export --jsonl", "export --html", "export --all", "export --force"]);
  assert.deepEqual(completed("export --jsonl --a"), ["export --jsonl --all"]);
  assert.deepEqual(completed("settings maxD"), ["settings maxDepth"]);
  assert.equal(completed("export "), undefined);
  assert.equal(completed("search words --nothing"), undefined);
});

test("a Pi without panels uses dialogs", async (t) => {
  const { host, agentDir } = await configured(t, { status: false });
  host.plain.mode = "tui";
  host.plain.ui.select = async (/** @type {string} */ _title, /** @type {string[]} */ options) => options.find((line) => /^maxDepth|--global/.test(line));
  /** @type {string[]} */
  const typed = ["3", "message"];
  host.plain.ui.input = async () => typed.shift();
  await host.commands.get("lcm").handler("settings", host.ctx);
  assert.match(host.notifications.at(-1)?.message ?? "", /^Saved in .*settings\.json: maxDepth = 3 \(global\)$/);
  assert.deepEqual(JSON.parse(readFileSync(path.join(agentDir, "settings.json"), "utf8")), { theme: "dark", lcm: { status: false, maxDepth: 3 } });
  await host.commands.get("lcm").handler("search", host.ctx);
  assert.match(host.notifications.at(-1)?.message ?? "", /Nothing found|To read one in full/);
});

test("a compaction replaced by another extension's is reported once, and not claimed as ours", async (t) => {
  const { host } = hosted(t, { answer: async () => reply("Talk\nMuch was said.") });
  host.history.talk(20);
  await host.emit("session_start", { reason: "startup" });
  for (let round = 0; round < 2; round++) {
    await host.emit("session_before_compact", host.compaction(4));
    await host.emit("session_compact", { fromExtension: true, compactionEntry: { summary: "theirs" } });
  }
  assert.equal(host.notifications.length, 1);
  assert.match(host.notifications[0].message, /another extension's compaction/);
});

test("scripts can fill, compact and search a store through the engine", async (t) => {
  const folder = temporaryFolder(t);
  const { Engine, loadSettings } = loadEngine();
  const history = new History({ cwd: folder });
  history.talk(20);
  const sessionFile = path.join(folder, "session.jsonl");
  /** @param {string} answer */
  const ok = (answer) => JSON.parse(answer).ok;
  const { settings, notice } = ok(loadSettings(JSON.stringify({ agentDir: folder, cwd: folder, projectTrusted: true })));
  assert.equal(notice, null);
  const options = { cwd: folder, sessionId: history.id, sessionFile, settings };
  const open = () => Engine.open(JSON.stringify(options));
  const engine = await open();

  const preamble = engine.preamble();
  assert.deepEqual(JSON.parse(engine.handOver(JSON.stringify(history.entries))), { ok: null });
  assert.ok(engine.knows(history.entries[0].id));
  await engine.flush();

  const request = { leafId: history.leaf, firstKeptEntryId: history.entries.at(-2).id, tokensBefore: 1 };
  const facts = { model: { provider: "fake", id: "fake-model" }, auth: { ok: true } };
  /** @type {any[]} */
  const asked = [];
  const outcome = ok(
    await engine.compact(1, JSON.stringify(request), async (json) => {
      const { kind, request } = JSON.parse(json);
      if (kind === "models") return "[null]";
      if (kind === "resolve") return JSON.stringify(facts);
      if (kind === "cached") return "null";
      asked.push(request);
      return JSON.stringify(reply("Talk\nMuch was said."));
    }),
  );
  assert.equal(outcome.kind, "compacted");
  assert.match(outcome.compaction.summary, /covers 38 messages, none missing/);
  assert.deepEqual(Object.keys(asked[0]).sort(), ["maxTokens", "prompt", "system", "timeoutMs"]);
  assert.equal(engine.preamble(), preamble);

  const found = ok(await engine.callTool(2, "lcm_grep", '{"query":"mark0007x"}', history.leaf));
  assert.match(found.content[0].text, /«mark0007x»/);
  assert.match(found.structuredContent.hits[0].snippet, /«mark0007x»/);
  const wrong = JSON.parse(await engine.callTool(3, "lcm_expand", '{"summary_id":"m-0"}', history.leaf));
  assert.equal(typeof wrong.error.message, "string");
  await engine.close();

  const again = await open();
  const ids = JSON.stringify([...history.entries.map(({ id }) => id), "another"]);
  assert.deepEqual(ok(await again.missing(ids)), [history.entries.length]);
  assert.equal(again.known(), history.entries.length);
  assert.match(ok(await again.status()).text, /^LCM: 40 msgs \| \d+ summar/);
  await again.close();
});
