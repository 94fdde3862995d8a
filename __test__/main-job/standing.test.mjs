/**
 * The block's section *Where It Stands*, on each version of Pi: the current request, even if Pi cuts inside its turn, the state of files in
 * the block, and files that changed on disk while the session was closed.
 */
import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { blockOf } from "../support/block.mjs";
import { filler } from "../support/history.mjs";
import { aProject } from "../support/project.mjs";

/** @param {string} block @param {string} heading */
const section = (block, heading) => block.split(`### ${heading}\n`)[1]?.split("\n\n###")[0] ?? "";

/** @param {string} name @param {Record<string, unknown>} args */
const call = (name, args) => ({ toolCalls: [{ id: `call_${name}_${JSON.stringify(args).length}`, name, arguments: args }] });

for (const host of hostsFor()) {
  test(`Pi ${host.version}: the block has the current request, the state of files, and what changed on disk`, async (t) => {
    const project = await aProject(t, { host, settings: { lcm: { minMessagesForCompaction: 1 } } });
    const at = (/** @type {string} */ name) => path.join(project.cwd, name);
    writeFileSync(at("kept.txt"), "as it was\n");
    writeFileSync(at("changed.txt"), "one\ntwo\n");
    writeFileSync(at("gone.txt"), "soon gone\n");
    writeFileSync(at("binary.txt"), "still text\n");
    project.script.summary = () => ({ text: `Files\n${filler("files", 20)}\n\nState:\ngoal: tidy files\nnext: the tests` });
    project.script.turns = [
      call("read", { path: "kept.txt" }),
      call("read", { path: "changed.txt" }),
      call("read", { path: "gone.txt" }),
      call("read", { path: "binary.txt" }),
      call("edit", { path: "changed.txt", edits: [{ oldText: "two", newText: "three" }] }),
      call("edit", { path: "kept.txt", edits: [{ oldText: "nowhere to be found", newText: "x" }] }),
      call("bash", { command: "node --test no-such-test.mjs" }),
      { text: `All is tidy. ${filler("end", 300)}` },
    ];
    const first = project.startPi();
    await first.prompt("Tidy the files.\nNever push to main without asking me.");
    await first.stop();

    const resumed = project.startPi(["--continue"]);
    project.script.turns = [{ text: "Nothing changed." }];
    await resumed.prompt("Is all as it was?");
    assert.ok(!JSON.stringify(project.lastTurn.body.messages).includes("changed on disk"));
    await resumed.stop();

    writeFileSync(at("changed.txt"), "one\nfour\n");
    writeFileSync(at("kept.txt"), "otherwise\n");
    writeFileSync(at("binary.txt"), Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 0xff]));
    const again = project.startPi(["--continue"]);
    project.script.turns = [];
    // The files count as they are at the prompt, not at the resume.
    await again.request("get_state");
    await pause(500);
    rmSync(at("gone.txt"));
    writeFileSync(at("kept.txt"), "as it was\n");
    await again.prompt("And now?");
    // On a busy machine a later prompt reports it.
    for (let n = 0; n < 5 && !JSON.stringify(project.lastTurn.body.messages).includes("changed on disk since"); n++) await again.prompt("And now?");
    const said = JSON.stringify(project.lastTurn.body.messages);
    assert.match(said, /these files changed on disk since you last saw them[^]*- gone\.txt, deleted \(last seen in m-[0-9a-f]{10}\)/);
    assert.match(said, /- changed\.txt \(last seen in m-[0-9a-f]{10}\)/);
    assert.match(said, /- binary\.txt \(last seen in m-[0-9a-f]{10}\)/);
    assert.doesNotMatch(said, /- kept\.txt/);
    await again.prompt("Once more?");
    assert.equal(JSON.stringify(project.lastTurn.body.messages).split("you last saw them").length, 2, "it is there once");

    await again.request("compact");
    project.script.turns = [{ text: "Going on." }];
    await again.prompt("Go on.");
    const block = blockOf(project.lastTurn) ?? "";
    assert.match(section(block, "Where It Stands"), /^Goal, in the summary's words: "tidy files"\nNext, in the summary's words: "the tests"\nNot recorded: in progress, blocked\nLast failing check: `node --test no-such-test\.mjs` \(m-[0-9a-f]{10}\): Could not find /);
    assert.match(section(block, "Constraints and Open Tasks"), /- rule: "Never push to main without asking me\."/);
    const files = section(block, "Files");
    assert.match(files, /<modified-files>\n changed\.txt \(m-[0-9a-f]{10}, changed on disk since you saw it\)\n<\/modified-files>/);
    assert.match(files, /gone\.txt \(m-[0-9a-f]{10}, deleted on disk since you saw it\)/);
    assert.match(files, /binary\.txt \(m-[0-9a-f]{10}, changed on disk since you saw it\)/);
    assert.match(files, /kept\.txt \(m-[0-9a-f]{10}\)/);
  });

  test(`Pi ${host.version}: where Pi cuts inside a turn, its request is in the block word for word`, async (t) => {
    const project = await aProject(t, { host, keepRecentTokens: 2_500 });
    const pi = project.startPi();
    const history = project.history("split");
    history.talk(20, { name: "split" });
    history.user("request0000x: read all parts.\n\nSkip blank lines, and never touch part 7.");
    history.assistant("The old one.", [{ id: "call_old", name: "read", arguments: { path: "src/edited.ts" } }]);
    history.toolResult("call_old", "read", "const old = 1;\n");
    for (let n = 0; n < 12; n++) {
      history.assistant(`step000${n % 10}x`, [{ id: `call_${n}`, name: "read", arguments: { path: `src/part${n}.ts` } }]);
      history.toolResult(`call_${n}`, "read", filler(`part${n}`, 300));
    }
    // What the agent has just done itself stands in the tail.
    history.assistant("The new one.", [{ id: "call_new", name: "edit", arguments: { path: "src/edited.ts", edits: [{ oldText: "old", newText: "now" }] } }]);
    history.toolResult("call_new", "edit", "Successfully replaced 1 block.");
    mkdirSync(path.join(project.cwd, "src"));
    writeFileSync(path.join(project.cwd, "src/edited.ts"), "const now = 1;\n");
    await project.resume(pi, history);
    await pi.request("compact");
    await pi.prompt("Go on.");
    const session = await project.session(pi);
    assert.notEqual(session.keptBy()[0].message.role, "user", "the turn was split");
    const block = blockOf(project.lastTurn) ?? "";
    const request = /^Request under way \(m-[0-9a-f]{10}\):\n> request0000x: read all parts\.\n> \n> Skip blank lines, and never touch part 7\.\n/;
    assert.match(section(block, "Where It Stands"), request);
    assert.match(section(block, "Files"), /src\/edited\.ts \(m-[0-9a-f]{10}\)/);
    assert.equal(JSON.stringify(project.lastTurn.messages).split("request0000x").length, 2, "it is there once");
  });
}
