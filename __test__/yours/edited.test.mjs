/**
 * A session file that was edited since it was stored, on each version of Pi: the summarizer and the model have what Pi shows, one notice
 * says so, the earlier text is found, and `doctor` finds no fault.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { blockOf } from "../support/block.mjs";
import { filler } from "../support/history.mjs";
import { aProject } from "../support/project.mjs";

for (const host of hostsFor()) {
  test(`Pi ${host.version}: what was edited in a session file counts from its next start`, async (t) => {
    const project = await aProject(t, { host, settings: { lcm: { minMessagesForCompaction: 1 } } });
    project.script.otherwise = () => ({ text: `maplewood ${filler("answer", 100)}` });
    const first = project.startPi();
    await first.prompt("The password is hazel4711. Never write it down without asking me.");
    for (let n = 0; n < 8; n++) await first.prompt(`Then step${n}: ${filler(`part${n}`, 100)}`);
    const file = (await first.request("get_state")).sessionFile;
    await first.stop();

    const edited = readFileSync(file, "utf8").replace("hazel4711", "taken-out").replaceAll("maplewood", "[trimmed]");
    writeFileSync(file, edited);

    const pi = project.startPi(["--session", file]);
    await pi.prompt("Go on.");
    const notices = () => pi.ui("notify").filter(({ message }) => message.includes("was edited since it was stored"));
    await pi.request("compact");
    const asked = project.summaryCalls.map(({ body }) => JSON.stringify(body)).join("\n");
    assert.ok(asked.includes("taken-out") && asked.includes("[trimmed]"), asked);
    assert.ok(!asked.includes("hazel4711") && !asked.includes("maplewood"), asked);
    await pi.prompt("And now?");
    assert.ok(!(blockOf(project.lastTurn) ?? "hazel4711").includes("hazel4711"), blockOf(project.lastTurn));
    await pi.stop();

    const later = project.startPi(["--session", file]);
    await later.prompt("Still there?");
    const again = later.ui("notify").filter(({ message }) => message.includes("was edited"));
    assert.equal(notices().length + again.length, 1, "it is said once");
    await later.stop();
    const found = await project.runPi(["--session", file, "-p", "/lcm search hazel4711"]);
    assert.match(found.stdout, /hazel4711/);
    const doctor = await project.runPi(["--session", file, "-p", "/lcm doctor"]);
    assert.match(doctor.stdout, /Everything is in order/);
    assert.doesNotMatch(doctor.stdout, /WRONG/);
  });
}
