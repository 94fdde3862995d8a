/**
 * Hostile text in the viewer stays text. Sessions contain web pages, logs and attacks on their reader; the page runs none of it, and its
 * own content policy forbids it.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { after, describe, test } from "node:test";
import { closeBrowser, dataIn, noBrowser, open, text } from "./browser.mjs";
import { exported } from "./exporting.mjs";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** Each sets `window.pwned` if any of it is run. */
const ATTACKS = [
  "<script>window.pwned = 1</script>",
  "</script><script>window.pwned = 2</script>",
  "<!-- <script> <!--lcm:data--> --> ]]> </style></title></textarea>",
  '<img src=x onerror="window.pwned = 3"><svg onload="window.pwned = 4">',
  "[a link](javascript:window.pwned=5) <a href=\"javascript:window.pwned=6\">x</a> javascript:window.pwned=7",
  "\u202eevil\u202c \u2066isolated\u2069 \u200bzero\ufeff",
  "nul \u0000 escape \u001b[31mred\u001b[0m bell \u0007 lines \u2028 \u2029 end",
  "a lone \ud800 surrogate and a \udc00 second",
  "`${window.pwned = 8}` {{constructor.constructor('window.pwned = 9')()}} <%= 1 %>",
  '"><iframe srcdoc="<script>parent.pwned = 10</script>"></iframe><base href="https://example.invalid/">',
];

describe("hostile content", { skip: noBrowser }, () => {
  after(closeBrowser);

  test("stays text everywhere", async (t) => {
    const { file, session } = await exported(t, (history) => {
      for (const attack of ATTACKS) {
        history.user(attack, [{ type: "image", mimeType: 'image/png" onerror="window.pwned = 11', data: PIXEL }]);
        history.assistant(attack, [{ id: "call<1>", name: attack.slice(0, 60), arguments: { [attack.slice(0, 40)]: attack, more: 1 } }]);
        history.toolResult("call<1>", attack.slice(0, 60), attack);
      }
      history.bash("cat <secret>", "</script><script>window.pwned = 12</script>", { excludeFromContext: true });
    });
    const html = readFileSync(file, "utf8");
    for (const [, json] of html.matchAll(/<script type="application\/json"[^>]*>(.*)/g)) assert.ok(!json.slice(0, -"</script>".length).includes("<"), "no tag begins in the data");
    const shown = dataIn(file).filter(({ kind }) => kind === "entries").flatMap(({ data }) => data.map((/** @type {any} */ line) => line.entry));
    const written = readFileSync(session, "utf8").trim().split("\n").slice(1).map((line) => JSON.parse(line));
    assert.deepEqual(shown, written);

    const { page, close } = await open(file);
    assert.equal(await page.evaluate(() => document.compatMode), "CSS1Compat");
    for (const attack of ATTACKS) {
      // The message's text is shown, character by character, once it is selected.
      await page.evaluate((words) => {
        const input = /** @type {HTMLInputElement} */ (document.querySelector("input"));
        input.value = `"${words.replaceAll('"', "").slice(0, 12)}" role:user`;
        /** @type {HTMLElement} */ (document.querySelector(".count")).textContent = "";
        input.dispatchEvent(new Event("input"));
      }, attack);
      await page.waitForFunction(() => /of/.test(document.querySelector(".count")?.textContent ?? ""));
      await page.click(".list .row.c-user");
      const drawn = await page.$eval(".detail.c-user .prose", (element) => Array.from(element.textContent ?? "", (c) => c.codePointAt(0)));
      assert.deepEqual(drawn, Array.from(attack, (c) => c.codePointAt(0)));
    }
    await page.keyboard.press("Escape");
    // The same in the conversation, with all calls and results opened.
    await page.evaluate(() => /** @type {HTMLElement} */ (document.activeElement)?.blur());
    await page.keyboard.press("2");
    await page.$$eval(".reading details", (all) => all.forEach((details) => (details.open = true)));
    await page.waitForFunction(() => document.querySelectorAll(".reading .tool > :not(summary)").length >= 10);
    const read = await page.$eval(".reading", (reading) => {
      for (const mark of reading.querySelectorAll("bdi.control")) mark.textContent = "";
      return reading.textContent ?? "";
    });
    assert.ok(read.includes("window.pwned = 12") && !/[\u202e\u0000\u001b]/.test(read));
    assert.equal(await page.evaluate(() => /** @type {any} */ (globalThis).pwned), undefined);
    assert.equal(await page.$$eval("script", (scripts) => scripts.filter(({ type }) => type !== "application/json").length), 1, "the viewer's own script is the only one");
    assert.equal(await page.$$eval("iframe, base, object, embed, svg, [onerror], [onload], a:not([href^='#'])", (found) => found.length), 0);
    assert.equal(await page.$("img"), null, "a file without an image type is not drawn");
    await close();
  });

  test("a message is drawn with all its characters, and direction characters have no effect", async (t) => {
    const words = ATTACKS.join("\n");
    const { file } = await exported(t, (history) => {
      history.user("begin");
      history.assistant(words);
      history.user("a picture", [{ type: "image", mimeType: "image/png", data: PIXEL }]);
    });
    const { page, close } = await open(file);
    await page.click(".list .row.c-assistant");
    const units = (/** @type {string} */ text) => Array.from(text, (c) => c.codePointAt(0));
    const drawn = await page.$eval(".detail .prose", (element) => Array.from(element.textContent ?? "", (c) => c.codePointAt(0)));
    assert.deepEqual(drawn, units(words));
    assert.ok((await page.$$eval(".control", (marks) => marks.map((mark) => mark.getAttribute("data-code")))).includes("U+202E"));
    assert.equal(await page.$eval(".control", (mark) => getComputedStyle(mark).unicodeBidi), "isolate");
    assert.ok(!/[\u202e\u0000\u001b]/.test((await page.$$eval(".list .words", (rows) => rows.map((row) => row.textContent).join(" ")))), "the list has no such character");
    await page.type("input", "is:image");
    await page.waitForFunction(() => document.querySelector(".count")?.textContent?.startsWith("1 of"));
    await page.click(".list .row.c-user");
    assert.equal(await page.$eval(".detail img", (image) => /** @type {HTMLImageElement} */ (image).src.startsWith("data:image/png;base64,")), true);
    await close();
  });

  test("direction characters in names have no effect anywhere", async (t) => {
    const turned = "\u202eeman\u202c \u001b[31mred\u001b[0m \u061cx\u0007";
    const { file } = await exported(t, (history) => {
      history.entry("session_info", { name: turned });
      history.entry("label", { targetId: history.user(`${turned} asked`), label: turned });
      history.entry("model_change", { provider: turned, modelId: turned });
      history.entry("custom", { customType: turned, data: {} });
      history.assistant("called", [{ id: "call-1", name: turned, arguments: { [turned]: turned, path: turned } }]);
      Object.assign(history.entries.at(-1).message, { provider: turned, model: turned });
      history.assistant("failed");
      Object.assign(history.entries.at(-1).message, { stopReason: "error", errorMessage: turned });
      history.toolResult("call-1", turned, "a result");
    });
    const { page, close } = await open(file);
    /** Everything drawn except the marks for such characters. */
    const drawn = () => page.evaluate(() => {
      for (const mark of document.querySelectorAll("bdi.control")) mark.textContent = "";
      const attributes = [...document.querySelectorAll("[title], [alt], [aria-label]")].flatMap((element) => ["title", "alt", "aria-label"].map((name) => element.getAttribute(name) ?? ""));
      return [document.title, ...attributes, ...[...document.body.children].filter(({ tagName }) => tagName !== "SCRIPT").map((element) => element.textContent ?? "")].join("\n");
    });
    const rows = (await page.$$(".list [data-id]")).length;
    assert.ok(rows >= 8, `${rows} rows`);
    for (let at = 0; at < rows; at++) {
      await (await page.$$(".list [data-id]"))[at].click();
      const text = await drawn();
      assert.ok(text.includes("\ufffd"), "the names are shown");
      assert.equal(/[\u0000-\u0008\u000e-\u001f\u061c\u202a-\u202e]/.exec(text)?.input.slice(0, 500), undefined);
    }
    await page.keyboard.press("4");
    assert.ok(!/[\u202e\u001b\u061c]/.test(await drawn()));
    await close();
  });

  test("an injected script or style is not run, and text can't become markup", async (t) => {
    const { file } = await exported(t, (history) => history.talk(2));
    const html = readFileSync(file, "utf8");
    const injected = "<script>window.pwned = 1</script><style>body { display: none }</style><img src=x onerror='window.pwned = 2'><p style='color: red' onclick='window.pwned = 3'>x</p>";
    writeFileSync(file, html.replace("</body>", () => `${injected}</body>`));
    const { page, complaints } = await open(file);
    assert.equal(await page.evaluate(() => /** @type {any} */ (globalThis).pwned), undefined);
    assert.notEqual(await page.$eval("body", (body) => getComputedStyle(body).display), "none");
    assert.ok(complaints.filter((words) => /Content Security Policy/.test(words)).length >= 3, complaints.join("\n"));
    assert.match(await page.evaluate(() => {
      try {
        document.body.innerHTML = "<b>bold</b>";
        return "it was taken";
      } catch (error) {
        return String(error);
      }
    }), /TrustedHTML/);
    assert.equal(await page.evaluate(() => fetch("https://example.invalid/").then(() => "sent", () => "refused")), "refused");
    await page.close();
  });

  test("a message of some megabytes is shown in portions", async (t) => {
    const long = "0123456789abcdef ".repeat(200_000);
    const { file } = await exported(t, (history) => {
      history.user("begin");
      history.assistant("", [{ id: "call-1", name: "read", arguments: { path: "x" } }]);
      history.toolResult("call-1", "read", long);
    });
    const { page, close } = await open(file);
    await page.click(".list .row.c-tool");
    const length = () => page.$eval(".output .prose", (element) => (element.textContent ?? "").length);
    assert.ok((await length()) < 100_000);
    assert.match(await text(page, ".output .more"), /of 3,400,000 characters are left/);
    const before = await length();
    await page.click(".output .more");
    assert.ok((await length()) > before);
    await close();
  });
});

describe("a session of 10,000 messages", { skip: noBrowser }, () => {
  after(closeBrowser);

  test("has only a few dozen rows in the document, whatever is scrolled to or searched", async (t) => {
    const { file } = await exported(t, (history) => history.talk(5_000));
    const { page, close } = await open(file);
    const rows = () => page.$$eval(".list .row", (found) => found.length);
    const words = async () => (await page.$$eval(".list [data-id] .words", (found) => found.map((row) => row.textContent))).join("\n");
    const few = 60;
    assert.ok((await rows()) <= few);
    assert.match(await words(), /mark9999x/);
    for (const key of ["g", "G"]) {
      await page.keyboard.press(/** @type {any} */ (key));
      assert.ok((await rows()) <= few);
    }
    await page.evaluate(() => document.querySelector(".list")?.scrollTo(0, 150_000));
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    assert.ok((await rows()) <= few);
    assert.match(await words(), /mark[45]\d\d\d/);
    await page.type("input", "mark4321x");
    await page.waitForFunction(() => /^1 of 10,000$/.test(document.querySelector(".count")?.textContent ?? ""));
    assert.deepEqual(await page.$$eval(".list [data-id]", (found) => found.length), 1);
    assert.ok((await page.evaluate(() => document.querySelectorAll("*").length)) < 1_500, "the document is small");
    await close();
  });
});
