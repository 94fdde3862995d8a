/**
 * The demo's environment: temporary folders for Pi's agent files, the session, the project and the store, and the scripted model server. The
 * user's own Pi is not touched, and nothing is left behind.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { startModelServer, writeAgentDir } from "./model-server.mjs";
import { demoReply } from "./script.mjs";

/** The shipped session. */
export const sessionFile = path.join(import.meta.dirname, "session.jsonl");
/** The project that it is about, as it is at its end. */
export const projectFolder = path.join(import.meta.dirname, "project");

/** The model for the summaries, which the extension finds by its price. */
const SMALL = { id: "demo-model-small", name: "scripted small model", cost: { input: 0.1, output: 0.4, cacheRead: 0.01, cacheWrite: 0.125 } };

/**
 * @typedef {object} World
 * @property {string} folder that contains everything below
 * @property {string} agentDir
 * @property {string} project the folder Pi works in: a copy of the demo's project
 * @property {string} session the copy of the shipped session
 * @property {string} store for LCM_DB_DIR
 * @property {string} log the model server's request log, one JSON line per request
 * @property {import("./model-server.mjs").ModelServer} server
 * @property {() => Promise<void>} remove stops the server and deletes the folders
 */

/**
 * @param {number} [delayMs] before each of the agent's answers
 * @returns {Promise<World>}
 */
export async function makeWorld(delayMs = 0) {
  const folder = mkdtempSync(path.join(os.tmpdir(), "pi-lossless-demo-"));
  const [agentDir, project, sessions, store] = ["agent", "shop", "sessions", "store"].map((name) => path.join(folder, name));
  const log = path.join(folder, "requests.jsonl");
  const session = path.join(sessions, path.basename(sessionFile));
  for (const dir of [project, sessions, store]) mkdirSync(dir, { recursive: true });
  cpSync(projectFolder, project, { recursive: true });
  copySession(session, project);
  const server = await startModelServer({ reply: (request) => ({ ...demoReply(request), delayMs: request.kind === "turn" ? delayMs : 0 }), log });
  writeAgentDir(agentDir, { url: server.url, api: "anthropic", models: [SMALL], settings: { quietStartup: true } });
  const removeFolders = () => rmSync(folder, { recursive: true, force: true });
  process.once("exit", removeFolders);
  const remove = async () => {
    await server.close();
    removeFolders();
  };
  return { folder, agentDir, project, session, store, log, server, remove };
}

/**
 * Pi opens a session only if its folder exists, so the copy's first line names ours. All other lines are unchanged.
 * @param {string} target
 * @param {string} cwd
 */
function copySession(target, cwd) {
  cpSync(sessionFile, target);
  const [first, ...rest] = readFileSync(target, "utf8").split("\n");
  writeFileSync(target, [JSON.stringify({ ...JSON.parse(first), cwd }), ...rest].join("\n"));
}
