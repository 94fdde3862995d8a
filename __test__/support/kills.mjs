/**
 * Kills Pis at random moments while several of them write to one project: two in rpc mode that talk, run commands and compact, and a
 * visitor in print mode that comes and goes, sometimes with a session that was never stored. After each kill the dead ones start again,
 * sometimes to be killed at once, and then everything must be stored.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { assertAgreement } from "./agreement.mjs";
import { assertNothingGone, doctor, echo, storedIn, warnings } from "./faults.mjs";
import { filler } from "./history.mjs";
import { aProject, eventually } from "./project.mjs";
import { copyDatabases } from "./store.mjs";

/** @typedef {import("./project.mjs").Project} Project */
/** @typedef {import("./project.mjs").Pi} Pi */
/** @typedef {import("../../demo/model-server.mjs").Received} Received */

/** The longest time that Pis work before some are killed. */
const WORK_MS = 900;
/** The longest time before a restarting one is killed. */
const START_MS = 500;

/** Pi compacts beyond 6,000 of 200,000 tokens, and work ahead starts well before that, so that kills hit both. */
const AHEAD = { lcm: { compactionModels: ["demo/demo-model"], leafChunkTokens: 500 }, compaction: { reserveTokens: 194_000, keepRecentTokens: 200 } };

/**
 * A kill: each victim and what it was doing.
 * @typedef {string[]} Kill
 */

/**
 * Kills until the number is reached; throws where something is not as it must be afterwards.
 * @param {{ after: (clean: () => unknown) => void }} t
 * @param {object} wanted
 * @param {number} wanted.kills
 * @param {number} wanted.seed the same seed makes the same choices; what the Pis are at by then is theirs
 * @param {import("../../scripts/hosts.mjs").Host} [wanted.host]
 * @param {(kill: Kill, number: number) => void} [wanted.onKill]
 */
export async function killAtRandom(t, { kills, seed, host, onKill = () => {} }) {
  const random = randomFrom(seed);
  const project = await aProject(/** @type {any} */ (t), { host, settings: AHEAD, script: { otherwise: (request) => answer(request, random) } });
  const workers = [new Resident("the first", project, random), new Resident("the second", project, random), new Visitor("the visitor", project, random)];
  for (const worker of workers) await worker.begin();
  /** @param {Worker[]} victims */
  const kill = async (victims) => {
    onKill(victims.map(({ name, moment }) => `${name}, ${moment}`), ++number);
    await Promise.all(victims.map((victim) => victim.kill()));
  };
  let number = 0;
  while (number < kills) {
    const work = workers.map((worker) => worker.work());
    await sleep(random() * WORK_MS);
    const victims = workers.filter(() => random() < 0.5);
    if (victims.length === 0) victims.push(workers[Math.floor(random() * workers.length)]);
    await kill(victims);
    for (const worker of workers) worker.rest();
    await Promise.all(work);
    const stored = copyOf(project);
    while (random() < 0.3 && number < kills) {
      unlock(project);
      for (const victim of victims) victim.startAgain();
      await sleep(random() * START_MS);
      await kill(victims);
    }
    unlock(project);
    for (const victim of victims) await victim.begin();
    await assertAllThere(project, workers, stored);
  }
}

/** Pi's own locks outlive it, and the next Pi would wait half a minute for them. @param {Project} project */
function unlock({ agentDir }) {
  for (const name of readdirSync(agentDir)) if (name.endsWith(".lock")) rmSync(path.join(agentDir, name), { recursive: true });
}

/**
 * @param {Project} project
 * @param {Worker[]} workers
 * @param {Set<string>} stored
 */
async function assertAllThere(project, workers, stored) {
  await eventually(() => assertAgreement(project));
  assertNothingGone(stored, storedIn(project));
  project.inStore((store) => {
    assert.equal(store.rows("PRAGMA integrity_check")[0].integrity_check, "ok");
    assert.deepEqual(store.brokenSummaries(), []);
  });
  for (const { pi } of workers) if (pi) assert.deepEqual(warnings(pi), []);
  const open = workers.find(({ pi }) => pi)?.pi;
  assert.ok(open);
  assert.match(await doctor(open), /\n\nEverything is in order\.$/);
}

/** The current store, read from a copy: Pi itself must recover from a kill. @param {Project} project */
function copyOf(project) {
  const folder = mkdtempSync(path.join(os.tmpdir(), "lcm-copy-"));
  copyDatabases(project.storeDir, folder);
  try {
    return storedIn(project, undefined, folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * @param {Received} request
 * @param {() => number} random
 */
function answer(request, random) {
  const said = request.messages.at(-1);
  const delayMs = random() * 60;
  if (said?.role !== "user" || !said.text.startsWith("run ")) return { ...echo(request), delayMs };
  const calls = Array.from({ length: 1 + Math.floor(random() * 3) }, (_, n) => ({ id: `call_${n}_${request.index}`, name: "bash", arguments: { command: said.text.slice(4) } }));
  return { toolCalls: calls, delayMs };
}

/** A user who works with Pi, and may be killed. */
class Worker {
  /** The current activity. */
  moment = "idle";
  /** @type {Pi | undefined} */
  pi;
  resting = true;
  dead = false;

  /**
   * @param {string} name
   * @param {Project} project
   * @param {() => number} random
   */
  constructor(name, project, random) {
    this.name = name;
    this.project = project;
    this.random = random;
    this.file = this.session(20);
  }

  /** A session from before the extension. @param {number} exchanges */
  session(exchanges) {
    const id = `019a4f00-0000-7000-8000-${Math.floor(this.random() * 2 ** 47).toString(16).padStart(12, "0")}`;
    const history = this.project.history(id);
    history.talk(exchanges, { name: "old" });
    return history.write(this.project.sessionDir);
  }

  /** Works step by step until it is killed or may rest. */
  async work() {
    this.resting = this.dead = false;
    while (!this.resting && !this.dead) {
      try {
        await this.step();
      } catch (error) {
        if (!this.dead) throw error;
      }
    }
    this.moment = "idle";
  }

  /** One step. */
  async step() {}
  /** Starts, and waits until everything is stored. */
  async begin() {}
  /** Starts without waiting. */
  startAgain() {}
  async kill() {}

  rest() {
    this.resting = true;
  }

  words() {
    return filler(`${this.name} ${this.random()}`, 5 + Math.floor(this.random() * 400));
  }
}

/** Stays, in rpc mode. */
class Resident extends Worker {
  async begin() {
    this.startAgain();
    const { pi } = this;
    await pi?.waitFor(() => pi.status("lcm")).catch((error) => {
      throw new Error(`${this.name} did not start: ${JSON.stringify(pi.events.slice(-20))}\n${pi.stderr}`, { cause: error });
    });
    this.moment = "idle";
  }

  startAgain() {
    this.moment = "starting";
    this.dead = false;
    this.pi = this.project.startPi(["--session", this.file]);
  }

  async step() {
    const { pi } = this;
    assert.ok(pi);
    const choice = this.random();
    if (choice < 0.25) {
      this.moment = "compacting";
      await pi.request("compact").catch((error) => {
        if (!/Nothing to compact|Already compacted/.test(error.message)) throw error;
      });
    } else if (choice < 0.6) {
      this.moment = "running commands";
      await pi.prompt(`run seq 1 ${Math.floor(this.random() * 3000)}`);
    } else {
      this.moment = "talking";
      await pi.prompt(this.words());
    }
  }

  async kill() {
    this.dead = true;
    await this.pi?.kill("SIGKILL");
    // The last line on stdout may be incomplete.
    if (this.pi?.nonJson.at(-1)?.startsWith("{")) this.pi.nonJson.pop();
  }
}

/** Comes and goes, in print mode. */
class Visitor extends Worker {
  /** @type {import("node:child_process").ChildProcess | undefined} */
  #child;
  /** @type {Promise<unknown> | undefined} */
  #run;

  async begin() {
    this.startAgain();
    await this.#run;
    this.moment = "idle";
  }

  startAgain() {
    this.moment = "making up for it in print mode";
    this.#visit();
  }

  async step() {
    const isNew = this.random() < 0.3;
    if (isNew) this.file = this.session(15);
    this.moment = isNew ? "in print mode with an old session" : "in print mode";
    await this.#visit();
  }

  #visit() {
    this.dead = false;
    this.#run = this.project.runPi(["--session", this.file, "-p", this.words()], { onStart: (child) => (this.#child = child) });
    return this.#run;
  }

  async kill() {
    this.dead = true;
    this.#child?.kill("SIGKILL");
    await this.#run;
  }
}

/** @param {number} ms */
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Pseudorandom numbers from 0 to 1 (mulberry32).
 * @param {number} seed
 * @returns {() => number}
 */
export function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
