/**
 * What may lie where a project's database belongs: a damaged one, a newer version's, another program's, a folder, a link
 * that leads nowhere. None of it is touched; the history goes on beside it.
 */
import assert from "node:assert/strict";
import { lstatSync, mkdirSync, readFileSync, readlinkSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { hostOf } from "../../scripts/hosts.mjs";
import { assertAgreement } from "../support/agreement.mjs";
import { assertToldOnce, assertWhole, databaseFile, databaseOf, echo, leave, talk } from "../support/faults.mjs";
import { aProject, eventually } from "../support/project.mjs";
import { DatabaseSync } from "../support/store.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */

/**
 * @typedef {object} Case
 * @property {string} what
 * @property {(file: string) => void} lay puts it where the database is or belongs
 * @property {RegExp} told
 * @property {boolean} [always] at every start, since there may be a history that is not seen
 * @property {string} [version] of Pi
 */

/** @type {Case[]} */
const cases = [
  {
    what: "a database whose header is overwritten",
    lay: (file) => change(file, (bytes) => bytes.fill(0x5a, 0, 100)),
    told: /[0-9a-f]{16}\.db is damaged: file is not a database; the history goes to \S+-2\.db instead, made anew from Pi's session files \(\/lcm import brings the older ones\), and this is told until you move that away$/,
    always: true,
  },
  {
    what: "a database whose first page is garbage below its header",
    lay: (file) => change(file, (bytes) => bytes.fill(0x5a, 100, 4096)),
    told: /is damaged: .*malformed.*; the history goes to \S+-2\.db instead/,
    always: true,
    version: "1.5.2",
  },
  {
    what: "a database that ends after its first page",
    lay: (file) => writeFileSync(file, readFileSync(file).subarray(0, 8192)),
    told: /is damaged: .*malformed.*; the history goes to \S+-2\.db instead/,
    always: true,
  },
  {
    what: "a text",
    lay: (file) => writeFileSync(file, "Shopping: milk, bread, a lamp.\n".repeat(40)),
    told: /is damaged: file is not a database; the history goes to/,
    always: true,
  },
  {
    what: "a newer version's database",
    lay: (file) => inDatabase(file, "PRAGMA user_version = 99"),
    told: /was written by a newer version of pi-lossless-context \(format 99, this one knows \d+\); the history goes to \S+-2\.db instead$/,
    always: true,
    version: "0.74.2",
  },
  {
    what: "another program's database",
    lay: (file) => {
      writeFileSync(file, "");
      inDatabase(file, "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
    },
    told: /belongs to another program; the history goes to \S+-2\.db instead$/,
  },
  {
    what: "a folder",
    lay: (file) => {
      renameSync(file, `${file}.away`);
      mkdirSync(file);
    },
    told: /is a folder; the history goes to \S+-2\.db instead$/,
  },
  {
    what: "a link that leads to itself",
    lay: (file) => {
      renameSync(file, `${file}.away`);
      symlinkSync(path.basename(file), file);
    },
    told: /is a link that leads nowhere: .*; the history goes to \S+-2\.db instead/,
    always: true,
  },
  {
    what: "a link to a file that is not there",
    lay: (file) => {
      renameSync(file, `${file}.away`);
      symlinkSync(path.join("elsewhere", "gone.db"), file);
    },
    told: /is a link that leads nowhere: .*; the history goes to \S+-2\.db instead/,
    always: true,
  },
];

const noLinks = process.platform === "win32" ? "making links needs a privilege on Windows" : undefined;

describe("where the database belongs lies", { concurrency: 3 }, () => {
  for (const { what, lay, told, always = false, version = "0.87.1" } of cases) {
    test(what, { skip: what.includes("link") && noLinks }, async (t) => {
      const project = await aProject(t, { host: hostOf(version), script: { otherwise: echo } });
      await project.runPi(["-p", "before"]);
      const file = databaseFile(project);
      lay(file);
      const before = seen(file);

      const pi = project.startPi(["--continue"]);
      await talk(project, pi, "meanwhile");
      await eventually(() => assertAgreement(project, undefined, databaseOf(project, "-2")));
      assertToldOnce(pi, told);
      await leave(pi);
      assert.deepEqual(seen(file), before, "it is left as it is");

      await assertWhole(project, { name: databaseOf(project, "-2"), told: always ? told : undefined });
      assert.deepEqual(seen(file), before, "it is left as it is, again");
    });
  }
});

/**
 * @param {string} file
 * @param {(bytes: Buffer) => void} how
 */
function change(file, how) {
  const bytes = readFileSync(file);
  how(bytes);
  writeFileSync(file, bytes);
}

/** @param {string} file @param {string} sql */
function inDatabase(file, sql) {
  const database = new DatabaseSync(file);
  database.exec(sql);
  database.close();
}

/** What one sees of a file, whatever it is. @param {string} file */
function seen(file) {
  const kind = lstatSync(file);
  if (kind.isSymbolicLink()) return { link: readlinkSync(file) };
  return kind.isDirectory() ? { folder: true } : { bytes: readFileSync(file).toString("base64") };
}
