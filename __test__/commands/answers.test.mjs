/**
 * `/lcm` in every mode in which nobody looks at a screen: on stdout in print mode, as an event in json mode, as a notification in
 * rpc mode; in words, and with `--json` as JSON.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsByVersion, hostsFor } from "../../scripts/hosts.mjs";
import { node22 } from "../../scripts/paths.mjs";
import { filler } from "../support/history.mjs";
import { aProject } from "../support/project.mjs";
import { inSession, SessionFile, sessionOf } from "./asking.mjs";

/** What each command's JSON has. @type {Record<string, string[]>} */
const SHAPES = {
  "": ["commands", "database"],
  "help tree": ["name", "help", "usage"],
  stats: ["session", "project", "summaries", "branch", "cost", "cache", "background", "database"],
  tree: ["messages", "frontierTokens", "elsewhere", "frontier"],
  "search mark0003x": ["query", "hits", "isCut", "elsewhere"],
  doctor: ["sound", "checks"],
  "import --stop": ["message"],
  settings: ["settings"],
  "settings maxDepth": ["setting"],
  "stat --json": ["error"],
};

for (const host of hostsFor(hostsByVersion)) {
  test(`in print mode each command answers on stdout, in words and as JSON, on ${host.name}`, async (t) => {
    const project = await aProject(t, { host });
    const file = sessionOf(project, 6);
    const print = (/** @type {string[]} */ ...lines) => inSession(project, file, ["-p", ...lines.map((line) => `/lcm ${line}`)]);
    // Each is an object that begins and ends a line.
    const answers = (await print(...Object.keys(SHAPES).map((line) => `${line} --json`))).match(/^\{$[^]*?^\}$/gm) ?? [];
    const shapes = Object.keys(SHAPES).map((line, at) => [line, Object.keys(JSON.parse(answers[at]))]);
    assert.deepEqual(Object.fromEntries(shapes), SHAPES);
    const [{ id }] = JSON.parse(answers[Object.keys(SHAPES).indexOf("search mark0003x")]).hits;
    const text = await print("stats", "stat", `show ${id}`);
    assert.match(text, /^This session +12 messages, 12 on this branch\nThis project +12 messages, 1 session\nSummaries +none yet\n[^]*\nPrompt cache +not told of\nBackground +nothing under way;/);
    assert.ok(text.includes("\nthere is no /lcm stat: did you mean /lcm stats? (/lcm help lists them all)\n"));
    assert.match(text, new RegExp(`\n${id} · assistant · .* UTC · message 4 of 12 on this branch\\n[^]*mark0003x done`));
    assert.equal(project.turns.length, 0);
  });

  test(`in json mode an answer is an event of its own, on ${host.name}`, async (t) => {
    const project = await aProject(t, { host });
    const stdout = await inSession(project, sessionOf(project, 3), ["--mode", "json", "/lcm stats", "/lcm stat"]);
    const events = stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
    const [{ level, text, answer }, failure] = events.filter(({ type }) => type === "lcm");
    assert.equal(level, "info");
    assert.match(text, /^This session +6 messages/);
    assert.equal(answer.session.messages, 6);
    assert.deepEqual([failure.level, failure.answer.error.code], ["error", "LCM_INVALID"]);
  });

  test(`an answer that is longer than a pipe arrives whole where it is read slowly, on ${host.name}`, async (t) => {
    const project = await aProject(t, { host });
    const history = project.history();
    const long = filler("slowly", 40_000);
    history.user(`the long one ${long}`);
    history.assistant("done");
    const file = history.write(project.sessionDir);
    const [{ id }] = JSON.parse(await inSession(project, file, ["-p", "/lcm search long --json"])).hits;
    const { stdout } = await project.runPi(["--session", file, "-p", `/lcm show ${id}`], {
      onStart: ({ stdout: pipe }) => {
        pipe?.pause();
        setTimeout(() => pipe?.resume(), 4000);
      },
    });
    assert.ok(long.length > 200_000 && stdout.includes(`the long one ${long}`));
  });

  test(`an exported session is a session of Pi's, and comes back whole, on ${host.name}`, async (t) => {
    const project = await aProject(t, { host });
    const pi = project.startPi(["--session", sessionOf(project, 40)]);
    await pi.prompt("one more");
    await pi.request("compact");
    await pi.prompt("and after it");
    const told = async (/** @type {string} */ line) => {
      const from = pi.ui("notify").length;
      await pi.prompt(`/lcm ${line}`);
      await pi.waitFor(() => pi.ui("notify").length > from);
      return pi.ui("notify").slice(from)[0];
    };
    assert.match((await told("export --jsonl out.jsonl")).message, /^84 messages written to .*out\.jsonl, /);
    const session = await project.session(pi);
    const exported = new SessionFile(path.join(project.cwd, "out.jsonl"));
    assert.deepEqual(exported.entries, session.entries, "what Pi wrote is what is exported");
    const refused = await told("export --jsonl out.jsonl");
    assert.match(refused.message, /out\.jsonl is there already: name another file, or add --force/);
    assert.match((await told("export")).message, /^84 messages written to .*\.md, /);
    const [markdown] = readdirSync(project.cwd).filter((name) => name.endsWith(".md"));
    const text = readFileSync(path.join(project.cwd, markdown), "utf8");
    assert.match(text, /^# Session [^]*\n## 1\. User · [^]*mark0000x[^]*\n## 84\. Assistant · /);
    await pi.stop();

    const other = await aProject(t, { host });
    const out = path.join(project.cwd, "out.jsonl");
    const report = JSON.parse((await other.runPi(["-p", `/lcm import ${out} --json`])).stdout);
    assert.equal(report.newMessages, 84);
    assert.match((await other.runPi(["--session", out, "-p", "/lcm tree"])).stdout, /^84 messages on this branch; [^]*● s-[0-9a-f]{10} D0 /);
    assert.ok(existsSync(out));
  });
}

test("what was purged is exported neither from the store nor from the session file that has it still", async (t) => {
  const project = await aProject(t);
  const secret = "zanzibar9x";
  const history = project.history();
  history.user(`the word is ${secret}`);
  history.talk(30);
  const file = history.write(project.sessionDir);
  // What stands in place of what was compacted may say it too.
  project.script.summary = ({ raw }) => ({ text: raw.includes(secret) ? `Of ${secret}\nIt was said: ${secret}.` : "Talk\nMuch was said." });
  const pi = project.startPi(["--session", file]);
  await pi.request("compact");
  await pi.prompt("and on");
  await pi.stop();
  assert.ok(new SessionFile(file).entries.some(({ type, summary }) => type === "compaction" && summary.includes(secret)));
  await inSession(project, file, ["-p", "/lcm export before.jsonl --jsonl", `/lcm purge ${history.entries[0].id} --yes`, "/lcm export after.jsonl --jsonl", "/lcm export after.md"]);
  const read = (/** @type {string} */ name) => readFileSync(path.join(project.cwd, name), "utf8");
  assert.ok(read("before.jsonl").includes(secret));
  for (const name of ["after.jsonl", "after.md"]) assert.ok(!read(name).includes(secret), name);
  assert.equal(new SessionFile(path.join(project.cwd, "after.jsonl")).entries.filter(({ message }) => message?.role === "user").length, 31);
});
