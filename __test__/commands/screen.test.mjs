/**
 * The TUI in terminals of different widths: panels, tool calls and the tree in a narrow terminal that is then made wider, with characters
 * of every width. Some versions of Pi exit on a line that is too wide, so each step also checks that Pi continues.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { ask } from "../support/cli.mjs";
import { aProject, eventually } from "../support/project.mjs";
import { noTerminal } from "../support/terminal.mjs";

/** Columns, and the setting to change at that width. */
const WIDTHS = [{ cols: 60, depth: 7 }, { cols: 100, depth: 8 }, { cols: 160, depth: 6 }];
const WIDE = "請求書はどこですか 👩‍👩‍👧‍👦 🦀 e\u0301 ｆｕｌｌ ไทย ﷽";

/** Opens and closes tools' answers. */
const FOLD = "\u000f";

for (const host of hostsFor()) {
  test(`from narrow to wide on ${host.name}`, { skip: noTerminal }, async (t) => {
    const project = await aProject(t, { host });
    const history = project.history();
    history.user(`where is the invoice? ${`${WIDE} `.repeat(200)}`);
    history.user(`${"a message is long before it says what is found ".repeat(3)}wolverine ${"and after it ".repeat(20)}`);
    history.talk(8);
    const terminal = project.openTerminal(["--session", history.write(project.sessionDir)], { cols: WIDTHS[0].cols, rows: 40 });
    await terminal.waitFor((screen) => screen.includes("LCM: 18 msgs"), "the footer");

    await t.test("a tool call is a line with a preview, and opens", async () => {
      project.script.turns = [
        { toolCalls: [{ name: "lcm_grep", arguments: { query: `invoice ${WIDE}`, limit: 10 } }] },
        { toolCalls: [{ name: "lcm_grep", arguments: { query: "wolverine" } }] },
        { toolCalls: [{ name: "lcm_expand", arguments: { summary_id: "m-0000000000" } }] },
      ];
      await terminal.send("go");
      await terminal.waitFor((screen) => screen.includes("Understood."), "the answer");
      const { everything } = terminal;
      assert.match(everything, /Search history {2}"invoice 請求/);
      assert.match(everything, /\d+ hits?, \d+ more lines?/);
      assert.match(everything, /Expand history {2}m-0000000000/);
      assert.match(everything, /"wolverine"[^]*^ *m-[0-9a-f]{10} · user · [^:]+: …(\S+ )*«wolverine»/m, "the match, at the width of a line");
      assert.doesNotMatch(everything, /To read one in full/);
    });

    for (const [at, { cols, depth }] of WIDTHS.entries()) {
      terminal.resize(cols);
      await terminal.waitFor((screen) => screen.split("\n").some((line) => line === "─".repeat(cols)), `the editor in ${cols} columns`);

      await t.test(`calls open and close in ${cols} columns`, async () => {
        terminal.type(FOLD);
        await terminal.waitFor(() => terminal.everything.includes("To read one in full"), "all of it");
        terminal.type(FOLD);
        await terminal.waitFor(() => !terminal.everything.includes("To read one in full"), "a glimpse");
      });

      await t.test(`settings are searched, refused and saved in ${cols} columns`, async () => {
        const before = at > 0 ? `${WIDTHS[at - 1].depth} \\(global\\)` : "5 \\(default\\)";
        await terminal.send("/lcm settings");
        await terminal.waitFor((screen) => /> enabled +true \(default\)/.test(screen), "the panel");
        terminal.type("maxDepth");
        await terminal.waitFor((screen) => new RegExp(`> maxDepth +${before}`).test(screen), "the setting that is searched for");
        terminal.press("enter");
        await terminal.waitFor((screen) => screen.includes("enter: save"), "its value");
        terminal.type("9");
        await terminal.waitFor((screen) => screen.includes(`> ${before[0]}9`), "what is typed");
        terminal.press("enter");
        await terminal.waitFor((screen) => screen.includes(`not ${before[0]}9`), "why not");
        terminal.type(`\u007f\u007f${depth}`);
        await terminal.waitFor((screen) => screen.includes(`> ${depth}`), "another value");
        terminal.press("enter");
        await terminal.waitFor((screen) => new RegExp(`> maxDepth +${depth} \\(global\\)`).test(screen), "the new value");
        terminal.press("escape");
        await terminal.waitFor((screen) => !screen.includes("Settings of pi-lossless-context"), "the editor");
        const { lcm } = JSON.parse(readFileSync(path.join(project.agentDir, "settings.json"), "utf8"));
        assert.deepEqual(lcm, { maxDepth: depth });
      });

      await t.test(`a search shows hits and opens one in ${cols} columns`, async () => {
        await terminal.send("/lcm search");
        await terminal.waitFor((screen) => screen.includes("Search this session"), "the panel");
        terminal.type("role:user 請求書");
        await terminal.waitFor((screen) => screen.includes("1 found"), "the hit");
        terminal.press("enter");
        // Wait for its last line too: an Escape before everything is drawn could combine with another key.
        await terminal.waitFor((screen) => /m-[0-9a-f]{10} · user · 2026-.* · message/.test(screen) && screen.includes("esc: back") && !screen.includes("1 found"), "the message");
        terminal.press("down", "escape");
        await terminal.waitFor((screen) => screen.includes("Search this session") && screen.includes("1 found"), "the hits again");
        terminal.press("escape");
        await terminal.waitFor((screen) => !screen.includes("Search this session"), "the editor");
      });

      await t.test(`the tree stays within ${cols} columns`, async () => {
        await terminal.send("/lcm tree");
        await terminal.waitFor((screen) => screen.includes("● represents the branch now"), "the tree");
        assert.match(terminal.everything, / ● \d+ messages without a summary: m-[0-9a-f]{10} to m-/);
        assert.ok(!terminal.exited);
      });
    }

    await t.test("page keys turn the pages of a panel, not of the transcript", async () => {
      await terminal.send("/lcm search");
      await terminal.waitFor((screen) => screen.includes("Search this session"), "the panel");
      terminal.type("please");
      await terminal.waitFor((screen) => screen.includes("8 found"), "the hits");
      terminal.press("pageDown");
      await terminal.waitFor((screen) => /^> \d{4}-.*\n8 found/m.test(screen), "the last hit");
      terminal.press("pageUp");
      await terminal.waitFor((screen) => /^> please *\n> \d{4}-/m.test(screen), "the first hit");
      terminal.type(`${"\u007f".repeat("please".length)}role:user 請求書`);
      await terminal.waitFor((screen) => screen.includes("1 found"), "the hit");
      terminal.press("enter");
      await terminal.waitFor((screen) => /lines 1 to \d+ of \d+/.test(screen), "the first page");
      terminal.press("pageDown");
      await terminal.waitFor((screen) => /lines [2-9]\d* to \d+ of \d+/.test(screen), "the second page");
      terminal.press("pageUp");
      await terminal.waitFor((screen) => /lines 1 to \d+ of \d+/.test(screen), "the first page again");
      terminal.press("escape");
      await terminal.waitFor((screen) => screen.includes("1 found"), "the hits");
      terminal.press("escape");
      await terminal.waitFor((screen) => !screen.includes("Search this session"), "the editor");
    });

    // Older lists have no pages.
    await t.test("page keys turn the pages of the settings", { skip: host.version === "0.87.1" }, async () => {
      await terminal.send("/lcm settings");
      await terminal.waitFor((screen) => /> enabled +true \(default\)/.test(screen), "the panel");
      terminal.press("pageDown");
      await terminal.waitFor((screen) => !/> enabled/.test(screen) && /^ *> \w+/m.test(screen), "another page");
      terminal.press("escape");
      await terminal.waitFor((screen) => !screen.includes("Settings of pi-lossless-context"), "the editor");
    });

    await t.test("a setting that makes Pi reload its extensions is still answered", async () => {
      const answered = (/** @type {string} */ screen, /** @type {boolean} */ value) => new RegExp(`enabled\\s+= ${value}\\s+\\(global\\)`).test(screen);
      await terminal.send("/lcm settings enabled=false");
      // The store is closed while Pi reloads; until then, typed input is lost.
      await eventually(() => assert.deepEqual(readdirSync(project.storeDir).filter((name) => !name.endsWith(".db")), []));
      await eventually(() => {
        terminal.type("z");
        assert.match(terminal.screen, /^z/m);
      });
      // By now Pi has reported the reload, which must not replace the answer.
      await terminal.waitFor((screen) => answered(screen, false) && !screen.includes("LCM: "), "the answer, with the footer gone");
      terminal.press("ctrl+c");
      await terminal.waitFor((screen) => !/^z/m.test(screen), "the empty editor");
      await terminal.send("/lcm settings enabled=true");
      await terminal.waitFor((screen) => answered(screen, true) && screen.includes("LCM: "), "the answer, with the footer back");
    });
  });
}

test("at 80 x 24", { skip: noTerminal }, async (t) => {
  const project = await aProject(t);
  const other = project.history("019a5f00-0000-7000-8000-000000000009");
  other.talk(1, { name: "walrus" });
  await ask(project, "import", other.write(project.sessionDir));
  const short = project.history("019a5f00-0000-7000-8000-000000000008");
  const ENDS = [8, 9, 10, 11];
  for (const lines of ENDS) short.user(`${"a line\n".repeat(lines)}${"nest ".repeat(15)}heron${lines}`);
  await ask(project, "import", short.write(project.sessionDir));
  const history = project.history();
  history.user(`${"before it ".repeat(400)}a pelican sits ${"between ".repeat(300)}the second pelican ${"after it ".repeat(300)}`);
  history.talk(8);
  const terminal = project.openTerminal(["--session", history.write(project.sessionDir)], { cols: 80, rows: 24 });
  await terminal.waitFor((screen) => screen.includes("LCM: 17 msgs"), "the footer");
  const settings = () => JSON.parse(readFileSync(path.join(project.agentDir, "settings.json"), "utf8"));

  await t.test("the settings are a list of values to choose from, and the same value again writes nothing", async () => {
    const before = settings();
    await terminal.send("/lcm settings");
    await terminal.waitFor((screen) => /^> enabled +true \(default\)/m.test(screen) && /^ {2}redact +true/m.test(screen) && screen.includes("Settings of"), "eight of them");
    terminal.press("enter");
    await terminal.waitFor((screen) => /→ true\n +false\n +reset: true/.test(screen), "its values");
    terminal.press("enter");
    await terminal.waitFor((screen) => /> enabled +true \(default\)/.test(screen), "the list");
    assert.deepEqual(settings(), before);
    terminal.press("down", "down", "down", "down", "down");
    await terminal.waitFor((screen) => /> compactionModels[^]*…\n[^]*Esc to cancel[^]*LCM: 17 msgs/.test(screen), "the longest description, with the keys and the footer");
    terminal.press("up", "up");
    await terminal.waitFor((screen) => /> context +lean/.test(screen), "another setting");
    terminal.press("enter");
    await terminal.waitFor((screen) => screen.includes("→ lean"), "its values");
    terminal.press("down", "enter");
    await terminal.waitFor((screen) => /> context +full \(global\)/.test(screen), "the new value");
    assert.deepEqual(settings().lcm, { context: "full" });
    terminal.press("enter");
    await terminal.waitFor((screen) => screen.includes("→ full"), "its values");
    terminal.press("down", "enter");
    await terminal.waitFor((screen) => /> context +lean \(default\)/.test(screen), "the default");
    assert.deepEqual(settings().lcm ?? {}, {});
    terminal.press("escape");
    await terminal.waitFor((screen) => !screen.includes("Settings of pi-lossless-context"), "the editor");
  });

  await t.test("answers are below what was asked, in colors, and stay; a long one is read from its top", async () => {
    await terminal.send("/lcm context");
    await terminal.waitFor((screen) => /^ \/lcm context\n Context +[\d,]+ of/m.test(screen), "the first answer");
    await terminal.send("/lcm search pelican");
    await terminal.waitFor((screen) => /^ Context [^]*^ \/lcm search pelican\n m-[^]*«pelican»/m.test(screen), "both answers");
    for (const part of [/m-[0-9a-f]{10}/, /«pelican»/, /\$[\d.]+/]) {
      /** @type {string[]} */
      const colors = terminal.written.match(new RegExp(`\\[[0-9;]+(?=m${part.source}\u001b)`, "g")) ?? [];
      assert.ok(colors.length > 0 && !colors.includes("[39"), `${part}: ${colors}`);
    }
    await terminal.send("/lcm help");
    await terminal.waitFor((screen) => /^\/lcm help\n\/lcm help +the commands[^]*\n {15}\S[^]*lines 1 to \d+ of/m.test(screen), "its top, with its indent");
    terminal.press("pageDown");
    await terminal.waitFor((screen) => screen.includes("Every message of this project is stored in"), "its end");
    terminal.press("escape");
    await terminal.waitFor((screen) => /^ \/lcm settings +the settings[^]*^─{80}$/m.test(screen) && !screen.includes("esc: close"), "it in the transcript");
    await terminal.send("/lcm help");
    await terminal.waitFor((screen) => screen.includes("esc: close"), "it again");
    await terminal.send("/lcm search pelican");
    await terminal.waitFor((screen) => /^ \/lcm search pelican\n m-[^]*«pelican»/m.test(screen) && !screen.includes("esc: close"), "the answer to what was typed over it");
    await terminal.send("/lcm help");
    await terminal.waitFor((screen) => screen.includes("esc: close"), "it once more");
    terminal.paste("/lcm show m-no");
    await terminal.waitFor((screen) => /^\/lcm show m-no/m.test(screen) && !screen.includes("esc: close"), "what was pasted over it");
    terminal.press("enter");
    await terminal.waitFor((screen) => screen.includes("`m-no` is not an id"), "the answer to it");
    await terminal.send("/lcm search pelican");
    await terminal.waitFor((screen) => /^ \/lcm show m-no\n `m-no` is not an id[^]*^ \/lcm search pelican\n m-/m.test(screen), "the answers in order");
  });

  await t.test("a hit opens at the match; keys go to the next one, copy it and insert its id", async () => {
    await terminal.send("/lcm search");
    await terminal.waitFor((screen) => screen.includes("Search this session"), "the panel");
    terminal.paste("the\npelicam");
    await terminal.waitFor((screen) => screen.includes("Nothing has pelicam. 1 with similar words"), "what is similar");
    terminal.type("\u007fn");
    await terminal.waitFor((screen) => screen.includes("1 found"), "the hit");
    terminal.type("\u0013");
    await terminal.waitFor((screen) => screen.includes("The hit is of this session: tab searches all."), "why nothing changes");
    terminal.press("enter");
    await terminal.waitFor((screen) => /a pelican sits[^]*lines [1-9]\d to/.test(screen) && !screen.includes("the second"), "the match");
    terminal.type("n");
    await terminal.waitFor((screen) => screen.includes("the second pelican"), "the next match");
    terminal.type("p");
    await terminal.waitFor((screen) => screen.includes("a pelican sits"), "the first one");
    terminal.type("c");
    await terminal.waitFor((screen) => screen.includes("· copied, with its heading ·"), "the copy");
    const [, copied = ""] = /\u001b\]52;c;([\w+/=]+)/.exec(terminal.written) ?? [];
    assert.match(Buffer.from(copied, "base64").toString(), /^(m-[0-9a-f]{10}) · user [^]*a pelican sits[^]*the second/);
    terminal.type("i");
    await terminal.waitFor((screen) => /^m-[0-9a-f]{10}$/m.test(screen), "the id in the prompt");
    terminal.press("ctrl+c");
    await terminal.waitFor((screen) => !/^m-/m.test(screen), "the empty prompt");
  });

  await t.test("hits of other sessions only are told so, and one in a message's last line opens there", async () => {
    for (const lines of ENDS) {
      await terminal.send("/lcm search");
      await terminal.waitFor((screen) => screen.includes("Search this session"), "the panel");
      terminal.type(`heron${lines}`);
      await terminal.waitFor((screen) => /\d found, none exact in this session · \*/.test(screen) && screen.includes("Search all sessions of this project"), "the hits");
      terminal.press("enter");
      await terminal.waitFor((screen) => new RegExp(`^heron${lines}$`, "m").test(screen) && screen.includes("r: resume"), `the end of ${lines} lines`);
      terminal.press("escape");
      await terminal.waitFor((screen) => screen.includes("none exact in this session"), "the hits again");
      terminal.press("escape");
      await terminal.waitFor((screen) => !screen.includes("Search all sessions"), "the editor");
    }
  });

  await t.test("each filter has a key, and a session that was found is resumed", async () => {
    await terminal.send("/lcm search --project");
    await terminal.waitFor((screen) => screen.includes("Search all sessions of this project"), "the panel");
    terminal.type("please");
    await terminal.waitFor((screen) => screen.includes("9 found"), "hits of both sessions");
    // Ctrl+T, Ctrl+R, Ctrl+L, Ctrl+S
    terminal.type("\u0014");
    await terminal.waitFor((screen) => screen.includes("The hits so far name no tool"), "why nothing changes");
    terminal.type("\u0012");
    await terminal.waitFor((screen) => screen.includes("Search role user · all sessions") && screen.includes("9 found"), "the user's");
    terminal.type("\u0012");
    await terminal.waitFor((screen) => screen.includes("Search role assistant") && screen.includes("Nothing found; its key again changes a filter."), "none of the model's");
    for (const role of ["toolResult", "bashExecution", ""]) {
      terminal.type("\u0012");
      await terminal.waitFor((screen) => (role ? screen.includes(`Search role ${role}`) : !screen.includes("Search role")), role || "all");
    }
    terminal.type("\u000c");
    await terminal.waitFor((screen) => screen.includes("Search after 1d") && screen.includes("Nothing found"), "none of the last day");
    for (const days of ["7d", "30d"]) {
      terminal.type("\u000c");
      await terminal.waitFor((screen) => screen.includes(`Search after ${days}`), days);
    }
    terminal.type("\u000c");
    await terminal.waitFor((screen) => screen.includes("9 found"), "all");
    terminal.type(" role:user");
    await terminal.waitFor((screen) => screen.includes("9 found; role:user is searched for as words: the keys below filter"), "that this is no filter");
    terminal.type("\u007f".repeat(" role:user".length));
    terminal.type(" walrus0000x");
    await terminal.waitFor((screen) => /^> \S+ \S+ user \* +walrus0000x[^]*^session 019a5f00-0000-7000-8000-000000000009: walrus0000x/m.test(screen), "the other session");
    terminal.type("\u0013");
    await terminal.waitFor((screen) => screen.includes("Search session 019a5f00-0000-7000-8000-000000000009"), "only that");
    await terminal.waitFor((screen) => screen.includes("\n2 found · *: elsewhere · tab: other sessions too"), "its hits");
    terminal.type("\u0012\u000c");
    await terminal.waitFor((screen) => screen.includes("Search role user · after 1d · session 019a5f00"), "the filters first");
    terminal.type("\u0012\u0012\u0012\u0012\u000c\u000c\u000c");
    await terminal.waitFor((screen) => screen.includes("Search session 019a5f00") && screen.includes("\n2 found"), "its hits again");
    terminal.press("enter");
    await terminal.waitFor((screen) => screen.includes("r: resume"), "the message");
    // The text begins with its session's first words, which are its own.
    const [first] = /^m-\w+/m.exec(terminal.screen) ?? [];
    terminal.type("nnn");
    await terminal.waitFor((screen) => screen.includes("r: resume") && !screen.includes(String(first)), "the next hit");
    terminal.type("nn");
    await terminal.waitFor((screen) => screen.includes("no match after this"), "that there is no other");
    terminal.type("r");
    await terminal.waitFor((screen) => screen.includes("Resumed session") && screen.includes("LCM: 2 msgs"), "that session");
  });
});

test("an invalid setting is reported below a resumed session", { skip: noTerminal }, async (t) => {
  const project = await aProject(t, { settings: { lcm: { maxDepth: 99 } } });
  const history = project.history();
  history.user("where is the walrus?");
  history.talk(1);
  const terminal = project.openTerminal(["--session", history.write(project.sessionDir)], { cols: 80, rows: 24 });
  await terminal.waitFor((screen) => /where is the walrus\?[^]*a setting is invalid: maxDepth/.test(screen), "the warning, below the history");
});

test("what a refused compaction leads to is shown, beside who writes the summaries", { skip: noTerminal }, async (t) => {
  const [cost, cheap] = [4, 0.1].map((input) => ({ input, output: 5 * input, cacheRead: input / 10, cacheWrite: input }));
  const settings = { compaction: { reserveTokens: 10_000, keepRecentTokens: 20_000 }, lcm: { compactionModels: [] } };
  const project = await aProject(t, { contextWindow: 200_000, cost, models: [{ id: "demo-small", cost: cheap }], settings });
  const history = project.history("small");
  history.talk(20, { words: 150 });
  const terminal = project.openTerminal(["--session", history.write(project.sessionDir)], { cols: 80, rows: 24 });
  await terminal.waitFor((screen) => screen.includes("LCM: 40 msgs"), "the footer");
  await terminal.send("/lcm compact");
  await terminal.waitFor((screen) => /Pi compacts nothing within[^]*demo-small writes the summaries/.test(screen), "both");
});

test("a hit of a name opens at the name, not at a letter that is a word of it", { skip: noTerminal }, async (t) => {
  const project = await aProject(t);
  const history = project.history();
  history.user(`${"every line here ".repeat(400)}the codes E_OTTER_LOST, E_HERON_GONE stand ${"after it ".repeat(300)}`);
  history.talk(1);
  const terminal = project.openTerminal(["--session", history.write(project.sessionDir)], { cols: 80, rows: 24 });
  await terminal.waitFor((screen) => screen.includes("LCM: 3 msgs"), "the footer");
  await terminal.send("/lcm search");
  await terminal.waitFor((screen) => screen.includes("Search this session"), "the panel");
  terminal.type("E_HERON_GONE");
  await terminal.waitFor((screen) => screen.includes("1 found"), "the hit");
  terminal.press("enter");
  await terminal.waitFor((screen) => /E_HERON_GONE stand[^]*lines [1-9]\d to/.test(screen), "the name");
  terminal.type("n");
  await terminal.waitFor((screen) => screen.includes("no match after this"), "that there is no other");
});
