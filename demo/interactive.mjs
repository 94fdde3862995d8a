/**
 * The demo for somebody at a terminal: the real Pi on the shipped session, with the scripted model, in temporary folders.
 *
 * Arguments are passed on to Pi.
 */
import { spawn } from "node:child_process";
import { extension, node22, piCli } from "../scripts/paths.mjs";
import { offline } from "./rpc.mjs";
import { makeWorld } from "./world.mjs";

const world = await makeWorld();
process.stdout.write("The model in here is scripted, not a real one; try: what did the import log say? · /compact · /lcm tree\n");

const pi = spawn(node22, [piCli(), "--session", world.session, "-e", extension, ...process.argv.slice(2)], {
  cwd: world.project,
  stdio: "inherit",
  env: { ...process.env, ...offline, PI_CODING_AGENT_DIR: world.agentDir, LCM_DB_DIR: world.store },
});
// Ctrl+C belongs to Pi; what ends us ends Pi, and this process stays to clear up after it.
process.on("SIGINT", () => {});
for (const signal of /** @type {const} */ (["SIGTERM", "SIGHUP"])) process.on(signal, () => pi.kill(signal));

const code = await new Promise((resolve) => pi.on("close", resolve));
await world.remove();
process.stdout.write("That was the demo: its session is gone with its temporary folders.\n");
process.exitCode = code ?? 1;
