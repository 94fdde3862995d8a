/**
 * The time until `pi-lcm mcp` answers a client, beyond Node's own start, and that of its calls: the questions of the search benchmark, each
 * followed by what an agent asks next, in turns: what is around a hit, or what was done last.
 *
 * The client is the official one. Between two servers Node starts with nothing to do, which is the floor of a start; that of a call is one
 * that the server refuses.
 */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { spawnSync } from "node:child_process";
import path from "node:path";
import { node22, root } from "../scripts/paths.mjs";
import { longest, median, number, quantile, ratio, time, timed } from "./measure.mjs";
import { asked } from "./search.bench.mjs";
import { SESSION, copyOf, projectFolder } from "./stores.mjs";

/** @typedef {import("./measure.mjs").Context} Context */
/** @typedef {import("./measure.mjs").Figure} Figure */

const ROUNDS = 9;
const [START_MS, CALL_MS] = [80, 120];
const program = path.join(root, "bin", "pi-lcm.js");

export const title = "pi-lcm mcp: its start, and its calls";

/** @param {Context} context @returns {Promise<Figure[]>} */
export async function run(context) {
  const env = { LCM_DB_DIR: await copyOf(context, context.messages), PI_CODING_AGENT_DIR: context.folder("agent") };
  const connected = async () => {
    const client = new Client({ name: "bench", version: "1" });
    const { ms } = await timed(() => client.connect(new StdioClientTransport({ command: node22, args: [program, "mcp"], cwd: projectFolder(), env })));
    return { client, ms };
  };
  const size = number(context.messages);
  context.say(`${size} messages: starting …`);
  /** @type {number[]} */
  const floors = [];
  /** @type {number[]} */
  const starts = [];
  for (let round = 0; round < ROUNDS; round++) {
    floors.push((await timed(() => spawnSync(node22, ["-e", "0"]))).ms);
    const { client, ms } = await connected();
    starts.push(ms);
    await client.close();
  }
  const beyond = median(starts.map((ms, round) => ms - floors[round]));
  const { client } = await connected();
  /** @type {number[]} */
  const took = [];
  /** @type {number[]} */
  const refused = [];
  /** @param {string} name @param {Record<string, unknown>} args @param {boolean} [isRefused] */
  const call = async (name, args, isRefused = false) => {
    /** @type {{ ms: number, value: any }} */
    const { ms, value } = await timed(() => client.callTool({ name, arguments: args }));
    if (Boolean(value.isError) !== isRefused) throw new Error(`${name}: ${value.content[0].text}`);
    (isRefused ? refused : took).push(ms);
    return value.content[0].text;
  };
  for (const { kind, queries } of asked(context.messages / SESSION).kinds) {
    context.say(`${size} messages: ${kind} …`);
    for (const [n, query] of queries.entries()) {
      const hit = /\bm-[0-9a-f]+/.exec(await call("lcm_grep", { query, session: "project" }))?.[0];
      if (n % 4 === 0) await call("lcm_describe", {});
      else if (hit) await call("lcm_expand", { summary_id: hit, around: 3 });
    }
  }
  for (let round = 0; round < ROUNDS; round++) await call("lcm_expand", { summary_id: "no id" }, true);
  await client.close();
  const [p99, floor] = [quantile(took, 0.99), median(refused)];
  return [
    { what: `${size}: start, beyond Node's`, measured: time(beyond), floor: `${time(median(floors))} node -e 0`, ratio: ratio(median(starts), median(floors)), asked: `≤ ${time(START_MS)}`, reached: beyond <= START_MS },
    { what: `${size}: ${took.length} calls, p99`, measured: `${time(p99)}; median ${time(median(took))}, longest ${time(longest(took))}`, floor: `${time(floor)} to be refused`, ratio: ratio(p99, floor), asked: `≤ ${time(CALL_MS)}`, reached: p99 <= CALL_MS },
  ];
}
