/**
 * Changing settings with `/lcm settings`: saved in Pi's own files without changing their other content, and effective at once, in rpc and
 * print mode.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { aPlace } from "../settings/starting.mjs";

for (const host of hostsFor()) {
  test(`a setting is saved without changing the rest of the file, and is effective at once, on ${host.name}`, async (t) => {
    const place = await aPlace(t, host);
    const file = path.join(place.project.agentDir, "settings.json");
    const before = readFileSync(file, "utf8");
    await place.rpc(async (pi) => {
      const answerTo = async (/** @type {string} */ line) => {
        const from = pi.ui("notify").length;
        await pi.prompt(`/lcm ${line}`);
        await pi.waitFor(() => pi.ui("notify").length > from);
        return pi.ui("notify").at(-1)?.message;
      };
      await pi.prompt("hello");
      await pi.waitFor(() => pi.status("lcm")?.startsWith("LCM: "));
      assert.equal(await answerTo("settings status=off"), `Saved in ${file}: status = false (global)`);
      await pi.waitFor(() => pi.status("lcm") === undefined);
      const { lcm, ...rest } = JSON.parse(readFileSync(file, "utf8"));
      assert.deepEqual(lcm, { status: false });
      assert.deepEqual(rest, JSON.parse(before));
      assert.equal(await answerTo("settings background=maybe"), "background takes true or false, not maybe; nothing was changed");
      assert.equal(await answerTo("settings background off"), "to set background, put = before the value: /lcm settings background=VALUE");
      assert.match(String(await answerTo("settings syncRecipients=age1foo")), /^number 1 in syncRecipients is no key, /);
      assert.match(String(await answerTo("settings syncTarget=/mnt --project")), /^a project can't set syncTarget for its users: use --global; /);
      assert.deepEqual(JSON.parse(readFileSync(file, "utf8")).lcm, lcm);
      assert.equal(await answerTo("settings background=off --project"), `Saved in ${path.join(place.project.cwd, ".pi", "settings.json")}: background = false (project); from its next start on, Pi ignores it until you trust this project`);
      assert.equal(await answerTo("settings background=on --global"), `Saved in ${file}: background = true; it has no effect here, where background = false (project) overrides it`);
      assert.equal(await answerTo("settings background --reset --global"), `Removed from ${file}: background = false (project) now`);
      assert.match(String(await answerTo("stats")), /^Background +off \(setting background\);/m);
      assert.equal(await answerTo("settings status --reset"), `Removed from ${file}: status = true (default) now`);
      assert.equal(await answerTo("settings status --reset"), `There is nothing to remove in ${file}: status = true (default)`);
      await pi.waitFor(() => pi.status("lcm")?.startsWith("LCM: "));
      assert.equal(await answerTo("settings compactionModels=session, demo/demo-model, foo/bar"), `Saved in ${file}: compactionModels = session, demo/demo-model, foo/bar (global)\nfoo/bar can't write summaries: Pi does not know it`);
      writeFileSync(file, "{ broken");
      assert.match(String(await answerTo("settings maxDepth=3")), /settings\.json is no JSON \(.*\): fix it first; nothing was changed$/);
      assert.equal(readFileSync(file, "utf8"), "{ broken");
      writeFileSync(file, before);

      await t.test("the extension is switched off and on within a session", async () => {
        const said = () => pi.ui("notify").map(({ message }) => message);
        await pi.prompt("/lcm settings enabled=false");
        await pi.prompt("/lcm stats");
        await pi.waitFor(() => said().some((message) => message.includes("switched off by its setting `enabled`")));
        await pi.prompt("/lcm settings enabled=true");
        await pi.prompt("meanwhile");
        await pi.prompt("/lcm stats");
        await pi.waitFor(() => said().some((message) => /^This session +4 messages/.test(message)));
      });
    }, { args: ["--approve"] });
  });
}
