/**
 * `/lcm`: passes a line to the engine and shows its answer in the way of Pi's mode.
 *
 * The engine knows the subcommands; this file does what needs Pi.
 */

import { columnsFor, show } from "./answers.js";
import { usualPrices } from "./cheaper-model.js";
import { legibleJson } from "./columns.js";
import { viewerTemplate } from "./loader.js";
import { obstacleOf, summarizersOf } from "./models.js";
import { components } from "./panel.js";
import { messageOf, nameOf, passCompaction, sessionFolders, settingsFor, sourcesOf, unwrap } from "./pi.js";
import { searchPanel } from "./search-panel.js";
import { settingsDialogs, settingsPanel } from "./settings-panel.js";
import { shared } from "./shared.js";
import { isAttended, notify, notifyRedrawn, say, uiOf } from "./ui.js";

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionCommandContext} ExtensionCommandContext */
/** @typedef {import("./session.js").Session} Session */

/** A subcommand. @typedef {{ name: string, help: string, arguments: { value: string, help: string }[], long: boolean }} Spec */
/**
 * A subcommand's answer.
 *
 * @typedef {object} Answer
 * @property {string} text
 * @property {unknown} answer the same as data
 * @property {{ title: string, message: string, line: string }} [confirm] what the user must confirm first
 * @property {{ customType: string, content: string, details: unknown }} [entry] an entry of the session for the model
 */

/** The flag for JSON instead of text, anywhere in a line. */
const JSON_FLAG = /(^|\s)--json(?=\s|$)/;

/** The subcommand that needs no session. */
const SETTINGS = /^\s*settings(?=\s|$)/;

/** The subcommands that add a message for the model. */
const ADDS_CONTEXT = /^\s*notes\s+(add|set|remove|clear)(?=\s|$)/;

/** The subcommand that puts another file in the place of the store's. */
const REBUILDS = /^\s*doctor\s(?=.*--rebuild)/;

/** The subcommand for which the user names a model, and that. */
const REDO = /^\s*redo\s(?:.*\s)?--model[=\s]\s*(\S+)/;

/** Another name for `/lcm context`. */
const CONTEXT = "ctx-status";

/** Settings that take effect when a session is opened: whether and where it is stored, and what the model is shown. */
const NEEDS_RELOAD = /** @type {const} */ (["enabled", "dbDir", "projectIdentity", "notes", "recallOnNew"]);

/** @param {Session} session */
export function registerCommands(session) {
  const commands = new Commands(session);
  session.pi.registerCommand(CONTEXT, {
    description: "How full the context is, where it is folded, what that saved (/lcm context)",
    handler: (line, ctx) => guarded(ctx, line, () => commands.run(`context ${line}`.trim(), ctx)),
  });
  session.pi.registerCommand("lcm", {
    description: `Lossless history: ${commands.specs.map(({ name }) => name).join(", ")}`,
    getArgumentCompletions: (prefix) => completions(commands.specs, prefix),
    handler: (line, ctx) => guarded(ctx, line, () => commands.run(line.trim(), ctx)),
  });
}

/**
 * Registers `/lcm` while the extension is off: without a command, Pi would send `/lcm …` to the model. `/lcm settings` can still switch the
 * extension on.
 *
 * @param {Session} session
 * @param {string} reason
 * @param {"info" | "error"} type
 */
export function registerOff(session, reason, type) {
  const off = async (/** @type {ExtensionCommandContext} */ ctx) => say(ctx, reason, type);
  session.pi.registerCommand(CONTEXT, { description: "How full the context is (off)", handler: (_line, ctx) => off(ctx) });
  session.pi.registerCommand("lcm", {
    description: "Lossless history (off)",
    handler: (line, ctx) => (session.native && SETTINGS.test(line) ? guarded(ctx, line, () => answerOfSettings(session, line, ctx)) : off(ctx)),
  });
}

/**
 * Shows again an answer in the TUI that a reload erased.
 *
 * @param {import("@earendil-works/pi-coding-agent").ExtensionContext} ctx
 */
export function repeatAnswer(ctx) {
  const { answer } = shared;
  delete shared.answer;
  if (answer && ctx.mode === "tui") notifyRedrawn(ctx, answer, "info");
}

/**
 * Runs `work` and shows the reason if it fails.
 *
 * @param {ExtensionCommandContext} ctx
 * @param {string} line
 * @param {() => Promise<void>} work
 */
async function guarded(ctx, line, work) {
  try {
    await work();
  } catch (error) {
    const message = messageOf(error);
    const answer = { error: { code: /** @type {any} */ (error)?.code ?? "LCM_FAILED", message } };
    // The session may be gone, and its screen too.
    await respond(ctx, line, JSON_FLAG.test(line) ? json(answer) : message, answer, false).catch(() => {});
  }
}

/** @param {ExtensionCommandContext} ctx @param {string} line @param {string} text @param {unknown} answer @param {boolean} isAwaited */
async function respond(ctx, line, text, answer, isAwaited) {
  const isFailure = Boolean(/** @type {any} */ (answer)?.error);
  // Below the answers before: Pi keeps an error of its own in its place, and moves them.
  if (ctx.mode === "tui") await show(ctx, line, text, isAwaited && !isFailure, { isFailure });
  else say(ctx, text, isFailure ? "error" : "info", answer);
}

/** @param {unknown} answer */
function json(answer) {
  return legibleJson(JSON.stringify(answer, null, 2));
}

/** The names that begin with `prefix`, or after a name its arguments. @param {Spec[]} specs @param {string} prefix */
function completions(specs, prefix) {
  const [, before = "", word = ""] = /^(.*\s)?(\S*)$/s.exec(prefix.trimStart()) ?? [];
  const [name, ...given] = before.trim().split(/\s+/);
  const known = name === "help" ? named(specs) : (specs.find((spec) => spec.name === name)?.arguments ?? []);
  const choices = before ? known.filter(({ value }) => !given.includes(value)) : named(specs);
  // An open list would take the Enter that sends the command.
  const open = choices.filter(({ value }) => value.startsWith(word) && value !== word);
  // Before the user types an argument, Enter sends the command too, and after one that every command has.
  if (open.length === 0 || (before && (!word || JSON_FLAG.test(word)))) return null;
  return open.map(({ value, help }) => ({ value: before + value, label: value, description: help }));
}

/** @param {Spec[]} specs */
function named(specs) {
  return specs.map(({ name, help }) => ({ value: name, help }));
}

/** `/lcm` while a session is open. */
class Commands {
  #session;

  /** @param {Session} session */
  constructor(session) {
    this.#session = session;
    /** @type {Spec[]} */
    this.specs = JSON.parse(session.native.commandSpecs());
  }

  /** @param {string} line @param {ExtensionCommandContext} ctx @returns {Promise<void>} */
  async run(line, ctx) {
    const [, name = "", rest = ""] = /^(\S*)\s*([^]*)$/.exec(line) ?? [];
    const focus = rest.replace(JSON_FLAG, " ").trim();
    if (name === "compact" && !/(^|\s)--(dry-run|help)(?=\s|$)/.test(focus) && !focus.startsWith("--")) return this.#compact(focus, JSON_FLAG.test(rest), ctx);
    const isScreen = ctx.mode === "tui";
    if (isScreen && name === "search" && ["", "--project"].includes(rest.trim())) return this.#search(ctx, rest.trim());
    if (isScreen && line === "settings") return showSettings(this.#session, ctx);
    const isLong = this.specs.find((spec) => spec.name === name)?.long;
    const done = this.#answer(line, ctx, !isLong);
    // The TUI accepts no other input until a command has ended.
    if (!isScreen || !isLong) return done;
    void guarded(ctx, line, () => done);
  }

  /**
   * Runs Pi's own compaction, which this extension answers.
   *
   * @param {string} focus
   * @param {boolean} asJson
   * @param {ExtensionCommandContext} ctx
   */
  async #compact(focus, asJson, ctx) {
    const { compaction } = this.#session;
    const before = compaction.lastReport;
    if (ctx.hasUI && !ctx.isIdle()) notify(ctx, "The agent is working: the compaction follows when its run ends.", "info");
    // Pi would abort the agent for the compaction; before 0.75 that loses a tool's result.
    await ctx.waitForIdle();
    await new Promise((resolve, reject) => {
      // The TUI shows itself why it did not compact.
      const onError = (/** @type {Error} */ error) => (ctx.mode === "tui" ? resolve(undefined) : reject(error));
      ctx.compact({ customInstructions: focus || undefined, onComplete: resolve, onError });
    });
    const report = compaction.lastReport;
    // Pi may have had nothing to compact, or have compacted by itself.
    const message = report === before ? undefined : report?.text;
    const answer = { message: message ?? null };
    if (asJson) say(ctx, json(answer), "info", answer);
    // With a UI, the notification of `session_compact` has shown it.
    else if (message && !ctx.hasUI) say(ctx, message, "info", answer);
  }

  /** @param {ExtensionCommandContext} ctx @param {string} option */
  async #search(ctx, option) {
    const tui = await components(ctx);
    if (tui) return searchPanel(ctx, tui, (line) => this.#ask(line, ctx), Boolean(option));
    const words = await uiOf(ctx).input("Search the history", "words");
    if (words) await this.#answer(`search ${option} ${words}`, ctx, true);
  }

  /** @param {string} line @param {ExtensionCommandContext} ctx @param {boolean} isAwaited @returns {Promise<void>} */
  async #answer(line, ctx, isAwaited) {
    if (SETTINGS.test(line)) return answerOfSettings(this.#session, line, ctx);
    // While the model works, the message would start another turn that nobody asked for.
    if (ADDS_CONTEXT.test(line)) await ctx.waitForIdle();
    const { footer, pi } = this.#session;
    const engine = await this.#session.ready();
    const stop = footer.followImport(engine);
    const asked = this.#ask(line, ctx).finally(stop);
    const { text, answer, confirm, entry } = await (REBUILDS.test(line) ? asked.finally(() => this.#session.renew(engine)) : asked);
    if (entry) pi.sendMessage({ ...entry, display: false });
    if (!confirm || !ctx.hasUI) await respond(ctx, line, text, answer, isAwaited);
    else if (await isConfirmed(ctx, line, confirm)) return this.#answer(JSON_FLAG.test(line) ? `${confirm.line} --json` : confirm.line, ctx, isAwaited);
    else await respond(ctx, line, "Nothing was removed.", undefined, isAwaited);
    void footer.update();
  }

  /** @param {string} line @param {ExtensionCommandContext} ctx @returns {Promise<Answer>} */
  async #ask(line, ctx) {
    const { context, manager, settings, handover } = this.#session;
    const [, writer] = line.match(REDO) ?? [];
    const why = writer?.includes("/") && obstacleOf(ctx, writer);
    if (why) throw new Error(why);
    const engine = await this.#session.ready();
    passCompaction(this.#session, engine);
    const request = {
      line,
      leafId: handover.storedLeaf().leafId,
      live: { ...context.live(ctx.getContextUsage()?.tokens ?? undefined), block: context.begin().block },
      summarizers: summarizersOf(ctx, settings.compactionModels).map((model) => ({ model: nameOf(model), price: usualPrices(model) })),
      columns: columnsFor(ctx),
      folders: sessionFolders(manager),
      sources: sourcesOf(ctx),
      viewerTemplate,
    };
    return unwrap(await engine.command(JSON.stringify(request)));
  }
}

/**
 * Asks the user to confirm an irreversible action. In the TUI, Pi's own question preselects Yes, which a second Enter would confirm, and
 * a long one leaves no room for the choices: the message is shown like an answer first.
 *
 * @param {ExtensionCommandContext} ctx
 * @param {string} line what was asked
 * @param {{ title: string, message: string }} question
 */
async function isConfirmed(ctx, line, { title, message }) {
  if (ctx.mode !== "tui") return uiOf(ctx).confirm(title, message);
  const yes = "Yes, permanently";
  await show(ctx, line, message, true, { leaving: "on to the question" });
  return (await uiOf(ctx).select(title, ["No", yes])) === yes;
}

/** `/lcm settings` in the TUI. @param {Session} session @param {ExtensionCommandContext} ctx */
function showSettings(session, ctx) {
  return changingSettings(session, ctx, async (ask) => {
    const tui = await components(ctx);
    if (tui) return settingsPanel(ctx, tui, ask);
    const text = await settingsDialogs(ctx, ask);
    if (text) say(ctx, text);
  });
}

/** @param {Session} session @param {string} line @param {ExtensionCommandContext} ctx */
function answerOfSettings(session, line, ctx) {
  return changingSettings(session, ctx, async (ask) => {
    const { text, answer } = await ask(line);
    await respond(ctx, line, text, answer, true);
  });
}

/**
 * Runs `work` and applies the settings that it changes.
 *
 * @param {Session} session
 * @param {ExtensionCommandContext} ctx
 * @param {(ask: (line: string) => Promise<Answer>) => Promise<void>} work
 */
async function changingSettings(session, ctx, work) {
  const { native } = session;
  const before = settingsFor(native, ctx).settings;
  let now = before;
  /** @type {string | undefined} */
  let said;
  await work(async (line) => {
    /** @type {Answer} */
    const answer = unwrap(await native.settingsCommand(JSON.stringify({ line, sources: sourcesOf(ctx) })));
    if (!(/** @type {any} */ (answer.answer)?.saved)) return answer;
    now = settingsFor(native, ctx).settings;
    const { setting } = /** @type {any} */ (answer.answer);
    const obstacles = setting.name === "compactionModels" && !JSON_FLAG.test(line) ? setting.value.map((/** @type {string} */ name) => obstacleOf(ctx, name)) : [];
    // It is saved nevertheless: Pi may get the model or its key later.
    answer.text = [answer.text, ...obstacles.filter(Boolean)].join("\n");
    said = answer.text;
    if (session.isOpen) await session.reconfigure(now);
    return answer;
  });
  if (NEEDS_RELOAD.every((name) => now[name] === before[name]) || !isAttended(ctx)) return;
  await ctx.waitForIdle();
  shared.answer = said;
  await ctx.reload();
}
