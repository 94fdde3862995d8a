/**
 * The time of a `pi-lcm` command beyond Node's own start, with a history of 100,000 messages.
 *
 * Each command is a separate process, as in a shell; between two of them Node starts with nothing to do, which is the floor. The database
 * is in the system's cache, like that of an active project.
 */
import { spawnSync } from "node:child_process";
import path from "node:path";
import { node22, root } from "../scripts/paths.mjs";
import { median, ratio, time } from "./measure.mjs";
import { SESSION, copyOf, projectFolder } from "./stores.mjs";

/** @typedef {import("./measure.mjs").Context} Context */
/** @typedef {import("./measure.mjs").Figure} Figure */

const ROUNDS = 15;
const BEYOND_MS = 100;
const program = path.join(root, "bin", "pi-lcm.js");

export const title = "a line of pi-lcm over 100,000 messages, beyond Node's own start";

/** @param {Context} context @returns {Promise<Figure[]>} */
export async function run(context) {
  const env = { ...process.env, LCM_DB_DIR: await copyOf(context, SESSION), PI_CODING_AGENT_DIR: context.folder("agent") };
  const start = (/** @type {string[]} */ args) => {
    const began = performance.now();
    const { status, stdout, stderr } = spawnSync(node22, args, { cwd: projectFolder(), env, encoding: "utf8" });
    const ms = performance.now() - began;
    if (status !== 0) throw new Error(`${args.join(" ")}: ${stderr}`);
    return { ms, stdout };
  };
  const [{ id }] = JSON.parse(start([program, "grep", "parser", "--json"]).stdout).hits;
  const lines = { stats: ["stats"], sessions: ["sessions"], grep: ["grep", "parser"], "grep --regex": ["grep", "-e", "pars(er|ing)"], show: ["show", id], help: ["--help"] };
  const asked = ["stats", "grep", "show"];
  return Object.entries(lines).map(([name, args]) => {
    context.say(`asking: ${name} …`);
    /** @type {number[]} */
    const floors = [];
    /** @type {number[]} */
    const times = [];
    for (let round = 0; round <= ROUNDS; round++) {
      const [floor, ours] = [start(["-e", "0"]).ms, start([program, ...args]).ms];
      if (round === 0) continue;
      floors.push(floor);
      times.push(ours);
    }
    const beyond = median(times.map((ms, round) => ms - floors[round]));
    const figure = { what: `pi-lcm ${name}, beyond Node's start`, measured: time(beyond), floor: `${time(median(floors))} node -e 0`, ratio: ratio(median(times), median(floors)) };
    if (!asked.includes(name)) return { ...figure, asked: "" };
    return { ...figure, asked: `≤ ${time(BEYOND_MS)}`, reached: beyond <= BEYOND_MS };
  });
}
