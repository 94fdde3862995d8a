/**
 * The four modes of Pi (print, json, rpc, TUI) behind one interface, so that tests read the same for each.
 *
 * A test sends messages and acts (`/new`, `/fork`, …). Print and json mode get everything as arguments of one run; rpc and the TUI do one
 * step after the other, by Pi's own commands and keys or by those of `acting.mjs`. After each step, the footer must be back if there is
 * one.
 */
import assert from "node:assert/strict";
import { eventually } from "./project.mjs";
import { jsonOf } from "./session-file.mjs";

/** @typedef {import("./project.mjs").Project} Project */
/** @typedef {import("./session-file.mjs").SessionFile} SessionFile */
/** @typedef {import("./terminal.mjs").Terminal} Terminal */

/** @typedef {"new" | "fork" | "clone" | "tree" | "tree-summary" | "reload" | "switch" | "compact"} Action */

/**
 * A message to the model, or an action; `which` is the text of the entry it applies to, and for a switch the session.
 * @typedef {{ say: string } | { act: Action, which?: string | SessionFile }} Step
 */

/** The model's answer to a text, so that a screen shows which text was answered. @param {string} text */
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

/** The number of messages in the session's footer. @param {SessionFile} session */
function countOf({ entries }) {
  return entries.filter((entry) => jsonOf(entry) !== null && entry.message?.role !== "system").length;
}

/**
 * The only session in which the user sent this text.
 * @param {Project} project
 * @param {string} text
 */
export function sessionSaying(project, text) {
  const [found, ...others] = project.sessions().filter(({ entries }) => entries.some((entry) => saidBy(entry, "user") === text));
  assert.ok(found, `"${text}" is in a session file`);
  assert.deepEqual(others, [], `"${text}" is in only one session file`);
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

/** Print and json mode: each turn is a separate run. */
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
   * Sends a message, and then another that gets the signal before an answer.
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
      // Pi 1.5.2 writes this when it is stopped in print mode, with or without the extension.
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
    assert.ok(last && "say" in last, "a run ends with a message");
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
        // Within a session the footer is only redrawn when its text changes.
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

/** The TUI's message after each action. */
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
      // The message's text is in the editor now; this empties it.
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
        await terminal.waitFor((screen) => /→ Summarize$/m.test(screen), "the option with a summary");
      }
      terminal.press("enter");
      await terminal.waitFor((screen) => !screen.includes("Summarize branch?"), "the choice is made");
    }
    if (act === "switch") {
      await this.#shows("Resume Session");
      const { entries } = /** @type {SessionFile} */ (which);
      const first = entries.map((entry) => saidBy(entry, "user")).find(Boolean) ?? "";
      terminal.type(first);
      // If a list is filled after the search was typed, the selection may be on another session.
      const stands = () => terminal.waitFor((screen) => /^\s*›/m.test(screen), "the list is shown").then(() => this.#selected(first, 2000));
      await stands().catch(() => (terminal.press("up"), stands())).catch(() => (terminal.press("up"), this.#selected(first)));
      terminal.press("enter");
    }
  }

  /** The list's selected line. @param {string} text @param {number} [timeoutMs] */
  async #selected(text, timeoutMs) {
    await this.terminal.waitFor((screen) => screen.split("\n").some((line) => /^\s*›/.test(line) && line.includes(text)), `the selection is "${text}"`, timeoutMs);
  }
}

/** @param {string | SessionFile} [which] */
function nameOf(which = "") {
  return typeof which === "string" ? which : which.file;
}
