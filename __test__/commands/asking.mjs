/** Sessions for tests of `/lcm`, and its answers. */
import { SessionFile } from "../support/session-file.mjs";

export { SessionFile };

/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../../demo/rpc.mjs").Pi} Pi */

/**
 * A session file with `turns` questions and answers.
 * @param {Project} project
 * @param {number} turns
 */
export function sessionOf(project, turns) {
  const history = project.history();
  history.talk(turns);
  return history.write(project.sessionDir);
}

/**
 * Runs Pi in a session. Returns its output without the session's last answer, which Pi appends in print mode.
 * @param {Project} project
 * @param {string} file
 * @param {string[]} args
 * @param {Parameters<Project["runPi"]>[1]} [options]
 */
export async function inSession(project, file, args, options) {
  const { stdout } = await project.runPi(["--session", file, ...args], options);
  const answers = new SessionFile(file).entries.filter(({ message }) => message?.role === "assistant");
  const last = answers.at(-1)?.message.content.at(-1)?.text;
  return last && stdout.endsWith(`${last}\n`) ? stdout.slice(0, -last.length - 1) : stdout;
}

/**
 * A command's answer as data.
 * @param {Pi} pi
 * @param {string} line
 */
export async function asked(pi, line) {
  const from = pi.events.length;
  await pi.prompt(`${line} --json`);
  const answer = () => pi.events.slice(from).find(({ method, message }) => method === "notify" && message.startsWith("{"));
  return JSON.parse((await pi.waitFor(answer)).message);
}
