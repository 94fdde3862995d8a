/** `/lcm import` on the real Pi: sessions from before the extension was installed are stored as if it had been there all along. */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { assertStored } from "../support/agreement.mjs";
import { filler } from "../support/history.mjs";
import { aProject, eventually } from "../support/project.mjs";
import { jsonOf, SessionFile } from "../support/session-file.mjs";
import { databasesIn, slowed } from "../support/store.mjs";
import { noTerminal } from "../support/terminal.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */

/** The notifications to the user. @param {import("../support/project.mjs").Pi} pi @returns {string[]} */
const notices = (pi) => pi.ui("notify").map(({ message }) => message);

/** Two sessions and a fork without the extension. @param {import("../support/project.mjs").Pi} pi */
async function before(pi) {
  await pi.prompt("Guten Tag, 你好, 👋🏽 and \u2028 too");
  await pi.prompt("run it");
  await pi.request("bash", { command: "echo seen" });
  await pi.prompt("go on");
  const { messages } = await pi.request("get_fork_messages");
  await pi.request("fork", { entryId: messages.at(-1).entryId });
  await pi.prompt("another way");
  await pi.request("new_session");
  await pi.prompt("something else");
}

for (const host of hostsFor()) {
  test(`older sessions are offered once, and imported as if they had been there all along, on ${host.name}`, async (t) => {
    const turns = [{ text: "Hello.", thinking: "A greeting." }, { toolCalls: [{ id: "call_a", name: "bash", arguments: { command: "echo 1" } }] }];
    const project = await aProject(t, { script: { turns }, host, settings: { lcm: { enabled: false } } });
    const pi = project.startPi();
    await before(pi);
    const old = project.sessions();
    assert.equal(old.length, 3);
    assert.deepEqual(databasesIn(project.storeDir), []);

    project.configure({ lcm: {} });
    await pi.request("new_session");
    await pi.waitFor(() => notices(pi).length > 0);
    assert.deepEqual(notices(pi), ["LCM: this project has 3 older sessions. /lcm import adds them."]);
    await pi.prompt("/lcm import");
    const messages = new Set(old.flatMap(({ entries }) => entries.map(jsonOf).filter((json) => json && !json.startsWith('{"role":"system"')))).size;
    assert.match(notices(pi)[1], new RegExp(`^3 sessions: ${messages} messages new, \\d+ known already$`));
    for (const session of old) assertStored(project, session);

    await pi.prompt("/lcm import");
    assert.match(notices(pi)[2], /^3 sessions: 0 messages new, \d+ known already$/);
    for (const session of old) assertStored(project, session);
    await pi.stop();

    const again = project.startPi();
    await again.prompt("/lcm stats");
    assert.equal(notices(again).length, 1);
    assert.equal(project.summaryCalls.length, 0);

    await t.test("their messages are found", async () => {
      project.script.turns = [{ toolCalls: [{ id: "g", name: "lcm_grep", arguments: { query: "something else", session: "project" } }] }];
      await again.prompt("look for it");
      assert.match(project.lastTurn.messages.at(-1)?.text ?? "", /^Session .* UTC \(.*\):\nm-[0-9a-f]{10} /m);
    });
  });
}

test("in print mode nothing is offered and the report is printed", async (t) => {
  const project = await aProject(t);
  project.history("old-one").write(project.sessionDir);
  const history = project.history("old-two");
  history.talk(3);
  history.write(project.sessionDir);
  writeFileSync(path.join(project.sessionDir, "broken.jsonl"), "no session\n");
  const odd = oddSession(project);
  const everywhere = path.join(project.agentDir, "sessions", "--elsewhere--");
  mkdirSync(everywhere, { recursive: true });
  for (const [id, cwd] of [["mine", project.cwd], ["theirs", "/elsewhere"]]) {
    const history = project.history(id);
    history.header.cwd = cwd;
    history.talk(2, { name: id });
    history.write(everywhere);
  }
  const { stdout } = await project.runPi(["-p", "hello", "/lcm import", "/lcm import --all", "/lcm import /nowhere/at/all.jsonl"]);
  const [own, all, wrong, ...rest] = stdout.split("\n");
  assert.equal(own, "2 sessions: 1,007 messages new, 0 known already, 1 session without messages left out, 1 file could not be read (broken.jsonl: it is not a Pi session; another agent's needs --from)");
  assert.equal(wrong, "there is no /nowhere/at/all.jsonl");
  assert.deepEqual(rest, ["Understood.", ""]);

  await t.test("every session goes into its project's store", () => {
    assert.match(all, /^4 sessions of 2 projects: 8 messages new, 1,007 known already, /);
    assert.equal(databasesIn(project.storeDir).length, 2);
  });

  await t.test("a message from another program is stored as JavaScript would write it", () => {
    const name = databasesIn(project.storeDir).find((name) => project.inStore((store) => store.entries("odd").length > 0, name));
    const stored = new Map(project.inStore((store) => store.entries("odd"), name).map(({ id, json }) => [id, json]));
    for (const [n, line] of odd.entries()) assert.equal(stored.get(`odd${n}`), JSON.stringify(JSON.parse(line).message), line);
  });
});

for (const host of hostsFor()) {
  test(`files of versions 1 and 2 are imported before Pi migrates them, without duplicate messages afterwards, on ${host.name}`, async (t) => {
    const project = await aProject(t, { host });
    const files = [1, 2].map((version) => oldFile(project, version));
    const pi = project.startPi();
    await pi.waitFor(() => notices(pi).length > 0);
    await pi.prompt("/lcm import");
    assert.equal(notices(pi)[1], "2 sessions: 6 messages new, 0 known already");
    for (const file of files) {
      await pi.request("switch_session", { sessionPath: file });
      await pi.prompt("go on");
    }
    await eventually(() => {
      let messages = 0;
      for (const session of files.map((file) => new SessionFile(file))) {
        const said = session.entries.map(jsonOf).filter((json) => json !== null);
        const known = new Set(project.inStore((store) => store.entries(session.id)).map(({ json }) => json));
        assert.deepEqual(said.filter((json) => !known.has(json)), []);
        messages += said.length;
      }
      assert.equal(project.inStore((store) => store.count("messages")), messages);
    });
  });
}

test("a long import leaves the session usable, shows its progress, and can be stopped and continued", { skip: noTerminal }, async (t) => {
  const project = await aProject(t);
  for (let session = 0; session < 6; session++) {
    const history = project.history(`long-${session}`);
    for (let n = 0; n < 8; n++) {
      history.user(`question ${session} ${n}`);
      history.assistant(filler(`${session} ${n}`, 15_000));
    }
    history.write(project.sessionDir);
  }
  const terminal = project.openTerminal();
  await terminal.waitFor((screen) => screen.includes("this project has 6 older sessions"), "the offer");
  // Otherwise it might end before it is stopped.
  const atFullSpeed = slowed(project.inStore(({ file }) => file));
  t.after(atFullSpeed);
  await terminal.send("/lcm import");
  await terminal.waitFor((screen) => /LCM: importing, \d of 6 sessions, [\d,]+ messages? new/.test(screen), "the progress");
  await terminal.send("still there?");
  await terminal.waitFor((screen) => screen.includes("Understood."), "an answer");
  await terminal.send("/lcm import --stop");
  await terminal.waitFor((screen) => /The import is stopping\.|stopped after/.test(screen), "the stop");
  await atFullSpeed();
  await terminal.waitFor((screen) => /stopped after \d of\s+6\s+files/.test(screen), "the report");
  await terminal.waitFor((screen) => !screen.includes("LCM: importing"), "the progress is gone");
  await terminal.send("/lcm import");
  await terminal.waitFor((screen) => /^ *6 sessions: \d+ messages new, \d+ known already/m.test(screen), "the second report");
  await terminal.send("/quit");
  await terminal.exit;
  assert.equal(project.inStore((store) => store.count("messages WHERE role = 'assistant'")), 6 * 8 + 1);
});

/**
 * Writes a session file like an older Pi.
 * @param {Project} project
 * @param {number} version
 */
function oldFile(project, version) {
  const timestamp = "2025-11-02T08:00:00.000Z";
  let entries = 0;
  // Version 1 has no ids: each entry follows the one before.
  const place = () => (version === 1 ? {} : { id: `old${++entries}`, parentId: entries > 1 ? `old${entries - 1}` : null });
  const said = (/** @type {any} */ message) => ({ type: "message", ...place(), timestamp, message });
  const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } };
  const model = { api: "openai-completions", provider: "demo", model: "demo-model" };
  const lines = [
    { type: "session", ...(version === 1 ? {} : { version }), id: `019a4f00-0000-7000-8000-00000000000${version}`, timestamp, cwd: project.cwd, provider: "demo", modelId: "demo-model", thinkingLevel: "off" },
    said({ role: "user", content: `from long ago, version ${version}`, timestamp: 1 }),
    said({ role: "assistant", content: [{ type: "text", text: "yes" }], ...model, usage, stopReason: "stop", timestamp: 2 }),
    said({ role: "hookMessage", customType: "hook", content: "by a hook", display: true, timestamp: 3 }),
  ];
  const file = path.join(project.sessionDir, `2025-11-02T08-00-00-000Z_v${version}.jsonl`);
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  return file;
}

/**
 * Writes a session file that no Pi wrote.
 * @param {Project} project
 * @returns {string[]} its unusual lines
 */
function oddSession(project) {
  const history = project.history("odd");
  history.user("the first");
  const random = seeded(7);
  const odd = Array.from({ length: 1000 }, () => anyJson(random, 0));
  const lines = odd.map((value, n) => `{"type":"message", "id":"odd${n}", "parentId":null, "timestamp":"2026-11-02T08:00:00.000Z", "message": {"role":"odd", "n":${n}, "value":${value}}}\n`);
  writeFileSync(history.write(project.sessionDir), lines.join(""), { flag: "a" });
  return lines;
}

/** @param {number} state */
function seeded(state) {
  return (/** @type {number} */ below) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) % below;
  };
}

/**
 * Random JSON with unusual formatting.
 * @param {(below: number) => number} random
 * @param {number} depth
 * @returns {string}
 */
function anyJson(random, depth) {
  const blank = () => ["", " ", "\t", "\r"][random(4)];
  const many = (/** @type {() => string} */ item) => Array.from({ length: random(5) }, () => `${blank()}${item()}${blank()}`).join(",");
  const hex = () => Array.from({ length: 4 }, () => "0123456789abcdefABCDEF"[random(22)]).join("");
  const letter = () => ["a", "é", "字", "👋", '\\"', "\\\\", "\\/", "\\b", "\\n", "\u2028", "\u007f", `\\u${hex()}`, `\\ud8${hex().slice(2)}`, `\\udc${hex().slice(2)}`, "\\u0041", "\\u0000"][random(16)];
  const text = () => `"${Array.from({ length: random(6) }, letter).join("")}"`;
  const key = () => (random(3) === 0 ? `"${["0", "1", "10", "2", "01", "4294967294", "4294967295", "-1", "__proto__"][random(9)]}"` : random(2) ? text() : '"same"');
  const digits = () => Array.from({ length: 1 + random(22) }, () => random(10)).join("");
  const number = () => `${random(2) ? "-" : ""}${random(4) ? `${1 + random(9)}${digits()}` : "0"}${random(2) ? `.${digits()}` : ""}${random(3) ? "" : `${"eE"[random(2)]}${["", "+", "-"][random(3)]}${random(330)}`}`;
  const kind = random(depth > 4 ? 4 : 6);
  if (kind === 0) return ["true", "false", "null"][random(3)];
  if (kind < 3) return number();
  if (kind === 3) return text();
  if (kind === 4) return `[${many(() => anyJson(random, depth + 1))}]`;
  return `{${many(() => `${key()}${blank()}:${blank()}${anyJson(random, depth + 1)}`)}}`;
}
