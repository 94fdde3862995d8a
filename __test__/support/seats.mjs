/**
 * The four ways to sit at Pi (print, json, rpc, TUI) behind one face, so that what a test does reads the same for each.
 *
 * A test says things and acts (`/new`, `/fork`, …). Print and json get all of it as arguments of one run; rpc and TUI do
 * one thing after the other, by Pi's own commands and keys where there are any, else by those of `acting.mjs`. After each
 * thing said or done the footer must be there again, where there is one.
 */
import assert from "node:assert/strict";
import { eventually } from "./project.mjs";
import { jsonOf } from "./session-file.mjs";

/** @typedef {import("./project.mjs").Project} Project */
/** @typedef {import("./session-file.mjs").SessionFile} SessionFile */
/** @typedef {import("./terminal.mjs").Terminal} Terminal */

/** @typedef {"new" | "fork" | "clone" | "tree" | "tree-summary" | "reload" | "switch" | "compact"} Action */

/**
 * Something said to the model, or something done; `which` is the text of the entry it is done to, and for a switch the
 * session.
 * @typedef {{ say: string } | { act: Action, which?: string | SessionFile }} Step
 */

/** What the model answers to a text, so that a screen shows which one was answered. @param {string} text */
export const heard = (text) => `Heard: ${text}`;

/** @typedef {"print" | "json" | "rpc" | "TUI"} Mode */

/** @type {Mode[]} */
export const modes = ["print", "json", "rpc", "TUI"];

/**
 * @param {Mode} mode
 * @param {Project} project
 */
export function seatAt(mode, project) {
  if (mode === "rpc") return new RpcSeat(project);
  if (mode === "TUI") return new TerminalSeat(project);
  return new RunSeat(project, mode);
}

/** @typedef {RunSeat | RpcSeat | TerminalSeat} Seat */

/** What the session's footer has to count. @param {SessionFile} session */
function countOf({ entries }) {
  return entries.filter((entry) => jsonOf(entry) !== null && entry.message?.role !== "system").length;
}

/**
 * The one session in which the user said this.
 * @param {Project} project
 * @param {string} text
 */
export function sessionSaying(project, text) {
  const [found, ...others] = project.sessions().filter(({ entries }) => entries.some((entry) => saidBy(entry, "user") === text));
  assert.ok(found, `"${text}" stands in a session file`);
  assert.deepEqual(others, [], `"${text}" stands in one session file`);
  return found;
}

/**
 * @param {import("./session-file.mjs").Entry} entry
 * @param {string} role
 * @returns {string | undefined}
 */
export function saidBy({ message }, role) {
  if (message?.role !== role) return undefined;
  if (typeof message.content === "string") return message.content;
  return message.content.find((/** @type {any} */ block) => block.type === "text")?.text;
}

/** Print and json mode: each turn at the seat is a run of its own. */
class RunSeat {
  interactive = false;
  /** @type {string[]} */
  #args = [];

  /**
   * @param {Project} project
   * @param {"print" | "json"} mode
   */
  constructor(project, mode) {
    this.project = project;
    this.mode = mode;
  }

  /** @param {string[]} args Pi's, for the runs to come */
  async begin(args) {
    this.#args = args;
  }

  /** @param {...Step} steps */
  async do(...steps) {
    const { code, signal, stdout } = await this.project.runPi(this.#line(steps));
    assert.deepEqual({ code, signal }, { code: 0, signal: null });
    this.#check(stdout, steps);
  }

  /**
   * Says something, and then something to which no answer comes before the signal does.
   * @param {string} said
   * @param {string} unanswered
   * @param {NodeJS.Signals} signal
   */
  async dieBy(signal, said, unanswered) {
    const asked = this.project.turns.length;
    this.project.script.turns = [{ text: heard(said) }, { hang: true }];
    /** @type {import("node:child_process").ChildProcess | undefined} */
    let child;
    const run = this.project.runPi(this.#line([{ say: said }, { say: unanswered }]), {
      onStart: (started) => (child = started),
      // So Pi 1.5.2 takes leave in print mode, with or without us.
      lastWords: "Request aborted\n",
    });
    await eventually(() => assert.equal(this.project.turns.length, asked + 2));
    child?.kill(signal);
    await run;
  }

  async leave() {}

  /** @param {Step[]} steps */
  #line(steps) {
    const texts = steps.map((step) => {
      if ("say" in step) return step.say;
      return step.act === "compact" ? "/lcm compact" : `/act ${step.act} ${nameOf(step.which)}`.trim();
    });
    return [...(this.mode === "json" ? ["--mode", "json"] : ["-p"]), ...this.#args, ...texts];
  }

  /**
   * @param {string} stdout
   * @param {Step[]} steps
   */
  #check(stdout, steps) {
    if (this.mode === "json") {
      for (const line of stdout.split("\n").filter(Boolean)) assert.ok(JSON.parse(line).type, line);
      return;
    }
    const last = steps.at(-1);
    assert.ok(last && "say" in last, "a run ends with something said");
    const report = steps.some((step) => "act" in step && step.act === "compact") ? "LCM: \\d+ messages in [^\\n]*\\n" : "";
    assert.match(stdout, new RegExp(`^${report}${heard(last.say)}\\n$`));
  }
}

/** Rpc mode. */
class RpcSeat {
  interactive = true;
  /** @type {import("./project.mjs").Pi | undefined} */
  #pi;

  /** @param {Project} project */
  constructor(project) {
    this.project = project;
  }

  get pi() {
    assert.ok(this.#pi, "Pi is running");
    return this.#pi;
  }

  /** @param {string[]} args */
  async begin(args) {
    await this.leave();
    this.#pi = this.project.startPi(args);
    await this.#footerSince(0);
  }

  /** @param {...Step} steps */
  async do(...steps) {
    for (const step of steps) {
      const from = this.pi.events.length;
      if ("say" in step) {
        await this.pi.prompt(step.say);
        const count = countOf(sessionSaying(this.project, step.say));
        await this.pi.waitFor(() => this.pi.status("lcm")?.startsWith(`LCM: ${count} msgs`));
      } else {
        await this.#act(step.act, step.which);
        // Within a session the footer is drawn only when its words change.
        if (!step.act.startsWith("tree")) await this.#footerSince(from);
      }
    }
  }

  /**
   * @param {NodeJS.Signals} signal
   * @param {string} said
   * @param {string} unanswered
   */
  async dieBy(signal, said, unanswered) {
    await this.do({ say: said });
    const asked = this.project.turns.length;
    this.project.script.turns = [{ hang: true }];
    await this.pi.request("prompt", { message: unanswered });
    await eventually(() => assert.equal(this.project.turns.length, asked + 1));
    await this.pi.kill(signal);
    this.#pi = undefined;
  }

  async leave() {
    if (!this.#pi) return;
    const { pi } = this;
    this.#pi = undefined;
    assert.deepEqual(await pi.stop(), { code: 0, signal: null });
    assert.deepEqual(pi.events.filter(({ type }) => type === "extension_error"), []);
    assert.deepEqual(pi.ui("notify").filter(({ notifyType }) => notifyType !== "info"), []);
  }

  /** @param {number} from */
  async #footerSince(from) {
    const shown = () => this.pi.events.slice(from).some(({ method, statusKey, statusText }) => method === "setStatus" && statusKey === "lcm" && /^LCM: \d+ msgs/.test(statusText));
    await this.pi.waitFor(shown);
  }

  /**
   * @param {Action} act
   * @param {string | SessionFile} [which]
   */
  async #act(act, which) {
    const { pi } = this;
    if (act === "new") return pi.request("new_session");
    if (act === "clone" || act === "compact") return pi.request(act);
    if (act === "switch") return pi.request("switch_session", { sessionPath: nameOf(which) });
    if (act === "fork") {
      const { messages } = await pi.request("get_fork_messages");
      return pi.request("fork", { entryId: messages.find((/** @type {any} */ { text }) => text === which).entryId });
    }
    return pi.prompt(`/act ${act} ${nameOf(which)}`.trim());
  }
}

/** By what the TUI says that it has done a thing. */
const DONE = {
  new: "New session started",
  fork: "Forked to new session",
  clone: "Cloned to new session",
  tree: "Navigated to selected point",
  "tree-summary": "Navigated to selected point",
  reload: "Reloaded keybindings",
  switch: "Resumed session",
  compact: "Compacted from",
};

/** The terminal, with Pi's own commands and keys. */
class TerminalSeat {
  interactive = true;
  /** @type {Terminal | undefined} */
  #terminal;

  /** @param {Project} project */
  constructor(project) {
    this.project = project;
  }

  get terminal() {
    assert.ok(this.#terminal, "Pi is running");
    return this.#terminal;
  }

  /** @param {string[]} args */
  async begin(args) {
    await this.leave();
    this.#terminal = this.project.openTerminal(args);
    await this.#shows("LCM: ");
  }

  /** @param {...Step} steps */
  async do(...steps) {
    for (const step of steps) {
      if ("say" in step) {
        await this.terminal.send(step.say);
        await this.#shows(heard(step.say));
        const count = countOf(sessionSaying(this.project, step.say));
        await this.#shows(`LCM: ${count} msgs`);
      } else {
        await this.#act(step.act, step.which);
        await this.terminal.waitFor((screen) => screen.includes(DONE[step.act]) && /^LCM: \d+ msgs/m.test(screen), `"${DONE[step.act]}" and our footer`);
      }
    }
  }

  /**
   * @param {NodeJS.Signals} signal
   * @param {string} said
   * @param {string} unanswered
   */
  async dieBy(signal, said, unanswered) {
    await this.do({ say: said });
    const asked = this.project.turns.length;
    this.project.script.turns = [{ hang: true }];
    await this.terminal.send(unanswered);
    await eventually(() => assert.equal(this.project.turns.length, asked + 1));
    await this.terminal.kill(signal);
    this.#terminal = undefined;
  }

  async leave() {
    if (!this.#terminal) return;
    const { terminal } = this;
    this.#terminal = undefined;
    await terminal.send("/quit");
    await terminal.waitFor(() => terminal.exited, "Pi ends");
    assert.doesNotMatch(terminal.everything, /Extension error|pi-lossless-context:/);
    assert.deepEqual(await terminal.exit, { code: 0, signal: null });
  }

  /** @param {string} text */
  async #shows(text) {
    await this.terminal.waitFor((screen) => screen.includes(text), `"${text}"`);
  }

  /**
   * @param {Action} act
   * @param {string | SessionFile} [which]
   */
  async #act(act, which) {
    const { terminal } = this;
    await terminal.send(act === "switch" ? "/resume" : `/${act.replace("-summary", "")}`);
    if (act === "fork") {
      await this.#shows("Fork from Message");
      await this.#selected(String(which));
      terminal.press("enter");
      // The text of the message is in the editor now; this empties it.
      await this.#shows(DONE.fork);
      terminal.press("ctrl+c");
    }
    if (act === "tree" || act === "tree-summary") {
      await this.#shows("Session Tree");
      terminal.type(String(which));
      await this.#selected(String(which));
      terminal.press("enter");
      await this.#shows("Summarize branch?");
      if (act === "tree-summary") {
        terminal.press("down");
        await terminal.waitFor((screen) => /→ Summarize$/m.test(screen), "the choice with a summary");
      }
      terminal.press("enter");
      await terminal.waitFor((screen) => !screen.includes("Summarize branch?"), "the choice is made");
    }
    if (act === "switch") {
      await this.#shows("Resume Session");
      const { entries } = /** @type {SessionFile} */ (which);
      const first = entries.map((entry) => saidBy(entry, "user")).find(Boolean) ?? "";
      terminal.type(first);
      // A list that is filled after the search was typed keeps its place, which may be another session's.
      const stands = () => terminal.waitFor((screen) => /^\s*›/m.test(screen), "the list is there").then(() => this.#selected(first, 2000));
      await stands().catch(() => (terminal.press("up"), stands())).catch(() => (terminal.press("up"), this.#selected(first)));
      terminal.press("enter");
    }
  }

  /** The line a list stands at. @param {string} text @param {number} [timeoutMs] */
  async #selected(text, timeoutMs) {
    await this.terminal.waitFor((screen) => screen.split("\n").some((line) => /^\s*›/.test(line) && line.includes(text)), `the list stands at "${text}"`, timeoutMs);
  }
}

/** @param {string | SessionFile} [which] */
function nameOf(which = "") {
  return typeof which === "string" ? which : which.file;
}
