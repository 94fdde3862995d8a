/**
 * Tools that a script calls (Pi's `codemode`), on the real Pi: Pi stores no results of such calls, so what they did is read from its record of
 * them, also after a restart.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { blockOf } from "../support/block.mjs";
import { filler } from "../support/history.mjs";
import { aProject } from "../support/project.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */

/** @param {string} block @param {string} heading */
const section = (block, heading) => block.split(`### ${heading}\n`)[1]?.split("\n\n###")[0] ?? "";

/** @param {string} code @returns {import("../../demo/model-server.mjs").Reply} */
const script = (code) => ({ toolCalls: [{ name: "codemode", arguments: { code } }] });

/** What the last tools answered. @param {Project} project */
const answered = (project) => project.lastTurn.messages.findLast(({ role }) => role === "tool")?.text ?? "";

/** A test that fails after more output than Pi keeps. */
const FAILING = `
import { test } from "node:test";
test("long", () => {
  console.log("nothing wrong here\\n".repeat(50));
  throw new TypeError("no such port");
});
`;
const WORK = `
await tools.read({ path: "read.txt" });
await tools.edit({ path: "edited.txt", edits: [{ oldText: "two", newText: "three" }] });
await tools.write({ path: "made.txt", content: "made\\n" });
await tools.edit({ path: "refused.txt", edits: [{ oldText: "nowhere to be found", newText: "x" }] }).catch(() => {});
await tools.bash({ command: "node --test passing.test.mjs" });
await tools.lcm_note({ changes: [{ text: "the port is 8443" }] });
return "done";
`;
const CHECK = `
const { output } = await tools.bash({ command: "node --test failing.test.mjs" });
return output.slice(-1000);
`;

for (const host of hostsFor("1.6.0").filter(({ version }) => version !== "0.87.1")) {
  test(`files, checks and notes of a script are in the block after a restart, on ${host.name}`, async (t) => {
    const settings = { defaultTools: ["+codemode"], codemode: { mode: "only" }, lcm: { background: false, minMessagesForCompaction: 1 } };
    const project = await aProject(t, { host, settings });
    const write = (/** @type {string} */ name, /** @type {string} */ text) => writeFileSync(path.join(project.cwd, name), text);
    for (const name of ["read.txt", "edited.txt", "refused.txt"]) write(name, "one\ntwo\n");
    write("passing.test.mjs", 'import { test } from "node:test";\ntest("short", () => {});\n');
    write("failing.test.mjs", FAILING);
    // A block is no larger than what it replaces.
    project.script.turns = [{ text: filler("ready", 6000) }, script(WORK), script(CHECK), { text: `All is tidy. ${filler("end", 300)}` }];
    const first = project.startPi();
    await first.prompt("Are you ready?");
    await first.prompt("Tidy the files.");
    assert.ok(!project.lastTurn.toolNames.includes("read"), "the model has scripts alone");
    assert.match(answered(project), /no such port/);
    await first.stop();

    const resumed = project.startPi(["--continue"]);
    await resumed.prompt("Is all as it was?");
    assert.doesNotMatch(JSON.stringify(project.lastTurn.body.messages), /changed on disk since/);
    await resumed.stop();

    write("edited.txt", "one\nfour\n");
    const again = project.startPi(["--continue"]);
    await again.prompt("Go on.");
    assert.match(JSON.stringify(project.lastTurn.body.messages), /changed on disk since you last saw them[^]*- edited\.txt \(last seen/);
    await again.request("compact");
    await again.prompt("Go on.");
    const block = blockOf(project.lastTurn) ?? "";
    const standing = section(block, "Where It Stands");
    assert.match(standing, /Last passing check: `node --test passing\.test\.mjs` \(m-[0-9a-f]{10}\)/);
    assert.match(standing, /Last failing check: `node --test failing\.test\.mjs` \(m-[0-9a-f]{10}\): not ok 1 - long$/m);
    const files = section(block, "Files");
    const handle = String.raw`\(m-[0-9a-f]{10}[^\n]*\)`;
    assert.match(files, new RegExp(`<modified-files>\\n *edited\\.txt ${handle}\\n *made\\.txt ${handle}\\n</modified-files>`));
    assert.match(files, new RegExp(`<read-files>\\n *read\\.txt ${handle}\\n</read-files>`));
    assert.equal(section(block, "Notes").split("\n")[0], '- 1: "the port is 8443"');
    const { details } = (await project.session(again)).entries.findLast(({ type }) => type === "compaction");
    assert.deepEqual([details.readFiles, details.modifiedFiles], [["read.txt"], ["edited.txt", "made.txt"]]);
  });

  test(`a search finds neither its own call nor an earlier search, on ${host.name}`, async (t) => {
    const project = await aProject(t, { host, settings: { defaultTools: ["+codemode"], lcm: { background: false } } });
    const pi = project.startPi();
    const search = 'const { hits } = await tools.lcm_grep({ query: "walrus plan" }); return hits.map(({ id, role, snippet }) => `${id} · ${role}: ${snippet}`).join("\\n");';
    /** Who said what the search finds. @param {import("../../demo/model-server.mjs").Reply} reply that searches */
    const found = async (reply) => {
      project.script.turns = [reply];
      await pi.prompt("Which one was it?");
      return [...answered(project).matchAll(/^m-[0-9a-f]{10} · (\w+)/gm)].map(([, role]) => role).sort();
    };
    await pi.prompt("Remember the walrus plan.");
    assert.deepEqual(await found({ text: "I look for the walrus plan.", ...script(search) }), ["user"]);
    // From now on that text is a hit: it is said, and not searched for.
    assert.deepEqual(await found(script(`// ${"walrus plan ".repeat(3)}\n${search}`)), ["assistant", "user"]);
    assert.deepEqual(await found(script(`await tools.bash({ command: "echo" }); ${search}`)), ["assistant", "user"]);
    // That script did something else too, so that it and its output are searched.
    const direct = { text: "Where is the walrus plan?", toolCalls: [{ name: "lcm_grep", arguments: { query: "walrus plan" } }] };
    assert.deepEqual(await found(direct), ["assistant", "assistant", "toolResult", "user"]);
  });

  test(`a script gets results and totals as data, on ${host.name}`, async (t) => {
    const project = await aProject(t, { host, settings: { defaultTools: ["+codemode"], lcm: { background: false } } });
    const pi = project.startPi();
    await pi.prompt("Remember the walrus plan.");
    project.script.turns = [
      script('return [await tools.lcm_grep({ query: "walrus" }), await tools.lcm_grep({ query: "walrus", count: "role" }), await tools.lcm_grep({ query: "penguin" })];'),
      { text: "So it was." },
    ];
    await pi.prompt("Which one was it?");
    const [found, counted, nothing] = JSON.parse(answered(project).slice(answered(project).indexOf("[")));
    assert.deepEqual([found.hits.length, found.hits[0].role, found.hits[0].snippet], [1, "user", "Remember the «walrus» plan."]);
    const group = { key: "user", messages: 1, first: found.hits[0].id, last: found.hits[0].id };
    assert.deepEqual([counted.total, counted.groups], [1, [group]]);
    assert.deepEqual([nothing.hits.length, /^Nothing found for `penguin`/.test(nothing.note)], [0, true]);
  });
}

for (const host of hostsFor("1.6.0")) {
  test(`a model gets a search's text, and the session file no second copy, on ${host.name}`, async (t) => {
    const project = await aProject(t, { host, settings: { lcm: { background: false } } });
    const pi = project.startPi();
    await pi.prompt("Remember the walrus plan.");
    project.script.turns = [{ toolCalls: [{ name: "lcm_grep", arguments: { query: "walrus", count: "day" } }] }, { text: "Once." }];
    await pi.prompt("How often was it said?");
    assert.match(answered(project), /^1 message of this session matches `walrus` \(walrus in any form\)\.\n\d{4}-\d\d-\d\d UTC: 1, first m-/);
    const { tools } = project.lastTurn.body;
    assert.ok(JSON.stringify(tools).includes("Exact totals") && !JSON.stringify(tools).includes("outputSchema"));
    const { entries } = await project.session(pi);
    assert.doesNotMatch(JSON.stringify(entries), /structuredContent/);
  });
}
