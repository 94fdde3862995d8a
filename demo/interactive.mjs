/**
 * The interactive demo: the real Pi on the shipped session, with the scripted model, in temporary folders.
 *
 * Arguments are passed on to Pi.
 */
import { spawn } from "node:child_process";
import path from "node:path";
import { extension, node22, piCli, root } from "../scripts/paths.mjs";
import { offline } from "./rpc.mjs";
import { makeWorld } from "./world.mjs";

/** Long enough to see each tool call before the next one; the recording is faster. */
const DELAY_MS = Number(process.env.DEMO_DELAY_MS ?? 800);

const world = await makeWorld(DELAY_MS);
const hint = path.join(root, "demo", "hint.mjs");

const pi = spawn(node22, [piCli(), "--session", world.session, "-e", extension, "-e", hint, ...process.argv.slice(2)], {
  cwd: world.project,
  stdio: "inherit",
  env: { ...process.env, ...offline, PI_CODING_AGENT_DIR: world.agentDir, LCM_DB_DIR: world.store },
});
// Ctrl+C is left to Pi. Signals that end this process end Pi first, so that this process can clean up.
process.on("SIGINT", () => {});
for (const signal of /** @type {const} */ (["SIGTERM", "SIGHUP"])) process.on(signal, () => pi.kill(signal));

const code = await new Promise((resolve) => pi.on("close", resolve));
await world.remove();
process.stdout.write("That was the demo. Its folders are deleted, so there is nothing to resume.\n");
process.exitCode = code ?? 1;
