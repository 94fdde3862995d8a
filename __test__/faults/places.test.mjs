/**
 * Other files in the database's place: a damaged one, another format's, another program's, a folder, a dangling link. None is touched; the
 * history continues in another file.
 */
import assert from "node:assert/strict";
import { lstatSync, mkdirSync, readFileSync, readlinkSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { assertAgreement } from "../support/agreement.mjs";
import { assertSound, assertWarnedOnce, assertWhole, assertWholeIn, databaseFile, databaseOf, echo, keep, leave, pause, reopen, talk } from "../support/faults.mjs";
import { aProject, eventually } from "../support/project.mjs";
import { DatabaseSync } from "../support/store.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */

/**
 * @typedef {object} Case
 * @property {string} what
 * @property {(file: string) => void} lay puts it where the database is or belongs
 * @property {RegExp} warning
 * @property {boolean} [always] at every start, since there may be a history that is not seen
 */

/** @type {Case[]} */
const cases = [
  {
    what: "a database whose header is overwritten",
    lay: (file) => change(file, (bytes) => bytes.fill(0x5a, 0, 100)),
    warning: /[0-9a-f]{16}\.db is damaged: file is not a database; new messages go to \S+-2\.db instead, and this session from its beginning\. \/lcm doctor --rebuild joins both$/,
    always: true,
  },
  {
    what: "a database whose first page is garbage below its header",
    lay: (file) => change(file, (bytes) => bytes.fill(0x5a, 100, 4096)),
    warning: /is damaged: .*malformed.*; new messages go to \S+-2\.db instead/,
    always: true,
  },
  {
    what: "a database that ends after its first page",
    lay: (file) => writeFileSync(file, readFileSync(file).subarray(0, 8192)),
    warning: /is damaged: .*malformed.*; new messages go to \S+-2\.db instead/,
    always: true,
  },
  {
    what: "a text",
    lay: (file) => writeFileSync(file, "Shopping: milk, bread, a lamp.\n".repeat(40)),
    warning: /is damaged: file is not a database; new messages go to/,
    always: true,
  },
  {
    what: "another format's database",
    lay: (file) => inDatabase(file, "PRAGMA user_version = 99"),
    warning: /\.db has format 99, and this version of pi-lossless-context reads format 1: use the version that wrote it; the history goes to \S+-2\.db instead$/,
    always: true,
  },
  {
    what: "another program's database",
    lay: (file) => {
      writeFileSync(file, "");
      inDatabase(file, "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
    },
    warning: /belongs to another program; the history goes to \S+-2\.db instead$/,
  },
  {
    what: "a folder",
    lay: (file) => {
      renameSync(file, `${file}.away`);
      mkdirSync(file);
    },
    warning: /is a folder; the history goes to \S+-2\.db instead$/,
  },
  {
    what: "a link to itself",
    lay: (file) => {
      renameSync(file, `${file}.away`);
      symlinkSync(path.basename(file), file);
    },
    warning: /is a broken symbolic link: .*; the history goes to \S+-2\.db instead/,
    always: true,
  },
  {
    what: "a link to a missing file",
    lay: (file) => {
      renameSync(file, `${file}.away`);
      symlinkSync(path.join("elsewhere", "gone.db"), file);
    },
    warning: /is a broken symbolic link: .*; the history goes to \S+-2\.db instead/,
    always: true,
  },
];

const noLinks = process.platform === "win32" ? "making links needs a privilege on Windows" : undefined;

for (const host of hostsFor()) {
  test(`Pi ${host.version}: a foreign file in the database's place is unchanged, and the history continues next to it`, async (t) => {
    const project = await aProject(t, { host, script: { otherwise: echo } });
    const [file, name] = [databaseFile(project), databaseOf(project, "-2")];
    const pi = project.startPi();
    await talk(project, pi, "before");
    await pause(project, pi);
    const bringBack = keep(project);

    for (const { what, lay, warning, always = false } of cases) {
      await t.test(what, { skip: what.includes("link") && noLinks }, async () => {
        bringBack();
        lay(file);
        const before = seen(file);
        const first = await reopen(project, pi);
        await talk(project, pi, "meanwhile");
        await eventually(() => assertAgreement(project, undefined, name));
        assertWarnedOnce(pi, warning, first);
        await pause(project, pi);
        assert.deepEqual(seen(file), before);

        const again = await reopen(project, pi);
        await assertWholeIn(project, pi, { name, warning: always ? warning : undefined, from: again });
        await pause(project, pi);
        assertSound(project, name);
        assert.deepEqual(seen(file), before);
      });
    }
    await leave(pi);

    await t.test("when Pi starts", async () => {
      const [{ lay, warning }] = cases;
      bringBack();
      lay(file);
      const before = seen(file);
      await assertWhole(project, { name, warning });
      assert.deepEqual(seen(file), before);
    });
  });
}

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

/** The observable state of a file of any kind. @param {string} file */
function seen(file) {
  const kind = lstatSync(file);
  if (kind.isSymbolicLink()) return { link: readlinkSync(file) };
  return kind.isDirectory() ? { folder: true } : { bytes: readFileSync(file).toString("base64") };
}
