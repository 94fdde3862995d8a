/**
 * A session's end under load: what was said in it is on the disk when the process has ended, however busy the writer is.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { hostsByVersion, hostsFor } from "../../scripts/hosts.mjs";
import { assertAgreement } from "../support/agreement.mjs";
import { assertWhole, databaseFile, echo, talk } from "../support/faults.mjs";
import { filler } from "../support/history.mjs";
import { aProject } from "../support/project.mjs";
import { DatabaseSync } from "../support/store.mjs";

/** Twenty commands at once, whose output takes a while to be indexed. */
const busy = {
  toolCalls: Array.from({ length: 20 }, (_, n) => ({ id: `call_${n}`, name: "bash", arguments: { command: `seq ${n}00000 ${n}09000` } })),
};

/** How long the lock is kept from a Pi that is about to end. */
const HELD_MS = 800;

describe("Pi ends", { concurrency: 3 }, () => {
  for (const host of hostsFor(hostsByVersion, "Pi 0.74.2")) {
    test(`Pi ${host.version}: in print mode all of a turn's results are stored when Pi has ended`, async (t) => {
      const project = await aProject(t, { host, script: { turns: [busy], otherwise: echo } });
      const { code, stdout } = await project.runPi(["-p", "work"]);
      assert.deepEqual({ code, stdout }, { code: 0, stdout: "Heard: work\n" });
      assertAgreement(project);
    });

    test(`Pi ${host.version}: in print mode Pi ends when the lock is free and all is stored`, async (t) => {
      const project = await aProject(t, { host, script: { otherwise: echo } });
      await project.runPi(["-p", "before"]);
      const writer = new DatabaseSync(databaseFile(project));
      t.after(() => writer.close());
      project.script.turns = [
        (request) => {
          writer.exec("BEGIN IMMEDIATE");
          setTimeout(() => writer.exec("ROLLBACK"), HELD_MS);
          return echo(request);
        },
      ];
      const { code, stdout } = await project.runPi(["--continue", "-p", "the last words"]);
      assert.deepEqual({ code, stdout }, { code: 0, stdout: "Heard: the last words\n" });
      assertAgreement(project);
    });
  }

  test("in rpc mode what was said last is stored when Pi has ended", async (t) => {
    const project = await aProject(t, { script: { turns: [busy], otherwise: echo } });
    const pi = project.startPi();
    await talk(project, pi, "work");
    for (let n = 0; n < 5; n++) await talk(project, pi, `${n} ${filler(`last${n}`, 3000)}`);
    assert.deepEqual(await pi.stop(), { code: 0, signal: null });
    assertAgreement(project);
  });

  test("a long past, for which Pi does not wait, is stored completely by the next start", async (t) => {
    const project = await aProject(t, { contextWindow: 10_000_000, script: { otherwise: echo } });
    const history = project.history();
    history.talk(1000, { words: 150 });
    history.write(project.sessionDir);
    const { code, stdout } = await project.runPi(["--continue", "-p", "in short"]);
    assert.deepEqual({ code, stdout }, { code: 0, stdout: "Heard: in short\n" });
    await assertWhole(project);
  });
});
