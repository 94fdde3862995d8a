/**
 * Another extension with the same tools: ours, which came later, stays inactive; so does a second copy of ours. And once the other one is
 * removed, its files stay unchanged.
 */
import assert from "node:assert/strict";
import { copyFileSync, readdirSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { addon, extension } from "../../scripts/paths.mjs";
import { assertAgreement } from "../support/agreement.mjs";
import { copyExtension } from "../support/copies.mjs";
import { aProject, eventually, temporaryFolder } from "../support/project.mjs";
import { assertCovered, bothOf, placings } from "./beside.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */

/**
 * The twin's database, next to the copy that the twin left.
 * @param {Project} project
 */
function databaseOfTwin({ storeDir }) {
  const name = readdirSync(storeDir).find((file) => file.endsWith(".db.left"))?.slice(0, -".left".length);
  assert.ok(name, "the twin has left a database");
  return { name, file: path.join(storeDir, name) };
}

/** @param {Project} project */
function assertUntouched(project) {
  const { file } = databaseOfTwin(project);
  assert.ok(readFileSync(file).equals(readFileSync(`${file}.left`)), "the twin's database is unchanged");
}

/** @param {Project} project */
function assertNothingOfOurs(project) {
  const { name } = databaseOfTwin(project);
  assert.deepEqual(readdirSync(project.storeDir).sort(), [name, `${name}.left`]);
  assertUntouched(project);
}

for (const placing of placings) {
  const { host, oursIsLast, title } = placing;
  test(`with its twin ours does nothing, and reports it once, on ${title}`, async (t) => {
    const project = await aProject(t, { host, extensions: bothOf(placing, "twin") });
    const history = project.history();
    history.talk(40);
    const pi = project.startPi(["--session", history.write(project.sessionDir)]);
    project.script.turns = [{ toolCalls: [{ name: "lcm_grep", arguments: { query: "mark0000x" } }] }, { text: "Found." }];
    await pi.prompt("search");
    assert.equal(project.lastTurn.messages.findLast(({ role }) => role === "tool")?.text, "the twin's lcm_grep answers");
    assert.equal(new Set(project.lastTurn.toolNames).size, project.lastTurn.toolNames.length);

    const { commands } = await pi.request("get_commands");
    const names = commands.map((/** @type {any} */ { name }) => name).filter((/** @type {string} */ name) => name.startsWith("lcm"));
    assert.deepEqual(names.sort(), ["lcm", "lcm-settings"]);

    assert.equal((await pi.request("compact")).summary, "What the twin makes of it.");
    assert.equal(project.summaryCalls.length, 0);

    await pi.prompt("/lcm");
    const [notices, ...rest] = pi.ui("notify");
    assert.equal(notices.notifyType, "warning");
    assert.match(notices.message, /another extension \(\S*twin\.mjs\) already provides tools with the same names/);
    assert.deepEqual(rest.map(({ message }) => message), ["the twin's /lcm"]);
    assert.equal(pi.status("lcm"), undefined);

    await pi.request("new_session");
    await pi.prompt("in another session");
    assert.equal(project.lastTurn.system.includes("Lossless Context Management"), false);
    const warnings = pi.ui("notify").filter(({ notifyType }) => notifyType === "warning");
    // Also before 0.87, where Pi loads the extension again for each session.
    assert.deepEqual(warnings.map(({ message }) => message), [notices.message]);

    await pi.stop();
    assertNothingOfOurs(project);
    // One order is enough for the rest.
    if (!oursIsLast) return;

    await t.test("in print mode it is silent", async () => {
      assert.equal((await project.runPi(["-p", "said to the twin"])).stdout, "Understood.\n");
      assertNothingOfOurs(project);
    });

    await t.test("without the twin its database stays unchanged, and ours is next to it", async () => {
      const { file } = databaseOfTwin(project);
      const pi = project.startPi(["--continue"], extension);
      await pi.prompt("said to ours");
      const session = await project.session(pi);
      await pi.waitFor(() => pi.ui("notify").length > 1);
      await pi.stop();
      const [notices, ...rest] = pi.ui("notify").map(({ message }) => message);
      assert.deepEqual(rest, ["LCM: this project has 2 older sessions. /lcm import adds them."]);
      assert.ok(notices.includes(`${file} belongs to another program`) && notices.includes("-2.db"), notices);
      assertUntouched(project);
      // So that only the store is in the folder.
      rmSync(file);
      assertAgreement(project, [session]);
      assert.match(JSON.stringify(session.entries), /said to the twin/);
    });
  });
}

for (const host of hostsFor()) {
  test(`of two copies of ours only one is active, on ${host.name}`, async (t) => {
    // As if it is installed, and also loaded from its source.
    const folder = temporaryFolder(t);
    const copy = copyExtension(folder);
    copyFileSync(addon(), path.join(folder, path.basename(addon())));
    const project = await aProject(t, { host, extensions: [extension, copy] });
    const history = project.history();
    history.talk(40);
    const pi = project.startPi(["--session", history.write(project.sessionDir)]);
    await pi.prompt("hello");
    await pi.request("compact");
    assertCovered(project, await project.session(pi));
    await eventually(() => assertAgreement(project));
    const notices = pi.ui("notify").map(({ message }) => message);
    assert.equal(notices.length, 2);
    assert.match(notices[0], /another extension \(\S*index\.js\) already provides tools with the same names/);
    assert.match(notices[1], /^LCM: /);
    const { commands } = await pi.request("get_commands");
    assert.deepEqual(commands.map((/** @type {any} */ { name }) => name).filter((/** @type {string} */ name) => name.startsWith("lcm")), ["lcm"]);
  });
}
