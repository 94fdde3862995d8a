/** Starts Pi with settings and an environment of the test's choice; `Project`'s own starts would set the store's folder. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { runPi, startPi } from "../../demo/rpc.mjs";
import { extension } from "../../scripts/paths.mjs";
import { aProject } from "../support/project.mjs";

/** @typedef {import("node:test").TestContext} TestContext */
/** @typedef {import("../../scripts/hosts.mjs").Host} Host */
/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../../demo/rpc.mjs").Pi} Pi */
/** @typedef {Record<string, string | undefined>} Environment */

/**
 * @typedef {object} Start
 * @property {string[]} [args]
 * @property {Environment} [env]
 * @property {string[]} [extensions] ours alone, unless the test says otherwise
 */

/**
 * A project on a host, with ways to start Pi in it.
 * @param {TestContext} t
 * @param {Host} host
 * @param {import("../support/project.mjs").ProjectOptions & { lcm?: unknown }} [options] `lcm`: our global settings
 */
export async function aPlace(t, host, { lcm, settings, ...options } = {}) {
  const project = await aProject(t, { host, settings: { ...settings, ...(lcm === undefined ? {} : { lcm }) }, ...options });
  return new Place(project, host);
}

export class Place {
  /**
   * @param {Project} project
   * @param {Host} host
   */
  constructor(project, host) {
    this.project = project;
    this.host = host;
    this.home = path.join(project.agentDir, "home");
    this.defaultDir = path.join(project.agentDir, "lcm");
  }

  /** Changes our global settings. @param {unknown} lcm */
  global(lcm) {
    this.project.configure({ lcm });
  }

  /** Writes the project's settings. @param {unknown} lcm */
  local(lcm) {
    mkdirSync(path.join(this.project.cwd, ".pi"), { recursive: true });
    writeFileSync(path.join(this.project.cwd, ".pi", "settings.json"), JSON.stringify({ lcm }));
  }

  /**
   * Runs Pi until it ends.
   * @param {string[]} args
   * @param {Start} [start]
   */
  async run(args, start = {}) {
    const ended = await runPi(args, this.#surroundings(start));
    assert.deepEqual({ code: ended.code, stderr: ended.stderr }, { code: 0, stderr: "" });
    return ended;
  }

  /**
   * Talks with Pi in rpc mode and then stops it; it must have been silent.
   * @template T
   * @param {(pi: Pi) => Promise<T>} talk
   * @param {Start} [start]
   */
  async rpc(talk, start = {}) {
    const pi = startPi(this.#surroundings(start));
    try {
      return await talk(pi);
    } finally {
      await pi.stop();
      assert.deepEqual({ stderr: pi.stderr, nonJson: pi.nonJson }, { stderr: "", nonJson: [] });
    }
  }

  /** The names in a folder, which may not exist. @param {string} dir */
  filesIn(dir) {
    return existsSync(dir) ? readdirSync(dir).sort() : [];
  }

  /** @param {Start} start */
  #surroundings({ args = [], env, extensions = [extension] }) {
    const { agentDir, cwd, sessionDir } = this.project;
    const { node, pi } = this.host;
    return { agentDir, cwd, sessionDir, env, node, pi, args: [...extensions.flatMap((file) => ["-e", file]), ...args] };
  }
}
