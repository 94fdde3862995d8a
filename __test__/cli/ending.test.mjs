/** How `pi-lcm` ends: at the first signal, even if its work has no end, and by itself when it is given a pipe or a device. */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { appendFileSync, mkdirSync, readdirSync, readlinkSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import path from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { node22 } from "../../scripts/paths.mjs";
import { collect } from "../../scripts/proc.mjs";
import { answer, environmentOf, program } from "../support/cli.mjs";
import { loadEngine } from "../../shim/loader.js";
import { History } from "../support/history.mjs";
import { eventually, temporaryFolder } from "../support/project.mjs";
import { databasesIn, DatabaseSync } from "../support/store.mjs";

/** Reading this many bytes takes minutes; as a sparse file they take no space. */
const ENDLESS = 2 ** 41;

const noProc = process.platform === "linux" ? undefined : "which files a process has open is seen on Linux alone";

/** A shell in a project with one session. @param {import("node:test").TestContext} t */
async function aShell(t) {
  const folder = temporaryFolder(t);
  const [cwd, agentDir, sessionDir, storeDir, out] = ["project", "agent", "sessions", "store", "out"].map((name) => path.join(folder, name));
  for (const dir of [cwd, agentDir, sessionDir, out]) mkdirSync(dir);
  const shell = { cwd, agentDir, sessionDir, storeDir };
  const history = new History(shell);
  history.talk(3);
  const file = history.write(sessionDir);
  assert.equal((await answer(shell, "import", file)).code, 0);
  return { ...shell, shell, file, out };
}

const noPipes = process.platform === "win32" ? "Windows has no such pipes" : undefined;

const noSignals = process.platform === "win32" ? "Windows ends a process that is sent a signal" : undefined;

test("a pipe or a device in place of a file is not read", { skip: noPipes, timeout: 60_000 }, async (t) => {
  const { shell, cwd, agentDir, sessionDir, storeDir, file, out } = await aShell(t);
  const pipe = (/** @type {string} */ at) => {
    rmSync(at, { force: true });
    execFileSync("mkfifo", [at]);
  };
  for (const at of [path.join(sessionDir, "more.jsonl"), path.join(agentDir, "settings.json"), path.join(cwd, "AGENTS.md"), path.join(storeDir, "log.db")]) pipe(at);
  const named = databasesIn(storeDir).find((name) => name !== "log.db") ?? "";
  for (const odd of ["pipe", "/dev/zero"]) {
    if (odd === "pipe") pipe(file);
    const database = new DatabaseSync(path.join(storeDir, named));
    database.prepare("UPDATE conversations SET file = ?").run(odd === "pipe" ? file : odd);
    database.close();
    const ends = async (/** @type {string[]} */ ...args) => (await answer(shell, ...args)).code;
    assert.deepEqual([await ends("stats"), await ends("export", "--jsonl", "--force", path.join(out, "out.jsonl"))], [0, 0]);
    assert.equal((await answer(shell, "doctor")).stderr, "");
    const from = odd === "pipe" ? file : odd;
    assert.match((await answer(shell, "import", from)).stdout, /1 file could not be read \(\w+(\.jsonl)?[^)]*: it can't be opened: it is not a regular file\)/);
    assert.equal(await ends("import"), 1, "there is no session file");
    const request = { arguments: ["export", "--html", path.join(out, "out.html")], cwd, agentDir, environment: environmentOf(shell), viewerTemplate: from };
    const { ok } = JSON.parse(await loadEngine().Cli.begin().run(JSON.stringify(request)));
    assert.match(ok.complaint, /template \S+ can't be read \(it is not a regular file\)/);
  }
});

test("an endless command ends at the first signal and leaves no partial file", { skip: noProc, timeout: 240_000 }, async (t) => {
  const { shell, cwd, sessionDir, storeDir, file, out } = await aShell(t);
  const other = new History({ cwd, id: "other" });
  other.talk(1);
  const endless = other.write(sessionDir);
  for (const grown of [file, endless]) {
    appendFileSync(grown, "\0");
    truncateSync(grown, ENDLESS);
  }
  const commands = [["import", endless], ["export", "--jsonl", out]];
  const database = new DatabaseSync(path.join(storeDir, databasesIn(storeDir)[0]));
  assert.equal(database.prepare("SELECT file FROM conversations").get()?.file, file);
  database.close();

  for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])) {
    for (const command of commands) {
      await t.test(`${command[0]}, ${signal}`, { timeout: 60_000 }, async (t) => {
        const child = spawn(node22, [program, ...command], { cwd, env: environmentOf(shell), stdio: ["ignore", "ignore", "pipe"] });
        t.after(() => child.kill("SIGKILL"));
        const ended = new Promise((resolve) => child.on("close", (code, by) => resolve(code ?? by)));
        const said = text(child.stderr);
        const reads = command[0] === "import" ? endless : file;
        await eventually(() => assert.ok(openedBy(child.pid).includes(reads), "it reads the file"));
        child.kill(signal);
        assert.equal(await ended, 130);
        const reached = "pi-lcm: importing, 0 of 1 session, 0 messages new: stopping; the same command continues\n";
        assert.equal(await said, command[0] === "import" ? reached : "");
        assert.deepEqual(readdirSync(out), []);
      });
    }
  }
});

test("a file that is being written is gone after one signal, and after two at once", { skip: noSignals, timeout: 240_000 }, async (t) => {
  const { shell, cwd, sessionDir, storeDir } = await aShell(t);
  const long = new History({ cwd, id: "long" });
  // The first alone takes longer than two signals leave.
  for (const times of [3_000_000, ...Array(10).fill(100_000)]) long.user("so much to say ".repeat(times));
  assert.equal((await answer(shell, "import", long.write(sessionDir))).code, 0);
  const database = new DatabaseSync(path.join(storeDir, databasesIn(storeDir)[0]));
  database.exec("CREATE TABLE more (x)");
  const more = database.prepare("INSERT INTO more VALUES (zeroblob(20000000))");
  for (let n = 0; n < 15; n++) more.run();
  database.close();

  const commands = [["export"], ["export", "--jsonl"], ["export", "--html"], ["backup"]];
  for (const signals of [1, 2]) {
    for (const command of commands) {
      await t.test(`${command.join(" ")}, ${signals}`, { timeout: 60_000 }, async (t) => {
        const out = temporaryFolder(t);
        const target = path.join(out, "target");
        const child = spawn(node22, [program, ...command, target], { cwd, env: environmentOf(shell), stdio: "ignore" });
        t.after(() => child.kill("SIGKILL"));
        assert.equal(await interrupted(child, out, signals), 130);
        assert.deepEqual(readdirSync(out), []);
      });
    }
  }
});

test("the rows of a database that is imported are gone after one signal, and after two at once", { skip: noSignals, timeout: 120_000 }, async (t) => {
  const { shell, cwd, out } = await aShell(t);
  const database = path.join(out, "endless.db");
  writeFileSync(database, "");
  // A hole takes long to read.
  truncateSync(database, 2 ** 40);
  for (const signals of [1, 2]) {
    const folder = temporaryFolder(t);
    const env = { ...environmentOf(shell), LCM_DB_DIR: folder };
    const child = spawn(node22, [program, "import", database], { cwd, env, stdio: "ignore" });
    t.after(() => child.kill("SIGKILL"));
    assert.equal(await interrupted(child, folder, signals), 130);
    assert.deepEqual(readdirSync(folder).filter((name) => name.includes(".part")), []);
  }
});

test("a signal that comes while the answer is parsed counts", { skip: noSignals, timeout: 60_000 }, async (t) => {
  const { shell, cwd } = await aShell(t);
  // A long answer takes long to parse.
  const slow = `const { parse } = JSON;
    JSON.parse = (text, ...more) => {
      if (text.startsWith('{"ok":{"output"')) {
        process.kill(process.pid, "SIGINT");
        for (const end = Date.now() + 100; Date.now() < end; );
      }
      return parse(text, ...more);
    };`;
  const args = ["--import", `data:text/javascript,${encodeURIComponent(slow)}`, program, "sessions"];
  const { code, stdout, stderr } = await collect(node22, args, { cwd, env: environmentOf(shell) });
  assert.deepEqual([code, stdout, stderr], [130, "", ""]);
});

/**
 * Interrupts a process as soon as there is something in a folder, and says how it ends, as a shell would.
 * @param {import("node:child_process").ChildProcess} child
 * @param {string} folder
 * @param {number} signals
 */
async function interrupted(child, folder, signals) {
  // Node no longer handles a second signal while it ends.
  const ended = new Promise((resolve) => child.on("close", (code, by) => resolve(by === "SIGINT" && signals > 1 ? 130 : (code ?? by))));
  while (child.exitCode === null && readdirSync(folder).length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  for (let n = 0; n < signals; n++) {
    child.kill("SIGINT");
    // Two of one kind that are both on their way are one.
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return ended;
}

/** The files that a process has open. @param {number | undefined} pid */
function openedBy(pid) {
  const fds = `/proc/${pid}/fd`;
  return readdirSync(fds).map((fd) => {
    try {
      return readlinkSync(path.join(fds, fd));
    } catch {
      // Closed in the meantime.
      return "";
    }
  });
}
