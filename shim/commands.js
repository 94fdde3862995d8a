/**
 * `/lcm`: hands a line to the engine and shows what it answers, in whatever way this Pi talks with its user.
 *
 * The engine knows the sub-commands; here is only what needs Pi for it.
 */

import { blockOf, liveOf } from "./boundary.js";
import { legibleJson } from "./columns.js";
import { viewerTemplate } from "./loader.js";
import { components } from "./panel.js";
import { choices, compact, messageOf, modeOf, quietly, say, sessionFolders, settingsFor, sourcesOf, uiOf, unwrap, windowOf } from "./pi.js";
import { searchPanel } from "./searching.js";
import { settingsDialogs, settingsPanel } from "./settings.js";
import { showImport, showStatus } from "./status.js";
import { ready, storedLeaf } from "./tree.js";

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionAPI} ExtensionAPI */
/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionCommandContext} ExtensionCommandContext */
/** @typedef {import("./tree.js").Session} Session */

/** A sub-command. @typedef {{ name: string, help: string, arguments: { value: string, help: string }[], long: boolean }} Spec */
/**
 * What one answers.
 *
 * @typedef {object} Answer
 * @property {string} text
 * @property {unknown} answer the same as data
 * @property {{ title: string, message: string, line: string }} [confirm] what the user is to agree to first
 * @property {{ customType: string, content: string, details: unknown }} [told] what is to stand in the session for the model
 */

/** What asks for JSON in place of words, wherever it stands. */
const JSON_FLAG = /(^|\s)--json(?=\s|$)/;

/** What is answered without a session too. */
const SETTINGS = /^\s*settings(?=\s|$)/;

/** What says something to the model. */
const TELLS = /^\s*notes\s+(add|set|remove|clear)(?=\s|$)/;

/** Another name for `/lcm context`. */
const CONTEXT = "ctx-status";

/** Columns beside a text in Pi's transcript. */
const MARGIN = 2;

/** After a reload Pi draws its transcript anew; what is said before that is wiped out. */
const REDRAWN_MS = 200;

/** What a command said that made Pi load its extensions anew. Kept where every evaluation of this file finds it. @type {{ text?: string }} */
const left = (/** @type {any} */ (globalThis)[Symbol.for("pi-lossless-context.said")] ??= {});

/**
 * What the commands share with the rest of the extension.
 *
 * @typedef {object} Shared
 * @property {import("../index.d.ts").Native} native
 * @property {() => Session | undefined} session the session that is open
 * @property {() => Session} current the same, or throws
 * @property {import("./status.js").Tell} tell
 * @property {() => { text: string } | undefined} lastReport what the last compaction took
 * @property {(told: NonNullable<Answer["told"]>) => void} [send] puts a message into the session
 */

/**
 * @param {ExtensionAPI} pi
 * @param {Spec[]} specs
 * @param {Shared} shared
 */
export function registerCommands(pi, specs, shared) {
  pi.registerCommand(CONTEXT, {
    description: "How full the context is, what was pruned of it, what happens next (/lcm context)",
    handler: async (line, ctx) => {
      try {
        await run(specs, shared, `context ${line}`.trim(), ctx);
      } catch (error) {
        sayFailure(ctx, line, error);
      }
    },
  });
  pi.registerCommand("lcm", {
    description: `Lossless history: ${specs.map(({ name }) => name).join(", ")}`,
    getArgumentCompletions: (prefix) => completions(specs, prefix),
    handler: async (line, ctx) => {
      try {
        await run(specs, { ...shared, send: (told) => pi.sendMessage({ ...told, display: false }) }, line.trim(), ctx);
      } catch (error) {
        sayFailure(ctx, line, error);
      }
    },
  });
}

/**
 * Without a command of that name Pi would take `/lcm …` for something to ask the model. What is switched off by a setting can be
 * switched on by it.
 *
 * @param {ExtensionAPI} pi
 * @param {string} reason
 * @param {"info" | "error"} type
 * @param {import("../index.d.ts").Native} [native]
 */
export function registerOff(pi, reason, type, native) {
  pi.registerCommand(CONTEXT, { description: "How full the context is (off)", handler: async (_line, ctx) => say(ctx, reason, type) });
  pi.registerCommand("lcm", {
    description: "Lossless history (off)",
    handler: async (line, ctx) => {
      if (!native || !SETTINGS.test(line)) return say(ctx, reason, type);
      const shared = { native, session: () => undefined, tell: () => {} };
      try {
        await answerOfSettings(shared, line, ctx);
      } catch (error) {
        sayFailure(ctx, line, error);
      }
    },
  });
}

/**
 * Says again in the TUI what was said before a reload, which wiped it out.
 *
 * @param {import("@earendil-works/pi-coding-agent").ExtensionContext} ctx
 */
export function sayAgain(ctx) {
  const { text } = left;
  delete left.text;
  if (text && modeOf(ctx) === "tui") setTimeout(() => quietly(() => uiOf(ctx).notify(text, "info")), REDRAWN_MS);
}

/**
 * @param {ExtensionCommandContext} ctx
 * @param {string} line
 * @param {unknown} error
 */
function sayFailure(ctx, line, error) {
  const message = messageOf(error);
  const answer = { error: { code: /** @type {any} */ (error)?.code ?? "LCM_FAILED", message } };
  say(ctx, JSON_FLAG.test(line) ? legibleJson(JSON.stringify(answer, null, 2)) : message, "error", answer);
}

/**
 * The names that begin with what is typed, or behind a name its arguments.
 *
 * @param {Spec[]} specs
 * @param {string} prefix
 */
function completions(specs, prefix) {
  const [, before = "", word = ""] = /^(.*\s)?(\S*)$/s.exec(prefix.trimStart()) ?? [];
  const [name, ...given] = before.trim().split(/\s+/);
  const known = name === "help" ? named(specs) : (specs.find((spec) => spec.name === name)?.arguments ?? []);
  const choices = before ? known.filter(({ value }) => !given.includes(value)) : named(specs);
  // A list that is still open takes the Enter that should send the command.
  const open = choices.filter(({ value }) => value.startsWith(word) && value !== word);
  // Before anything of an argument is typed, the Enter is the user's too.
  if (open.length === 0 || (before && !word)) return null;
  return open.map(({ value, help }) => ({ value: before + value, label: value, description: help }));
}

/** @param {Spec[]} specs */
function named(specs) {
  return specs.map(({ name, help }) => ({ value: name, help }));
}

/**
 * @param {Spec[]} specs
 * @param {Shared} shared
 * @param {string} line
 * @param {ExtensionCommandContext} ctx
 */
async function run(specs, shared, line, ctx) {
  const [, name = "", rest = ""] = /^(\S*)\s*([^]*)$/.exec(line) ?? [];
  const focus = rest.replace(JSON_FLAG, " ").trim();
  if (name === "compact" && !/(^|\s)--(dry-run|help)(?=\s|$)/.test(focus) && !focus.startsWith("--")) return compactNow(shared, focus, JSON_FLAG.test(rest), ctx);
  const mode = modeOf(ctx);
  const panel = mode === "tui" && !rest ? PANELS[name] : undefined;
  if (panel) return panel(shared, ctx);
  // The TUI takes nothing else until a command has ended.
  const waits = mode !== "tui" || !specs.find((spec) => spec.name === name)?.long;
  const done = answer(shared, line, ctx);
  if (waits) return done;
  done.catch((error) => sayFailure(ctx, line, error));
}

/** What in the TUI is more than an answer. @type {Record<string, (shared: Shared, ctx: ExtensionCommandContext) => Promise<void>>} */
const PANELS = {
  search: async (shared, ctx) => {
    const tui = await components(ctx);
    if (tui) return searchPanel(ctx, tui, (line) => ask(shared, line, ctx));
    const words = await uiOf(ctx).input("Search this session", "words");
    if (words) await answer(shared, `search ${words}`, ctx);
  },
  settings: async (shared, ctx) => {
    const tui = await components(ctx);
    const change = changing(shared, ctx);
    if (tui) {
      await settingsPanel(ctx, tui, change.ask);
    } else {
      const text = await settingsDialogs(ctx, change.ask);
      if (text) say(ctx, text);
    }
    await change.settle();
  },
};

/**
 * Asks of settings, and sees to it that what was changed holds.
 *
 * @param {Pick<Shared, "native" | "session" | "tell">} shared
 * @param {ExtensionCommandContext} ctx
 */
function changing({ native, session, tell }, ctx) {
  const before = settingsFor(native, ctx).settings;
  /** @type {typeof before} */
  let now = before;
  /** @type {string | undefined} */
  let said;
  return {
    /** @param {string} line @returns {Promise<Answer>} */
    ask: async (line) => {
      /** @type {Answer} */
      const answer = unwrap(native.settingsCommand(JSON.stringify({ line, sources: sourcesOf(ctx) })));
      if (/** @type {any} */ (answer.answer)?.saved) {
        now = settingsFor(native, ctx).settings;
        said = answer.text;
        const open = session();
        if (open) await reconfigure(open, now);
        if (open) void showStatus(ctx, open, tell);
      }
      return answer;
    },
    /** What decides whether and where a session is kept, and what the model is shown, holds for one that is opened afterwards. */
    settle: async () => {
      const deciding = /** @type {const} */ (["enabled", "dbDir", "projectIdentity", "notes", "recallOnNew"]);
      if (deciding.every((name) => now[name] === before[name])) return;
      if (!["tui", "rpc"].includes(modeOf(ctx))) return;
      await ctx.waitForIdle();
      left.text = said;
      await ctx.reload();
    },
  };
}

/**
 * @param {Session} session
 * @param {ReturnType<typeof settingsFor>["settings"]} settings
 */
async function reconfigure(session, settings) {
  const engine = await session.engine;
  unwrap(engine.reconfigure(JSON.stringify(settings)));
  Object.assign(session, choices(settings));
}

/**
 * @param {Shared} shared
 * @param {string} focus
 * @param {boolean} asJson
 * @param {ExtensionCommandContext} ctx
 */
async function compactNow({ lastReport }, focus, asJson, ctx) {
  const before = lastReport();
  await compact(ctx, focus);
  const report = lastReport();
  // Pi may have had nothing to compact, or have done it in its own way.
  const message = report === before ? undefined : report?.text;
  const answer = { message: message ?? null };
  if (asJson) say(ctx, legibleJson(JSON.stringify(answer, null, 2)), "info", answer);
  // Elsewhere the notification of `session_compact` has said so.
  else if (message && !ctx.hasUI) say(ctx, message, "info", answer);
}

/**
 * @param {Shared} shared
 * @param {string} line
 * @param {ExtensionCommandContext} ctx
 * @returns {Promise<void>}
 */
async function answer(shared, line, ctx) {
  if (SETTINGS.test(line)) return answerOfSettings(shared, line, ctx);
  // While the model works, it would be one more turn for it, on what it is not asked.
  if (TELLS.test(line)) await ctx.waitForIdle();
  const session = shared.current();
  const shown = showImport(ctx, session, await ready(session));
  const { text, answer: data, confirm, told } = await ask(shared, line, ctx).finally(shown);
  if (told) shared.send?.(told);
  if (!confirm || !ctx.hasUI) {
    say(ctx, text, /** @type {any} */ (data)?.error ? "error" : "info", data);
  } else if (await agreed(ctx, confirm)) {
    return answer(shared, JSON_FLAG.test(line) ? `${confirm.line} --json` : confirm.line, ctx);
  } else {
    say(ctx, "Nothing was removed.");
  }
  void showStatus(ctx, session, shared.tell);
}

/**
 * Does the user want what can't be undone? In the TUI Pi's own question stands on Yes, where a second Enter would take it.
 *
 * @param {ExtensionCommandContext} ctx
 * @param {{ title: string, message: string }} question
 */
async function agreed(ctx, { title, message }) {
  if (modeOf(ctx) !== "tui") return uiOf(ctx).confirm(title, message);
  const yes = "Yes, for good";
  return (await uiOf(ctx).select(`${title}\n${message}`, ["No", yes])) === yes;
}

/**
 * @param {Pick<Shared, "native" | "session" | "tell">} shared
 * @param {string} line
 * @param {ExtensionCommandContext} ctx
 */
async function answerOfSettings(shared, line, ctx) {
  const change = changing(shared, ctx);
  const { text, answer } = await change.ask(line);
  say(ctx, text, "info", answer);
  await change.settle();
}

/**
 * @param {Shared} shared
 * @param {string} line
 * @param {ExtensionCommandContext} ctx
 * @returns {Promise<Answer>}
 */
async function ask(shared, line, ctx) {
  const session = shared.current();
  const engine = await ready(session);
  const request = {
    line,
    leafId: storedLeaf(session, engine).leafId,
    contextWindow: windowOf(ctx),
    live: { ...liveOf(ctx, session), block: blockOf(session) },
    columns: columnsOf(ctx),
    folders: sessionFolders(session),
    sources: sourcesOf(ctx),
    viewerTemplate,
  };
  return unwrap(await engine.command(JSON.stringify(request)));
}

/** What Pi leaves of the screen for a text. @param {ExtensionCommandContext} ctx */
function columnsOf(ctx) {
  return modeOf(ctx) === "tui" && process.stdout.columns ? process.stdout.columns - MARGIN : undefined;
}
