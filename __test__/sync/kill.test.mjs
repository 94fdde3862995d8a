/**
 * `pi-lcm sync` is killed at random moments on two machines that sync at the same time, while what carries their folder leaves packs half
 * written. Afterwards both come to the same history, nothing is lost, and nothing purged is back.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, truncateSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { everything, hostOf, MAIN } from "../../scripts/hosts.mjs";
import { node22 } from "../../scripts/paths.mjs";
import { environmentOf, lcm, program } from "../support/cli.mjs";
import { markersIn } from "../support/history.mjs";
import { randomFrom } from "../support/kills.mjs";
import { aMachine, assertAbsent, assertSame, Machine, packsIn, REMOTES } from "../support/machines.mjs";
import { aProject, temporaryFolder } from "../support/project.mjs";
import { Store } from "../support/store.mjs";

const ROUNDS = everything ? 30 : 3;
/** A round with a purge. */
const PURGING = 3;
/** Syncs until both machines have heard of everything, a purge included. */
const ENOUGH = 4;

/** The markers of what is stored on a machine, and in the packs of a folder. @param {Machine} machine */
function markersOn({ storeDir }) {
  const store = new Store(storeDir);
  try {
    return markersIn(store.rows("SELECT session_id AS id FROM conversations").flatMap(({ id }) => store.entries(id).map(({ json }) => json)));
  } finally {
    store.close();
  }
}

/** @param {Machine} machine */
const idOf = ({ storeDir }) => readFileSync(path.join(storeDir, "machine-id"), "utf8");

/**
 * Starts a sync and kills it, unless it ends before.
 * @param {Machine} machine
 * @param {string} target
 * @param {number} ms
 * @returns {Promise<string>} how it ended
 */
async function killed(machine, target, ms) {
  const child = spawn(node22, [program, "sync", target], { cwd: machine.cwd, env: environmentOf(machine), stdio: "ignore" });
  const timer = setTimeout(() => child.kill("SIGKILL"), ms);
  const [code, signal] = await once(child, "exit");
  clearTimeout(timer);
  return signal ?? `code ${code}`;
}

test("nothing is lost when syncs are killed, and packs are half written", async (t) => {
  const seed = everything ? Date.now() % 100_000 : 1;
  const random = randomFrom(seed);
  const project = await aProject(t, { host: hostOf(MAIN) });
  const target = temporaryFolder(t);
  const [ann, bob] = [new Machine(project, "ann@laptop", REMOTES[0]), aMachine(t, "bob@desk", REMOTES[1])];
  // Half of the packs are encrypted.
  ann.configure({ syncRecipients: [await bob.key()] });
  bob.configure({ syncRecipients: "none" });
  /** @type {Set<string>} */
  const expected = new Set();
  /** @type {string[]} */
  const purged = [];
  let longest = 400;
  const talk = async (/** @type {Machine} */ machine, /** @type {string} */ name) => {
    // Any session may go on on any machine, from its file.
    const all = [...ann.histories, ...bob.histories];
    const history = all.length > 0 && random() < 0.5 ? all[Math.floor(random() * all.length)] : machine.history();
    for (const marker of history.talk(20 + Math.floor(random() * 400), { name, words: Math.floor(random() * 100) })) expected.add(marker);
    await machine.store(history);
  };
  for (let round = 1; round <= ROUNDS; round++) {
    const name = (/** @type {string} */ who) => `${who}${[...String(round)].map((digit) => "abcdefghij"[Number(digit)]).join("")}r`;
    await talk(ann, name("ann"));
    await talk(bob, name("bob"));
    if (round % PURGING === 0) {
      const known = markersOn(ann);
      const marker = known[Math.floor(random() * known.length)];
      const { stdout } = await project.runPi(["-p", `/lcm purge --text ${marker} --yes`]);
      assert.match(stdout, /^Permanently removed: 1 message/);
      expected.delete(marker);
      purged.push(marker);
    }
    for (let kill = 0; kill < 3; kill++) {
      const times = [random(), random()].map((part) => 40 + part * longest);
      const ends = await Promise.all([ann, bob].map((machine, at) => killed(machine, target, times[at])));
      t.diagnostic(`round ${round} of seed ${seed}: ann ${ends[0]} in ${Math.round(times[0])} ms, bob ${ends[1]} in ${Math.round(times[1])} ms`);
    }
    // What carries the folder has brought half of a pack so far.
    const packs = packsIn(target).filter(({ name }) => name.includes(idOf(bob)));
    if (packs.length > 0) {
      const { file, bytes } = packs[Math.floor(random() * packs.length)];
      truncateSync(file, Math.floor(random() * bytes.length));
      const { stdout, stderr } = await lcm(ann, "sync", target);
      assert.equal(stderr, "");
      assert.match(stdout, /^Sent \d/);
      writeFileSync(file, bytes);
    }
    const began = performance.now();
    for (let sync = 0; sync < ENOUGH; sync++) for (const machine of [ann, bob]) await machine.sync(target);
    longest = Math.max(400, (performance.now() - began) / ENOUGH / 2);
    assertSame(ann, bob);
    for (const machine of [ann, bob]) {
      assert.deepEqual(markersOn(machine), [...expected].sort());
      const report = await machine.doctor();
      assert.match(report, /\n\nEverything is in order\.\n$/);
      assert.doesNotMatch(report, /has not confirmed/);
      const { sent, received } = await machine.sync(target);
      assert.deepEqual([sent.packs, received.packs], [0, 0], "there is nothing new");
    }
    for (const marker of purged) assertAbsent(marker, packsIn(target).map(({ bytes }) => ann.unpacked(bytes)));
  }
  assert.ok(purged.length > 0);
  const fresh = aMachine(t, "cloud", REMOTES[2]);
  fresh.configure({ syncRecipients: "none" });
  ann.configure({ syncRecipients: [await bob.key(), await fresh.key()] });
  for (const machine of [ann, fresh]) await machine.sync(target);
  assertSame(ann, bob, fresh);
});
