/**
 * A page in headless Chromium, opened from its file like by a double-click. Its network requests, console messages and errors are recorded,
 * and must be none.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

/** @typedef {import("puppeteer-core").Page} Page */

/** Where systems install Chromium, or a browser based on it. */
const PLACES = [
  ...["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"].flatMap((name) => (process.env.PATH ?? "").split(path.delimiter).map((folder) => path.join(folder, name))),
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
];

const executablePath = PLACES.find((file) => existsSync(file));

/** Why these tests can't run here, or false. */
export const noBrowser = executablePath ? false : "there is no Chromium here: on Debian, `apt-get install chromium` brings it";

/** @type {Promise<import("puppeteer-core").Browser> | undefined} */
let starting;

/** One browser for all tests of a file. */
function browser() {
  starting ??= launch();
  return starting;
}

async function launch() {
  // Loading it is slow, and useless without a browser.
  const { default: puppeteer } = await import("puppeteer-core");
  return puppeteer.launch({ executablePath, headless: true, args: [...(process.getuid?.() === 0 ? ["--no-sandbox"] : []), "--disable-gpu", "--force-color-profile=srgb", "--font-render-hinting=none"], env: { ...process.env, TZ: "UTC" } });
}

export async function closeBrowser() {
  await (await starting)?.close();
  starting = undefined;
}

/**
 * Opens a page and waits until it is loaded.
 *
 * @param {string} file
 * @param {{ width?: number, height?: number, dark?: boolean, hash?: string, language?: string }} [options]
 */
export async function open(file, { width = 1280, height = 800, dark = false, hash = "", language = "" } = {}) {
  const page = await (await browser()).newPage();
  /** @type {string[]} */
  const requests = [];
  /** @type {string[]} */
  const complaints = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }, { name: "prefers-reduced-motion", value: "reduce" }]);
  if (language) await page.evaluateOnNewDocument((value) => Object.defineProperty(Navigator.prototype, "language", { get: () => value }), language);
  await page.goto(pathToFileURL(file).href + hash);
  await page.waitForSelector(".page .row, #loading", { timeout: 20_000 });
  return {
    page,
    complaints,
    /** Closes it; it must have been silent. */
    close: async () => {
      assert.deepEqual(complaints, [], "the console is empty");
      const outside = requests.filter((url) => !url.startsWith("data:") && url.split("#")[0] !== pathToFileURL(file).href);
      assert.deepEqual(outside, [], "there are no network requests");
      await page.close();
    },
  };
}

/** @param {Page} page @param {string} selector */
export const text = (page, selector) => page.$eval(selector, (element) => element.textContent ?? "");

/** @param {Page} page @param {string} selector @returns {Promise<string[]>} */
export const texts = (page, selector) => page.$$eval(selector, (elements) => elements.map((element) => element.textContent ?? ""));

/** The data in a page, read without a browser. @param {string} file @returns {{ kind: string, data: any }[]} */
export function dataIn(file) {
  const found = readFileSync(file, "utf8").matchAll(/<script type="application\/json" data-kind="(\w+)"[^>]*>(.*?)<\/script>/g);
  return [...found].map(([, kind, json]) => ({ kind, data: JSON.parse(json) }));
}
