/**
 * Other agents' sessions on the real Pi: with `alsoRead` they are imported when a session starts, new messages at the next start, and
 * searches name the agent; `/lcm import --from` and `export --from` import and export them.
 */
import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { aProject, eventually } from "../support/project.mjs";
import { noTerminal } from "../support/terminal.mjs";

/** Lines of Codex for a project. @param {string} cwd */
const codex = (cwd) => [
  { timestamp: "2026-02-10T09:00:00.000Z", type: "session_meta", payload: { id: "0198-codex", timestamp: "2026-02-10T09:00:00.000Z", cwd, cli_version: "0.98.0" } },
  { timestamp: "2026-02-10T09:00:01.000Z", type: "response_item", payload: { type: "message", role: "user", content: [{ type: "input_text", text: "Call the release pelican." }] } },
];

/** Lines of Gemini CLI. */
const gemini = [
  { sessionId: "6e-gemini", projectHash: "0", startTime: "2026-05-22T14:59:00.000Z", kind: "main" },
  { id: "g-1", timestamp: "2026-05-22T14:59:11.000Z", type: "user", content: [{ text: "Who named it pelican?" }] },
];

/** @param {string} file @param {unknown[]} lines */
function write(file, lines) {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
}

for (const host of hostsFor()) {
  test(`other agents' messages in a project are imported when a session starts, on ${host.name}`, async (t) => {
    const project = await aProject(t, { host, settings: { lcm: { alsoRead: ["codex", "gemini"] } } });
    const home = path.join(path.dirname(project.cwd), "home");
    project.env = { CODEX_HOME: path.join(home, "codex"), GEMINI_CLI_HOME: home };
    const log = path.join(home, "codex", "sessions", "2026", "02", "10", "rollout-2026-02-10T09-00-00-0198-codex.jsonl");
    write(log, codex(project.cwd));
    write(path.join(home, ".gemini", "tmp", "project", "chats", "session-2026-05-22T14-59-6e.jsonl"), gemini);
    writeFileSync(path.join(home, ".gemini", "tmp", "project", ".project_root"), project.cwd);
    const said = () => project.inStore((store) => store.rows("SELECT count(*) AS n FROM messages WHERE kind = 0 AND role = 'user'")[0].n);

    const pi = project.startPi();
    await pi.prompt("Hello.");
    await eventually(() => assert.equal(said(), 3));
    project.script.turns = [{ toolCalls: [{ id: "g", name: "lcm_grep", arguments: { query: "pelican", session: "project" } }] }, { text: "Found." }];
    await pi.prompt("Who spoke of pelicans?");
    const found = project.turns.at(-1)?.messages.filter(({ role }) => role === "tool").at(-1)?.text ?? "";
    assert.match(found, /· codex user ·[^]*pelican/);
    assert.match(found, /· gemini user ·[^]*pelican/);
    await pi.stop();

    const [, second] = codex(project.cwd);
    appendFileSync(log, `${JSON.stringify({ ...second, payload: { type: "message", role: "user", content: [{ type: "input_text", text: "Now call it heron." }] } })}\n`);
    const again = project.startPi();
    await again.prompt("Hello again.");
    await eventually(() => assert.equal(said(), 6));
    await again.stop();

    const folder = path.join(home, "out");
    const { stdout } = await project.runPi(["-p", "/lcm import --from codex", `/lcm export --from codex ${folder}`]);
    assert.match(stdout, /1 session: 0 messages new, 2 known already/);
    assert.equal(readFileSync(path.join(folder, readdirSync(folder)[0]), "utf8"), readFileSync(log, "utf8"));

    if (noTerminal) return;
    const terminal = project.openTerminal(["-c"]);
    await terminal.waitFor((screen) => screen.includes("LCM: "), "the footer");
    await terminal.send("/lcm search");
    await terminal.waitFor((screen) => screen.includes("Search this session"), "the panel");
    terminal.type("\t");
    await terminal.waitFor((screen) => screen.includes("Search all sessions"), "the project's");
    terminal.type("pelican");
    await terminal.waitFor((screen) => / codex user \* +.*pelican/.test(screen) && / gemini user \* /.test(screen), "the hits with their agents");
  });
}
