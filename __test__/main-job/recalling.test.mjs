/** Retrieving compacted messages, on the real Pi: the model with its tools, the user with `/lcm`. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { blockOf, drillDownIds } from "../support/block.mjs";
import { filler } from "../support/history.mjs";
import { aProject } from "../support/project.mjs";

/** @typedef {import("../../demo/model-server.mjs").Received} Received */
/** @typedef {import("../../demo/model-server.mjs").Reply} Reply */

/**
 * @param {string} name
 * @param {object} args
 * @returns {Reply}
 */
const call = (name, args) => ({ toolCalls: [{ name, arguments: /** @type {Record<string, unknown>} */ (args) }] });

/** @param {Received} request */
const lastAnswer = ({ messages }) => messages.findLast(({ role }) => role === "tool");

/** The first message in the last answer. @param {Received} request */
const namedIn = (request) => /m-[0-9a-f]{10}/.exec(lastAnswer(request)?.text ?? "")?.[0];

/** Expands that message. @param {Received} request */
const expandIt = (request) => call("lcm_expand", { summary_id: namedIn(request) });

/** @param {string} text */
const sha256 = (text) => createHash("sha256").update(text).digest("hex");

test("compacted messages can be retrieved", async (t) => {
  const project = await aProject(t);
  const short = project.history("short");
  short.talk(40, { name: "short" });
  const pi = project.startPi(["--session", short.write(project.sessionDir)]);

  await t.test("the user uses /lcm", async (t) => {
    /** @param {string} line */
    const answerTo = async (line) => {
      const from = pi.ui("notify").length;
      await pi.prompt(line);
      await pi.waitFor(() => pi.ui("notify").length > from);
      return pi.ui("notify").slice(from).map(({ message }) => message);
    };

    await t.test("/lcm help lists the commands, and so does /lcm alone", async () => {
      const [help] = await answerTo("/lcm help");
      for (const name of ["help", "stats", "tree", "compact"]) assert.match(help, new RegExp(`^/lcm ${name} `, "m"));
      assert.ok(help.includes(project.storeDir), "it names the database's folder");
      assert.deepEqual(await answerTo("/lcm"), [help]);
    });

    await t.test("/lcm compact compacts", async () => {
      const [report] = await answerTo("/lcm compact mind the ledger");
      assert.match(report, /^LCM: \d+ messages in \d+ summar/);
      const session = await project.session(pi);
      assert.ok(drillDownIds(session.lastCompaction.summary).length > 0);
      assert.ok(project.summaryCalls.every(({ messages }) => messages[0].text.includes("mind the ledger")));
    });

    await t.test("/lcm stats counts, /lcm tree shows the summaries", async () => {
      const session = await project.session(pi);
      const ids = drillDownIds(session.lastCompaction.summary);
      const [stats] = await answerTo("/lcm stats");
      assert.match(stats, /^This session +80 messages, 80 on this branch$/m);
      assert.match(stats, new RegExp(`^Summaries +${ids.length} D0$`, "m"));
      const [tree] = await answerTo("/lcm tree");
      for (const id of ids) assert.ok(tree.includes(id), id);
    });

    await t.test("an unknown command is answered with the nearest one", async () => {
      assert.deepEqual(await answerTo("/lcm stat"), ["there is no /lcm stat: did you mean /lcm stats? (/lcm help lists all)"]);
    });

    await t.test("nothing of this reached the model or the session", async () => {
      assert.equal(project.turns.length, 0);
      assert.ok((await project.session(pi)).entries.every(({ message }) => !message || !JSON.stringify(message).includes("/lcm")));
    });

    await t.test("in print mode the answer goes to stdout", async () => {
      const { code, stdout } = await project.runPi(["-p", "/lcm stats"]);
      assert.equal(code, 0);
      assert.match(stdout, /^This session +0 messages, 0 on this branch\nThis project +80 messages, [^]*\.db\n +\d+ KB messages [^\n]+\n$/);
      assert.equal(project.turns.length, 0);
    });
  });

  await t.test("the model retrieves compacted messages", async (t) => {
    const output = Array.from({ length: 1200 }, (_, n) => `line ${n}: ${filler(`line ${n}`, 6)} – 行 ${n}`).join("\n");
    const history = project.history("log");
    history.talk(20);
    history.user("read the log", [{ type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" }]);
    history.assistant("", [{ id: "call_log", name: "bash", arguments: { command: "cat import.log" } }]);
    history.toolResult("call_log", "bash", `${output}\nENOENT: the aardvark is missing`);
    history.bash("cat secrets.txt", "the password is pangolin", { excludeFromContext: true });
    history.talk(20, { name: "late" });
    await project.resume(pi, history);
    await pi.request("compact");

    /**
     * Lets the model make these calls, one after the other; a function makes a call from the previous answer.
     * @param {(Reply | ((request: Received) => Reply))[]} calls
     */
    const ask = async (...calls) => {
      const from = project.turns.length;
      project.script.turns = [...calls];
      await pi.prompt("look it up");
      return project.turns.slice(from + 1).map((request) => lastAnswer(request)?.text ?? "");
    };

    await t.test("lcm_grep finds a message, lcm_describe locates it, lcm_expand returns all of it", async () => {
      const describeIt = (/** @type {Received} */ request) => call("lcm_describe", { section: "by_id", summary_id: namedIn(request) });
      const [found, described] = await ask(call("lcm_grep", { query: "aardvark" }), describeIt);
      assert.match(found, /^In s-[0-9a-f]{10}:\nm-[0-9a-f]{10} · toolResult bash · .*«aardvark»/);
      const [leaf] = drillDownIds(blockOf(project.lastTurn) ?? "");
      assert.ok(described.includes(leaf), "the summary that covers it is named");

      let pages = "";
      /** Keeps the previous page, and requests the next one while there is one. @param {Received} request @returns {Reply} */
      const nextPage = (request) => {
        const page = lastAnswer(request)?.text ?? "";
        pages += /<(content-\w+)>\n([^]*)\n<\/\1>/.exec(page)?.[2] ?? "";
        const next = /lcm_expand (\{.*\})/.exec(page)?.[1];
        if (!next) return { text: "That is all." };
        project.script.turns?.push(nextPage);
        return call("lcm_expand", JSON.parse(next));
      };
      await ask(call("lcm_grep", { query: "aardvark" }), expandIt, nextPage);
      const original = `${output}\nENOENT: the aardvark is missing`;
      assert.ok(Buffer.byteLength(original) > 50_000);
      assert.equal(sha256(pages), sha256(original));
    });

    await t.test("an image is returned as an image", async () => {
      await ask(call("lcm_grep", { query: "read the log", role: "user" }), expandIt);
      assert.ok(project.lastTurn.raw.includes("iVBORw0KGgo="));
    });

    await t.test("a summary of the block expands to its messages", async () => {
      const [leaf] = drillDownIds((await project.session(pi)).lastCompaction.summary);
      const [opened] = await ask(call("lcm_expand", { summary_id: leaf, max_tokens: 8000 }));
      assert.match(opened, /mark0000x please/);
    });

    await t.test("an invalid call is an error with a correction", async () => {
      const answers = await ask(
        call("lcm_expand", { summary_id: "m-0000000000" }),
        call("lcm_expand", { summary_id: "the log" }),
        call("lcm_grep", { query: "(", mode: "regex" }),
        call("lcm_grep", { query: " " }),
        call("lcm_describe", { section: "by_id" }),
      );
      const results = (await project.session(pi)).entries.filter(({ message }) => message?.role === "toolResult").slice(-answers.length);
      assert.deepEqual(results.map(({ message }) => message.isError), answers.map(() => true));
      const sentences = [/m-0000000000/, /ids look like m-1a2b3c4d5e/, /unclosed group/, /query/, /needs a summary_id/];
      for (const [at, sentence] of sentences.entries()) assert.match(answers[at], sentence);
    });

    await t.test("private messages are in no search result and no prompt", async () => {
      const answers = await ask(
        call("lcm_grep", { query: "pangolin password" }),
        call("lcm_grep", { query: "pangolin", mode: "regex" }),
        call("lcm_grep", { query: "pangolin", session: "project", scope: "all" }),
        call("lcm_describe", { section: "recent" }),
      );
      for (const answer of answers.slice(0, 3)) assert.match(answer, /^Nothing found/);
      assert.doesNotMatch(answers[3], /secrets\.txt|the password is/);
      assert.ok(project.summaryCalls.every(({ raw }) => !raw.includes("pangolin")));
      assert.ok(project.inStore((store) => store.rows("SELECT 1 FROM messages WHERE role = 'bashExecution'")).length === 1, "but it is stored");
    });
  });
});
