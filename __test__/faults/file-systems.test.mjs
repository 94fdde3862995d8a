/** File systems without file locks or shared memory, such as some network disks: Pi continues, and the user is told what helps. */
import assert from "node:assert/strict";
import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { assertAgreement } from "../support/agreement.mjs";
import { answer, lcm } from "../support/cli.mjs";
import { assertNothingGone, assertWarnedOnce, echo, leave, storedIn, talk, waitForWarning } from "../support/faults.mjs";
import { History } from "../support/history.mjs";
import { connect, textOf } from "../support/mcp.mjs";
import { notPreloaded, preloaded } from "../support/preloaded.mjs";
import { aProject, eventually } from "../support/project.mjs";
import { databasesIn } from "../support/store.mjs";

/** The tries of a start and a few messages; a lock that is waited for is tried a thousand times. */
const TRIES = 50;

const SENTENCE =
  /the file system of \S+\.db has no file locks or no shared memory, as some network disks \(set dbDir to a folder on a local disk\): [^\n]+$/;

describe("the history's folder", { skip: notPreloaded, concurrency: 2 }, () => {
  for (const host of hostsFor()) {
    for (const lacks of ["TEST_NO_LOCKS", "TEST_NO_MAPS"]) {
      test(`Pi ${host.version}: ${lacks}`, async (t) => {
        const project = await aProject(t, { host, script: { otherwise: echo } });
        const { folder, env } = preloaded(t, "no-locks");
        const refused = path.join(folder, "refused");
        const lacking = { ...env, [lacks]: project.storeDir, TEST_REFUSED: refused };

        await t.test("a first session", async () => {
          project.env = lacking;
          const pi = project.startPi();
          await talk(project, pi, "one");
          await waitForWarning(pi);
          await talk(project, pi, "two");
          await leave(pi);
          assertWarnedOnce(pi, SENTENCE);
        });

        await t.test("a local disk again", async () => {
          project.env = {};
          const pi = project.startPi(["--continue"]);
          await eventually(() => assertAgreement(project));
          await leave(pi);
        });

        await t.test("a history that was copied there", async () => {
          project.env = lacking;
          const before = storedIn(project);
          const pi = project.startPi(["--continue"]);
          await talk(project, pi, "three");
          await waitForWarning(pi);
          await leave(pi);
          assertWarnedOnce(pi, SENTENCE);
          project.env = {};
          assertNothingGone(before, storedIn(project));
        });
        const tries = existsSync(refused) ? readFileSync(refused).length : 0;
        assert.ok(tries < TRIES, `${tries} tries to get a lock`);
      });
    }
  }
});

test("a shell and an agent read what is there, and are told at once that nothing can be added", { skip: notPreloaded }, async (t) => {
  const { folder, env } = preloaded(t, "no-locks");
  const refused = path.join(folder, "refused");
  const [cwd, agentDir, storeDir] = ["project", "agent", "store"].map((name) => path.join(folder, name));
  for (const dir of [cwd, agentDir]) mkdirSync(dir);
  const shell = { cwd, agentDir, storeDir };
  const history = new History(shell);
  history.talk(3);
  const file = history.write(folder);
  assert.equal((await answer(shell, "import", file)).code, 0);
  const lacking = { ...shell, env: { ...env, TEST_NO_LOCKS: storeDir, TEST_REFUSED: refused } };
  for (const args of [["sessions"], ["doctor"], ["backup", path.join(folder, "copy.db")]]) assert.equal((await lcm(lacking, ...args)).code, 0, args[0]);
  const { client } = await connect(t, lacking);
  assert.doesNotMatch(await textOf(client, "lcm_describe", {}), /lock/);
  assert.match((await lcm(lacking, "import", file)).stderr.trim(), SENTENCE);
  // What a killed session left can't be read without locks.
  appendFileSync(path.join(storeDir, `${databasesIn(storeDir)[0]}-wal`), "x".repeat(32));
  assert.match((await lcm(lacking, "sessions")).stderr.trim(), SENTENCE);
  const tries = readFileSync(refused).length;
  assert.ok(tries < TRIES, `${tries} tries to get a lock`);
});
