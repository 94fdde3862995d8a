/** A session that ends under load: its messages are on the disk when the process has ended, however busy the writer is. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { assertAgreement } from "../support/agreement.mjs";
import { lcm } from "../support/cli.mjs";
import { assertWholeIn, databaseFile, echo, leave, talk } from "../support/faults.mjs";
import { filler } from "../support/history.mjs";
import { aProject } from "../support/project.mjs";
import { DatabaseSync, slowed } from "../support/store.mjs";

/** Ten commands at once, whose output takes a while to index. */
const busy = {
  toolCalls: Array.from({ length: 10 }, (_, n) => ({ id: `call_${n}`, name: "bash", arguments: { command: `seq ${n}00000 ${n}09000` } })),
};

/** How long a lock delays a Pi that is about to end. */
const HELD_MS = 800;

/** Exchanges of a long history: several slices, of which the lock lets through at most the first. */
const LONG = 400;

/** How long the lock is then held, unless the test releases it: longer than Pi takes to end. */
const LOCKED_MS = 120_000;

describe("Pi ends", { concurrency: 2 }, () => {
  for (const host of hostsFor()) {
    test(`Pi ${host.version}: in print mode Pi ends when the lock is free and all of a turn's results are stored`, async (t) => {
      const project = await aProject(t, { host, script: { otherwise: echo } });
      const history = project.history();
      history.talk(1);
      history.write(project.sessionDir);
      assert.equal((await lcm(project, "import")).code, 0);
      const writer = new DatabaseSync(databaseFile(project));
      t.after(() => writer.close());
      project.script.turns = [
        busy,
        (request) => {
          writer.exec("BEGIN IMMEDIATE");
          setTimeout(() => writer.exec("ROLLBACK"), HELD_MS);
          return echo(request);
        },
      ];
      const { code, stdout } = await project.runPi(["--continue", "-p", "work"]);
      assert.deepEqual({ code, stdout }, { code: 0, stdout: "Heard: work\n" });
      assertAgreement(project);
    });
  }

  test("a long history is complete after the next start, and the last messages when Pi has ended", async (t) => {
    const project = await leftWithAPast(t);
    const pi = project.startPi(["--continue"]);
    await assertWholeIn(project, pi);
    await pi.request("new_session");
    project.script.turns = [busy];
    await talk(project, pi, "work");
    for (let n = 0; n < 5; n++) await talk(project, pi, `${n} ${filler(`last${n}`, 3000)}`);
    await leave(pi);
    assertAgreement(project);
  });
});

/**
 * A project whose last Pi ended before all of a long history was stored. On a busy machine the lock may come too late for that.
 * @param {import("node:test").TestContext} t
 */
async function leftWithAPast(t) {
  for (let attempt = 1; ; attempt++) {
    const project = await aProject(t, { contextWindow: 10_000_000, script: { otherwise: echo } });
    const history = project.history();
    history.talk(1);
    history.write(project.sessionDir);
    assert.equal((await lcm(project, "import")).code, 0);
    history.talk(LONG, { words: 150 });
    history.write(project.sessionDir);
    const atFullSpeed = slowed(databaseFile(project), LOCKED_MS);
    t.after(atFullSpeed);
    const { code, stdout } = await project.runPi(["--continue", "-p", "in short"]);
    assert.deepEqual({ code, stdout }, { code: 0, stdout: "Heard: in short\n" });
    await atFullSpeed();
    const stored = project.inStore((store) => store.entries(history.id).length);
    if (stored < history.entries.length) return project;
    assert.ok(attempt < 5, `Pi left before everything was stored: ${stored} of ${history.entries.length} entries`);
  }
}
