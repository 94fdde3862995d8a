/** `pi-lcm sync` as a user runs it, on machines that share a folder. */
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { lcm } from "../support/cli.mjs";
import { aDisk, noDisk, noPermissions } from "../support/disks.mjs";
import { filler } from "../support/history.mjs";
import { aMachine, assertAbsent, assertSame, FOLDER, Machine, packsIn, REMOTES, unpacked } from "../support/machines.mjs";
import { aProject, temporaryFolder } from "../support/project.mjs";

const SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

/** Two machines and a folder. @param {import("node:test").TestContext} t */
const two = (t) => ({ ann: aMachine(t, "ann@laptop", REMOTES[0]), bob: aMachine(t, "bob@desk", REMOTES[1]), target: temporaryFolder(t) });

test("what was said on one machine is found on the other, with its name", async (t) => {
  const { ann, bob, target } = two(t);
  await ann.say("The release is called pelican.", "It ships in May.");
  const first = await lcm(ann, "sync", target);
  assert.deepEqual([first.code, first.stderr], [0, ""]);
  assert.match(first.stdout, /^Sent 4 messages; received 0 messages\.\nOther machines with .* at .*: none yet\.\n$/);
  assert.deepEqual(readdirSync(target), [FOLDER]);
  assert.match(packsIn(target)[0].name, new RegExp(`^${FOLDER}/[0-9a-f]{32}/0{8}1-[0-9a-f]{64}\\.pack$`));

  await bob.say("The release of bob is called heron.");
  const second = await lcm(bob, "sync", target);
  assert.match(second.stdout, /^Sent 2 messages; received 4 messages of 1 new session\.\nOther machines with .* at .*: ann@laptop\.\n$/);
  const found = await lcm(bob, "grep", "pelican");
  assert.match(found.stdout, / on ann@laptop /);
  assert.match((await lcm(bob, "sessions")).stdout, /4 messages, [^\n]+\n {4}on ann@laptop: /);
  assert.doesNotMatch((await lcm(bob, "grep", "heron")).stdout, / on /);

  await ann.sync(target);
  assert.match((await lcm(ann, "grep", "heron")).stdout, / on bob@desk /);
  assertSame(ann, bob);

  await t.test("a third machine learns from one what another has said, with that one's name", async () => {
    const third = aMachine(t, "cloud", REMOTES[2]);
    // The others hear of it, though it has nothing to say.
    for (const machine of [third, ann, bob]) assert.ok((await machine.sync(target)).others.length >= 2);
    assertSame(ann, bob, third);
    assert.match((await lcm(third, "grep", "pelican")).stdout, / on ann@laptop /);
  });

  await t.test("with nothing new no pack is written", async () => {
    const before = packsIn(target);
    for (const machine of [ann, bob, ann]) {
      const { sent, received, refused, waiting } = await machine.sync(target);
      assert.deepEqual([sent.packs, sent.bytes, received.packs, received.bytes, refused, waiting], [0, 0, 0, 0, [], 0]);
    }
    assert.deepEqual(packsIn(target), before);
  });

  await t.test("what continues a session is sent alone", async () => {
    const continued = ann.history();
    continued.user("A session in two parts.");
    await ann.store(continued);
    await ann.sync(target);
    continued.assistant("This is the second.");
    await ann.store(continued);
    const { sent } = await ann.sync(target);
    assert.deepEqual([sent.packs, sent.messages], [1, 1]);
    await bob.sync(target);
    assertSame(ann, bob);
  });

  await t.test("what is no pack in the folder is not read, and a changed pack changes nothing", async () => {
    const before = bob.contents();
    const { name, bytes } = packsIn(target)[0];
    const [project, machine] = name.split("/");
    writeFileSync(path.join(target, "notes.txt"), "mine");
    writeFileSync(path.join(target, project, machine, ".000009.pack.tmp"), bytes.subarray(0, 99));
    writeFileSync(path.join(target, project, machine, `000000009-${"0".repeat(64)}.pack`), bytes);
    const { code, stdout } = await lcm(bob, "sync", target);
    assert.equal(code, 2);
    assert.match(stdout, /^Not read: [0-9a-f]{32}\/000000009-0{64}\.pack: its bytes are not those of its name/m);
    assert.deepEqual(bob.contents(), before);
  });
});

test("an empty folder gets everything by the repository's address", async (t) => {
  const { ann, target } = two(t);
  await ann.say("The release is called pelican.");
  await ann.sync(target);
  const fresh = aMachine(t, "cloud");
  const { received } = await fresh.sync(target, "--name", "https://github.com/ann/shop.git");
  assert.equal(received.messages, 2);
  assert.match((await lcm(fresh, "sessions")).stdout, /2 messages, [^\n]+\n {4}on ann@laptop: /);
  assert.equal((await fresh.find("pelican")).length, 1);
  assertSame(ann, fresh);
});

test("a target in the settings needs no argument, and a setting names the project", async (t) => {
  const { ann, bob, target } = two(t);
  await ann.say("The release is called pelican.");
  for (const machine of [ann, bob]) machine.configure({ syncTarget: target, syncProject: "our shop" });
  await ann.sync();
  assert.deepEqual(readdirSync(target), ["our%20shop"]);
  const { received } = await bob.sync();
  assert.equal(received.messages, 2);
});

test("a target that has lost packs gets them again", async (t) => {
  const { ann, bob, target } = two(t);
  await ann.say("The release is called pelican.");
  await ann.sync(target);
  rmSync(path.join(target, FOLDER), { recursive: true });
  await ann.say("The next one is called heron.");
  const { sent } = await ann.sync(target);
  assert.equal(sent.messages, 4);
  await bob.sync(target);
  rmSync(packsIn(target)[0].file);
  for (const machine of [ann, bob, ann]) await machine.sync(target);
  assertSame(ann, bob);
  const fresh = aMachine(t, "cloud", REMOTES[2]);
  await fresh.sync(target);
  assertSame(ann, bob, fresh);
});

test("--redact masks secrets in what leaves the machine", async (t) => {
  const { ann, bob, target } = two(t);
  await ann.say(`The token is ${SECRET}, says the wombat.`, "And on it goes.");
  await ann.sync(target, "--redact");
  assertAbsent(SECRET, packsIn(target).map(({ bytes }) => unpacked(bytes)));
  await bob.sync(target);
  const [{ id }] = await bob.find("wombat");
  const { stdout } = await lcm(bob, "show", id);
  assert.match(stdout, /The token is .*says the wombat\./);
  assert.ok(!stdout.includes(SECRET));
  assert.match((await lcm(ann, "show", (await ann.find("wombat"))[0].id)).stdout, new RegExp(SECRET), "it stays as it was where it is from");
  assert.equal((await bob.find("goes")).length, 1);

  await t.test("what was sent before without it is pointed out, until it is sent again", async () => {
    const warned = async (/** @type {Machine} */ machine) => /\nWhat this machine sent before without masks stays so there\./.test((await lcm(machine, "sync", target, "--redact")).stdout);
    assert.deepEqual([await warned(ann), await warned(bob)], [false, true]);
    rmSync(path.join(target, FOLDER, readFileSync(path.join(bob.storeDir, "machine-id"), "utf8").trim()), { recursive: true });
    assert.equal(await warned(bob), false);
  });
});

test("encrypted packs say nothing to others, until their key is added", async (t) => {
  const { ann, bob, target } = two(t);
  const eve = aMachine(t, "eve@tablet", REMOTES[2]);
  await ann.say("The release is called pelican.");
  const keys = [await ann.key(), await bob.key()];
  for (const machine of [ann, bob]) machine.configure({ syncRecipients: keys });
  const sent = await lcm(ann, "sync", target);
  assert.match(sent.stdout, new RegExp(`\nEncrypted to this machine's key, ${keys[0]}, and 1 other key\\.\n$`));
  const { received, others } = await bob.sync(target);
  assert.deepEqual([received.messages, others], [2, ["ann@laptop"]]);
  for (const text of ["pelican", "Noted", "ann@laptop", "bob@desk", "lcm-pack"]) assertAbsent(text, packsIn(target).map(({ bytes }) => bytes));
  assert.match(bob.unpacked(packsIn(target).map(({ bytes }) => bytes).find((bytes) => bob.unpacked(bytes).includes("pelican")) ?? Buffer.alloc(0)).toString(), /"label":"ann@laptop"/);

  const [one, other] = packsIn(target).map(({ name }) => name.split("/")[1].slice(0, 8));
  const closed = await lcm(eve, "sync", target);
  const key = await eve.key();
  assert.deepEqual([closed.code, closed.stderr], [2, ""]);
  assert.match(closed.stdout, new RegExp(`^2 packs of ${one}, ${other} are encrypted, but not to this machine: add its key, ${key}, to syncRecipients there, and sync there\\.$`, "m"));
  assert.match(closed.stdout, /^Nothing was sent: packs there are encrypted, but syncRecipients has no keys here\./m);
  const before = packsIn(target);
  eve.configure({ syncRecipients: "none" });
  assert.equal((await eve.sync(target)).received.bytes, 0);
  assert.equal(packsIn(target).length, before.length + 1, "now it is meant so");

  for (const machine of [ann, bob, eve]) machine.configure({ syncRecipients: [...keys, key] });
  const again = await lcm(ann, "sync", target);
  assert.match(again.stdout, /\n1 pack was written again without what was purged, or for other recipients\.\n$/);
  for (const machine of [bob, eve]) await machine.sync(target);
  assertSame(ann, bob, eve);
  assertAbsent("eve@tablet", packsIn(target).map(({ bytes }) => bytes));
  // What can't be read may say whom to encrypt to.
  const settings = path.join(bob.agentDir, "settings.json");
  writeFileSync(settings, "{\"lcm\":{\"syncRecipients\":[],}}");
  const unread = await lcm(bob, "sync", temporaryFolder(t));
  assert.deepEqual([unread.code, unread.stdout], [2, ""]);
  assert.match(unread.stderr, /^pi-lcm: \S+settings\.json can't be read: trailing comma [^\n]*: fix it first\n$/);
  // Neither is it in what is said when a secret key is given by mistake.
  ann.configure({ syncRecipients: [readFileSync(path.join(ann.storeDir, "machine-key"), "utf8")] });
  const wrong = await lcm(ann, "sync", target);
  assert.deepEqual([wrong.code, wrong.stderr], [2, "pi-lcm: number 1 in syncRecipients is no key, age1…, as pi-lcm sync --key or age-keygen prints it: nothing was done\n"]);
});

for (const host of hostsFor()) {
  test(`what ${host.name} purges on one machine is gone on the others and in all packs`, async (t) => {
    const project = await aProject(t, { host });
    const [ann, bob, target] = [new Machine(project, "ann@laptop", REMOTES[0]), aMachine(t, "bob@desk", REMOTES[1]), temporaryFolder(t)];
    const secret = "quokka7741";
    await ann.say("hello there", `the pass phrase is ${secret} and stays so`);
    await bob.say(`I heard that it is ${secret}, too`, "and so it goes on");
    for (const machine of [ann, bob, ann]) await machine.sync(target);
    assert.equal((await bob.find(secret)).length, 2);

    const { stdout } = await project.runPi(["-p", `/lcm purge --text ${secret} --yes`]);
    assert.match(stdout, /^Permanently removed: 2 messages/);
    const { rewritten } = await ann.sync(target);
    assert.equal(rewritten, 1);
    assert.match(await ann.doctor(), /bob@desk has not confirmed the last purge yet/);
    const shown = await lcm(bob, "sync", target);
    assert.match(shown.stdout, /\n2 messages purged on another machine were removed here, but not from Pi's session files\.\n1 pack was written again without what was purged\.\n$/);
    assert.match(await ann.doctor(), /bob@desk has not confirmed/, "ann has not heard of it yet");
    await ann.sync(target);
    for (const machine of [ann, bob]) {
      const report = await machine.doctor();
      assert.match(report, /2 messages purged/);
      assert.doesNotMatch(report, /has not confirmed/);
      assert.match(report, /\n\nEverything is in order\.\n$/);
      assert.equal((await machine.find("goes")).length, 1);
      // The index omits what a word shares with its neighbor.
      assertAbsent(secret.slice(1), machine.bytes());
    }
    assertAbsent(secret, packsIn(target).map(({ bytes }) => unpacked(bytes)));
    assertSame(ann, bob);

    const fresh = aMachine(t, "cloud", REMOTES[2]);
    await fresh.sync(target);
    assertSame(ann, bob, fresh);
    for (const machine of [ann, bob, fresh]) {
      const { sent, received, purged, rewritten } = await machine.sync(target);
      assert.deepEqual([sent.messages, received.messages, purged, rewritten], [0, 0, 0, 0]);
    }
    // Its session file still has it, and does not bring it back.
    await bob.store(bob.histories[0]);
    for (const machine of [bob, ann]) await machine.sync(target);
    assertAbsent(secret, packsIn(target).map(({ bytes }) => unpacked(bytes)));
    assertSame(ann, bob);
  });
}

test("a large purge of another machine is done here once the user confirms it", async (t) => {
  const project = await aProject(t);
  const [ann, bob, target] = [new Machine(project, "ann@laptop", REMOTES[0]), aMachine(t, "bob@desk", REMOTES[1]), temporaryFolder(t)];
  const history = ann.history();
  for (let n = 0; n < 120; n++) history.user(`The number ${n} is a quokka.`);
  await ann.store(history);
  for (const machine of [ann, bob, ann]) await machine.sync(target);
  const { stdout: purged } = await project.runPi(["-p", "/lcm purge --text quokka --yes"]);
  assert.match(purged, /^Permanently removed: 120 messages/);
  await ann.sync(target);
  const before = bob.contents();
  const asked = await lcm(bob, "sync", target);
  assert.match(asked.stdout, /\n120 messages purged on another machine are still here: [^\n]*sync \S+ --purge removes more than 100 in all\.\n$/);
  assert.deepEqual(bob.contents(), before);
  assert.match(await bob.doctor(), /ann@laptop has purged what is still here: \S* ?sync \S+ tells how much/);
  await ann.sync(target);
  assert.match(await ann.doctor(), /bob@desk has not confirmed the last purge yet/);
  const { purged: removed } = await bob.sync(target, "--purge");
  assert.equal(removed, 120);
  assert.doesNotMatch(await bob.doctor(), /has purged what is still here/);
  await ann.sync(target);
  assert.doesNotMatch(await ann.doctor(), /has not confirmed/);
  assertAbsent("quokka", bob.bytes());
  assertAbsent("quokka", packsIn(target).map(({ bytes }) => unpacked(bytes)));
  assertSame(ann, bob);
});

test("wrong input gives a sentence and exit code 2, and leaves no trace", async (t) => {
  const { ann, target } = two(t);
  await ann.say("The release is called pelican.");
  const before = ann.contents();
  const file = path.join(target, "a-file");
  writeFileSync(file, "");
  const none = path.join(target, "none");
  const unnamed = aMachine(t, "unnamed");
  await unnamed.say("Where am I?");
  /** @type {[string, import("../support/machines.mjs").Machine, string[], RegExp][]} */
  const wrong = [
    ["no target", ann, [], /sync needs a target: a folder that your machines share, or s3:\/\/BUCKET\/PREFIX/],
    ["no such folder", ann, [none], /none can't be a sync target: there is no such folder; create it first$/m],
    ["a file", ann, [file], /a-file/],
    ["no remote", unnamed, [target], /has no git remote to name the project by: name it with pi-lcm sync TARGET --name NAME, or .*$/m],
    ["no credentials", ann, ["s3://histories/x"], /set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY/],
    ["no bucket", ann, ["s3://"], /it names no bucket: write s3:\/\/BUCKET\/PREFIX/],
    ["another scheme", ann, ["ftp://host/x"], /ftp:\/\/host\/x/],
  ];
  for (const [what, machine, args, sentence] of wrong) {
    await t.test(what, async () => {
      const { code, stdout, stderr } = await lcm(machine, "sync", ...args);
      assert.deepEqual([code, stdout], [2, ""]);
      assert.match(stderr, /^pi-lcm: [^\n]+\n$/);
      assert.match(stderr, sentence);
    });
  }
  assert.deepEqual(readdirSync(target), ["a-file"]);
  assert.deepEqual(ann.contents(), before);
});

test("a folder that can't be read or written gives a sentence, and then the sync goes on", { skip: noPermissions }, async (t) => {
  const { ann, bob, target } = two(t);
  await ann.say("The release is called pelican.");
  for (const mode of [0o500, 0o000]) {
    chmodSync(target, mode);
    const { code, stderr } = await lcm(ann, "sync", target);
    chmodSync(target, 0o700);
    assert.equal(code, 2);
    assert.match(stderr, /^pi-lcm: the sync target [^\n]+can't be used[^\n]+\n$/);
  }
  await ann.sync(target);
  await bob.sync(target);
  assertSame(ann, bob);
});

test("a full disk at the target gives a sentence, and then the sync goes on", { skip: noDisk }, async (t) => {
  const { ann, bob } = two(t);
  const disk = aDisk(t);
  const history = ann.history();
  for (let n = 0; n < 40; n++) history.user(`${n} ${filler(`full ${n}`, 2000)}`);
  await ann.store(history);
  mkdirSync(path.join(disk.folder, "shared"));
  const target = path.join(disk.folder, "shared");
  disk.fill();
  const { code, stderr } = await lcm(ann, "sync", target);
  assert.equal(code, 2);
  assert.match(stderr, /^pi-lcm: the sync target [^\n]+can't be used[^\n]+\n$/);
  assert.match(stderr, /space/i);
  disk.makeRoom();
  const { sent } = await ann.sync(target);
  assert.equal(sent.messages, 40);
  await bob.sync(target);
  assertSame(ann, bob);
  assert.ok(!readdirSync(target, { recursive: true }).some((name) => String(name).endsWith(".part")), "nothing unfinished is left");
});

test("a full disk at home gives a sentence, and then the sync goes on", { skip: noDisk }, async (t) => {
  const { ann, bob, target } = two(t);
  const history = ann.history();
  for (let n = 0; n < 40; n++) history.user(`${n} ${filler(`full ${n}`, 2000)}`);
  await ann.store(history);
  await ann.sync(target);
  const disk = aDisk(t);
  bob.storeDir = disk.folder;
  await bob.say("It begins.");
  disk.fill();
  const { code, stderr } = await lcm(bob, "sync", target);
  assert.equal(code, 2);
  assert.match(stderr, /^pi-lcm: [^\n]+\n$/);
  disk.makeRoom();
  await bob.sync(target);
  await ann.sync(target);
  assertSame(ann, bob);
});
