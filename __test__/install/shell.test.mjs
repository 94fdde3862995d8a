/** `pi-lcm` as npm installs it: the packed package, an engine's package from the registry, started as npx starts it. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { before, test } from "node:test";
import { packMain, packViewer } from "../../scripts/pack.mjs";
import { node22, root } from "../../scripts/paths.mjs";
import { PACKAGE } from "../../scripts/platforms.mjs";
import { collect } from "../../scripts/proc.mjs";
import { aBorrowedEngine, bringNpms } from "../support/installing.mjs";
import { History } from "../support/history.mjs";
import { temporaryFolder } from "../support/project.mjs";
import { aRegistry } from "../support/registry.mjs";

const NPM = "10.9.9";
const npm = path.join(root, "target", "npm", NPM, "bin");

before(() => bringNpms([NPM]));

test("npx runs pi-lcm from the registry, and an installed one is on the path", async (t) => {
  const folder = temporaryFolder(t);
  const registry = await aRegistry(t);
  const main = await packMain(folder);
  const { version } = main.manifest;
  registry.add(aBorrowedEngine(folder, version), main);
  const cwd = path.join(folder, "project");
  mkdirSync(cwd);
  const npmrc = path.join(folder, "npmrc");
  writeFileSync(npmrc, `registry=${registry.url}\nupdate-notifier=false\n`);
  const env = {
    // npm passes its own cache on, where npx keeps packages of earlier runs.
    ...process.env, HOME: folder, npm_config_userconfig: npmrc, npm_config_cache: path.join(folder, "cache"), PI_CODING_AGENT_DIR: path.join(folder, "agent"),
    PATH: [path.dirname(node22), process.env.PATH].join(path.delimiter),
  };
  const npx = (/** @type {string[]} */ ...args) => collect(node22, [path.join(npm, "npx-cli.js"), "--yes", PACKAGE, ...args], { cwd, env });

  const history = new History({ cwd: "/nowhere" });
  history.talk(3);
  const imported = await npx("import", history.write(folder));
  assert.deepEqual([imported.code, imported.stderr], [0, ""]);
  assert.deepEqual(await npx("grep", "zeppelin"), { code: 1, stdout: "", stderr: "Nothing found for zeppelin, thinking aside.\n" });

  const install = async () => {
    const { code, stderr } = await collect(node22, [path.join(npm, "npm-cli.js"), "install", "--silent", "--no-save", PACKAGE], { cwd, env });
    assert.equal(code, 0, stderr);
  };
  await install();
  const own = path.join(cwd, "node_modules", ".bin", process.platform === "win32" ? "pi-lcm.cmd" : "pi-lcm");
  const run = (/** @type {string[]} */ ...args) => collect(own, args, { cwd, env, shell: process.platform === "win32" });
  assert.deepEqual(await run("--version"), { code: 0, stdout: `${version}\n`, stderr: "" });
  const stats = await run("stats");
  assert.deepEqual([stats.code, stats.stderr], [0, ""]);
  assert.match(stats.stdout, /\nThis session {4}6 messages/);

  // The registry had no viewer until here.
  const without = await run("export", "--html", "page.html");
  assert.equal(without.code, 2);
  assert.match(without.stderr, /^pi-lcm: .*needs the package pi-lossless-context-viewer, which is not installed: install pi-lossless-context again /);
  registry.add(await packViewer(folder));
  await install();
  const page = await run("export", "--html", "page.html");
  assert.deepEqual([page.code, page.stderr], [0, ""]);
  assert.match(readFileSync(path.join(cwd, "page.html"), "utf8"), /<!doctype html>/i);
});
