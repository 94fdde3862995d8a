/**
 * What is seen: the panels, the tools' calls and the tree in narrow, usual and wide terminals, with characters of every width. A
 * line that is too wide ends some versions of Pi, so that it goes on is half of each test.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { hostsByVersion, hostsFor } from "../../scripts/hosts.mjs";
import { node22 } from "../../scripts/paths.mjs";
import { aProject } from "../support/project.mjs";
import { noTerminal } from "../support/terminal.mjs";

const WIDTHS = [60, 100, 160];
const WIDE = "請求書はどこですか 👩‍👩‍👧‍👦 🦀 e\u0301 ｆｕｌｌ ไทย ﷽";

/** @param {import("node:test").TestContext} t @param {import("../../scripts/hosts.mjs").Host} host @param {number} cols */
async function opened(t, host, cols) {
  const project = await aProject(t, { host });
  const history = project.history();
  history.user(`where is the invoice? ${`${WIDE} `.repeat(20)}`);
  history.talk(8);
  const terminal = project.openTerminal(["--session", history.write(project.sessionDir)], { cols, rows: 40 });
  await terminal.waitFor((screen) => screen.includes("LCM: 17 msgs"), "the footer");
  return { project, terminal };
}

for (const host of hostsFor(hostsByVersion)) {
  for (const cols of WIDTHS) {
    test(`${cols} columns on ${host.name}`, { skip: noTerminal }, async (t) => {
      const { project, terminal } = await opened(t, host, cols);

      await t.test("settings are looked through, refused and saved", async () => {
        await terminal.send("/lcm settings");
        await terminal.waitFor((screen) => /> enabled +true \(default\)/.test(screen), "the panel");
        terminal.type("maxDepth");
        await terminal.waitFor((screen) => /> maxDepth +5 \(default\)/.test(screen), "the one that is looked for");
        terminal.press("enter");
        await terminal.waitFor((screen) => screen.includes("enter: save"), "its value");
        terminal.type("9");
        await terminal.waitFor((screen) => screen.includes("> 59"), "what is typed");
        terminal.press("enter");
        await terminal.waitFor((screen) => screen.includes("not 59"), "why not");
        terminal.type("\u007f\u007f7");
        await terminal.waitFor((screen) => screen.includes("> 7"), "another value");
        terminal.press("enter");
        await terminal.waitFor((screen) => /> maxDepth +7 \(global\)/.test(screen), "what holds now");
        terminal.press("escape");
        await terminal.waitFor((screen) => !screen.includes("Settings of pi-lossless-context"), "the editor");
        const { lcm } = JSON.parse(readFileSync(path.join(project.agentDir, "settings.json"), "utf8"));
        assert.deepEqual(lcm, { maxDepth: 7 });
      });

      await t.test("a search shows hits, and one in full", async () => {
        await terminal.send("/lcm search");
        await terminal.waitFor((screen) => screen.includes("Search this session"), "the panel");
        terminal.type("請求書");
        await terminal.waitFor((screen) => screen.includes("1 found"), "the hit");
        terminal.press("enter");
        // Its last line too: an escape that comes before all is drawn may be one of two at once, which is another key.
        await terminal.waitFor((screen) => /m-[0-9a-f]{10} · user · .*UTC/.test(screen) && screen.includes("esc: back") && !screen.includes("1 found"), "the message");
        terminal.press("down", "escape");
        await terminal.waitFor((screen) => screen.includes("Search this session") && screen.includes("1 found"), "the hits again");
        terminal.press("escape");
        await terminal.waitFor((screen) => !screen.includes("Search this session"), "the editor");
      });

      await t.test("a call of a tool is a line and a glimpse, and opens", async () => {
        project.script.turns = [
          { toolCalls: [{ name: "lcm_grep", arguments: { query: `invoice ${WIDE}`, limit: 10 } }] },
          { toolCalls: [{ name: "lcm_describe", arguments: {} }] },
          { toolCalls: [{ name: "lcm_expand", arguments: { summary_id: "m-0000000000" } }] },
        ];
        await terminal.send("go");
        await terminal.waitFor((screen) => screen.includes("Understood."), "the answer");
        const { everything } = terminal;
        assert.match(everything, /Search history {2}"invoice 請求/);
        assert.match(everything, /\d+ hits?, \d+ more lines?/);
        assert.match(everything, /Expand history {2}m-0000000000/);
        assert.doesNotMatch(everything, /The whole of one/);
        terminal.type("\u000f");
        await terminal.waitFor(() => terminal.everything.includes("The whole of one"), "all of it");
      });

      await t.test("the tree stays within the columns", async () => {
        await terminal.send("/lcm tree");
        await terminal.waitFor((screen) => screen.includes("● frontier: what stands"), "the tree");
        assert.match(terminal.everything, / ● \d+ messages without a summary: m-[0-9a-f]{10} to m-/);
        assert.ok(!terminal.exited);
      });

      await t.test("what makes Pi load its extensions anew is answered all the same", async () => {
        await terminal.send("/lcm settings enabled=false");
        await terminal.waitFor((screen) => /enabled\s+= false\s+\(global\)/.test(screen) && !screen.includes("LCM: "), "the answer, with the footer gone");
        // Pi is still at it, and nothing on the screen says when it is done.
        await setTimeout(2000);
        assert.match(terminal.screen, /enabled\s+= false\s+\(global\)/);
        await terminal.send("/lcm settings enabled=true");
        await terminal.waitFor((screen) => /enabled\s+= true\s+\(global\)/.test(screen) && screen.includes("LCM: "), "the answer, with the footer back");
      });
    });
  }
}
