/** Beside an extension whose tool answers oddly: whatever Pi takes is stored, compacted and found again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hostsByVersion, hostsFor } from "../../scripts/hosts.mjs";
import { extension } from "../../scripts/paths.mjs";
import { assertAgreement } from "../support/agreement.mjs";
import { aProject, eventually } from "../support/project.mjs";
import { answers } from "./extensions/odd-tool.mjs";
import { assertCovered, assertShown, talkAndCompact, theirs } from "./beside.mjs";

for (const host of hostsFor(hostsByVersion)) {
  test(`tools that answer oddly, on ${host.name}`, async (t) => {
    const project = await aProject(t, { host, extensions: [theirs("odd-tool"), extension], contextWindow: 2_000_000, settings: { compaction: { keepRecentTokens: 1000 } } });
    const history = project.history();
    history.talk(20);
    const pi = project.startPi(["--session", history.write(project.sessionDir)]);
    /** @param {string} name @param {Record<string, unknown>} args */
    const call = async (name, args) => {
      project.script.turns = [{ toolCalls: [{ name, arguments: args }] }];
      await pi.prompt(`call ${name}`);
      return project.lastTurn.messages.findLast(({ role }) => role === "tool")?.text ?? "";
    };

    for (const what of Object.keys(answers)) {
      await t.test(`${what}: what stands in the session is stored`, async () => {
        await call("odd", { what });
        await eventually(() => assertAgreement(project));
        const results = (await project.session(pi)).entries.filter((entry) => entry.message?.toolName === "odd");
        assert.deepEqual(results.at(-1).message.content.map((/** @type {any} */ { type }) => type), answers[what].map(({ type }) => type));
      });
    }

    await t.test("they are compacted with everything else, and the summariser is not sent all of it", async () => {
      await talkAndCompact(pi, "later");
      const session = await project.session(pi);
      const block = assertCovered(project, session);
      const odd = session.entries.filter((entry) => entry.message?.toolName === "odd").map(({ id }) => id);
      assert.deepEqual(session.compactedBy().filter((id) => odd.includes(id)), odd);
      const shown = project.summaryCalls.map(({ raw }) => raw).join("\n");
      for (const marker of ["bell0000x", "caption0001x", "head0000x", "tail0000x", "before0000x"]) assert.ok(shown.includes(marker), marker);
      assert.ok(!shown.includes("middle0000x") && !shown.includes("iVBORw0KGgo"));
      assert.ok(shown.length < 200_000, `${shown.length} characters were sent`);
      assert.match(block, / 0 degraded$/m);
      await pi.prompt("and now?");
      assertShown(project, block);
    });

    await t.test("and each is found again", async () => {
      for (const marker of ["before0000x", "after0000x", "bell0000x", "caption0001x", "middle0000x"]) {
        const found = await call("lcm_grep", { query: marker });
        assert.ok(found.includes(`«${marker}»`), found);
        const [handle] = found.match(/m-[0-9a-f]{10}/) ?? [];
        const whole = await call("lcm_expand", { summary_id: handle });
        assert.ok(marker === "middle0000x" ? whole.includes("head0000x") : whole.includes(marker), whole.slice(0, 2000));
      }
      await eventually(() => assertAgreement(project));
    });
  });
}
