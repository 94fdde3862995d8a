/** A branch in the viewer, without a browser: what the model saw, what is hidden from it, and the filter. */
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, test } from "node:test";
import { Branch, hiddenBecause } from "../../viewer/branch.js";
import { totalsOf } from "../../viewer/costs.js";
import { checkNames, Filter, queryOf } from "../../viewer/filter.js";
import { byDay, rowsFound, rowsOfContext } from "../../viewer/rows.js";
import { headline, partsOf, textOf } from "../../viewer/words.js";
import { inSession } from "../commands/asking.mjs";
import { ask } from "../support/cli.mjs";
import { aProject } from "../support/project.mjs";
import { closeBrowser, dataIn, noBrowser, open, text, texts } from "./browser.mjs";
import { exportedAll } from "./exporting.mjs";

after(closeBrowser);

/** A branch of these entries, each below the one before. @param {any[]} entries @param {any[]} [summaries] */
function branchOf(entries, summaries = []) {
  const lines = entries.map((entry, at) => {
    const said = ["message", "branch_summary", "custom_message"].includes(entry.type);
    const message = said ? { id: `m-${String(at).padStart(10, "0")}`, tokens: 10, ...(entry.message?.excludeFromContext && { kind: "private" }) } : undefined;
    return { ...(message && { message }), entry: { id: `e${at}`, parentId: at > 0 ? `e${at - 1}` : null, timestamp: "2026-11-02T08:00:00.000Z", ...entry } };
  });
  const leaf = `e${entries.length - 1}`;
  const session = { lines: new Map(lines.map((line) => [line.entry.id, line])), summaries: new Map(summaries.map((summary) => [summary.id, summary])), parents: new Map(), branches: [{ leaf, frontier: summaries.map(({ id }) => id) }] };
  return new Branch(/** @type {any} */ (session), leaf);
}

const user = (/** @type {string} */ content) => ({ type: "message", message: { role: "user", content } });
const secret = { type: "message", message: { role: "bashExecution", command: "env", output: "KEY", excludeFromContext: true } };

test("after a compaction the model sees the block, the kept messages, and new ones up to the next compaction", () => {
  const compaction = (/** @type {string | null} */ firstKeptEntryId) => ({ type: "compaction", summary: "block", firstKeptEntryId });
  const branch = branchOf([user("a"), user("b"), compaction("e1"), user("c"), compaction(null), user("d")]);
  const saw = [0, 1, 2].map((step) => {
    const { compaction, kept, since } = branch.context(step);
    return [compaction?.line.entry.id ?? null, kept.map(({ line }) => line.entry.id), since.map(({ line }) => line.entry.id)];
  });
  assert.deepEqual(saw, [
    [null, [], ["e0", "e1"]],
    ["e2", ["e1"], ["e3"]],
    ["e4", [], ["e5"]],
  ]);
});

test("hidden messages are marked with the reason", () => {
  const branch = branchOf([
    user("a"),
    user("b"),
    secret,
    { type: "context_edit", targetId: "e0", replacement: null },
    { type: "context_edit", targetId: "e1", replacement: { content: "x" } },
  ]);
  assert.deepEqual(branch.seen.map(({ line }) => line.entry.id), ["e1"], "stats count so too");
  const why = branch.items.slice(0, 3).map((item) => hiddenBecause(item, branch.edits));
  assert.deepEqual(why, ["hidden from the model by an edit", "shown to the model in another form", "kept from the model (!!)"]);
});

test("an entry that only holds the place of another has no row", () => {
  const branch = branchOf([{ type: "custom", customType: "lcm-link" }, user("a"), { type: "custom", customType: "other" }]);
  assert.deepEqual(byDay(branch.items).flatMap(({ item }) => item?.line.entry.id ?? []), ["e1", "e2"]);
  assert.ok(branch.has("e-e0"), "an address still opens it");
});

test("what the model never saw is not counted in its context", () => {
  const branch = branchOf([user("a"), secret, user("b")]);
  assert.deepEqual(rowsOfContext(branch, branch.context(0), 0)[0], { words: "2 messages, all as they were said, until the end of the branch", tokens: 20 });
});

test("a summary is at the position of its sources and links up and down", () => {
  const leaf = { id: "l", handle: "s-l", depth: 0, sources: ["e0", "e2"], text: "leaf" };
  const elsewhere = { id: "x", handle: "s-x", depth: 0, sources: ["e2", "gone"], text: "of another branch" };
  const condensed = { id: "c", handle: "s-c", depth: 1, sources: ["l"], text: "condensed" };
  const branch = branchOf([user("a"), secret, user("b"), user("c")], [leaf, elsewhere, condensed]);
  assert.deepEqual([branch.node("l"), branch.node("x"), branch.node("c")].map((node) => node && [node.from, node.to]), [[0, 3], undefined, [0, 3]]);
  assert.deepEqual(branch.node("c")?.items.map(({ line }) => line.entry.id), ["e0", "e2"], "without what the model never saw");
  branch.frontier = branch.nodes(["l"]);
  const { summaries, replaced } = totalsOf(branch, []);
  assert.deepEqual([summaries, replaced], [2, 1], "both were paid for");
  assert.deepEqual(branch.below(branch.nodes(["c"])).map(({ summary }) => summary.id), ["c", "l"]);
  assert.deepEqual(branch.said.map((item) => branch.over(item).map(({ summary }) => summary.id)), [["l"], [], ["l"], []]);
});

test("every kind of content has a text, and unknown content is shown raw", () => {
  const line = (/** @type {any} */ message) => ({ entry: { type: "message", message } });
  const call = { type: "toolCall", id: "1", name: "bash", arguments: { command: "ls" } };
  assert.equal(headline(line({ role: "assistant", content: [call] })), "→ bash ls");
  assert.equal(headline(line({ role: "assistant", content: [{ type: "text", text: "# Look\nnow" }, call] })), "Look now  → bash ls");
  assert.equal(headline(line({ role: "toolResult", toolName: "bash", content: [{ type: "text", text: "a\u202eb" }] })), "bash: a\ufffdb");
  assert.equal(headline(line({ role: "user", content: [] })), "(nothing)");
  assert.match(textOf(line({ role: "assistant", content: [{ type: "brandNew", secret: 42 }] })), /"secret": 42/);
  const [image] = partsOf(line({ role: "user", content: [{ type: "image", mimeType: "image/svg+xml", data: "PHN2Zz4=" }] }));
  assert.equal(image.source, undefined, "an image type that could contain a script is not shown");
});

test("the filter parses words, phrases and restrictions", () => {
  const query = queryOf('two "as they stand" role:user tool:bash is:failed a+b');
  assert.deepEqual(query?.words.map(({ source }) => source), ["two", "as they stand", "a\\+b"]);
  assert.deepEqual([query?.speakers, query?.tools, query?.states], [["user"], ["bash"], ["failed"]]);
  assert.equal(queryOf("   "), null);
});

test("the filter finds a message by its id, or the beginning of it", async () => {
  const filter = new Filter();
  const find = (/** @type {string} */ words) => filter.find(/** @type {any} */ (queryOf(words)), branchOf([user("a"), user("b")]).said, filter.begin());
  assert.deepEqual((await find("m-0000000001"))?.map(({ line }) => line.entry.id), ["e1"]);
  assert.equal((await find("m-000"))?.length, 2);
  assert.deepEqual(await find("m-00"), []);
});

test("where a filter finds nothing, an unknown key is named, but no address or quoted words", () => {
  const why = ["foo:bar", "x File:y", "see https://example.org", "std::move", '"foo: bar"', "foo:bar tool:bash"].map((words) => {
    const query = /** @type {import("../../viewer/filter.js").Query} */ (queryOf(words));
    checkNames(query, []);
    return query.error;
  });
  const no = (/** @type {string} */ key) => `There is no filter ${key}. There are role:, tool: and is:.`;
  assert.deepEqual(why, [no("foo:"), no("File:"), undefined, undefined, undefined, "There is no tool:bash. The tools are none."]);
});

test("a filter with an unknown role or state says so", () => {
  assert.match(queryOf("role:usr x")?.error ?? "", /^There is no role:usr\. The roles are user, assistant/);
  assert.match(queryOf("ROLE: x")?.error ?? "", /^There is no role:\. The roles are/);
  assert.match(queryOf("is:lost")?.error ?? "", /^There is no is:lost/);
  assert.deepEqual(["us", "toolresult", "bashExecution"].map((role) => queryOf(`Role:${role}`)).map((query) => [query?.speakers[0], query?.error]), [["us", undefined], ["tool", undefined], ["shell", undefined]]);
});

test("the sessions of a project are in one page, and each is loaded when it is selected", { skip: noBrowser }, async (t) => {
  const { file } = await exportedAll(t, [(history) => history.talk(3, { name: "first" }), (history) => history.talk(2, { name: "second" })]);
  const { page, close } = await open(file);
  assert.match((await texts(page, ".list .words")).join("\n"), /second0000x/);
  const left = () => page.$$eval('script[data-kind="entries"]', (elements) => elements.map((element) => element.getAttribute("data-session")));
  assert.deepEqual(await left(), ["1"]);
  // Named by its first request, not by its id.
  const titles = await texts(page, "[aria-label=Session] option");
  assert.ok(/^second0000x please /.test(titles[0]) && /^first0000x please /.test(titles[1]), titles.join());
  await page.select("[aria-label=Session]", "1");
  const words = (await texts(page, ".list .words")).join("\n");
  assert.ok(/first0005x/.test(words) && !/second/.test(words), words);
  assert.match(await text(page, ".overview"), /6 messages on this branch/);
  assert.deepEqual(await left(), []);
  await close();
});

test("sessions of other agents are named with their agent, and forks as such", { skip: noBrowser }, async (t) => {
  const { file } = await exportedAll(t, [(history) => history.user("the same"), (history) => history.user("the same")]);
  writeFileSync(file, readFileSync(file, "utf8").replaceAll('"id":"019a4f00-0000-7000-8000-000000000001"', '"id":"claude-code:1"').replace('"type":"session",', '"type":"session","parentSession":"/one.jsonl",'));
  const { page, close } = await open(file, { hash: "#session/claude" });
  const titles = await texts(page, "[aria-label=Session] option");
  assert.deepEqual(titles.map((title) => title.split(" —")[0]), ["fork: the same", "claude-code: the same"]);
  assert.match(await text(page, "h1"), /^claude-code: the same/);
  await close();
});

test("the filter searches all sessions of the page, and names where", { skip: noBrowser }, async (t) => {
  const { file } = await exportedAll(t, [(history) => history.talk(3, { name: "first" }), (history) => history.talk(2, { name: "second" })]);
  const { page, close } = await open(file);
  await page.type("input", "first0003x");
  await page.waitForSelector(".list ::-p-text(Nothing on this branch, 1 elsewhere)");
  assert.match((await texts(page, ".list .words-between")).join(), /first0000x please .*: 1 message/);
  await page.keyboard.press("Enter");
  assert.equal(await page.$eval("[aria-label=Session]", (select) => /** @type {HTMLSelectElement} */ (select).value), "1");
  assert.match(await text(page, ".detail .prose"), /^first0003x done/);
  assert.match(await text(page, "h1"), /^first0000x please/);
  await close();
});

test("summaries of other branches and sessions are found too", () => {
  const [summary, item] = [{ id: "l", handle: "s-l", depth: 0, sources: ["e0"], text: "of another session", messages: 7 }, branchOf([user("a")]).items[0]];
  const rows = rowsFound([], new Set(), [], [{ number: 1, title: "Other", items: [item], nodes: [/** @type {any} */ ({ summary, from: 0, to: 0, items: [] })] }]);
  assert.deepEqual(rows.map(({ words, session }) => words ?? session), ["Nothing on this branch, 2 elsewhere, below", "Other: 1 summary, 1 message", 1, 1]);
});

test("a purged message is in its place, and what a compaction kept is not known then", { skip: noBrowser }, async (t) => {
  const project = await aProject(t);
  const history = project.history();
  history.talk(3);
  history.entry("compaction", { summary: "the block", firstKeptEntryId: history.entries[0].id, tokensBefore: 100 });
  history.talk(1);
  const session = history.write(project.sessionDir);
  await inSession(project, session, ["-p", `/lcm purge ${history.entries[2].id} --yes`, "/lcm export --html page.html"]);
  const { page, close } = await open(path.join(project.cwd, "page.html"), { hash: "#travel/1" });
  assert.match(await text(page, ".detail"), /its text, and which messages it kept, are not known/);
  await page.type("input", "is:purged");
  await page.waitForSelector(".list .c-purged");
  await page.keyboard.press("Enter");
  await page.click(".list .c-purged");
  await page.waitForSelector(".detail ::-p-text(This message was removed for good)");
  await page.click("input", { count: 3 });
  await page.type("input", "role:assistant");
  await page.waitForSelector(".search ::-p-text(4 of 7)");
  await page.click(".list .row:last-of-type");
  await page.waitForSelector(".detail header ::-p-text(7 of 7)");
  await close();
});

test("an address opens another session of the page", { skip: noBrowser }, async (t) => {
  const { file } = await exportedAll(t, [(history) => history.talk(3, { name: "first" }), (history) => history.talk(2, { name: "second" })]);
  const { id } = dataIn(file).filter(({ kind }) => kind === "entries").flatMap(({ data }) => data).find(({ entry }) => JSON.stringify(entry).includes("first0003x")).message;
  for (const [view, where] of [["", ".detail .prose"], ["read/", ".reading .said[data-id]:nth-last-of-type(3) .markdown"], ["travel/0/", ".detail .prose"]]) {
    const { page, close } = await open(file, { hash: `#${view}${id}` });
    assert.match(await text(page, where), /^first0003x done/);
    assert.match(await text(page, "h1"), /^first0000x please/);
    await close();
  }
});

test("the address names the session, for a reload and for Back", { skip: noBrowser }, async (t) => {
  const { file } = await exportedAll(t, [(history) => history.talk(3, { name: "first" }), (history) => history.talk(2, { name: "second" })]);
  const { page, close } = await open(file);
  const isOpen = (/** @type {string} */ name) => page.waitForFunction((name) => document.querySelector("h1")?.textContent?.startsWith(name), {}, name);
  await page.type("input", "first0003x");
  await page.waitForSelector(".list ::-p-text(Nothing on this branch, 1 elsewhere)");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /^#session\/019a4f00-0000-7000-8000-000000000001\/m-/.test(location.hash));
  await page.goBack();
  await isOpen("second0000x");
  await page.goForward();
  await isOpen("first0000x");
  assert.match(await text(page, ".detail .prose"), /^first0003x done/);
  await page.goBack();
  await page.select("[aria-label=Session]", "1");
  await page.waitForFunction(() => location.hash.endsWith("/"));
  await page.reload();
  await isOpen("first0000x");
  await page.evaluate(() => (location.hash = "#session/lost"));
  await page.waitForSelector(".pane ::-p-text(There is no session lost in this page)");
  assert.equal(await page.evaluate(() => location.hash), "#session/lost", "to be corrected");
  for (const [hash, name] of [["#session/lost/about", "session lost"], ["#session/lost/travel/1", "session lost"], ["#session", "session "]]) {
    await page.evaluate((hash) => (location.hash = hash), hash);
    await page.waitForSelector(`.pane ::-p-text(There is no ${name} in this page)`);
  }
  // The other one begins with the same.
  await page.evaluate(() => (location.hash = "#session/019a4f00-0000-7000-8000-000000000002"));
  await isOpen("second0000x");
  await page.evaluate(() => (location.hash = "#session/019a4f00-0000-7000-8000-0000000000"));
  await page.waitForSelector(".pane ::-p-text(There is no session 019a4f00-0000-7000-8000-0000000000 in this page)");
  await close();
});

test("a branch without messages of its own is not listed, unless an address names what is on it", { skip: noBrowser }, async (t) => {
  const { file } = await exportedAll(t, [(history) => {
    history.entry("model_change", { provider: "demo", modelId: "other" });
    const root = history.entries[0].id;
    history.talk(2);
    const end = history.entries.at(-1).id;
    history.entry("label", { targetId: end, label: "here" });
    history.entry("model_change", { provider: "demo", modelId: "other" });
    Object.assign(history.entries.at(-1), { parentId: root });
    history.user("and on");
    Object.assign(history.entries.at(-1), { parentId: end });
  }], "export --html");
  const { page, close } = await open(file);
  const branches = await texts(page, "[aria-label=Branch] option");
  assert.ok(branches.length === 1 && /^● and on — 5 messages/.test(branches[0]), branches.join("\n"));
  const { entry } = dataIn(file).filter(({ kind }) => kind === "entries").flatMap(({ data }) => data).findLast(({ entry }) => entry.type === "model_change");
  await page.evaluate((id) => (location.hash = `#e-${id}`), entry.id);
  await page.waitForSelector(".pane ::-p-text(Entry)");
  assert.deepEqual(await page.$eval("[aria-label=Branch]", (select) => [/** @type {HTMLSelectElement} */ (select).value, /** @type {HTMLSelectElement} */ (select).disabled]), [entry.id, false]);
  await close();
});

test("Markdown is rendered for reading, and a text of any form is shown in full", { skip: noBrowser }, async (t) => {
  const { file } = await exportedAll(t, [(history) => {
    history.user("hello");
    history.assistant("# A title\n\nSome `code`, **strong**\nand more.\n\n- one\n  - inner\n\n  still inner\n- two\n\n3. three\n\n> quoted\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```js\nlet x = 1; // - no list\n```\n\n```diff\n-old\n+new\n```\n---\nthe end");
    history.user("- \n>\n|\n```\nunclosed");
  }], "export --html");
  const { page, close } = await open(file, { hash: "#read" });
  const drawn = await page.$$eval(".reading .markdown", ([, answer]) => {
    /** @type {(element: Element) => any[]} */
    const shape = (element) => [...element.children].filter(({ tagName }) => tagName !== "BR").map((child) => (child.children.length && child.tagName !== "P" && child.tagName !== "PRE" ? [child.tagName, ...shape(child)] : `${child.tagName} ${child.textContent?.trim()}`));
    return shape(answer);
  });
  assert.deepEqual(drawn, [
    "P A title",
    "P Some code, strongand more.",
    ["UL", ["LI", "P one", ["UL", ["LI", "P inner"]], "P still inner"], ["LI", "P two"]],
    ["OL", ["LI", "P three"]],
    ["BLOCKQUOTE", "P quoted"],
    ["TABLE", ["TR", "TH a", "TH b"], ["TR", "TD 1", "TD 2"]],
    "PRE let x = 1; // - no list",
    "PRE -old\n+new",
    "HR ",
    "P the end",
  ]);
  assert.match((await texts(page, ".reading .markdown"))[2], /unclosed/);
  await close();
});

test("a compaction of which only the database is left does not claim what was kept, or who made it", { skip: noBrowser }, async (t) => {
  const project = await aProject(t);
  const history = project.history();
  history.talk(3);
  const kept = history.entries[2].id;
  history.entry("compaction", { summary: "the block", firstKeptEntryId: kept, tokensBefore: 100 });
  history.talk(1);
  const session = history.write(project.sessionDir);
  await ask(project, "import", session);
  rmSync(session);
  await ask(project, "export", "--html", "page.html");
  const { page, close } = await open(path.join(project.cwd, "page.html"), { hash: "#travel/1" });
  assert.ok((await texts(page, ".list .row")).some((row) => row.includes("6 messages before it, kept or not")));
  const detail = await text(page, ".detail");
  assert.match(detail, /comes from the database, as the session's file is gone or something in it was purged: its text, and which/);
  assert.doesNotMatch(detail, /kept as said|another extension|block ≈/);
  assert.ok((await texts(page, ".list .row")).some((row) => row === "The block, in place of all before"), "without a size");
  await close();
});
