/**
 * `/lcm` without a screen: on stdout in print mode, as an event in json mode, as a notification in rpc mode; as text, and with `--json` as
 * JSON.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { ask } from "../support/cli.mjs";
import { filler } from "../support/history.mjs";
import { aProject, eventually } from "../support/project.mjs";
import { inSession, SessionFile, sessionOf } from "./asking.mjs";

/** The fields of each command's JSON. @type {Record<string, string[]>} */
const SHAPES = {
  "": ["commands", "database"],
  "help tree": ["name", "help", "usage"],
  stats: ["session", "project", "summaries", "branch", "cost", "requests", "cache", "background", "database"],
  tree: ["messages", "frontierTokens", "elsewhere", "frontier"],
  "search mark0003x": ["query", "hits", "isCut", "more", "isWidened", "otherSessions", "missing", "unknown", "absent", "weak", "asWords"],
  doctor: ["sound", "checks"],
  "import --stop": ["message"],
  settings: ["settings"],
  "settings maxDepth": ["setting"],
  "stat --json": ["error"],
};

for (const host of hostsFor()) {
  test(`in print mode each command answers on stdout, as text and as JSON, and completely even to a slow reader, on ${host.name}`, async (t) => {
    const project = await aProject(t, { host });
    const history = project.history();
    const long = filler("slowly", 80_000);
    history.user(`the long one ${long}`);
    history.assistant("done");
    history.talk(6);
    const file = history.write(project.sessionDir);
    assert.equal((await ask(project, "import", file)).newMessages, 14);
    const idOf = async (/** @type {string} */ word) => (await ask(project, "grep", word)).hits[0].id;
    const [short, longest] = [await idOf("mark0003x"), await idOf("long")];
    const lines = [...Object.keys(SHAPES).map((line) => `${line} --json`), "stats", "stat", `show ${short}`, `show ${longest}`];
    const printed = await inSession(project, file, ["-p", ...lines.map((line) => `/lcm ${line}`)], {
      // Nothing is read before there is more than the pipe holds.
      onStart: ({ stdout: pipe }) => {
        const isFull = () => assert.ok(pipe && pipe.readableLength >= pipe.readableHighWaterMark);
        eventually(isFull).finally(() => pipe?.resume());
        pipe?.pause();
      },
    });
    // Each is an object whose braces are on lines of their own.
    const answers = printed.match(/^\{$[^]*?^\}$/gm) ?? [];
    const shapes = Object.keys(SHAPES).map((line, at) => [line, Object.keys(JSON.parse(answers[at]))]);
    assert.deepEqual(Object.fromEntries(shapes), SHAPES);
    const [{ id }] = JSON.parse(answers[Object.keys(SHAPES).indexOf("search mark0003x")]).hits;
    assert.equal(id, short);
    assert.match(printed, /\nThis session +14 messages, 14 on this branch\nThis project +14 messages, 1 session\nSummaries +none yet\n[^]*\nPrompt cache +not reported\nBackground +idle;/);
    assert.ok(printed.includes("\nthere is no /lcm stat: did you mean /lcm stats? (/lcm help lists all)\n"));
    assert.match(printed, new RegExp(`\n${id} · assistant · .* · message 6 of 14 on this branch\\n[^]*mark0003x done`));
    assert.ok(long.length > 400_000 && printed.includes(`the long one ${long}`));
    assert.equal(project.turns.length, 0);
  });

  test(`an exported session is a session of Pi's and can be imported completely; in json mode an answer is an event, on ${host.name}`, async (t) => {
    const project = await aProject(t, { host });
    const pi = project.startPi(["--session", sessionOf(project, 40)]);
    await pi.prompt("one more");
    await pi.request("compact");
    await pi.prompt("and after it");
    const answerTo = async (/** @type {string} */ line) => {
      const from = pi.ui("notify").length;
      await pi.prompt(`/lcm ${line}`);
      await pi.waitFor(() => pi.ui("notify").length > from);
      return pi.ui("notify").slice(from)[0];
    };
    assert.match((await answerTo("sessions")).message, /^\S+ +84 messages, .*\n {4}\(this one\) \S/);
    const simulated = (await answerTo(`simulate ${(await pi.request("get_state")).sessionFile}`)).message;
    assert.match(simulated, /at the prices of \S+ \(window of [\d,]+ tokens\);/, "the window is the open model's");
    assert.match((await answerTo("export --jsonl out.jsonl")).message, /^84 messages written to .*out\.jsonl, /);
    const session = await project.session(pi);
    const exported = new SessionFile(path.join(project.cwd, "out.jsonl"));
    assert.deepEqual(exported.entries, session.entries, "the export equals Pi's file");
    const refused = await answerTo("export --jsonl out.jsonl");
    assert.match(refused.message, /out\.jsonl already exists: choose another name, or add --force/);
    assert.match((await answerTo("export")).message, /^84 messages written to .*\.md, /);
    const [markdown] = readdirSync(project.cwd).filter((name) => name.endsWith(".md"));
    const text = readFileSync(path.join(project.cwd, markdown), "utf8");
    assert.match(text, /^# Session [^]*\n## 1\. User · [^]*mark0000x[^]*\n## 84\. Assistant · /);
    await pi.stop();

    const other = await aProject(t, { host });
    const out = path.join(project.cwd, "out.jsonl");
    assert.equal((await ask(other, "import", out)).newMessages, 84);
    const stdout = await inSession(other, out, ["--mode", "json", "/lcm tree", "/lcm stats", "/lcm stat"]);
    const events = stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
    const [tree, stats, failure] = events.filter(({ type }) => type === "lcm");
    assert.match(tree.text, /^84 messages on this branch, [^]*● s-[0-9a-f]{10} D0 /);
    assert.equal(stats.level, "info");
    assert.match(stats.text, /^This session +84 messages/);
    assert.equal(stats.answer.session.messages, 84);
    assert.deepEqual([failure.level, failure.answer.error.code], ["error", "LCM_INVALID"]);
  });
}

test("a purged message is exported neither from the store nor from the session file that still has it", async (t) => {
  const project = await aProject(t);
  const secret = "zanzibar9x";
  const history = project.history();
  history.user(`the word is ${secret}`);
  history.talk(30);
  const file = history.write(project.sessionDir);
  // The summary may repeat it too.
  project.script.summary = ({ raw }) => ({ text: raw.includes(secret) ? `Of ${secret}\nIt was said: ${secret}.` : "Talk\nMuch was said." });
  const pi = project.startPi(["--session", file]);
  await pi.request("compact");
  await pi.prompt("and on");
  assert.ok(new SessionFile(file).entries.some(({ type, summary }) => type === "compaction" && summary.includes(secret)));
  for (const line of ["export before.jsonl --jsonl", `purge ${history.entries[0].id} --yes`, "export after.jsonl --jsonl", "export after.md"]) {
    const before = pi.ui("notify").length;
    await pi.prompt(`/lcm ${line}`);
    await pi.waitFor(() => pi.ui("notify").length > before);
    // Its text may have had what was purged.
    assert.equal(/1 compaction without the text/.test(pi.ui("notify").at(-1)?.message ?? ""), line === "export after.jsonl --jsonl", line);
  }
  const read = (/** @type {string} */ name) => readFileSync(path.join(project.cwd, name), "utf8");
  assert.ok(read("before.jsonl").includes(secret));
  for (const name of ["after.jsonl", "after.md"]) assert.ok(!read(name).includes(secret), name);
  assert.equal(new SessionFile(path.join(project.cwd, "after.jsonl")).entries.filter(({ message }) => message?.role === "user").length, 31);
});

test("/lcm redo has the next compaction write the summaries again", async (t) => {
  const project = await aProject(t);
  const file = path.join(project.agentDir, "models.json");
  const { providers } = JSON.parse(readFileSync(file, "utf8"));
  providers.demo.models.push({ ...providers.demo.models[0], id: "other" });
  writeFileSync(file, JSON.stringify({ providers }));
  const history = project.history();
  history.talk(30);
  project.configure({ lcm: { leafChunkTokens: 1_000, background: false } });
  project.script.summary = ({ index }) => ({ text: `Stretch ${index}\nIt was put badly.` });
  const pi = project.startPi(["--session", history.write(project.sessionDir)]);
  await pi.request("compact");
  await pi.prompt("/lcm redo all --model demo/none");
  await pi.waitFor(() => pi.ui("notify").find(({ message }) => /demo\/none can't write summaries: Pi does not know it/.test(message)));
  await pi.prompt("/lcm redo all --model demo/other");
  const said = await pi.waitFor(() => pi.ui("notify").find(({ message }) => message.includes("written again")));
  assert.match(said.message, /^\d+ leaf summaries and what is made from them will be written again by demo\/other, while the agent works or by the next compaction\. Until then, the old text stays\.$/);
  project.script.summary = ({ index }) => ({ text: `Stretch ${index}\nIt was put well.` });
  await pi.prompt(filler("more", 300));
  await pi.request("compact");
  const { summary } = (await project.session(pi)).lastCompaction;
  assert.ok(project.summaryCalls.some(({ body }) => body.model === "other"));
  assert.ok(summary.includes("It was put well.") && !summary.includes("badly"), summary);
  assert.match(summary, /none missing, 0 degraded/);
});
