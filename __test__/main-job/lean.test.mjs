/** The content of a request, on the real Pi: one block, that of its branch, and nothing that the block already contains. */
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { extension, root } from "../../scripts/paths.mjs";
import { assertAgreement } from "../support/agreement.mjs";
import { blockOf, drillDownIds, statistics } from "../support/block.mjs";
import { filler } from "../support/history.mjs";
import { aProject, eventually } from "../support/project.mjs";

/** @typedef {import("../support/project.mjs").Received} Received */

const acting = path.join(root, "__test__", "support", "acting.mjs");

/** Every block begins with this. */
const HEADING = "(Lossless Context Management)";

/** The number of blocks in a request, in any message. @param {Received} request */
const blocksIn = ({ messages }) => messages.map(({ text }) => text).join("\n").split(HEADING).length - 1;

for (const host of hostsFor()) {
  test(`on ${host.name} a request has one block, that of its branch, also after /tree, a resume and in a fork`, async (t) => {
    const project = await aProject(t, { host, extensions: [extension, acting] });
    const history = project.history();
    history.talk(40);
    const pi = project.startPi(["--session", history.write(project.sessionDir)]);
    await pi.prompt("before the compaction");
    assert.equal(blocksIn(project.lastTurn), 0);
    await pi.request("compact");
    await pi.prompt(`after the first ${filler("first", 300)}`);
    const first = blockOf(project.lastTurn);
    await pi.request("compact");
    await pi.prompt("after the second");
    const second = blockOf(project.lastTurn);
    assert.ok(first && second && first !== second);
    assert.equal(blocksIn(project.lastTurn), 1, "the block before it is not repeated");

    await t.test("a branch from before the second compaction has the first one's", async () => {
      await pi.prompt(`/act tree after the first ${filler("first", 300)}`);
      await pi.prompt("on a branch of its own");
      assert.equal(blockOf(project.lastTurn), first);
      assert.equal(blocksIn(project.lastTurn), 1);
    });

    await t.test("a branch summary is next to the block until the next block covers it", async () => {
      await pi.prompt("/act tree-summary on a branch of its own");
      await pi.prompt("with an account");
      assert.equal(blocksIn(project.lastTurn), 2);
      await pi.prompt(`going on ${filler("account", 300)}`);
      await pi.request("compact");
      await pi.prompt("compacted with it");
      const block = blockOf(project.lastTurn);
      assert.ok(block);
      assert.equal(blocksIn(project.lastTurn), 1, "the block's content is not repeated");
      assert.equal(statistics(block).missing, "none");
      const session = await project.session(pi);
      const covered = project.inStore((store) => store.entriesUnder(session.id, drillDownIds(block)));
      assert.deepEqual(covered, session.compactedBy());
      assert.ok(session.entries.some(({ type, id }) => type === "branch_summary" && covered.includes(id)));
    });
    const { file } = await project.session(pi);
    const block = blockOf(project.lastTurn);

    await t.test("a fork has the block of the part it shares with its parent", async () => {
      await pi.prompt("/act fork compacted with it");
      await pi.prompt("in the fork");
      assert.equal(blockOf(project.lastTurn), block);
      assert.equal(blocksIn(project.lastTurn), 1);
    });

    await t.test("a resumed session continues with its block", async () => {
      await pi.stop();
      const again = project.startPi(["--session", file]);
      await again.prompt("taken up again");
      assert.equal(blockOf(project.lastTurn), block);
      assert.equal(blocksIn(project.lastTurn), 1);
      await eventually(() => assertAgreement(project));
    });
  });
}
