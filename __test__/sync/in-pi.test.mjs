/** Syncs on the real Pi: at a session's end and start with `syncTarget`, and by `/lcm sync`; a target that fails or hangs disturbs nothing. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { isEncrypted } from "../support/age.mjs";
import { settled } from "../support/ahead.mjs";
import { aBucket } from "../support/bucket.mjs";
import { assertWarnedOnce, doctor, leave, waitForWarning, warnings } from "../support/faults.mjs";
import { aMachine, assertAbsent, assertSame, FOLDER, Machine, packsIn, REMOTES, unpacked } from "../support/machines.mjs";
import { aProject, eventually, temporaryFolder } from "../support/project.mjs";
import { noTerminal } from "../support/terminal.mjs";

/** @typedef {import("node:test").TestContext} TestContext */
/** @typedef {import("../../scripts/hosts.mjs").Host} Host */
/** @typedef {import("../support/project.mjs").Project} Project */

const SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

/**
 * A project with a Pi, and its machine.
 * @param {TestContext} t
 * @param {Host} host
 * @param {string} label
 * @param {object} lcm our settings
 * @param {import("../support/project.mjs").ProjectOptions} [options]
 */
async function withPi(t, host, label, lcm, options) {
  const project = await aProject(t, { host, ...options });
  const machine = new Machine(project, label, REMOTES[label.length % REMOTES.length]);
  machine.configure(lcm);
  return { project, machine };
}

/** All text of the packs in a folder. @param {string} target */
const textIn = (target) => packsIn(target).map(({ bytes }) => unpacked(bytes).toString()).join("\n");

for (const host of hostsFor("1.6.0")) {
  test(`the end of a session sends, and the start of one elsewhere receives, on ${host.name}`, async (t) => {
    const target = temporaryFolder(t);
    const ann = await withPi(t, host, "ann@laptop", { syncTarget: target });
    const bob = await withPi(t, host, "bob@desk", { syncTarget: target });
    await ann.project.runPi(["-p", "The release is called pelican."]);
    assert.match(textIn(target), /The release is called pelican\./);

    const pi = bob.project.startPi();
    await eventually(() => assert.equal(bob.project.inStore((store) => store.count("origins")), 1));
    bob.project.script.turns = [{ toolCalls: [{ id: "g", name: "lcm_grep", arguments: { query: "pelican", session: "project" } }] }, { text: "Found." }];
    await pi.prompt("What is the release called?");
    const found = bob.project.lastTurn.messages.findLast(({ role }) => role === "tool")?.text ?? "";
    assert.match(found, / on ann@laptop [^]*The release is called pelican\./);
    await pi.prompt("/lcm stats");
    assert.match(pi.ui("notify").at(-1)?.message, /^This session {4}4 messages, 4 on this branch\n/, "it is in no branch of one's own");
    await leave(pi);
    assert.deepEqual(warnings(pi), []);
    await ann.project.runPi(["-p", "-c", "/lcm stats"]);
    assertSame(ann.machine, bob.machine);
  });
}

for (const host of hostsFor()) {
  test(`syncProject, syncLabel, syncRedact and syncRecipients have their effects on ${host.name}`, async (t) => {
    const [one, other] = [temporaryFolder(t), temporaryFolder(t)];
    const { project, machine } = await withPi(t, host, "", {});
    project.configure({ lcm: { syncTarget: one, syncProject: "our shop", syncLabel: "Ann's laptop", syncRedact: true } });
    const pi = project.startPi();
    await pi.prompt(`The token is ${SECRET}, says the wombat.`);
    project.configure({ lcm: { syncTarget: other } });
    await pi.request("new_session");
    await eventually(() => assert.match(textIn(one), /says the wombat/));
    assert.deepEqual(readdirSync(one), ["our%20shop"]);
    assert.match(textIn(one), /"label":"Ann's laptop"/);
    assert.ok(!textIn(one).includes(SECRET));
    await eventually(() => assert.match(textIn(other), /says the wombat/));
    assert.deepEqual(readdirSync(other), [FOLDER]);
    assert.match(textIn(other), /"label":"[^"]+@[^"]+"/);
    assert.ok(textIn(other).includes(SECRET));
    const hidden = temporaryFolder(t);
    project.configure({ lcm: { syncTarget: hidden, syncRecipients: [await aMachine(t, "bob@desk").key()] } });
    await pi.request("new_session");
    await eventually(() => assert.equal(packsIn(hidden).length, 1));
    assertAbsent("wombat", packsIn(hidden).map(({ bytes }) => bytes));
    assert.match(machine.unpacked(packsIn(hidden)[0].bytes).toString(), /says the wombat/);
    assert.deepEqual(warnings(pi), []);
    project.configure({ lcm: { syncTarget: hidden } });
    await pi.request("new_session");
    await waitForWarning(pi);
    await pi.prompt("What was the wombat's name?");
    await leave(pi);
    assertWarnedOnce(pi, /^pi-lossless-context: Nothing was sent: packs there are encrypted, but syncRecipients has no keys here\./);
    assertAbsent("wombat", packsIn(hidden).map(({ bytes }) => (isEncrypted(bytes) ? bytes : unpacked(bytes))));
  });

  test(`a project's own settings can't name a target or recipients, but can do without a sync, on ${host.name}`, async (t) => {
    const [target, elsewhere] = [temporaryFolder(t), temporaryFolder(t)];
    const { project } = await withPi(t, host, "ann@laptop", { syncTarget: target });
    const local = (/** @type {object} */ lcm) => {
      mkdirSync(path.join(project.cwd, ".pi"), { recursive: true });
      writeFileSync(path.join(project.cwd, ".pi", "settings.json"), JSON.stringify({ lcm }));
    };
    local({ syncTarget: elsewhere, syncRecipients: [await aMachine(t, "bob@desk").key()] });
    const pi = project.startPi(["--approve"]);
    await pi.prompt("The first is called pelican.");
    await waitForWarning(pi);
    local({ syncTarget: "" });
    const from = pi.events.length;
    await pi.request("new_session");
    await eventually(() => assert.match(textIn(target), /pelican/));
    await pi.prompt("The second is called heron.");
    await leave(pi);
    assertWarnedOnce(pi, /syncTarget in \S+settings\.json is left out: only Pi's global settings can say so[^]*syncRecipients in \S+settings\.json is left out/);
    assert.deepEqual(warnings(pi, from), []);
    assert.doesNotMatch(textIn(target), /heron/);
    assert.deepEqual(readdirSync(elsewhere), []);
  });

  test(`a session that goes on elsewhere finds its summaries, without a model call, on ${host.name}`, async (t) => {
    const target = temporaryFolder(t);
    const lcm = { syncTarget: target, compactionModels: ["session"], leafChunkTokens: 500 };
    const ann = await withPi(t, host, "ann@laptop", lcm);
    const bob = await withPi(t, host, "bob@desk", lcm);
    const compacted = async (/** @type {Project} */ project) => {
      const history = project.history();
      history.talk(20, { words: 60 });
      const pi = project.startPi(["--session", history.write(project.sessionDir)]);
      await pi.waitFor(() => pi.status("lcm")?.startsWith("LCM: 40 msgs"));
      if (project === bob.project) await eventually(() => assert.ok(project.inStore((store) => store.count("summaries")) > 0));
      await pi.request("compact");
      await settled(project);
      const { lastCompaction } = await project.session(pi);
      await leave(pi);
      assert.equal(lastCompaction.fromHook, true);
      return lastCompaction.summary.replace(/\b(history|before)-[0-9a-f]{8}\b/g, "$1");
    };
    const block = await compacted(ann.project);
    assert.ok(ann.project.summaryCalls.length > 1);
    assert.equal(await compacted(bob.project), block);
    assert.equal(bob.project.summaryCalls.length, 0);
  });

  test(`a target that is gone gives one notice, and Pi goes on, on ${host.name}`, async (t) => {
    const target = path.join(temporaryFolder(t), "unmounted");
    const { project, machine } = await withPi(t, host, "ann@laptop", { syncTarget: target });
    const pi = project.startPi();
    await pi.prompt("The release is called pelican.");
    await waitForWarning(pi);
    await pi.prompt("And now?");
    assert.match(await doctor(pi), /\n\nEverything is in order\.$/);
    await leave(pi);
    assertWarnedOnce(pi, /^pi-lossless-context: \S+unmounted can't be a sync target: there is no such folder; create it first$/);
    assert.ok(!existsSync(target));
    mkdirSync(target);
    await project.runPi(["-p", "-c", "It is back."]);
    const bob = aMachine(t, "bob@desk", REMOTES[1]);
    await bob.sync(target);
    assertSame(machine, bob);
  });

  test(`a bucket that hangs keeps Pi neither from working nor from ending, on ${host.name}`, async (t) => {
    const bucket = await aBucket(t);
    const { project, machine } = await withPi(t, host, "ann@laptop", { syncTarget: bucket.target() });
    Object.assign(project.env, bucket.env);
    Object.assign(machine.env, bucket.env);
    bucket.disturb({ hangs: true });
    const { code, signal, stdout } = await project.runPi(["-p", "hello"]);
    assert.deepEqual([code, signal, stdout], [0, null, "Understood.\n"]);
    // One of the start and one of the end. Had Pi waited until our patience with the server ended, it would have asked again.
    assert.ok(bucket.requests.length <= 2, `${bucket.requests.length} requests`);
    const pi = project.startPi(["-c"]);
    await eventually(() => assert.equal(bucket.hanging, 1));
    await pi.prompt("The release is called pelican.");
    assert.equal(bucket.hanging, 1);
    await leave(pi);
    assert.deepEqual(warnings(pi), []);
    assert.ok(bucket.requests.length <= 4, `${bucket.requests.length} requests`);
    assert.equal(bucket.objects.size, 0);

    bucket.calm();
    await project.runPi(["-p", "-c", "It is back."]);
    const bob = aMachine(t, "bob@desk", REMOTES[1]);
    bob.env = bucket.env;
    await bob.sync(bucket.target());
    assertSame(machine, bob);
  });

  test(`/lcm sync answers in each mode, on ${host.name}`, async (t) => {
    const [target, other] = [temporaryFolder(t), temporaryFolder(t)];
    const { project, machine } = await withPi(t, host, "ann@laptop", {});
    const bob = aMachine(t, "bob@desk", REMOTES[1]);
    const pi = project.startPi();
    await pi.prompt("The release is called pelican.");
    const said = async (/** @type {string} */ line) => {
      const from = pi.events.length;
      await pi.prompt(line);
      return (await pi.waitFor(() => pi.events.slice(from).find(({ method }) => method === "notify"))).message;
    };
    assert.match(await said("/lcm sync"), /needs a target: a folder that your machines share, or s3:\/\/BUCKET\/PREFIX; the setting syncTarget names one for good$/);
    assert.match(await said(`/lcm sync ${path.join(target, "none")}`), /there is no such folder/);
    assert.match(await said(`/lcm sync ${target}`), /^Sent 2 messages(?: \(\d+ KB\))?; received 0 messages\.\nOther machines with [^\n]* at [^\n]*: none yet\.$/);
    assert.match(await said(`/lcm sync ${target}`), /^Sent 0 messages; received 0 messages\./);
    await bob.say("The release of bob is called heron.");
    await bob.sync(target);
    assert.match(await said(`/lcm sync ${target}`), /received 2 messages(?: \(\d+ KB\))? of 1 new session\.\nOther machines with [^\n]* at [^\n]*: bob@desk\.$/);
    assertSame(machine, bob);
    await leave(pi);
    const { stdout } = await project.runPi(["-p", "-c", `/lcm sync ${target}`]);
    assert.match(stdout, /^Sent 0 messages; received 0 messages\.\nOther machines with [^\n]* at [^\n]*: bob@desk\.\n/);

    if (noTerminal) return;
    const terminal = project.openTerminal(["-c"]);
    await terminal.waitFor((screen) => screen.includes("LCM: "), "the footer");
    await terminal.send(`/lcm sync ${other} --redact`);
    await terminal.waitFor((screen) => /Sent 4 messages(?: \(\d+ KB\))?; received 0 messages\./.test(screen), "the report");
    await terminal.send("/quit");
    await terminal.waitFor(() => terminal.exited, "Pi ends");
    assert.equal(packsIn(other).length, 1);
  });

  test(`a session without a file has nothing to sync, on ${host.name}`, async (t) => {
    const target = temporaryFolder(t);
    const { project } = await withPi(t, host, "ann@laptop", { syncTarget: target });
    const { stdout } = await project.runPi(["--no-session", "-p", "hello", "/lcm sync"]);
    assert.match(stdout, /this session's history is in memory only: start Pi without --no-session to sync the project's/);
    assert.deepEqual(readdirSync(target), []);
  });
}
