/** The page of `/lcm export --html` as a user sees it: a session of the real Pi with compactions, in a real browser, from a file. */
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { closeBrowser, dataIn, noBrowser, open, text, texts } from "./browser.mjs";
import { exportedDemo } from "./demo.mjs";

/** @typedef {import("puppeteer-core").Page} Page */

/** The page's names for Pi's roles, where they differ. @type {Record<string, string>} */
const SPEAKERS = { toolResult: "tool", bashExecution: "shell", custom: "note" };

describe("the viewer, on a session with compactions and a branch", { skip: noBrowser }, () => {
  /** @type {Awaited<ReturnType<typeof exportedDemo>>} */
  let made;
  /** @type {any[]} */
  let summaries;
  before(async () => {
    made = await exportedDemo();
    summaries = dataIn(made.file).filter(({ kind }) => kind === "summaries").flatMap(({ data }) => data);
  });
  after(async () => {
    await closeBrowser();
    await made?.remove();
  });

  test("has every entry of the session file unchanged, and is readable only by its owner", () => {
    const lines = readFileSync(made.session, "utf8").trim().split("\n").slice(1).map((line) => JSON.parse(line));
    const entries = dataIn(made.file).filter(({ kind }) => kind === "entries").flatMap(({ data }) => data);
    assert.deepEqual(entries.map(({ entry }) => entry).sort(byId), lines.sort(byId));
    if (process.platform !== "win32") assert.equal(statSync(made.file).mode & 0o777, 0o600);
    const said = entries.filter(({ entry }) => entry.type === "message");
    assert.ok(said.length > 180 && said.every(({ message }) => /^m-[0-9a-f]{10}$/.test(message.id) && message.tokens > 0));
    assert.ok(summaries.some(({ depth }) => depth === 2), "the session has summaries of several depths");
  });

  test("opens from a file without console messages or network requests", async () => {
    // Chromium's language without a locale.
    const { page, close } = await open(made.file, { language: "en-US@posix" });
    assert.equal(await text(page, "h1"), "shop: double charges, flaky CI");
    assert.match(await text(page, ".overview"), /messages on this branch, 1 hidden from the model, \d+ summaries over them, 3 compactions/);
    await close();
  });

  test("a summary links to its sources, down to a message, and the browser's Back returns", async () => {
    const { page, close } = await open(made.file);
    await clickMap(page, 0.1, 0);
    const top = await text(page, ".detail .copy");
    const condensed = summaries.find(({ handle }) => handle === top);
    assert.equal(condensed.depth, 2);
    assert.ok((await text(page, ".detail > .prose")).includes(condensed.text), "its text is shown");
    const path = [];
    for (let depth = 2; depth >= 0; depth--) {
      path.push(await text(page, ".detail .copy"));
      assert.ok((await texts(page, ".detail .facts > span")).includes(`depth ${depth}`));
      await settle(page);
      await page.click(".rows .row");
      await page.waitForFunction((before) => document.querySelector(".detail .copy")?.textContent !== before, {}, path.at(-1));
    }
    assert.match(await text(page, ".detail .copy"), /^m-/);
    assert.deepEqual(path.map((id) => summaries.find(({ handle }) => handle === id)?.depth), [2, 1, 0]);
    assert.deepEqual(await page.$$eval(".detail .crumb", (crumbs) => crumbs.map((crumb) => crumb.getAttribute("data-id"))), path, "the path up is shown");
    await settle(page);
    await page.goBack();
    await page.waitForFunction((id) => document.querySelector(".detail .copy")?.textContent === id, {}, path[2]);
    await close();
  });

  test("time travel shows the block and the kept messages of each compaction, as Pi shows them", async () => {
    const { buildSessionContext } = await import("@earendil-works/pi-coding-agent");
    const entries = readFileSync(made.session, "utf8").trim().split("\n").map((line) => JSON.parse(line));
    const compactions = entries.filter(({ type }) => type === "compaction");
    const { page, close } = await open(made.file);
    await page.keyboard.press("3");
    for (const [at, { summary, id }] of compactions.entries()) {
      await page.click(`[data-step="${at + 1}"]`);
      assert.equal(await text(page, ".block .prose"), `The conversation history before this point was compacted into the following summary:\n\n<summary>\n${summary}\n</summary>`);
      // Pi's own result: the block, and then the kept messages.
      const [block, ...kept] = buildSessionContext(entries.slice(1), id).messages;
      assert.equal(block.role, "compactionSummary");
      // Below the block, in the same pane, is what was kept.
      const tail = await page.$$eval(".block ~ .tail .said", (said) => said.map((one) => one.querySelector("b")?.textContent));
      assert.deepEqual(tail.slice(0, 2), kept.filter(({ role }) => role !== "toolResult").slice(0, 2).map(({ role }) => SPEAKERS[role] ?? role));
      const heading = (await texts(page, ".words-between span")).find((words) => words.includes("kept as said"));
      assert.equal(heading, `${kept.length} messages kept as said`);
      const shown = await page.$$eval(".list .row", (rows) => rows.slice(rows.findIndex((row) => row.textContent?.includes("kept as said")) + 1).slice(0, 6).map((row) => row.querySelector(".who")?.textContent));
      assert.deepEqual(shown, kept.slice(0, 6).map(({ role }) => SPEAKERS[role] ?? role));
    }
    await page.click('[data-step="0"]');
    assert.match(await text(page, ".words-between"), /all as they were said, until compaction 1/);
    await page.click('[data-step="3"]');
    await page.type("input", "tool:bash");
    await page.waitForFunction(() => /of/.test(document.querySelector(".count")?.textContent ?? ""));
    const rows = await page.$$eval(".list .row", (all) => all.map((row) => row.getAttribute("data-id") ?? row.textContent));
    const found = rows.slice(0, rows.findIndex((row) => row?.startsWith("Not in what the model saw then: "))).filter((row) => row?.startsWith("m-"));
    assert.match(await text(page, ".count"), new RegExp(`^${found.length} of \\d\\d$`), "of this context");
    assert.ok(rows.length > found.length + 1 && rows.at(-1)?.startsWith("m-"), "and what was compacted");
    await close();
  });

  test("Back goes through time travel to where it began, and what is ahead stays", async () => {
    const { page, close } = await open(made.file);
    const views = ["travel", "cost", "read"];
    for (const view of views) {
      await page.click(`[data-view=${view}][role=tab]`);
      await page.waitForFunction((view) => location.hash.startsWith(`#${view}`), {}, view);
    }
    const seen = [];
    for (const step of ["goBack", "goBack", "goBack", "goForward"]) {
      await page[/** @type {"goBack"} */ (step)]();
      // The address is stored a moment later, if at all.
      await new Promise((resolve) => setTimeout(resolve, 400));
      seen.push(await page.$eval(".page", (element) => /** @type {HTMLElement} */ (element).dataset.view));
    }
    assert.deepEqual(seen, ["cost", "travel", "history", "travel"]);
    await close();
  });

  for (const width of [1280, 390]) test(`time travel opens at its top, and the history where it was, at ${width} pixels`, async () => {
    const { page, close } = await open(made.file, { width });
    const scrolled = () => page.$eval(".list", ({ scrollTop }) => scrollTop);
    const end = await scrolled();
    for (const place of [end, 1200]) {
      await page.$eval(".list", (list, place) => list.scrollTo(0, place), place);
      await page.click("[data-view=travel][role=tab]");
      assert.equal(await scrolled(), 0);
      assert.match(await text(page, ".list .row"), /^The block, in place of all before/);
      await page.waitForFunction(() => location.hash === "#travel/3");
      if (place === end) await page.click("[data-view=history][role=tab]");
      else await page.goBack();
      await page.waitForSelector(".page[data-view=history]");
      assert.equal(await scrolled(), place);
      await page.waitForFunction(() => !location.hash);
    }
    // On a narrow screen, what is selected hides the list.
    await page.click(".list");
    await page.waitForSelector(".detail .copy");
    await press(page, "]", "[", "Escape");
    assert.equal(await scrolled(), 0);
    await press(page, "1");
    assert.equal(await scrolled(), 1200);
    await close();
  });

  test("the filter shows only entries with the words", async () => {
    const { page, close } = await open(made.file);
    await page.keyboard.press("/");
    await page.keyboard.type("EVENT charge role:assistant");
    await page.waitForFunction(() => /of/.test(document.querySelector(".count")?.textContent ?? ""));
    const shown = await page.$$eval(".list [data-id]", (rows) => rows.map((row) => row.className));
    assert.ok(shown.length > 2 && shown.every((name) => name.includes("c-assistant")));
    assert.match(await text(page, ".count"), new RegExp(`^${shown.length} of \\d+$`));
    // From reading back to the result.
    await press(page, "Enter", "Enter");
    await page.waitForSelector(".page[data-view=read]");
    await page.keyboard.press("Escape");
    await page.waitForSelector(".page[data-view=history] .list [aria-selected=true]");
    assert.match(await page.$eval("input", (input) => input.value), /^EVENT/);
    await page.keyboard.press("Escape");
    assert.equal(await page.$eval("input", (input) => input.value), "");
    await page.type("input", "kept-from-everybody-xyzzy");
    await page.waitForFunction(() => document.querySelector(".count")?.textContent?.startsWith("0 of"));
    assert.deepEqual(await texts(page, ".list .row"), ["Nothing here has what is looked for"]);
    await close();
  });

  for (const [width, words] of /** @type {const} */ ([[1280, ["order", "captured"]], [390, ["captured"]]])) test(`what a filter finds is visible in its row at ${width} pixels, and Enter and arrows go from the filter to the results`, async () => {
    const { page, close } = await open(made.file, { width });
    await page.type("input", words.join(" "));
    await page.waitForFunction(() => /of/.test(document.querySelector(".count")?.textContent ?? ""));
    const hidden = await page.$$eval(".list [data-id]", (rows, words) => {
      const marks = [.../** @type {any} */ (CSS).highlights.get("found-rows")].map((range) => ({ row: range.startContainer.parentElement.closest(".row"), word: String(range).toLowerCase(), right: range.getBoundingClientRect().right }));
      const isSeen = (/** @type {Element} */ row, /** @type {string} */ word) => marks.some((mark) => mark.row === row && mark.word === word && mark.right <= (row.querySelector(".words")?.getBoundingClientRect().right ?? 0));
      const inSight = rows.filter((row) => row.getBoundingClientRect().top < innerHeight);
      return inSight.length > 5 && inSight.filter((row) => !words.every((word) => isSeen(row, word))).map((row) => row.textContent);
    }, words);
    assert.deepEqual(hidden, []);
    await page.keyboard.press("Enter");
    const first = await text(page, ".detail .copy");
    assert.equal(await page.$eval(".list [data-id]", (row) => row.getAttribute("aria-selected")), "true");
    await page.keyboard.press("ArrowDown");
    assert.notEqual(await text(page, ".detail .copy"), first);
    await close();
  });

  test("only what is searched is marked: no times, no counts, no prices", async () => {
    const { page, close } = await open(made.file);
    await page.type("input", "0");
    await page.waitForFunction(() => /of/.test(document.querySelector(".count")?.textContent ?? ""));
    await page.keyboard.press("Enter");
    await page.waitForSelector(".detail .copy");
    const [marks, strays] = await page.evaluate(() => {
      const marks = ["found", "found-rows"].flatMap((name) => [.../** @type {any} */ (CSS).highlights.get(name)]);
      return [marks.length, marks.filter(({ startContainer }) => !startContainer.parentElement.closest(".words, .prose")).length];
    });
    assert.ok(marks > 0);
    assert.equal(strays, 0);
    await close();
  });

  for (const width of [1280, 390]) test(`a result opens where it has the word, at ${width} pixels`, async () => {
    const entries = dataIn(made.file).filter(({ kind }) => kind === "entries").flatMap(({ data }) => data);
    const said = entries.map(({ entry }) => (entry.message?.content ?? []).map?.((/** @type {any} */ part) => part.text ?? "").join("\n") ?? "");
    const longest = said.toSorted((one, next) => next.length - one.length)[0];
    const all = said.join("\n");
    // Late in it, and nowhere else.
    const word = longest.split(/\W+/).findLast((/** @type {string} */ word) => word.length > 4 && all.split(word).length === 2) ?? assert.fail("no such word");
    // What stands at the top too does not keep it there.
    const common = /[A-Za-z]{3,}/.exec(longest)?.[0] ?? "";
    const { page, close } = await open(made.file, { width });
    // Enter comes before the search begins.
    await page.type("input", `${common} ${word}`);
    await page.keyboard.press("Enter");
    await page.waitForSelector(".detail .copy");
    assert.match(await text(page, ".count"), /^1 of/);
    const seen = await page.evaluate((word) => {
      const range = [.../** @type {any} */ (CSS).highlights.get("found")].find((one) => String(one) === word);
      const { top, bottom } = range.getBoundingClientRect();
      return { word: String(range), isInSight: top > 0 && bottom < innerHeight, scrolled: [...document.querySelectorAll("*")].some((element) => element.contains(range.startContainer) && element.scrollTop > 0) };
    }, word);
    assert.deepEqual(seen, { word, isInSight: true, scrolled: true });
    await close();
  });

  test("the session's overview opens on a narrow screen too", async () => {
    const { page, close } = await open(made.file, { width: 390 });
    assert.equal(await page.$eval(".overview", (overview) => overview.checkVisibility()), false);
    await page.click(".about");
    assert.equal(await page.$eval(".overview", (overview) => overview.checkVisibility()), true);
    await page.click(".back");
    assert.equal(await page.$eval(".list", (list) => list.checkVisibility()), true);
    await close();
  });

  test("the filter finds a summary by its id, or the beginning of it", async () => {
    const { page, close } = await open(made.file);
    const { handle } = summaries.find(({ depth }) => depth === 2);
    for (const typed of [handle.slice(0, 6), handle]) {
      await page.type("input", typed);
      await page.waitForSelector(`.list .row:nth-child(2)[data-id=${handle}]`);
      await page.keyboard.press("Escape");
    }
    await close();
  });

  test("the filter also finds what other branches have, and opens it there", async () => {
    const { page, close } = await open(made.file);
    await page.type("input", "Postgres");
    await page.waitForSelector(".list ::-p-text(On other branches: 1 message)");
    assert.equal(await text(page, ".list .row"), "Nothing on this branch, 1 elsewhere, below");
    await press(page, "ArrowDown", "Enter");
    assert.equal(await page.$eval("[aria-label=Branch]", (select) => /** @type {HTMLSelectElement} */ (select).value), "aa000002");
    assert.match(await text(page, ".detail .prose"), /^What if the events were in Postgres/);
    await close();
  });

  test("an address opens what other branches have, and what is nowhere is named", async () => {
    const aside = dataIn(made.file).filter(({ kind }) => kind === "entries").flatMap(({ data }) => data).find(({ entry }) => entry.id === "aa000001");
    const { page, close } = await open(made.file, { width: 390, hash: `#${aside.message.id}` });
    const branch = () => page.$eval("[aria-label=Branch]", (select) => /** @type {HTMLSelectElement} */ (select).value);
    assert.equal(await branch(), "aa000002");
    assert.match(await text(page, ".detail .prose"), /^What if the events were in Postgres/);
    for (const [id, words] of [[summaries.find(({ depth }) => depth === 2).handle, /depth 2/], ["m-0000000000", /^.*There is no m-0000000000 in this page\.$/]]) {
      await page.evaluate((id) => (location.hash = `#${id}`), id);
      await page.waitForFunction((id) => document.querySelector(".pane")?.textContent?.includes(id), {}, id);
      assert.match(await text(page, ".pane"), words);
      assert.equal(await page.$eval(".pane", (pane) => pane.checkVisibility()), true);
      assert.notEqual(await branch(), "aa000002");
    }
    await close();
  });

  test("an address that is short, malformed or past the end leads where it can, and says where that is", async () => {
    const { handle } = summaries.find(({ depth }) => depth === 2);
    for (const [hash, shown, corrected] of [
      [`#${handle.slice(0, 7)}`, /depth 2/, `#${handle}`],
      ["#travel/99", /compaction/i, /^#travel\/3/],
      ["#m-", /There is no m- in this page\. If several begin so, give more of it\./, "#m-"],
      ["#100%", /There is no 100% in this page\./, "#100%"],
      ["#branch/zzz", /There is no branch zzz in this page\./, "#branch/zzz"],
    ]) {
      const { page, close } = await open(made.file, { hash: String(hash) });
      assert.match(await text(page, ".pane"), /** @type {RegExp} */ (shown));
      const address = await page.evaluate(() => location.hash);
      if (typeof corrected === "string") assert.equal(address, corrected);
      else assert.match(address, /** @type {RegExp} */ (corrected));
      await close();
    }
  });

  test("a branch has an address, for a reload and for Back", async () => {
    const { page, close } = await open(made.file);
    const branch = () => page.$eval("[aria-label=Branch]", (select) => /** @type {HTMLSelectElement} */ (select).value);
    const own = await branch();
    await page.select("[aria-label=Branch]", "aa000002");
    await page.waitForFunction(() => location.hash === "#branch/aa000002");
    await page.reload();
    assert.equal(await branch(), "aa000002");
    for (const leaves of ["Escape", "Enter"]) {
      await press(page, "1", "b", leaves, "3");
      await page.waitForSelector(".page[data-view=travel]");
    }
    await press(page, "1");
    await page.waitForFunction(() => location.hash === "#branch/aa000002");
    await page.click("[data-view=read][role=tab]");
    await page.waitForFunction(() => location.hash === "#branch/aa000002/read");
    for (const [expected, view] of [["aa000002", "history"], [own, "history"]]) {
      await page.goBack();
      await page.waitForSelector(`.page[data-view=${view}]`);
      assert.equal(await branch(), expected);
    }
    await close();
  });

  test("what is known of the session has an address, so that Back returns to the list at 390 pixels", async () => {
    const { page, close } = await open(made.file, { width: 390 });
    await page.click("[aria-label='About this session']");
    await page.waitForFunction(() => location.hash === "#about");
    assert.match(await text(page, ".pane"), /This page holds the whole session/);
    await page.goBack();
    await page.waitForFunction(() => !document.querySelector(".pane")?.checkVisibility());
    await page.goForward();
    await page.waitForFunction(() => document.querySelector(".pane")?.checkVisibility());
    await page.reload();
    assert.match(await text(page, ".pane"), /This page holds the whole session/);
    // Results are not behind it.
    await page.type("input", "event");
    await page.waitForFunction(() => !document.querySelector(".pane")?.checkVisibility() && document.querySelector(".count")?.textContent);
    await close();
  });

  test("a role, state, tool or key that does not exist is refused in words", async () => {
    const { page, close } = await open(made.file);
    for (const [filter, why] of [["role:usr event", /^There is no role:usr\. The roles are user, assistant, tool, /], ["is:broken", /^There is no is:broken\. It takes failed, /], ["tool:nonsense", /^There is no tool:nonsense\. The tools are bash, edit, /], ["agent:codex", /^There is no filter agent:\. There are role:, tool: and is:\.$/]]) {
      await page.type("input", String(filter));
      await page.waitForFunction(() => document.querySelector(".list .row")?.textContent?.startsWith("There is no"));
      assert.match((await texts(page, ".list .row")).join(), /** @type {RegExp} */ (why));
      await page.keyboard.press("Escape");
    }
    await page.type("input", "role:toolResult");
    await page.waitForFunction(() => /of/.test(document.querySelector(".count")?.textContent ?? ""));
    assert.ok((await page.$$eval(".list [data-id]", (rows) => rows.map((row) => row.className))).every((name) => name.includes("c-tool")));
    await close();
  });

  test("right after loading, keys begin with what is visible", async () => {
    for (const [key, isEnd] of /** @type {const} */ ([["k", true], ["ArrowDown", false]])) {
      const { page, close } = await open(made.file);
      const list = await (await page.$(".list"))?.boundingBox();
      assert.ok(list);
      await press(page, key);
      const row = await (await page.$(".list [aria-selected=true]"))?.boundingBox();
      const where = ((row?.y ?? 0) - list.y) / list.height;
      assert.ok(isEnd ? where > 0.8 && where < 1 : where >= 0 && where < 0.2, `${key}: ${where}`);
      await close();
    }
    const { page, close } = await open(made.file);
    await press(page, "Enter");
    assert.match(await text(page, ".reading .said"), /This is our web shop/);
    await close();
  });

  test("the conversation is read, and a call opens with its result as a diff", async () => {
    const { page, close } = await open(made.file, { hash: "#read" });
    assert.equal(await text(page, ".reading .said .markdown"), "This is our web shop: Node and SQLite, no framework. Since Friday some customers are charged twice for one order. Find out why. Read the code first, and don't change anything yet.");
    for (let more = 0; more < 20 && !(await page.$(".reading .tool ::-p-text(edit)")); more++) await page.click(".reading .more:not([hidden])");
    assert.equal(await page.$(".reading details[open], .reading .diff"), null, "results are closed");
    const edit = await page.waitForSelector(".reading .tool > summary::-p-text(edit)");
    await edit?.click();
    await page.waitForSelector(".reading .diff");
    const lines = await page.$$eval(".reading .diff span", (lines) => lines.map(({ className }) => className));
    assert.ok(lines.includes("added"), lines.join());
    // Details of a message lead to it in the history, and Enter back to it.
    await page.$eval(".reading .c-user .link", (link) => /** @type {HTMLElement} */ (link).click());
    const id = await text(page, ".detail .copy");
    await press(page, "Enter");
    assert.equal(await page.$eval(".reading .said", (said) => said.getAttribute("data-id")), id);
    await page.type("input", "captured");
    await page.waitForSelector("[data-view=history] .list ::-p-text(captured)");
    await close();
  });

  test("the conversation is read from the keyboard, and the filter stays", async () => {
    const { page, close } = await open(made.file);
    await page.type("input", "charge");
    await page.waitForFunction(() => /of/.test(document.querySelector(".count")?.textContent ?? ""));
    await press(page, "Enter", "Enter");
    await page.$eval(".reading", (reading) => reading.addEventListener("scrollend", () => reading.setAttribute("data-rests", `${reading.scrollTop}`)));
    for (const key of ["PageDown", "ArrowUp", "ArrowDown", "End", "Home", "Space"]) {
      const before = await page.$eval(".reading", (reading) => reading.getAttribute("data-rests"));
      await press(page, key);
      await page.waitForFunction((before) => document.querySelector(".reading")?.getAttribute("data-rests") !== before, {}, before);
    }
    const first = () => page.$eval(".reading", (reading) => [...reading.querySelectorAll(".said")].findIndex((said) => said.getBoundingClientRect().bottom > reading.getBoundingClientRect().top + 10));
    const at = await first();
    for (const [key, by] of /** @type {const} */ ([["j", 1], ["j", 2], ["k", 1]])) {
      await press(page, key);
      assert.equal(await first(), at + by);
    }
    // On to the end, past the portion that is drawn.
    const left = () => texts(page, ".reading .conversation > .more");
    for (let n = 0; n < 300 && !(await left()).includes("Later: 0 messages"); n++) await press(page, "j");
    assert.deepEqual(await left(), ["Earlier: 0 messages", "Later: 0 messages"]);
    await press(page, "G");
    assert.match((await left()).join(), /^Earlier: [1-9]\d+ messages,Later: 0 messages$/);
    assert.equal(await page.$eval("input", ({ value }) => value), "charge");
    assert.equal(await page.$eval(".page", (element) => /** @type {HTMLElement} */ (element).dataset.view), "read");
    await close();
  });

  test("another branch only shows its own messages", async () => {
    const { page, close } = await open(made.file);
    assert.equal(await page.$(".list ::-p-text(Postgres)"), null);
    const aside = await page.$$eval("[aria-label=Branch] option", (options) => options.find(({ textContent }) => textContent?.includes("Postgres"))?.value);
    assert.equal(aside, "aa000002");
    await page.select("[aria-label=Branch]", aside);
    const rows = await texts(page, ".list .words");
    assert.ok(rows.at(-1)?.startsWith("`ON CONFLICT DO NOTHING`"), rows.at(-1));
    assert.match(await text(page, ".overview"), /1 compaction\./);
    await close();
  });

  test("a filter's results on another branch begin at the first", async () => {
    const { page, close } = await open(made.file);
    await page.type("input", "e");
    await page.waitForFunction(() => /of/.test(document.querySelector(".count")?.textContent ?? ""));
    await press(page, "Enter", "Enter");
    await page.select("[aria-label=Branch]", "aa000002");
    await page.click("[data-view=history][role=tab]");
    assert.ok(await page.$eval(".list", (list) => list.scrollHeight > 2 * list.clientHeight && list.scrollTop === 0));
    await close();
  });

  test("private messages are shown with a mark", async () => {
    const { page, close } = await open(made.file);
    await page.type("input", "is:private");
    await page.waitForFunction(() => /of/.test(document.querySelector(".count")?.textContent ?? ""));
    assert.deepEqual(await texts(page, ".list .chip"), ["!!"]);
    await page.click(".list .row.c-shell");
    assert.equal(await text(page, ".detail .chip"), "kept from the model (!!)");
    await close();
  });

  test("everything works from the keyboard, and `?` shows the keys", async () => {
    const { page, close } = await open(made.file);
    await page.keyboard.press("?");
    assert.equal(await page.$eval("dialog", (dialog) => dialog.open), true);
    assert.ok((await texts(page, "dialog kbd")).includes("G"));
    await page.keyboard.press("Escape");
    const selected = () => text(page, ".detail .copy");
    await press(page, "g", "j", "j");
    const first = await page.$eval(".list [aria-selected=true]", (row) => Number(row.getAttribute("aria-posinset")));
    await press(page, "j");
    assert.equal(await page.$eval(".list [aria-selected=true]", (row) => Number(row.getAttribute("aria-posinset"))), first + 1);
    await press(page, "k", "k", "G");
    assert.equal(await page.$eval(".list [aria-selected=true]", (row) => row.getAttribute("aria-posinset") === row.getAttribute("aria-setsize")), true);
    await press(page, "g", "j", "j", "j", "u");
    assert.match(await selected(), /^s-/);
    const leaf = await selected();
    await press(page, "l");
    assert.notEqual(await selected(), leaf);
    await press(page, "h", "d");
    assert.match(await selected(), /^m-/);
    await press(page, "u", "u", "u");
    assert.match(await text(page, ".detail .facts"), /depth 2/);
    await press(page, "4");
    assert.equal(await page.$eval(".page", (element) => /** @type {HTMLElement} */ (element).dataset.view), "cost");
    await press(page, "]", "[");
    assert.match(await text(page, ".detail h2"), /^Compaction 2$/);
    await press(page, "t", "t");
    assert.equal(await page.$eval("html", (root) => getComputedStyle(root).colorScheme), "dark");
    await close();
  });

  test("the map zooms to a summary and out again", async () => {
    const { page, close } = await open(made.file);
    await clickMap(page, 0.05, 1);
    const narrow = await text(page, ".detail .copy");
    await press(page, "z");
    // Its neighbors are out of sight: at the right end is the same summary or the next one.
    await clickMap(page, 0.5, 1);
    assert.equal(await text(page, ".detail .copy"), narrow);
    await press(page, "0");
    await clickMap(page, 0.5, 1);
    assert.notEqual(await text(page, ".detail .copy"), narrow);
    await close();
  });

  test("tokens and cost are plotted, and a point on a plot links to its request", async () => {
    const { page, close } = await open(made.file, { hash: "#cost", dark: true });
    assert.equal((await page.$$(".uplot canvas")).length, 2);
    const values = Object.fromEntries(await page.$$eval(".tile", (tiles) => tiles.map(({ children: [value, name] }) => [name.textContent, value.textContent])));
    assert.equal(values.compactions, "3");
    assert.match(values["for requests"] ?? "", /^\$\d/);
    const over = await (await page.$(".u-over"))?.boundingBox();
    assert.ok(over);
    await page.mouse.click(over.x + over.width / 2, over.y + over.height / 2);
    await page.waitForSelector(".detail.c-assistant");
    assert.match(await text(page, ".detail .usage"), /The provider counted/);
    await close();
  });

  test("in a narrow window a message replaces the list until it is closed", async () => {
    const { page, close } = await open(made.file, { width: 400 });
    const isShown = (/** @type {string} */ selector) => page.$eval(selector, (element) => element.checkVisibility({ visibilityProperty: true }));
    assert.deepEqual([await isShown(".list"), await isShown(".pane")], [true, false]);
    await page.click(".list .row.c-user");
    assert.deepEqual([await isShown(".list"), await isShown(".pane")], [false, true]);
    for (const [name, words] of [["resolve", "copied"], ["reject", "copy it by hand"]]) {
      await page.evaluate((name) => Object.assign(navigator.clipboard, { writeText: () => /** @type {any} */ (Promise)[name]() }), name);
      await page.focus(".facts .link");
      await press(page, "Enter");
      await page.waitForSelector(`.facts .link::-p-text(${words})`);
    }
    await page.click(".back");
    assert.deepEqual([await isShown(".list"), await isShown(".pane")], [true, false]);
    await press(page, "3");
    await page.$eval(".list", (list) => list.scrollTo(0, 0));
    await page.waitForSelector(".words-between");
    assert.deepEqual(await page.$$eval(".words-between", (rows) => rows.filter(({ scrollHeight }) => scrollHeight > 30).map((row) => row.textContent)), [], "each heading is one line");
    await page.type("input", "event ".repeat(20));
    await page.waitForFunction(() => /of/.test(document.querySelector(".count")?.textContent ?? ""));
    const [typed, count] = [await (await page.$("input"))?.boundingBox(), await (await page.$(".count"))?.boundingBox()];
    assert.ok(typed && count && typed.width > 100 && typed.x + typed.width <= count.x, "the filter ends before the count");
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, "nothing overflows");
    await close();
  });
});

/** @param {{ id: string }} a @param {{ id: string }} b */
function byId(a, b) {
  return a.id < b.id ? -1 : 1;
}

/** @param {Page} page @param {...string} keys */
async function press(page, ...keys) {
  for (const key of keys) await page.keyboard.press(/** @type {any} */ (key));
}

/**
 * Clicks on the map: a fraction of its width, a row of summaries from the top.
 *
 * @param {Page} page
 * @param {number} part
 * @param {number} row
 */
async function clickMap(page, part, row) {
  const box = await (await page.$(".map canvas"))?.boundingBox();
  assert.ok(box);
  await page.mouse.click(box.x + box.width * part, box.y + 16 + 24 * row + 11);
}

/** Waits for the address, which follows the selection a moment later, so that a held key does not fill the history. @param {Page} page */
async function settle(page) {
  await page.waitForFunction(() => location.hash.endsWith(document.querySelector(".detail .copy")?.textContent ?? ""));
}
