/** One project and one Pi that several tests share, each with its own session: starting Pi costs twenty times as much as a session. */
import { after } from "node:test";
import { aProject } from "./project.mjs";

/** @typedef {import("./project.mjs").Project} Project */
/** @typedef {import("./project.mjs").Pi} Pi */
/** @typedef {import("./history.mjs").History} History */

/** @type {OnePi[]} */
const all = [];

// After the file, not a suite: Node does not count a suite that fails only here.
after(async () => {
  const ends = await Promise.allSettled(all.map((one) => one.end()));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
});

/** Ends with the test file. */
export class OnePi {
  /** @type {Promise<Project> | undefined} */
  #project;
  /** @type {Pi | undefined} */
  #pi;
  /** @type {(() => unknown)[]} */
  #ends = [];
  #pasts = 0;

  /** @param {import("./project.mjs").ProjectOptions} options */
  constructor(options) {
    this.options = options;
    all.push(this);
  }

  project() {
    // It outlives a single test.
    const context = /** @type {any} */ ({ after: (/** @type {() => unknown} */ end) => this.#ends.push(end) });
    return (this.#project ??= aProject(context, this.options));
  }

  /**
   * A history that shares nothing with other sessions, not even its beginning: shared messages are stored once.
   * @param {number} exchanges
   */
  async past(exchanges) {
    const project = await this.project();
    const number = ++this.#pasts;
    const history = project.history(`019a4f00-0000-7000-8000-${String(number).padStart(12, "0")}`);
    history.user(`past number ${number}`);
    history.assistant("So it is.");
    history.talk(exchanges);
    return history;
  }

  /** Pi in a new session, or in one with a history. @param {History} [past] */
  async sit(past) {
    const project = await this.project();
    if (!this.#pi) this.#pi = project.startPi(past ? ["--session", past.write(project.sessionDir)] : []);
    else if (past) await project.resume(this.#pi, past);
    else await this.#pi.request("new_session");
    return { project, pi: this.#pi };
  }

  /** Call this after ending Pi: the next test starts another. */
  gone() {
    this.#pi = undefined;
  }

  async end() {
    for (const end of this.#ends) await end();
  }
}
