/** Pi's own compaction settings as they are now: the user can change them while a session is open, and no event says so. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { aProject } from "../support/project.mjs";
import { noTerminal } from "../support/terminal.mjs";

const WINDOW = 200_000;

// Older versions do not show their settings.
for (const host of hostsFor("1.6.0").filter(({ version }) => version !== "0.87.1")) {
  test(`rpc switches automatic compaction off and on, on ${host.name}`, async (t) => {
    const settings = { compaction: { reserveTokens: 1_000, modelOverrides: { "demo/demo-model": { reserveTokens: 5_000 } } } };
    const pi = (await aProject(t, { host, contextWindow: WINDOW, settings })).startPi();
    const compactsAt = async () => {
      const from = pi.ui("notify").length;
      await pi.prompt("/lcm context --json");
      await pi.waitFor(() => pi.ui("notify").length > from);
      return JSON.parse(pi.ui("notify")[from].message).piCompactsAt;
    };
    await pi.prompt("hello");
    assert.equal(await compactsAt(), WINDOW - 5_000);
    await pi.request("set_auto_compaction", { enabled: false });
    assert.equal(await compactsAt(), null);
    await pi.request("set_auto_compaction", { enabled: true });
    assert.equal(await compactsAt(), WINDOW - 5_000);
  });

  test(`/settings switches automatic compaction off, on ${host.name}`, { skip: noTerminal }, async (t) => {
    const terminal = (await aProject(t, { host, contextWindow: WINDOW })).openTerminal();
    await terminal.waitFor((screen) => screen.includes("LCM: 0 msgs"), "the footer");
    await terminal.send("/lcm context");
    await terminal.waitFor((screen) => /Pi +compacts/.test(screen), "when Pi compacts");
    await terminal.send("/settings");
    await terminal.waitFor((screen) => /Auto-compact +true/.test(screen), "Pi's settings");
    terminal.press("enter");
    await terminal.waitFor((screen) => /Auto-compact +false/.test(screen), "the other value");
    terminal.press("escape");
    await terminal.waitFor((screen) => !screen.includes("Auto-compact"), "the editor");
    await terminal.send("/lcm context");
    await terminal.waitFor((screen) => /Context +(?:(?!Pi +compacts)[^])*$/.test(screen), "that it does not");
  });
}
