/** Database folders that other users own or can write to: they are not used, and the user is told a remedy. */
import assert from "node:assert/strict";
import { chmodSync, lchownSync, lstatSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { assertStored } from "../support/agreement.mjs";
import { lcm } from "../support/cli.mjs";
import { assertWarnedOnce, databaseFile, echo, leave, talk, waitForWarning } from "../support/faults.mjs";
import { aProject, eventually } from "../support/project.mjs";

/** Another user, who needs no name. */
const OTHER = 4321;

/**
 * @typedef {object} Case
 * @property {string} what
 * @property {(file: string) => void} lay puts it where the database belongs, whose folder is there
 * @property {(file: string) => void} mend
 * @property {RegExp} warning
 * @property {boolean} [gives] only root can give something to somebody else
 */

/** @type {(what: string, at: (file: string) => string, make: (at: string) => void) => Case} */
const given = (what, at, make) => ({
  what: `${what} belongs to another user`,
  lay: (file) => {
    make(at(file));
    lchownSync(at(file), OTHER, OTHER);
  },
  mend: (file) => lchownSync(at(file), 0, 0),
  warning: new RegExp(` belongs to another user \\(uid ${OTHER}\\): set dbDir to a folder of your own\\. Until this is fixed, nothing is stored`),
  gives: true,
});

/** @type {(what: string, mode: number, at: (file: string) => string, make: (at: string) => void) => Case} */
const open = (what, mode, at, make) => ({
  what,
  lay: (file) => {
    make(at(file));
    chmodSync(at(file), mode);
  },
  mend: (file) => chmodSync(at(file), 0o700),
  warning: new RegExp(` may be written by other users \\(mode ${mode.toString(8)}\\): run chmod go-w on it, or set dbDir to another folder\\. Until this is fixed,`),
});

const empty = (/** @type {string} */ file) => writeFileSync(file, "", { mode: 0o600 });
const itself = (/** @type {string} */ file) => file;

/** @type {Case[]} */
const cases = [
  given("the folder", path.dirname, () => {}),
  given("the database", itself, empty),
  given("the log next to it", (file) => `${file}-wal`, (log) => {
    empty(log);
    empty(log.slice(0, -"-wal".length));
  }),
  given("a link in its place", itself, (file) => {
    empty(`${file}.elsewhere`);
    symlinkSync(`${file}.elsewhere`, file);
  }),
  given("a link's target", (file) => `${file}.elsewhere`, (elsewhere) => {
    empty(elsewhere);
    symlinkSync(elsewhere, elsewhere.replace(".elsewhere", ""));
  }),
  open("everyone can write to the folder", 0o777, path.dirname, () => {}),
  open("a group can write to the database", 0o660, itself, empty),
];

const noOwners = process.platform === "win32" ? "Windows has other means to say who may write" : undefined;
const notRoot = process.getuid?.() === 0 ? undefined : "only root can give a file to another user";

for (const host of hostsFor()) {
  test(`Pi ${host.version}: files that other users own or can write to are not used`, { skip: noOwners }, async (t) => {
    const project = await aProject(t, { host, script: { otherwise: echo } });
    project.storeIn("unused");
    const pi = project.startPi();
    await talk(project, pi, "with a store");
    for (const [number, { what, lay, mend, warning, gives }] of cases.entries()) {
      await t.test(what, { skip: gives && notRoot }, async () => {
        project.storeIn(`store-${number}`);
        mkdirSync(project.storeDir, { mode: 0o700 });
        const file = databaseFile(project);
        lay(file);
        const seen = () => readdirSync(project.storeDir).map((name) => [name, lstatSync(path.join(project.storeDir, name)).size]);
        const before = seen();
        const from = pi.events.length;
        await pi.request("new_session");
        await talk(project, pi, "without a store");
        await waitForWarning(pi, from);
        assertWarnedOnce(pi, warning, from);
        assert.deepEqual(seen(), before, "nothing was written there");
        const { code, stderr } = await lcm(project, "stats");
        assert.deepEqual([code, warning.test(stderr.replace("\n", ". Until this is fixed, nothing is stored"))], [2, true], stderr);

        mend(file);
        await talk(project, pi, "mine again");
        const session = await project.session(pi);
        await eventually(() => assertStored(project, session));
        assertWarnedOnce(pi, warning, from);
      });
    }
    await leave(pi);
  });
}

test("new files are for their owner only, whatever the umask", { skip: noOwners }, async (t) => {
  const project = await aProject(t, { script: { otherwise: echo } });
  const before = process.umask(0);
  t.after(() => process.umask(before));
  assert.equal((await project.runPi(["-p", "hello", "/lcm export --jsonl --all out/of/it"])).code, 0);
  const made = [project.storeDir, ...["out", "out/of", "out/of/it"].map((name) => path.join(project.cwd, name))];
  for (const folder of made) assert.equal(lstatSync(folder).mode & 0o777, 0o700, folder);
  const files = [project.storeDir, made[3]].flatMap((folder) => readdirSync(folder).map((name) => path.join(folder, name)));
  assert.ok(files.length >= 2);
  for (const file of files) assert.equal(lstatSync(file).mode & 0o777, 0o600, file);
});
