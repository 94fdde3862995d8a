/**
 * `pi-lcm` in a shell, on a store filled by the real Pi: its answers, streams and exit codes; while Pi has the project open, on read-only
 * disks, and on invalid files.
 */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, truncateSync, watch, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { before, describe, test } from "node:test";
import { node22, root } from "../../scripts/paths.mjs";
import { collect } from "../../scripts/proc.mjs";
import { answer, ask, environmentOf, lcm, program } from "../support/cli.mjs";
import { aDisk, noDisk } from "../support/disks.mjs";
import { databaseFile, echo, talk } from "../support/faults.mjs";
import { History } from "../support/history.mjs";
import { aProject, eventually, temporaryFolder } from "../support/project.mjs";
import { copyDatabases, DatabaseSync } from "../support/store.mjs";
import { noTerminal } from "../support/terminal.mjs";

/** @typedef {import("../support/cli.mjs").Shell} Shell */
/** @typedef {import("../support/project.mjs").Project} Project */

const require = createRequire(import.meta.url);

/** Enough exchanges to interrupt their export, which takes half a second or more. */
const EXPORTED = 4000;

/** A project with a session. @type {Project} */
let project;
/** Pi's own answer at the end. @type {any} */
let inPi;
/** A shell on the project's store, which stays as Pi left it. @type {Shell & { storeDir: string }} */
let shell;

before(async (t) => {
  const context = /** @type {import("node:test").TestContext} */ (t);
  project = await aProject(context, { script: { otherwise: echo } });
  const history = project.history();
  history.talk(12, { words: 30 });
  history.write(project.sessionDir);
  const { stdout } = await project.runPi(["--continue", "--mode", "json", "-p", "the quick brown fox", "/lcm stats"]);
  inPi = stdout.split("\n").filter(Boolean).map((line) => JSON.parse(line)).find(({ type }) => type === "lcm").answer;
  shell = ownStore(context);
});

/** A shell in the project with its own store. @param {import("node:test").TestContext} t */
function ownStore(t) {
  const { cwd, agentDir, sessionDir } = project;
  const storeDir = temporaryFolder(t);
  cpSync((shell ?? project).storeDir, storeDir, { recursive: true });
  return { cwd, agentDir, sessionDir, storeDir };
}

/** All bytes in a folder. @param {string} folder */
const bytesIn = (folder) => Object.fromEntries(readdirSync(folder).sort().map((name) => [name, readFileSync(path.join(folder, name), "base64")]));

test("answers go to stdout, errors to stderr, and the exit code tells them apart", async () => {
  const before = bytesIn(shell.storeDir);
  const stats = await lcm(shell, "stats");
  assert.deepEqual([stats.code, stats.stderr], [0, ""]);
  assert.match(stats.stdout, /^019a4f00-\S+, 2026-11-02 \S+ \(mark0000x .*\)\nThis session {4}26 messages, 26 on this branch\nThis project {4}26 messages, 1 session\n/);
  assert.match((await lcm(shell, "tree")).stdout, /^019a4f00-\S+, 2026-11-02 \S+ \(mark0000x .*\)\n26 messages on this branch, /);
  const found = await lcm(shell, "grep", "brown fox");
  assert.deepEqual([found.code, found.stderr], [0, ""]);
  assert.match(found.stdout, /^m-[0-9a-f]{10} \S.*\n {2}.*the quick brown fox\n/);
  assert.doesNotMatch(found.stdout, /[\u001b«]|show ID/);
  assert.deepEqual(await lcm(shell, "grep", "wolverine"), { code: 1, stdout: "", stderr: "Nothing found for wolverine, thinking aside.\n" });
  const wrong = await lcm(shell, "show", "m-ffffffffff");
  assert.deepEqual(wrong, { code: 2, stdout: "", stderr: "pi-lcm: there is no message m-ffffffffff in this project: pi-lcm grep and pi-lcm tree show ids\n" });
  // The answers are identical, so the remaining commands can run in this process.
  assert.deepEqual(await answer(shell, "stats"), stats);
  assert.deepEqual(await answer(shell, "grep", "brown fox"), found);
  assert.deepEqual(await answer(shell, "show", "m-ffffffffff"), wrong);

  const { hits } = await ask(shell, "grep", "--limit", "100", "mark");
  const some = await answer(shell, "grep", "--limit", "2", "mark");
  const more = hits.length - 2;
  assert.deepEqual([some.code, some.stdout.match(/^m-/gm)?.length, some.stderr], [0, 2, `${more} more: raise --limit, or narrow the search.\n`]);
  const [{ id }] = (await ask(shell, "grep", "brown fox", "--role", "user")).hits;
  const shown = await ask(shell, "show", id);
  assert.deepEqual([shown.role, shown.text, shown.position], ["user", "the quick brown fox", 25]);
  const doctor = await answer(shell, "doctor");
  assert.deepEqual([doctor.code, doctor.stdout.split("\n").at(-2)], [0, "Everything is in order."]);
  const { sessions } = await ask(shell, "sessions");
  assert.deepEqual(sessions.map((/** @type {any} */ { id, messages, current }) => [id, messages, current]), [[(await project.session()).id, 26, true]]);
  assert.deepEqual(bytesIn(shell.storeDir), before, "a query writes nothing");
});

test("the answers are those of /lcm in Pi", async () => {
  const { background, requests, ...answered } = inPi;
  const outside = await ask(project, "stats");
  assert.deepEqual({ ...answered, background: { ...background, state: "unknown" }, requests: null }, { ...outside, background: outside.background });
  assert.ok(requests.requests > 0);
});

test("every query works on a read-only disk", { skip: noDisk }, async (t) => {
  const disk = aDisk(t);
  cpSync(shell.storeDir, disk.folder, { recursive: true });
  disk.setWritable(false);
  const { cwd, agentDir } = project;
  const there = { cwd, agentDir, storeDir: disk.folder };
  for (const command of [["stats"], ["grep", "fox"], ["tree"], ["doctor"], ["export", path.join(agentDir, "out.md")]]) {
    const { code, stderr } = await answer(there, ...command);
    assert.deepEqual([code, stderr], [0, ""], command.join(" "));
  }
  const kept = path.join(agentDir, "kept.bak");
  assert.equal((await answer(there, "backup", kept)).code, 0);
  assert.equal((await ask(there, "stats", "--db", kept)).project.messages, 26);
  const { code, stderr } = await answer(there, "import", project.sessionDir);
  assert.equal(code, 2);
  assert.match(stderr, /^pi-lcm: \S+\.db can't be written/);
});

describe("an invalid file is named in one sentence and left unchanged", { concurrency: 4 }, () => {
  const named = String.raw`is not a database of this extension(, or is damaged \(pi-lcm import [^)]*\))?`;
  const says = (/** @type {string} */ inProject, why = "") => new RegExp(`\\.db (?:${named}|${inProject})${why}\n$`);
  const damaged = String.raw`is damaged \(pi-lcm doctor --rebuild mends it\)`;
  /** @type {[string, (file: string) => void, RegExp][]} */
  const cases = [
    ["another program's", (file) => change(file, "PRAGMA application_id = 1"), says(String.raw`belongs to another program, .* \(move it away; pi-lcm import with its path .*\)`)],
    ["a newer version's", (file) => change(file, "PRAGMA user_version = 99"), /\.db has format 99, and this version of pi-lossless-context reads format 1: use the version that wrote it\n$/],
    ["empty", (file) => truncateSync(file), says(damaged, ": it is empty")],
    ["not a database", (file) => writeFileSync(file, "something else, and a lot of it\n".repeat(200)), says(damaged, ": file is not a database")],
    ["truncated", (file) => truncateSync(file, 4096), says(damaged, ": .*malformed")],
  ];
  for (const [what, spoil, pattern] of cases) {
    test(what, async (t) => {
      const own = ownStore(t);
      const file = databaseFile(own);
      spoil(file);
      const before = bytesIn(own.storeDir);
      for (const args of [["stats"], ["doctor"], ["stats", "--db", file]]) {
        const { code, stdout, stderr } = await answer(own, ...args);
        assert.deepEqual([code, stdout], [2, ""], args.join(" "));
        assert.match(stderr, pattern);
        assert.equal(stderr.split("\n").length, 2);
        if (args.length > 1) assert.equal(stderr.includes("import"), what === "truncated");
      }
      assert.deepEqual(bytesIn(own.storeDir), before);
    });
  }

  test("one damaged page: the rest is readable, and the doctor reports the damage", async (t) => {
    const own = ownStore(t);
    const file = databaseFile(own);
    const database = new DatabaseSync(file, { readOnly: true });
    const [page] = /** @type {any[]} */ (database.prepare("SELECT pageno, pgsize FROM dbstat WHERE name = 'messages' AND pagetype = 'leaf'").all());
    database.close();
    const bytes = readFileSync(file);
    bytes.fill(0x5a, (page.pageno - 1) * page.pgsize, page.pageno * page.pgsize);
    writeFileSync(file, bytes);
    const { code, stdout, stderr } = await answer(own, "doctor");
    assert.deepEqual([code, stderr], [1, ""]);
    assert.match(stdout, /WRONG/);
    assert.match(stdout, /\npi-lcm doctor --rebuild makes a new database/);
    assert.doesNotMatch(stdout, / \/lcm /);
    const rebuilt = await ask(own, "doctor", "--rebuild");
    assert.deepEqual([rebuilt.database, rebuilt.kept.length, rebuilt.sessions], [file, 1, 1]);
    assert.equal((await answer(own, "doctor")).code, 0);
  });
});

test("a folder without a history and a home without Pi differ from an empty answer", async (t) => {
  const { agentDir, storeDir } = shell;
  const folder = temporaryFolder(t);
  const none = await answer({ agentDir, storeDir, cwd: folder }, "stats");
  assert.equal(none.code, 2);
  assert.ok(none.stderr.startsWith(`pi-lcm: ${folder} has no history in ${storeDir}; choose another folder with --project`), none.stderr);
  const there = await answer({ agentDir, storeDir, cwd: folder }, "stats", "--project", project.cwd);
  assert.equal(there.code, 0);
  const below = path.join(project.cwd, "src");
  mkdirSync(below);
  assert.match((await answer({ agentDir, storeDir, cwd: below }, "stats")).stderr, /has one: --project \S+\n$/);

  const env = { HOME: path.join(folder, "nobody"), PI_CODING_AGENT_DIR: undefined, LCM_DB_DIR: undefined };
  const homeless = await lcm({ agentDir, cwd: folder, env }, "sessions", "--json");
  assert.equal(homeless.code, 2);
  assert.match(JSON.parse(homeless.stdout).error.message, / has no history in /);
  assert.deepEqual(readdirSync(folder), [], "a query creates nothing");
});

test("Pi's settings determine the project", async (t) => {
  const { cwd, storeDir } = ownStore(t);
  const own = { cwd, agentDir: temporaryFolder(t) };
  assert.equal((await lcm(own, "stats")).code, 2);
  writeFileSync(path.join(own.agentDir, "settings.json"), JSON.stringify({ lcm: { dbDir: storeDir } }));
  assert.equal(JSON.parse((await lcm(own, "stats", "--json")).stdout).database.path, databaseFile({ cwd, storeDir }));
});

test("a reader may close the pipe early", { skip: process.platform === "win32" && "cmd has no head" }, async () => {
  const line = `"${node22}" "${program}" show "$1" --raw | head -c 1; "${node22}" "${program}" sessions --json | true; exit "\${PIPESTATUS[0]}"`;
  const [{ id }] = (await ask(shell, "grep", "fox")).hits;
  const { stdout, stderr } = await collect("bash", ["-c", line, "bash", id], { cwd: project.cwd, env: environmentOf(shell) });
  assert.deepEqual([stdout, stderr], ["{", ""]);
  const hint = `"${node22}" "${program}" grep fox --limit 1 2>&1 >/dev/null`;
  const status = async (/** @type {string} */ line) => (await collect("bash", ["-c", line], { cwd: project.cwd, env: environmentOf(shell) })).stdout;
  assert.match(await status(hint), /\d more: raise --limit/);
  assert.equal(await status(`${hint} | true; echo "\${PIPESTATUS[0]}"`), "0\n");
});

test("an interrupted export leaves no partial file", { skip: process.platform === "win32" && "there are no signals on Windows" }, async (t) => {
  const own = anEmptyShell(t);
  const history = new History(own);
  history.talk(EXPORTED);
  assert.equal((await answer(own, "import", history.write(own.sessionDir))).code, 0);
  const out = path.join(own.agentDir, "out");
  mkdirSync(out);
  const watcher = watch(out);
  t.after(() => watcher.close());
  const child = spawn(node22, [program, "export", "--jsonl", out], { cwd: own.cwd, env: environmentOf(own), stdio: "ignore" });
  const ended = new Promise((resolve) => child.on("close", (code, signal) => resolve(code ?? signal)));
  await Promise.race([once(watcher, "change"), ended]);
  child.kill("SIGINT");
  assert.equal(await ended, 130);
  assert.deepEqual(readdirSync(out), []);
});

test("a terminal gets colors, and no stored text can move the cursor", { skip: noTerminal }, async (t) => {
  const own = anEmptyShell(t);
  const history = new History(own);
  history.user("a \u001b[2Jtrap and a fox");
  history.assistant("seen");
  assert.equal((await answer(own, "import", history.write(own.sessionDir))).code, 0);
  const [{ id }] = (await ask(own, "grep", "trap")).hits;
  const seen = (/** @type {Record<string, string>} */ env, /** @type {string[]} */ ...args) => inTerminal(own, env, args);
  const inColors = await seen({}, "grep", "fox");
  assert.match(inColors, /\u001b\[36mm-[0-9a-f]{10}\u001b\[0m user/);
  assert.match(inColors, /\u001b\[1;31mfox\u001b\[0m/);
  assert.match(inColors, /pi-lcm show ID/);
  assert.doesNotMatch(await seen({ NO_COLOR: "1" }, "grep", "fox"), /\u001b/);
  assert.doesNotMatch(await seen({ NO_COLOR: "1" }, "show", id), /\u001b/);
  const answered = async (/** @type {Record<string, string>} */ env, /** @type {string[]} */ ...args) =>
    (await answer({ ...own, columns: 80, env: { TERM: "xterm", ...env } }, ...args)).stdout;
  assert.equal((await answered({}, "grep", "fox")).trim(), inColors.replaceAll("\r", "").trim());
  assert.doesNotMatch(await answered({ TERM: "dumb" }, "grep", "fox"), /\u001b/);
  assert.doesNotMatch(await answered({}, "grep", "fox", "--color=never"), /\u001b/);
  assert.ok((await lcm(own, "show", id)).stdout.includes("\u001b[2Jtrap"), "elsewhere the text is unchanged");
  assert.match((await answer(own, "grep", "fox", "--color", "always")).stdout, /\u001b\[1;31mfox/);
});

test("a terminal shows the progress of an import until it ends", { skip: noTerminal }, async (t) => {
  const own = anEmptyShell(t);
  const history = new History(own);
  history.talk(3 * EXPORTED, { words: 30 });
  const text = await inTerminal(own, { NO_COLOR: "1" }, ["import", history.write(own.sessionDir)]);
  assert.match(text, /^\rpi-lcm: importing, 0 of 1 session, [\d,]+ messages? new/);
  assert.match(text, /\r\u001b\[K1 session: [\d,]+ messages new, 0 known already\s*$/);
});

describe("completions", { concurrency: 3 }, () => {
  const lacks = (/** @type {string} */ shell) => (spawnSync(shell, ["--version"]).status === 0 ? false : `there is no ${shell} here`);

  test("bash completes commands, options and values", { skip: lacks("bash") }, async (t) => {
    const folder = temporaryFolder(t);
    const script = path.join(folder, "completions");
    writeFileSync(script, (await answer({ cwd: folder, agentDir: folder }, "completions", "bash")).stdout);
    writeFileSync(path.join(folder, "a file.db"), "");
    const complete = async (/** @type {string[]} */ ...words) => {
      // As readline calls it; it offers files if no word is left.
      const line = `compopt() { :; }; source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); set -- $(complete -p pi-lcm)
        while [ "$1" != -F ]; do [ "$2" = default ] && files=1; shift; done
        "$2" pi-lcm "\${COMP_WORDS[COMP_CWORD]}" "\${COMP_WORDS[COMP_CWORD - 1]}"
        [ -n "\${COMPREPLY[*]}" ] || [ -z "$files" ] || IFS=$'\\n' COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}"))
        printf '%s\\n' "\${COMPREPLY[@]}"`;
      const { stdout, stderr } = await collect("bash", ["--norc", "-c", line, "bash", script, "pi-lcm", ...words], { cwd: folder });
      assert.equal(stderr, "");
      return stdout.split("\n").filter(Boolean);
    };
    assert.deepEqual(await complete("s"), ["stats", "sessions", "show", "simulate", "sync"]);
    assert.deepEqual(await complete("grep", "--re"), ["--regex"]);
    assert.deepEqual(await complete("--json", "export", "--js"), ["--jsonl", "--json"]);
    assert.deepEqual(await complete("stats", "--color", "a"), ["always", "auto"]);
    assert.deepEqual(await complete("grep", "--role", "tool"), ["toolResult"]);
    assert.deepEqual(await complete("grep", "--sort", "re"), ["relevance", "recent"]);
    assert.deepEqual(await complete("completions", ""), ["bash", "zsh", "fish"]);
    assert.deepEqual(await complete("stats", "--db", "a f"), ["a file.db"]);
    assert.deepEqual(await complete("import", "a"), ["a file.db"]);
    const offered = await complete("import", "");
    assert.ok(offered.includes("a file.db") && offered.every((word) => !/^[-[]/.test(word)), offered.join(" "));
    assert.deepEqual(await complete("grep", "wo"), []);
  });

  for (const shell of ["zsh", "fish"]) {
    test(`${shell} accepts the completions`, { skip: lacks(shell) }, async (t) => {
      const folder = temporaryFolder(t);
      const script = path.join(folder, "completions");
      writeFileSync(script, (await answer({ cwd: folder, agentDir: folder }, "completions", shell)).stdout);
      const line = shell === "zsh" ? `autoload -Uz compinit; compinit -D; source ${script}; echo $_comps[pi-lcm]` : `source ${script}; complete -C 'pi-lcm se'`;
      const { stdout, stderr } = await collect(shell, ["-c", line], { cwd: folder, env: { ...process.env, HOME: folder } });
      assert.deepEqual([stderr, stdout.trim().split(/\s/)[0]], ["", shell === "zsh" ? "_pi-lcm" : "sessions"]);
    });
  }
});

test("help lists every command and option, and the version", async (t) => {
  const nobody = anEmptyShell(t);
  const all = await lcm(nobody, "--help");
  assert.deepEqual([all.code, all.stderr], [0, ""]);
  const names = [...all.stdout.matchAll(/^ {2}([a-z]+) {2,}\S/gm)].map(([, name]) => name);
  assert.deepEqual(names, ["stats", "sessions", "grep", "show", "tree", "export", "doctor", "simulate", "import", "backup", "sync", "mcp", "completions"]);
  assert.deepEqual(await answer(nobody, "help", "grep"), await answer(nobody, "grep", "--help"));
  for (const text of [all.stdout, ...(await Promise.all(names.map(async (name) => (await answer(nobody, name, "--help")).stdout)))]) {
    assert.ok(text.length > 0);
    for (const line of text.split("\n")) assert.ok(line.length <= 80, line);
    assert.doesNotMatch(text, /\/lcm/);
  }
  const { version } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
  assert.equal((await lcm(nobody, "--version")).stdout, `${version}\n`);
  assert.ok(statSync(program).mode & 0o100 || process.platform === "win32", "it is executable");
});

test("queries do not disturb a running Pi, see its messages at once, and leave the log of a killed one unchanged", async (t) => {
  const pi = project.startPi(["--continue"]);
  await talk(project, pi, "while it runs");
  await eventually(async () => assert.equal((await ask(project, "grep", "while it runs", "--role", "user")).hits.length, 1));

  // The files of a Pi that is killed now.
  const killed = { ...shell, storeDir: temporaryFolder(t) };
  const copy = databaseFile(killed);
  await eventually(() => {
    copyDatabases(project.storeDir, killed.storeDir);
    const database = new DatabaseSync(copy, { readOnly: true });
    database.close();
  });
  const log = readFileSync(`${copy}-wal`);
  assert.ok(log.length > 0);
  assert.equal((await ask(killed, "grep", "while it runs", "--role", "user")).hits.length, 1);
  assert.ok(log.equals(readFileSync(`${copy}-wal`)));

  const all = [lcm(project, "import"), answer(project, "doctor"), answer(project, "backup"), answer(project, "stats")];
  await talk(project, pi, "and goes on");
  const answers = await Promise.all(all);
  assert.deepEqual(answers.map(({ code }) => code), [0, 0, 0, 0], answers.map(({ stdout, stderr }) => stdout + stderr).join("\n"));
  await pi.stop();
  assert.equal((await answer(project, "doctor")).code, 0);
  assert.deepEqual(readdirSync(project.storeDir).filter((name) => /-wal|-shm/.test(name)), []);
});

/**
 * What a terminal gets from `pi-lcm`.
 *
 * @param {Shell} shell
 * @param {Record<string, string>} env
 * @param {string[]} args
 */
async function inTerminal(shell, env, args) {
  const given = /** @type {Record<string, string>} */ ({ ...environmentOf(shell), TERM: "xterm", ...env });
  const child = require("@lydell/node-pty").spawn(node22, [program, ...args], { cwd: shell.cwd, env: given, cols: 80, rows: 24 });
  let text = "";
  child.onData((/** @type {string} */ data) => (text += data));
  await new Promise((resolve) => child.onExit(resolve));
  return text;
}

/** A shell in a project without messages. @param {import("node:test").TestContext} t */
function anEmptyShell(t) {
  const folder = temporaryFolder(t);
  const [cwd, agentDir, storeDir, sessionDir] = ["project", "agent", "store", "sessions"].map((name) => path.join(folder, name));
  for (const made of [cwd, agentDir, sessionDir]) mkdirSync(made);
  return { cwd, agentDir, storeDir, sessionDir };
}

/** @param {string} file @param {string} sql */
function change(file, sql) {
  const database = new DatabaseSync(file);
  database.exec(sql);
  database.close();
}

test("people read times in their own zone, and programs in UTC", async () => {
  const [{ id, time }] = (await ask(shell, "grep", "quick", "--role", "user")).hits;
  const there = { ...shell, env: { TZ: "Asia/Kolkata" } };
  const local = new Intl.DateTimeFormat("sv-SE", { timeZone: "Asia/Kolkata", dateStyle: "short", timeStyle: "short" }).format(new Date(time));
  assert.ok((await lcm(there, "show", id)).stdout.includes(` · ${local} IST · `), local);
  assert.ok((await lcm(there, "sessions")).stdout.includes(local));
  assert.match((await lcm(there, "grep", "nowhere", "--after", "2026-11-28T22:05")).stderr, / since 2026-11-28 22:05, /);
  assert.match(time, /Z$/);
});

test("without a command there is help, with examples for each", async () => {
  const { code, stdout, stderr } = await lcm(shell);
  assert.deepEqual([code, stderr], [0, ""]);
  for (const [, name] of stdout.matchAll(/^ {2}(stats|sessions|grep|show|tree|export|doctor|import|backup) /gm)) {
    assert.match((await answer(shell, name, "--help")).stdout, new RegExp(`Examples:\n {2}pi-lcm ${name}`));
  }
});

test("what follows grep -e is the pattern, whatever it begins with, unless it is an option", async (t) => {
  const own = anEmptyShell(t);
  const history = new History(own);
  history.user("-rw-r--r-- 1 me staff 108 coalescing.md, with --max-old-space-size=4096");
  assert.equal((await answer(own, "import", history.write(own.sessionDir))).code, 0);
  for (const line of [["-e", "-rw-r--r--"], ["-e", "--max-old-space-size=\\d+"], ["-e", "--limit", "5", "r--r"], ["-ie", "-RW-"]]) {
    assert.equal((await answer(own, "grep", ...line)).code, 0, line.join(" "));
  }
  assert.match((await answer(own, "grep", "-e", "x", "--nonsense")).stderr, /'--nonsense'/);
  assert.match((await answer(own, "grep", "-e", "staff", "-e", "nobody")).stderr, /^pi-lcm: -e is given more than once: grep -e 'ONE\|OTHER' finds either$/m);
});

test("a long answer on a terminal goes through the user's pager", { skip: noTerminal }, async (t) => {
  const own = anEmptyShell(t);
  const history = new History(own);
  history.user(Array.from({ length: 100 }, (_, line) => `line ${line} of a walrus`).join("\n"));
  assert.equal((await answer(own, "import", history.write(own.sessionDir))).code, 0);
  const [{ id }] = (await ask(own, "grep", "walrus")).hits;
  assert.match(await inTerminal(own, { PAGER: "sed 's/^/paged: /'" }, ["show", id]), /paged: line 99/);
  assert.doesNotMatch(await inTerminal(own, { PAGER: "sed 's/^/paged: /'" }, ["sessions"]), /paged/);
  assert.match(await inTerminal(own, { PAGER: "no-such-pager" }, ["show", id]), /line 99/);
});
