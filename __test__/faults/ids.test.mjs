/**
 * A session file that uses an id twice, which Pi itself never writes: nothing is lost, the user is told, and no compaction uses the store's
 * branch.
 */
import assert from "node:assert/strict";
import { appendFileSync } from "node:fs";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { assertWarnedOnce, doctor, echo, leave, pause, reopen, talk, waitForWarning } from "../support/faults.mjs";
import { aProject, eventually } from "../support/project.mjs";
import { jsonOf } from "../support/session-file.mjs";

for (const host of hostsFor()) {
  test(`Pi ${host.version}: a repeated id is reported and loses nothing`, async (t) => {
    const project = await aProject(t, { host, script: { otherwise: echo } });
    const history = project.history();
    history.talk(12);
    const file = history.write(project.sessionDir);
    const pi = project.startPi(["--session", file]);
    const stored = () => project.inStore((store) => new Set(store.entries(history.id).map(({ json }) => json)));
    const assertAllStored = () =>
      eventually(async () => {
        const [session, known] = [await project.session(pi), stored()];
        for (const entry of session.entries) assert.ok(known.has(jsonOf(entry)), JSON.stringify(entry));
      });
    await assertAllStored();
    await pause(project, pi);

    const last = history.entries.at(-1);
    const again = { ...last, parentId: history.entries[19].id, message: { role: "user", content: [{ type: "text", text: "a zebra instead" }], timestamp: 1 } };
    appendFileSync(file, `${JSON.stringify(again)}\n`);
    const from = await reopen(project, pi);
    await waitForWarning(pi, from);
    assertWarnedOnce(pi, /^pi-lossless-context: several entries of this session's file have one id, and Pi shows only the last of them\. All are kept and can be found, but Pi compacts this session by itself: /, from);
    await assertAllStored();
    await talk(project, pi, "and on");
    assert.match(project.lastTurn.raw, /a zebra instead/, "Pi shows the last one");
    await assertAllStored();
    const before = pi.ui("notify").length;
    await pi.prompt("/lcm search zebra");
    await pi.waitFor(() => pi.ui("notify").slice(before).some(({ message }) => /^m-[0-9a-f]{10} /.test(message)));

    await pi.request("compact");
    const { lastCompaction } = await project.session(pi);
    assert.ok(lastCompaction && !lastCompaction.details?.lcm, "it is Pi's own");
    assert.equal(project.summaryCalls.length, 0);
    assert.match(await doctor(pi), /\n\nEverything is in order\.$/);
    await leave(pi);
  });
}
