/** `pi-lcm sync` as a user runs it, on machines that share a bucket: few requests, long lists in pages, and a network that fails. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { lcm } from "../support/cli.mjs";
import { aBucket } from "../support/bucket.mjs";
import { aMachine, assertAbsent, assertSame, FOLDER, REMOTES, unpacked } from "../support/machines.mjs";

/** @typedef {import("../support/bucket.mjs").Bucket} Bucket */
/** @typedef {import("../support/bucket.mjs").Trouble} Trouble */

/**
 * Machines with access to a bucket.
 * @param {import("node:test").TestContext} t
 * @param {Bucket} bucket
 * @param {...string} labels
 */
function around(t, bucket, ...labels) {
  return labels.map((label, at) => {
    const machine = aMachine(t, label, REMOTES[at % REMOTES.length]);
    machine.env = bucket.env;
    return machine;
  });
}

test("what was said on one machine is found on the others, with few requests", async (t) => {
  // Pages so small that there is always another.
  const bucket = await aBucket(t, { pageSize: 2 });
  const [ann, bob, cloud] = around(t, bucket, "ann@laptop", "bob@desk", "cloud");
  const target = bucket.target("team/one");
  await ann.say("The release is called pelican.");
  assert.deepEqual(await bucket.counting(() => ann.sync(target)), { list: 1, get: 0, put: 1, delete: 0 });
  assert.match([...bucket.objects.keys()][0], new RegExp(`^team/one/${FOLDER}/[0-9a-f]{32}/0{8}1-[0-9a-f]{64}\\.pack$`));
  assert.deepEqual(await bucket.counting(() => bob.sync(target)), { list: 2, get: 1, put: 1, delete: 0 });
  assert.match((await lcm(bob, "sessions")).stdout, / {4}on ann@laptop: /);
  for (const machine of [ann, bob, cloud, ann]) {
    await machine.say(`More from ${machine.label}.`);
    await machine.sync(target);
  }
  for (const machine of [ann, bob, cloud]) await machine.sync(target);
  assertSame(ann, bob, cloud);

  await t.test("with nothing new there are only lists", async () => {
    for (const machine of [ann, bob, cloud]) {
      const { list, ...others } = await bucket.counting(() => machine.sync(target));
      assert.ok(list > 3, "there are several pages");
      assert.deepEqual(others, { get: 0, put: 0, delete: 0 });
    }
  });

  await t.test("another prefix has other histories", async () => {
    const fresh = around(t, bucket, "fresh")[0];
    const { received } = await fresh.sync(bucket.target("team/two"), "--name", "https://github.com/ann/shop");
    assert.equal(received.messages, 0);
    const { received: all } = await fresh.sync(target, "--name", "https://github.com/ann/shop");
    assert.equal(all.messages, ann.contents().filter((thing) => thing.startsWith("message")).length);
  });
});

test("with nothing new there are at most three requests for each other machine", async (t) => {
  const bucket = await aBucket(t);
  const machines = around(t, bucket, "one", "two", "three");
  for (const round of ["first", "second"]) {
    for (const machine of machines) {
      await machine.say(`${machine.label} says this ${round}.`);
      await machine.sync(bucket.target());
    }
  }
  for (const machine of machines) await machine.sync(bucket.target());
  for (const machine of machines) {
    const { list, ...others } = await bucket.counting(() => machine.sync(bucket.target()));
    assert.ok(list <= 3 * (machines.length - 1), `${list} lists`);
    assert.deepEqual(others, { get: 0, put: 0, delete: 0 });
  }
});

test("encrypted packs that a machine can't open are asked for once", async (t) => {
  const bucket = await aBucket(t);
  const [ann, bob, cloud] = around(t, bucket, "ann@laptop", "bob@desk", "cloud");
  ann.configure({ syncRecipients: [await bob.key()] });
  for (const machine of [bob, cloud]) machine.configure({ syncRecipients: "none" });
  for (const text of ["The release is called pelican.", "It ships in May."]) {
    await ann.say(text);
    await ann.sync(bucket.target());
  }
  assertAbsent("ann", [...bucket.objects.values()]);
  assert.deepEqual(await bucket.counting(() => cloud.sync(bucket.target())), { list: 2, get: 2, put: 1, delete: 0 });
  for (const machine of [ann, bob, cloud, ann]) await machine.sync(bucket.target());
  for (const machine of [ann, bob, cloud]) assert.deepEqual(await bucket.counting(() => machine.sync(bucket.target())), { list: 4, get: 0, put: 0, delete: 0 });
  assertSame(ann, bob);
  ann.configure({ syncRecipients: [await bob.key(), await cloud.key()] });
  assert.deepEqual(await bucket.counting(() => ann.sync(bucket.target())), { list: 8, get: 2, put: 2, delete: 2 });
  for (const machine of [bob, cloud]) await machine.sync(bucket.target());
  assertSame(ann, bob, cloud);
});

test("a project with unusual letters in its name, and a redacted pack", async (t) => {
  const bucket = await aBucket(t, { pageSize: 1 });
  const [ann, bob] = around(t, bucket, "ann@laptop", "bob@desk");
  for (const machine of [ann, bob]) machine.configure({ syncProject: "Ünser shop (v2) & more+", syncTarget: bucket.target("a b/ü+&'x") });
  const secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
  await ann.say(`The token is ${secret}, says the wombat.`);
  await ann.sync("--redact");
  await bob.say("It begins.");
  const { received } = await bob.sync();
  assert.equal(received.messages, 2);
  assert.equal((await bob.find("wombat")).length, 1);
  assertAbsent(secret, [...bucket.objects.values()].map(unpacked));
});

test("a network that fails leaves everything whole, and the next sync goes on", async (t) => {
  const bucket = await aBucket(t, { pageSize: 3 });
  const [ann, bob] = around(t, bucket, "ann@laptop", "bob@desk");
  const target = bucket.target("x");
  await ann.say("The first is called pelican.");
  await ann.sync(target);

  await t.test("an error that passes is not seen", async () => {
    for (const trouble of [{ of: "list", status: 500 }, { of: "put", status: 503, code: "SlowDown" }, { of: "put", cuts: true }, { of: "get", status: 429 }]) {
      bucket.disturb(/** @type {Trouble} */ ({ times: 1, ...trouble }));
      await ann.say(`During ${JSON.stringify(trouble)}.`);
      await ann.sync(target);
      await bob.sync(target);
      assertSame(ann, bob);
      bucket.calm();
    }
  });

  /** @type {[string, Trouble, RegExp][]} */
  const troubles = [
    ["an error that stays", { of: "list", status: 500 }, /it answered 500/],
    ["no access", { status: 403, code: "AccessDenied" }, /AccessDenied: It is AccessDenied\./],
    ["no access to packs", { of: "get", status: 403, code: "AccessDenied" }, /AccessDenied/],
    ["no right to write", { of: "put", status: 403, code: "AccessDenied" }, /AccessDenied/],
    ["a list that breaks off", { of: "list", cuts: true }, /can't be used/],
    ["a pack that breaks off", { of: "get", cuts: true }, /can't be used/],
    ["a connection that breaks while a pack is sent", { of: "put", cuts: true }, /can't be used/],
  ];
  for (const [what, trouble, sentence] of troubles) {
    await t.test(what, async () => {
      await ann.say(`Ann during: ${what}.`);
      await bob.say(`Bob during: ${what}.`);
      const before = [ann, bob].map((machine) => machine.contents());
      if (trouble.of === "get") await ann.sync(target);
      bucket.disturb(trouble);
      const { code, stdout, stderr } = await lcm(bob, "sync", target);
      bucket.calm();
      assert.deepEqual([code, stdout], [2, ""]);
      assert.match(stderr, /^pi-lcm: the sync target s3:\/\/histories can't be used: [^\n]+\n$/);
      assert.match(stderr, sentence);
      for (const [at, machine] of [ann, bob].entries()) assert.deepEqual(before[at].filter((thing) => !machine.contents().includes(thing)), [], "nothing is lost");
      for (const machine of [ann, bob, ann]) await machine.sync(target);
      assertSame(ann, bob);
    });
  }

  await t.test("wrong keys, no such bucket, and no server", async () => {
    /** @type {[Record<string, string>, string, RegExp][]} */
    const wrong = [
      [{ AWS_SECRET_ACCESS_KEY: "other" }, target, /SignatureDoesNotMatch/],
      [{ AWS_ACCESS_KEY_ID: "other" }, target, /InvalidAccessKeyId/],
      [{ AWS_REGION: "us-east-1" }, target, /InvalidAccessKeyId|can't be used/],
      [{}, "s3://elsewhere/x", /s3:\/\/elsewhere can't be used: NoSuchBucket/],
      [{ AWS_ENDPOINT_URL: "http://127.0.0.1:9" }, target, /refused/i],
      [{ AWS_ENDPOINT_URL: "no url" }, target, /AWS_ENDPOINT_URL/],
    ];
    for (const [env, at, sentence] of wrong) {
      const { code, stdout, stderr } = await lcm({ ...bob, env: { ...bucket.env, ...env } }, "sync", at);
      assert.deepEqual([code, stdout], [2, ""]);
      assert.match(stderr, /^pi-lcm: [^\n]+\n$/);
      assert.match(stderr, sentence);
    }
  });
  for (const machine of [ann, bob]) assert.match(await machine.doctor(), /\n\nEverything is in order\.\n$/);
});
