/** Machines that share a project: each with its own home, store and clone of the repository, and a shell in it. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { zstdDecompressSync } from "node:zlib";
import { decrypted, isEncrypted } from "./age.mjs";
import { answer, ask, lcm } from "./cli.mjs";
import { databaseFile } from "./faults.mjs";
import { History } from "./history.mjs";
import { temporaryFolder } from "./project.mjs";
import { DatabaseSync } from "./store.mjs";

/** @typedef {import("node:test").TestContext} TestContext */
/** @typedef {{ cwd: string, agentDir: string, storeDir: string, sessionDir: string }} Folders */

/** One repository, as its users write it. */
export const REMOTES = ["git@github.com:ann/shop.git", "https://ann:token@GitHub.com/ann/shop", "ssh://git@github.com:22/ann/shop.git/"];
/** Its folder at a target. */
export const FOLDER = "github.com~ann~shop";

/** Makes a folder the clone of a repository. @param {string} cwd @param {string} remote */
export function clone(cwd, remote) {
  mkdirSync(path.join(cwd, ".git"), { recursive: true });
  writeFileSync(path.join(cwd, ".git", "HEAD"), "ref: refs/heads/main\n");
  writeFileSync(path.join(cwd, ".git", "config"), `[core]\n\trepositoryformatversion = 0\n[remote "origin"]\n\turl = ${remote}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n`);
}

/** A machine, as its shell sees it; a Pi may run there too. */
export class Machine {
  /** Its sessions. @type {History[]} */
  histories = [];

  /**
   * @param {Folders} folders
   * @param {string} label what others call it
   * @param {string | undefined} remote
   */
  constructor({ cwd, agentDir, storeDir, sessionDir }, label, remote) {
    this.label = label;
    this.cwd = cwd;
    this.agentDir = agentDir;
    this.storeDir = storeDir;
    this.sessionDir = sessionDir;
    for (const dir of [cwd, agentDir, storeDir, sessionDir]) mkdirSync(dir, { recursive: true });
    /** @type {Record<string, string>} */
    this.env = {};
    this.configure({});
    if (remote) clone(cwd, remote);
  }

  /** @param {object} lcm our settings, but for the label */
  configure(lcm) {
    const file = path.join(this.agentDir, "settings.json");
    const others = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
    writeFileSync(file, JSON.stringify({ ...others, lcm: { syncLabel: this.label, ...lcm } }));
  }

  /** A session that is not stored yet. */
  history() {
    const [number, machine] = [this.histories.length, createHash("sha256").update(this.label).digest()];
    const id = `019a4f00-${number.toString(16).padStart(4, "0")}-7000-8000-${machine.toString("hex", 0, 6)}`;
    // Entries of the same time, place and id would be copies of one.
    const history = new History({ cwd: this.cwd, id, began: number * 100_000 + machine.readUInt16BE(6) });
    this.histories.push(history);
    return history;
  }

  /** Stores a session. @param {History} history */
  async store(history) {
    const { code, stderr } = await answer(this, "import", history.write(this.sessionDir));
    assert.deepEqual([code, stderr], [0, ""]);
  }

  /** Stores a session in which the user says these sentences. @param {...string} said @returns {Promise<History>} */
  async say(...said) {
    const history = this.history();
    for (const text of said) {
      history.user(text);
      history.assistant(`Noted by ${this.label}.`);
    }
    await this.store(history);
    return history;
  }

  /** Syncs in a shell. @param {...string} args @returns {Promise<any>} the report */
  async sync(...args) {
    const { code, stdout, stderr } = await lcm(this, "--json", "sync", ...args);
    assert.deepEqual([code, stderr], [0, ""]);
    return JSON.parse(stdout);
  }

  /** Its key, for the setting syncRecipients. @returns {Promise<string>} */
  async key() {
    const { code, stdout, stderr } = await lcm(this, "sync", "--key");
    assert.deepEqual([code, stderr], [0, ""]);
    assert.match(stdout, /^age1[a-z0-9]{58}\n$/);
    return stdout.trim();
  }

  /** What is in a pack that this machine can read. @param {Buffer} bytes @returns {Buffer} */
  unpacked(bytes) {
    return unpacked(isEncrypted(bytes) ? decrypted(bytes, readFileSync(path.join(this.storeDir, "machine-key"), "utf8")) : bytes);
  }

  /** What a search finds. @param {string} text @returns {Promise<any[]>} */
  async find(text) {
    return (await ask(this, "grep", text)).hits;
  }

  /** The report of `doctor`. */
  async doctor() {
    return (await answer(this, "doctor")).stdout;
  }

  /** The bytes of its store's files. */
  bytes() {
    return readdirSync(this.storeDir).map((name) => readFileSync(path.join(this.storeDir, name)));
  }

  /** What is in the store: names of messages, entries, and summaries; a purged message by the number in its place. */
  contents() {
    const database = new DatabaseSync(databaseFile(this), { readOnly: true });
    try {
      const all = (/** @type {string} */ sql) => database.prepare(sql).all().map((row) => Object.values(row).join(" "));
      return [
        ...all("SELECT 'entry', c.session_id, e.entry_id, coalesce(p.entry_id, '-'), hex(m.lineage) FROM entries e JOIN conversations c ON c.id = e.conversation_id LEFT JOIN entries p ON p.id = e.parent_id LEFT JOIN messages m ON m.id = e.message_id"),
        ...all("SELECT 'message', hex(lineage), kind, CASE kind WHEN 4 THEN hex(json) END FROM messages"),
        ...all("SELECT 'summary', hex(hash) FROM summaries"),
      ].sort();
    } finally {
      database.close();
    }
  }
}

/**
 * @param {TestContext} t
 * @param {string} label
 * @param {string} [remote] without it, the folder is no clone
 */
export function aMachine(t, label, remote) {
  const folder = temporaryFolder(t);
  const [cwd, agentDir, storeDir, sessionDir] = ["shop", "agent", "store", "sessions"].map((name) => path.join(folder, name));
  return new Machine({ cwd, agentDir, storeDir, sessionDir }, label, remote);
}

/**
 * Asserts that a text is in none of these bytes: packs, or a store's files.
 * @param {string} text
 * @param {Iterable<Buffer>} all
 */
export function assertAbsent(text, all) {
  for (const bytes of all) assert.ok(!bytes.includes(text), `${text} is gone`);
}

/** The packs in a target's folder. @param {string} target @returns {{ name: string, file: string, bytes: Buffer }[]} */
export function packsIn(target) {
  const names = /** @type {string[]} */ (readdirSync(target, { recursive: true })).filter((name) => name.endsWith(".pack")).sort();
  return names.map((name) => ({ name: name.replaceAll(path.sep, "/"), file: path.join(target, name), bytes: readFileSync(path.join(target, name)) }));
}

/** What is in a pack. @param {Buffer} bytes */
export const unpacked = (bytes) => zstdDecompressSync(bytes);

/** Asserts that machines have the same history. @param {...{ contents: () => string[] }} machines */
export function assertSame(...machines) {
  const [first, ...others] = machines.map((machine) => machine.contents());
  for (const other of others) {
    assert.deepEqual(other.filter((thing) => !first.includes(thing)), [], "nothing more");
    assert.deepEqual(first.filter((thing) => !other.includes(thing)), [], "nothing less");
  }
}
