/**
 * Builds `viewer.html`, the page that `/lcm export --html` fills with a session: everything in `viewer/` and its libraries, in one file
 * that loads nothing. Its content policy allows only its own script and style, by their hashes.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { inModules, root } from "./paths.mjs";
import { Failure } from "./setup.mjs";

const sources = path.join(root, "viewer");

/** The built page. */
export const viewerTemplate = path.join(root, "viewer.html");

/** The placeholder for the data. */
export const PLACE = "<!--lcm:data-->";

/** Libraries in the bundle; the page has their licenses. */
export const BUNDLED = ["uplot", "d3-zoom", "d3-selection", "d3-drag", "d3-dispatch", "d3-interpolate", "d3-transition", "d3-color", "d3-ease", "d3-timer"];

/** Whether the build's packages are installed. */
export const canBuildViewer = () => ["esbuild", ...BUNDLED].every((name) => existsSync(inModules(name, "package.json")));

/** Builds the page if its sources have changed. @returns {Promise<string>} the file */
export async function buildViewer() {
  if (!isStale()) return viewerTemplate;
  if (!canBuildViewer()) throw new Failure("The page of /lcm export --html can't be made without the npm packages: run `npm ci` and then this again.");
  const { build } = createRequire(import.meta.url)("esbuild");
  const bundle = async (/** @type {string} */ entry) => {
    const { outputFiles } = await build({ entryPoints: [path.join(sources, entry)], bundle: true, minify: true, write: false, format: "iife", target: ["chrome123", "firefox120", "safari17.5"], charset: "utf8", legalComments: "none", logLevel: "silent" });
    return outputFiles[0].text.trim();
  };
  const script = (await bundle("main.js")).replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
  const style = await bundle("style.css");
  const parts = { "script-hash": hashOf(script), "style-hash": hashOf(style), licenses: licenses(), style, script };
  let page = readFileSync(path.join(sources, "template.html"), "utf8");
  // A function, because `$` in a replacement text has a meaning.
  for (const [name, text] of Object.entries(parts)) page = page.replace(`<!--lcm:${name}-->`, () => text);
  if (page.split(PLACE).length !== 2) throw new Failure(`The viewer's page must hold ${PLACE} once.`);
  const temporary = `${viewerTemplate}.tmp-${process.pid}`;
  writeFileSync(temporary, page);
  renameSync(temporary, viewerTemplate);
  return viewerTemplate;
}

function isStale() {
  if (!existsSync(viewerTemplate)) return true;
  const made = statSync(viewerTemplate).mtimeMs;
  const from = [...readdirSync(sources).map((name) => path.join(sources, name)), fileURLToPath(import.meta.url), path.join(root, "package-lock.json")];
  return from.some((file) => statSync(file).mtimeMs > made);
}

/** A hash in the format of a content policy. @param {string} text */
function hashOf(text) {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

/** The licenses of the bundled libraries, as a comment. */
function licenses() {
  const texts = BUNDLED.map((name) => {
    const { version } = JSON.parse(readFileSync(inModules(name, "package.json"), "utf8"));
    return `${name} ${version}\n\n${readFileSync(inModules(name, "LICENSE"), "utf8").trim()}`;
  });
  return `<!--\nThis page contains:\n\n${texts.join("\n\n").replaceAll("-->", "-- >")}\n-->`;
}
