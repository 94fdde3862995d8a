/**
 * From Pi's session tree to the store, on the real Pi: however a session is used, the store has its entries, each message byte for byte and
 * once.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertStored } from "../support/agreement.mjs";
import { aProject, eventually } from "../support/project.mjs";
import { jsonOf, SessionFile } from "../support/session-file.mjs";
import { databasesIn } from "../support/store.mjs";

/** Two calls of one turn with the same command, whose results only differ by the call's id. */
const twiceTheSame = {
  toolCalls: [
    { id: "call_a", name: "bash", arguments: { command: "echo same" } },
    { id: "call_b", name: "bash", arguments: { command: "echo same" } },
  ],
};

test("however Pi is used, the store has the content of the session file", async (t) => {
  const project = await aProject(t);
  const rows = () => project.inStore((store) => ["conversations", "entries", "messages"].map((table) => store.count(table)));

  await t.test("print mode stores the messages and prints only the answer", async () => {
    const { code, stdout } = await project.runPi(["-p", "hello"]);
    assert.deepEqual({ code, stdout }, { code: 0, stdout: "Understood.\n" });
    assertStored(project, await project.session());
  });
  const before = await project.session();

  await t.test("json mode does too and prints only Pi's events; a continued session only gets new messages", async () => {
    const { code, stdout } = await project.runPi(["--mode", "json", "--continue", "-p", "the second prompt"]);
    assert.equal(code, 0);
    const events = stdout.trimEnd().split("\n").map((line) => JSON.parse(line).type);
    assert.ok(events.includes("agent_end"));
    const after = await project.session();
    assert.equal(after.id, before.id);
    assert.ok(after.entries.length > before.entries.length);
    assertStored(project, after);
    assert.equal(project.inStore((store) => store.count("conversations")), 1);
  });

  const stored = rows();
  const pi = project.startPi(["--session", before.file]);

  await t.test("resuming a session by its file adds no duplicates", async () => {
    await pi.prompt("/lcm stats");
    assert.deepEqual(rows(), stored);
  });

  await t.test("a session is stored while Pi runs", async (t) => {
    await pi.request("new_session");
    project.script.turns = [{ text: "Hello.", thinking: "A greeting." }, twiceTheSame];
    const stored = async () => eventually(async () => assertStored(project, await project.session(pi)));

    await t.test("after each prompt the store has the content of the session file", async () => {
      await pi.prompt("Guten Tag, Zoë MÃ¼ller, Š”Ž®, 你好, 👋🏽 and \u2028 too");
      await stored();
      await pi.prompt("run it twice");
      await stored();
    });

    await t.test("two equal parallel tool results are two messages", async () => {
      const session = await project.session(pi);
      const results = session.entries.filter((entry) => entry.message?.role === "toolResult");
      assert.deepEqual(results.map(({ message }) => [message.toolCallId, message.content]), [
        ["call_a", [{ type: "text", text: "same\n" }]],
        ["call_b", [{ type: "text", text: "same\n" }]],
      ]);
      const rows = project.inStore((store) => store.rows("SELECT id FROM messages WHERE role = 'toolResult'"));
      assert.equal(rows.length, 2);
    });

    await t.test("two equal prompts in a row are two messages", async () => {
      await pi.prompt("again");
      await pi.prompt("again");
      await stored();
      const { id } = await project.session(pi);
      const again = project.inStore((store) => store.entries(id));
      assert.equal(again.filter(({ json }) => json && JSON.parse(json).content[0]?.text === "again").length, 2);
    });

    await t.test("the user's own commands are stored, even those kept from the model", async () => {
      await pi.request("bash", { command: "echo seen" });
      await pi.request("bash", { command: "echo unseen", excludeFromContext: true });
      await pi.prompt("go on");
      await stored();
      const said = project.turns.at(-1)?.raw ?? "";
      assert.ok(said.includes("echo seen"));
      assert.ok(!said.includes("unseen"));
    });
  });

  await t.test("a session that began before the extension is stored completely at its first start", async (t) => {
    const history = project.history("before");
    history.talk(120);
    history.entry("model_change", { provider: "demo", modelId: "demo-model" });
    history.user("a picture", [{ type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" }]);
    history.assistant("", [{ id: "call_1", name: "bash", arguments: { command: "printf '\\ud83d'", note: "half a \ud83d pair" } }]);
    history.toolResult("call_1", "bash", "日本語 \u0000 \u2028 \ud83d ".repeat(300));
    history.abandoned(() => {
      history.talk(20, { name: "aside" });
      history.entry("label", { targetId: history.leaf, label: "left here" });
    });
    history.entry("branch_summary", { fromId: history.leaf, summary: "what was left" });
    history.entry("custom_message", { customType: "note", content: "from an extension", display: true });
    history.entry("a_kind_to_come", { anything: [1, 2] });
    const edited = history.user("to be hidden");
    history.entry("context_edit", { targetId: edited, replacement: null });
    history.bash("ls", "a.txt");
    const same = { role: "user", content: "the same to the last byte", timestamp: 1793606400000 };
    for (const message of [same, same]) history.message(message);
    history.talk(20, { name: "late" });

    const file = await project.resume(pi, history);
    await eventually(() => assertStored(project, new SessionFile(file)));
    const session = new SessionFile(file);
    assert.ok(session.entries.length > 300);
    assert.equal(project.server.requests.length, 0);

    await t.test("each message separately, even equal ones", () => {
      const messages = session.entries.filter((entry) => jsonOf(entry) !== null).length;
      const distinct = `SELECT count(DISTINCT e.message_id) AS n FROM entries e JOIN conversations c ON c.id = e.conversation_id
        WHERE e.kind = 1 AND c.session_id = ?`;
      assert.equal(project.inStore((store) => store.rows(distinct, session.id)[0].n), messages);
    });

    await t.test("the footer counts its messages", async () => {
      const messages = session.entries.filter((entry) => jsonOf(entry) !== null).length;
      await pi.waitFor(() => pi.status("lcm")?.startsWith(`LCM: ${messages} msgs | `));
    });
  });

  await t.test("a killed Pi loses nothing that is in the session file", async (t) => {
    await pi.request("new_session");
    project.script.turns = [{ text: "One." }, { toolCalls: [{ name: "bash", arguments: { command: "echo started" } }] }, { hang: true }];
    await pi.prompt("first");
    const { file, id } = await project.session(pi);
    await pi.request("prompt", { message: "second" });
    await eventually(() => assert.equal(project.turns.length, 3));
    await pi.kill("SIGKILL");

    const killed = new SessionFile(file);
    assert.equal(killed.entries.at(-1).message.role, "toolResult");
    const again = project.startPi(["--session", file]);
    await again.prompt("third");
    await eventually(() => assertStored(project, new SessionFile(file)));
    assert.equal(project.inStore((store) => store.rows("SELECT 1 FROM conversations WHERE session_id = ?", id)).length, 1);
  });
});

test("a session without a file leaves no database", async (t) => {
  const project = await aProject(t);
  const pi = project.startPi(["--no-session"]);
  await pi.prompt("keep this to yourself");
  await pi.prompt("/lcm stats");
  const [stats] = pi.ui("notify").map(({ message }) => message);
  assert.match(stats, /^This session +2 messages/);
  assert.match(stats, /memory only/);
  await pi.stop();
  assert.deepEqual(databasesIn(project.storeDir), []);
});
